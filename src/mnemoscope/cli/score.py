"""`mnemoscope score`: somebody else's rankings, no system."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Literal

from rich import box
from rich.table import Table

from mnemoscope._store.errors import MissingData
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import parse_options, print_json, say
from mnemoscope.reports.run_view import RunView


def score(
    file: Path,
    /,
    *,
    dataset: str,
    out: Path,
    format: Literal["jsonl", "trec", "pgmnemo"] = "jsonl",
    compat: Literal["pgmnemo"] | None = None,
    data: Path | None = None,
    json: bool = False,
    **options: str,
) -> None:
    """Score a file of rankings against a dataset's evidence.

    jsonl: one line a question, {"question": ID, "ranking": [MEMORY_ID, …], "scores": […]}.
    trec: a TREC run file. pgmnemo: its raw_retrievals.jsonl.

    For example:

        mnemoscope score my_rankings.jsonl --dataset locomo --out runs/mine

        mnemoscope score results.test --dataset trec --data qrels.test --format trec --out runs/trec

        mnemoscope score raw_retrievals.jsonl --dataset locomo --format pgmnemo \\
            --compat pgmnemo --out runs/theirs

    Parameters
    ----------
    file
        The rankings.
    dataset
        The dataset they answer.
    out
        The run directory to make.
    format
        How the file is written.
    compat
        Score by that project's own rules, to reproduce what it published.
    data
        The dataset's file or folder.
    json
        Print the figures as JSON instead of tables.
    options
        The dataset's own options, such as --granularity turn.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.runner.score_rankings import rule_changes

    if not file.is_file():
        raise MissingData(f"no such file: {file}")
    chosen = parse_options(options, score)

    def scored(rules: Literal["pgmnemo"] | None, folder: Path) -> RunView:
        return _scored(file, dataset, data, folder, format, rules, chosen)

    view = scored(compat, out)
    changes: dict[str, Any] = {}
    if format == "pgmnemo":
        with tempfile.TemporaryDirectory() as scratch:
            other = scored(None if compat else "pgmnemo", Path(scratch) / "other")
        theirs, sound = (view, other) if compat else (other, view)
        changes = rule_changes(dict(theirs.metrics), dict(sound.metrics))
    if json:
        print_json({**view.metrics, "rule_changes": changes})
        return
    stdout.print(run_tables.summary([view]))
    if changes:
        stdout.print(_changes_table(changes, dataset))
    say(stdout, f"report: {out}/report.md")


def _scored(
    file: Path,
    dataset: str,
    data: Path | None,
    folder: Path,
    format: Literal["jsonl", "trec", "pgmnemo"],
    compat: Literal["pgmnemo"] | None,
    options: dict[str, Any],
) -> RunView:
    from mnemoscope.datasets import open_dataset
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.score_rankings import COMPAT_OPTIONS
    from mnemoscope.runner.score_rankings import score as score_file

    rules = COMPAT_OPTIONS.get(dataset, {}) if compat else {}
    opened = open_dataset(dataset, data, {**options, **rules})
    run = score_file(opened, file, folder, format=format, compat=compat)
    write_report(run)
    return RunView.of(run)


_SOUND = {
    "locomo": "sound: a label counts only in the question's own conversation, a repeated one "
    "once,\nmalformed evidence is repaired. The file does not say which conversation a label "
    "is from,\nso the sound figures are upper bounds.",
    "longmemeval": "sound: abstention questions, whose sessions hold no answer, are not scored.",
}
"""What sound rules do otherwise than pgmnemo's."""


def _changes_table(changes: dict[str, Any], dataset: str) -> Table:
    table = Table(
        "metric",
        title="What the rules change: pgmnemo's own against sound ones",
        caption=_SOUND.get(dataset),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for column in ("pgmnemo's rules", "sound rules", "difference"):
        table.add_column(column, justify="right")
    for name, change in changes.items():
        table.add_row(
            name,
            f"{change['compat']:.4f}",
            f"{change['sound']:.4f}",
            f"{change['difference']:+.4f}",
        )
    return table
