"""report.md: everything a reader needs to judge a run, in one page of Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from mnemoscope._store.jsonl import write_atomically, write_json
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope.reports import (
    answer_tables,
    forgetting_tables,
    longitudinal_report,
    published_comparison,
)
from mnemoscope.reports.markdown_table import table as markdown_table
from mnemoscope.reports.run_view import (
    RunView,
    as_content,
    caveats,
    chances,
    headline,
    no_better_than_no_memory,
)


def write_report(run: RunDirectory) -> None:
    """report.md, and published.json where the run can be set beside what others published."""
    view = RunView.of(run)
    page = published_comparison.of_run(view)
    write_atomically(run.path / "report.md", report(view, page).encode())
    run.vouch("report.md")
    if page is not None:
        run.write_json("published.json", page.json)
        run.vouch("published.json")


def write_summary(folder: Path, views: Sequence[RunView]) -> None:
    """summary.md and summary.json of these runs, and of earlier ones of the benchmark beside them.

    Runs of another benchmark in the same folder are another story and stay out.
    """
    shown = {view.label: view for view in views}
    for run in find_runs(folder):
        manifest = run.manifest()
        same = manifest.identity["benchmark"] == views[0].manifest.identity["benchmark"]
        if same and manifest.state == "complete":
            shown.setdefault(run.label, RunView.of(run))
    everything = sorted(shown.values(), key=lambda view: view.is_arm)
    write_atomically(folder / "summary.md", summary(everything).encode())
    write_json(folder / "summary.json", as_content(everything))


def report(view: RunView, beside: published_comparison.Page | None = None) -> str:
    questions = view.metrics["questions"]
    coverage = questions["coverage"]
    sections = [
        f"# {view.label} on {view.manifest.identity['benchmark']['name']}",
        "\n".join(
            [
                f"- benchmark: {view.benchmark}",
                f"- system: `{view.manifest.identity['system']['spec']}`",
                *(f"- {line}" for line in view.asked_by),
                *_asked(view),
                f"- {'recall at the last checkpoint' if view.life else 'questions'}: "
                f"{questions['asked']:,} asked, {questions['scorable']:,} with "
                f"evidence, {questions['measured']:,} measured"
                + (f" (coverage {coverage:.1%})" if coverage is not None else ""),
                f"- data sha256: {', '.join(view.manifest.identity['benchmark']['sha256'])}",
                f"- fingerprint: {view.manifest.fingerprint}",
                f"- protocol: {view.manifest.protocol.get('id', 'none')}",
                f"- state: {view.manifest.state}",
            ]
        ),
        *_bullets("To be told beside the numbers", caveats(view)),
        *_life(view),
        *_answers(view),
        *([forgetting_tables.markdown(view.forgetting)] if view.forgetting else []),
        *([beside.markdown] if beside else []),
        *_retrieval(view),
        "## Ingestion",
        markdown_table(["what", "count"], view.metrics["ingestion"].items()),
        "## Statuses",
        markdown_table(["status", "trials"], view.metrics["statuses"].items()),
        "## Timing",
        _timing(view),
    ]
    return "\n\n".join(sections) + "\n"


def _asked(view: RunView) -> list[str]:
    """Over all checkpoints: what was asked, judged, and what failed."""
    if not view.life:
        return []
    points = view.life["checkpoints"]
    asked, judged, failed = (sum(p[k] for p in points) for k in ("asked", "judged", "failed"))
    told = "; ".join(f"{number:,} × {error}" for error, number in view.life["errors"].items())
    return [
        f"- questions over {len(points)} checkpoints: {asked:,} asked, {judged:,} judged, "
        f"{failed:,} failed" + (f" ({told})" if told else "")
    ]


def _life(view: RunView) -> list[str]:
    if not view.life or not view.judged:
        return []
    pictures = [("heatmap", "heatmap.png"), ("recall against hallucination", "hallucination.png")]
    there = [picture for picture in pictures if (view.path / picture[1]).exists()]
    return [longitudinal_report.markdown(view.life, pictures=there)]


def _answers(view: RunView) -> list[str]:
    """What the answers are worth; of a life, whose heatmap says that, only why they failed."""
    accounts = view.timing.get("accounts")
    total = accounts["total"] if accounts else {"requests": 0, "cached": 0}
    paid = accounts if total["requests"] + total["cached"] else None
    if view.answers is None:
        return answer_tables.failures(None, paid, view.category_name)
    diagnosis = view.answers["diagnosis"]
    if view.life:
        return answer_tables.failures(diagnosis, paid, view.category_name)
    exams = view.exams
    return [
        answer_tables.markdown(view.answers["figures"], diagnosis, paid, view.category_name, exams),
    ]


def _retrieval(view: RunView) -> list[str]:
    if not view.overall and view.answers:  # the system answered by itself
        return []
    title = "## Overall"
    if view.life or view.forgetting:
        title = "## Retrieval at the last checkpoint"
    elif view.answers:
        title = "## Retrieval"
    return [title, _figures(view.overall), *_categories(view), *_context(view)]


def summary(views: Sequence[RunView]) -> str:
    """summary.md: several systems on one benchmark."""
    names = headline(views)
    lived = [view for view in views if view.life and view.judged]
    rows = [[view.label, *(_short(view.overall.get(name)) for name in names)] for view in views]
    rows.append(["*chance*", *map(_number, chances(views, names))])
    told = [f"{view.label}: {line}" for view in views for line in caveats(view)]
    told += no_better_than_no_memory(views)
    sections = [
        f"# {views[0].benchmark}",
        f"{views[0].metrics['questions']['scorable']:,} questions with evidence. "
        "Mean [95 % interval].",
        *dict.fromkeys("; ".join(view.asked_by) + "." for view in views if view.asked_by),
        markdown_table(["system", *names], rows),
        *_answered(views),
        *(["## At the last checkpoint", _composites(lived)] if lived else []),
        *_bullets("To be told beside the numbers", told),
    ]
    return "\n\n".join(sections) + "\n"


def _answered(views: Sequence[RunView]) -> list[str]:
    """One line a system, those apart whose answers were measured otherwise."""
    sections: list[str] = []
    told = [view for view in views if view.answers and not view.life]
    for metric in dict.fromkeys((v.answers or {})["figures"]["metric"] for v in told):
        own = [view for view in told if (view.answers or {})["figures"]["metric"] == metric]
        rows = []
        for view in own:
            figures = (view.answers or {})["figures"]
            cells = (_mean_of(figures[part]) for part in ("answerable", "all"))
            rows.append([view.label, (view.answers or {})["judge"], *cells])
        head = ["system", "judge", f"{metric}, questions with an answer", f"{metric}, all"]
        sections += ["## Answers", markdown_table(head, rows)]
    for view in views:
        if view.forgetting:
            sections.append(f"## {view.label}\n\n{forgetting_tables.markdown(view.forgetting)[3:]}")
    return sections


def _mean_of(figure: dict[str, Any]) -> str:
    return f"{_mean_and_interval(figure['mean'], figure['ci95'], 4)} (n {figure['n']:,})"


def _composites(views: Sequence[RunView]) -> str:
    """Systems down, overall, hallucination and categories across."""
    ends = {view.label: (view.life or {})["checkpoints"][-1] for view in views}
    categories = list(dict.fromkeys(name for end in ends.values() for name in end["categories"]))
    rows = []
    for label, end in ends.items():
        overall, invented = end["overall"], end["hallucination"]
        cells = (end["categories"].get(name, {}).get("mean") for name in categories)
        rows.append(
            [
                label,
                _mean_and_interval(overall["mean"], overall["ci95"], 2),
                _mean_and_interval(invented["rate"], invented["ci95"], 3),
                *("--" if cell is None else f"{cell:.2f}" for cell in cells),
            ]
        )
    return markdown_table(["system", "composite 0–6", "hallucination", *categories], rows)


def _mean_and_interval(mean: float | None, interval: Sequence[float] | None, digits: int) -> str:
    if mean is None or interval is None:
        return "--"
    low, high = interval
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _figures(figures: dict[str, Any]) -> str:
    return markdown_table(
        ["metric", "mean", "95 % interval", "n", "chance", "lift", "ceiling", ""],
        (
            [
                name,
                _number(figure["mean"]),
                f"[{figure['ci95'][0]:.4f}, {figure['ci95'][1]:.4f}]",
                f"{figure['n']:,}",
                _number(figure["chance"]),
                _number(figure["lift"]),
                _number(figure["ceiling"]),
                _remark(figure),
            ]
            for name, figure in figures.items()
        ),
    )


def _remark(figure: dict[str, Any]) -> str:
    said = []
    if figure.get("vacuous"):
        said.append("vacuous")
    if bounds := figure.get("bounds"):
        said.append(f"bounds [{bounds[0]:.4f}, {bounds[1]:.4f}]")
    return ", ".join(said)


def _categories(view: RunView) -> list[str]:
    categories = view.metrics["by_category"]
    if not categories:
        return []
    names = headline([view])
    rows = [
        [
            view.category_name(key),
            f"{next(iter(figures.values()))['n']:,}",
            *(_short(figures[name]) for name in names),
        ]
        for key, figures in categories.items()
        if figures
    ]
    return ["## By category", markdown_table(["category", "n", *names], rows)]


def _context(view: RunView) -> list[str]:
    curve = view.metrics["context"].get("recall_by_tokens")
    if not curve:
        return []
    rows = [[f"{int(budget):,}", _short(figure)] for budget, figure in curve.items()]
    return [
        "## Recall by context tokens",
        "Evidence that fits whole into a context of so many (estimated) tokens.",
        markdown_table(["tokens", "recall"], rows),
    ]


def _timing(view: RunView) -> str:
    latency = view.timing["recall_ms"] or {}
    rows = [
        [f"recall {key} (ms)" if key != "n" else "recalls timed", value]
        for key, value in latency.items()
    ]
    rows += [
        ["indexing, all scenarios (ms)", view.timing["index_ms"]],
        [
            "index bytes, all scenarios",
            size if (size := view.timing["index_bytes"]) is not None else "--",
        ],
        *([key.replace("_", " "), value] for key, value in view.timing["counters"].items()),
    ]
    return markdown_table(["what", "value"], rows)


def _short(figure: dict[str, Any] | None) -> str:
    if figure is None:
        return "--"
    low, high = figure["ci95"]
    return f"{figure['mean']:.4f} [{low:.4f}, {high:.4f}]"


def _number(value: float | None) -> str:
    return "--" if value is None else f"{value:.4f}"


def _bullets(title: str, lines: Sequence[str]) -> list[str]:
    return [f"## {title}", "\n".join(f"- {line}" for line in lines)] if lines else []
