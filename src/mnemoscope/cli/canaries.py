"""`mnemoscope canaries`: which questions bring out inventions, run after run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from rich import box
from rich.table import Table
from rich.text import Text

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.cli.console import out, print_json, say

SHOWN = 15
KINDS: dict[Literal["always", "newly", "no_longer"], str] = {
    "always": "invents in every run",
    "newly": "invents in the last run, never before",
    "no_longer": "invented in every earlier run, no longer in the last",
}


def canaries(*runs: Path, json: bool = False) -> None:
    """Follow questions through several runs: which always invent, newly, no longer.

    A question that brings out an invention in every run is a canary: when it falls silent, the
    system has become better; one that begins to invent shows where it has become worse.

    For example:

        mnemoscope canaries runs/v1/hybrid runs/v2/hybrid

    Parameters
    ----------
    runs
        Run directories of `run personas`, the oldest first.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.analysis.hallucination import canaries as follow
    from mnemoscope.analysis.recall_bench_format import read_records_of

    if len(runs) < 2:
        raise UsageError("give at least two run directories, the oldest first")
    labels = [str(path) for path in runs]
    if len(set(labels)) < len(labels):
        raise UsageError("the same run is given twice")
    directories = map(RunDirectory, runs)
    records = {label: read_records_of(one) for label, one in zip(labels, directories, strict=True)}
    found = follow(records)
    if json:
        print_json(found)
        return
    counts = found["counts"]
    for kind, said in KINDS.items():
        table = Table("question", "category", box=box.SIMPLE_HEAD, title_justify="left")
        table.title = f"{counts[kind]:,} × {said}"
        for one in found[kind][:SHOWN]:
            table.add_row(Text(one["question"], "cyan"), Text(one["category"]))
        out.print(table if counts[kind] else Text(table.title))
    rest = f"{counts['unsteady']:,} now and then, {counts['never']:,} never"
    say(out, f"{rest}, {found['not_compared']:,} not judged in the last run and an earlier one")
