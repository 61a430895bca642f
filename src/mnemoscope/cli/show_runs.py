"""The output of `run`, `answer` and `judge`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemoscope.cli.console import out, print_json, say
from mnemoscope.results import Results

if TYPE_CHECKING:
    from mnemoscope.analysis.repeats import RepeatSet
    from mnemoscope.reports.run_view import RunView


_PICTURES = ("heatmap.png", "ageing.png")


def show_repeats(sets: Sequence[RepeatSet]) -> None:
    """Print the combined figures of declared repeats."""
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.repeat_tables import repeat_blocks

    if sets:
        out.print(render(repeat_blocks(sets)))


def show(
    results: Results,
    *,
    as_json: bool,
    only_heatmaps: bool = False,
    full: bool = False,
    raw: bool = False,
) -> int:
    """Print the tables and, last, a sentence for each system.

    With `raw`, also the figures of judges that passed no exam.

    The exit code is 1 if a system failed on every question.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.closing_sentences import closing_sentences
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.run_view import RunView, as_content

    folder, runs = results.path, results.runs
    views = [RunView.of(run.directory, raw=raw) for run in runs]
    if as_json and results.over_checkpoints:
        name = "result.json" if runs[0].manifest.checkpoints else "metrics.json"
        found = {run.label: run.directory.read_json(name) for run in runs}
        print_json(found[runs[0].label] if len(runs) == 1 else found)
    elif as_json:
        print_json(as_content(views))
    elif results.over_checkpoints:
        out.print(run_tables.shown(views, width=out.width, full=full))
        show_repeats(list(results.repeats().values()))
        if not only_heatmaps:
            names = [one for one in _PICTURES if (runs[0].path / one).exists()]
            also = f", pictures: {folder}/*/{', '.join(names)}" if names else ""
            say(out, f"summary: {folder}/summary.md, reports: {folder}/*/report.html{also}")
    else:
        out.print(run_tables.summary(views, full=full))
        say_raw(views, raw=raw)
        show_repeats(list(results.repeats().values()))
        accounts = [own for view in views if (own := view.timing.get("accounts"))]
        if spent := sum(own["total"]["paid"] for own in accounts):
            say(out, f"paid in total: ${spent:.4f}, without replies from the cache")
        say(out, f"reports: {folder}/*/report.html, summary: {folder}/summary.md")
        if not full:
            say(out, "categories and cost: --full, or the reports")
        out.print(render(closing_sentences([run.directory for run in runs])))
    return int(results.failed_everywhere)


def say_raw(views: Sequence[RunView], *, raw: bool) -> None:
    """Say which of the printed figures are raw: a table with them looks like any other."""
    from mnemoscope.analysis.answers import corrected_though_failed

    reasons: dict[str, list[str]] = {}
    for view in views:
        if raw and view.answers and (why := view.answers.get("withheld")):
            reasons.setdefault(why, []).append(view.label)
    for why, labels in reasons.items():
        say(out, f"! raw figures of {', '.join(labels)}: without --raw they are {why}")
    for view in views if raw else ():
        if view.answers and (interval := corrected_though_failed(view.answers)):
            say(
                out,
                f"! {view.label}: corrected for its errors in the exam that it failed, accuracy "
                f"{interval}; this is no headline",
            )
