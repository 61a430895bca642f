"""Draw finished runs: intervals, differences, curves, exams of judges, latency."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from msgspec import structs

from mnemoscope._store.errors import UsageError
from mnemoscope.api.arguments import RunLike, Where, optional_path, readable
from mnemoscope.api.export_runs import finished
from mnemoscope.exports.exported_files import refuse_run_directory
from mnemoscope.reports.plot_style import (
    Look,
    Picture,
    PictureFormat,
    PlotKind,
    ThemeName,
    WidthName,
    format_of,
)
from mnemoscope.results import Results


def plot(
    runs: RunLike | Sequence[RunLike] | Results,
    kind: PlotKind = "intervals",
    *,
    metric: str = "",
    reference: str = "",
    theme: ThemeName = "light",
    width: WidthName = "column",
    title: str | None = None,
    format: PictureFormat | None = None,
    out: Where | None = None,
) -> Picture:
    """Draw finished runs of one benchmark, and write the picture to `out` if it is given.

    `metric` is the one to show, by default recall@10. `reference` is the label of the system that
    the others are compared with in a forest plot, by default bm25, else the first. The format
    follows from the ending of `out`; without it a PNG is returned, which a notebook shows.
    """
    place = optional_path(out)
    if place is not None:
        refuse_run_directory(place)
        format = format_of(place.name)
    look = Look(theme, width, format or "png", title)
    results = finished(runs)
    with readable():
        picture = _drawn(results, kind, metric, reference, look)
    if place is not None:
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(picture.content)
        except OSError as error:
            raise UsageError(f"--out {place}: {error.strerror}") from error
    return picture


def _drawn(results: Results, kind: str, metric: str, reference: str, look: Look) -> Picture:
    from mnemoscope.exports.export_caveats import run_status, status_lines
    from mnemoscope.reports import run_plots
    from mnemoscope.reports.run_view import RunView

    views = [replace(RunView.of(run.directory), label=run.label) for run in results.runs]
    benchmarks = list(dict.fromkeys(view.benchmark for view in views))
    if len(benchmarks) > 1:
        raise UsageError(f"the runs are of several benchmarks: {'; '.join(benchmarks)}")
    notes = status_lines([run_status(run.label, run.directory) for run in results.runs])
    if kind == "intervals":
        from mnemoscope.analysis.system_groups import SystemGroups, groups_or_reason

        name = run_plots.shown_metric(views, metric)
        ranked = all(name in view.metrics["overall"] for view in views)
        runs = [run.directory for run in results.runs]
        groups = groups_or_reason(runs, name) if ranked else None
        own = groups if isinstance(groups, SystemGroups) else None
        return run_plots.intervals_plot(views, own, name, look, notes)
    if kind == "forest":
        return _forest(results, metric, reference, look, notes)
    if kind == "k":
        return run_plots.recall_at_k_plot(views, metric, look, notes)
    if kind == "ageing":
        return run_plots.ageing_plot(views, metric, look, notes)
    if metric:
        raise UsageError(f"--metric is not for a plot of {kind}")
    if kind == "tokens":
        return run_plots.recall_by_tokens_plot(views, look, notes)
    if kind == "judge":
        return run_plots.judge_plot(views, look, notes)
    if kind == "latency":
        return run_plots.latency_plot(views, look, notes)
    raise UsageError(f"unknown plot {kind!r}")


def _forest(
    results: Results, metric: str, reference: str, look: Look, notes: Sequence[str]
) -> Picture:
    """Two runs are compared by all metrics, more runs by one."""
    from mnemoscope.analysis.compare import compare
    from mnemoscope.analysis.system_groups import system_groups
    from mnemoscope.reports.forest_plots import metrics_forest, systems_forest

    runs = results.runs
    if len(runs) < 2:
        raise UsageError("a forest plot compares at least two runs")
    specs = [str(run.manifest.identity["system"]["spec"]) for run in runs]
    default = runs[specs.index("bm25") if "bm25" in specs else 0].label
    base = next((run for run in runs if run.label == (reference or default)), None)
    if base is None:
        raise UsageError(
            f"--reference {reference}: the runs are {', '.join(run.label for run in runs)}"
        )
    if len(runs) == 2:
        [cand] = [run for run in runs if run is not base]
        found = compare(
            base.directory, cand.directory, metrics=[metric] if metric else [], by_category=False
        )
        found = structs.replace(found, base=base.label, cand=cand.label)
        return metrics_forest(found, look, notes)
    groups = system_groups([run.directory for run in runs], metric)
    if groups.of(base.label) is None:
        raise UsageError(f"{base.label} does not compete with the others, so it is no reference")
    baselines = [run.label for run in runs if run.is_baseline]
    return systems_forest(groups, base.label, baselines, look, notes)
