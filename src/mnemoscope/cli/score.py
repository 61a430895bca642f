"""`mnemoscope score`: somebody else's rankings, no system."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rich import box
from rich.table import Table

from mnemoscope import api
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.console import parse_options, print_json, say
from mnemoscope.results import ScoredRun


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
    from mnemoscope.reports.run_view import RunView

    found = api.score(
        file,
        dataset=dataset,
        out=out,
        format=format,
        compat=compat,
        data=data,
        **parse_options(options, score),
    )
    if json:
        metrics = found.directory.read_json("metrics.json")
        print_json({**metrics, "rule_changes": found.rule_changes})
        return
    stdout.print(run_tables.summary([RunView.of(found.directory)]))
    if found.rule_changes:
        stdout.print(_changes_table(found))
    say(stdout, f"report: {out}/report.md")


def _changes_table(found: ScoredRun) -> Table:
    table = Table(
        "metric",
        title="What the rules change: pgmnemo's own against sound ones",
        caption=found.sound_rules or None,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
    )
    for column in ("pgmnemo's rules", "sound rules", "difference"):
        table.add_column(column, justify="right")
    for name, change in found.rule_changes.items():
        table.add_row(
            name,
            f"{change.compat:.4f}",
            f"{change.sound:.4f}",
            f"{change.difference:+.4f}",
        )
    return table
