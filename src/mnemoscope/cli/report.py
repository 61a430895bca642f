"""`mnemoscope report`: print and write the reports of recorded runs."""

from __future__ import annotations

from pathlib import Path

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import out, print_json
from mnemoscope.cli.show_runs import say_raw


def report(
    run: Path,
    /,
    *,
    svg: Path | None = None,
    json: bool = False,
    full: bool = False,
    raw: bool = False,
    data: Path | None = None,
) -> int:
    """Print the tables of a finished run, or of all runs in a folder, and write the reports again.

    No system is called. report.md, report.html and published.json are written into each run. Runs
    with checkpoints are shown as heatmaps; heatmap.png is drawn again.

    For example:

        mnemoscope report runs/locomo

        mnemoscope report runs/locomo --full

        mnemoscope report runs/locomo/bm25 --json

        mnemoscope report runs/locomo --svg locomo.svg

        mnemoscope report runs/personas

        mnemoscope report result.json

    Parameters
    ----------
    run
        A run directory, or a folder of run directories, such as --out of `mnemoscope run`; or a
        result.json, progress.jsonl or questions.jsonl of Recall Bench, which is recomputed from its
        marks. Then the exit code is 1 if a printed figure is not what the marks give.
    svg
        Also draw the figures with their intervals, without timings, into this SVG file.
    json
        Print the figures as JSON instead of tables.
    full
        Also print the figures by category and the cost.
    raw
        Also print figures of a judge that failed its exam or sat none, as it gave them.
    data
        The dataset's file or folder, whose texts report.html shows. By default it is looked for
        where `mnemoscope datasets fetch` puts it; if it is not there, the page keeps its texts.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.closing_sentences import closing_sentences
    from mnemoscope.reports.render_terminal import render
    from mnemoscope.reports.run_view import RunView, as_content

    if run.exists() and api.is_recall_bench(run):
        if svg or data or full or raw:
            raise UsageError(f"--svg, --data, --full and --raw are for runs; {run} is a file")
        return _show_file(run, as_json=json)
    runs = [one.directory for one in api.report(run, data=data).runs]
    views = [RunView.of(one, raw=raw) for one in runs]
    if json:
        print_json(as_content(views))
        return 0
    for benchmark in dict.fromkeys(view.benchmark for view in views):
        own = [view for view in views if view.benchmark == benchmark]
        out.print(run_tables.shown(own, width=out.width, full=full))
        say_raw(own, raw=raw)
        labels = {view.label for view in own}
        out.print(render(closing_sentences([one for one in runs if one.label in labels])))
    if svg is not None:
        from mnemoscope.reports.plot_style import Look
        from mnemoscope.reports.summary_plot import summary_picture

        look = Look(width="page", format="svg")
        svg.write_bytes(summary_picture(views, f"Results in {run.name}", look).content)
    return 0


def _show_file(file: Path, *, as_json: bool) -> int:
    """The report of a file of Recall Bench; 1 if a printed figure is not what its marks give."""
    from mnemoscope.reports import recall_bench_report
    from mnemoscope.reports.render_terminal import render

    found = api.read_recall_bench(file)
    if as_json:
        print_json(recall_bench_report.content(found))
    else:
        out.print(render(recall_bench_report.blocks(found, width=out.width)))
    return int(not all(one.is_same for one in found.reproduced()))
