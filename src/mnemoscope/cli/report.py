"""`mnemoscope report`: from what is recorded to what is shown, without asking any system again."""

from __future__ import annotations

from pathlib import Path

from mnemoscope.cli.console import out, print_json


def report(run: Path, /, *, svg: Path | None = None, json: bool = False) -> None:
    """Print the tables of a finished run, or of all runs in a folder, and rewrite report.md.

    Examples:

        mnemoscope report runs/locomo

        mnemoscope report runs/locomo/bm25 --json

        mnemoscope report runs/locomo --svg locomo.svg

    Parameters
    ----------
    run
        A run directory, or a folder of them as `mnemoscope run --out` leaves it.
    svg
        Also draw the figures, without timings, as a picture into this file.
    json
        Print the figures as JSON instead of tables.
    """
    from mnemoscope.core.rundir import find_runs
    from mnemoscope.reports import terminal
    from mnemoscope.reports.markdown import write_report
    from mnemoscope.reports.view import RunView
    from mnemoscope.systems import ARMS

    runs = find_runs(run)
    views = [RunView.of(directory) for directory in runs]
    for directory in runs:
        write_report(directory)
    if json:
        print_json({view.label: {**view.metrics, "timing": view.timing} for view in views})
        return
    arms = ARMS if len(views) > 1 else ()
    views.sort(key=lambda view: view.label in arms)
    for benchmark in dict.fromkeys(view.benchmark for view in views):
        out.print(terminal.summary([v for v in views if v.benchmark == benchmark], arms))
    if svg is not None:
        svg.write_text(terminal.picture(views, arms, f"mnemoscope report {run.name}"))
