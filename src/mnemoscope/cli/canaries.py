"""`mnemoscope canaries`: find the questions whose answers are hallucinations run after run."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from mnemoscope import api
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.console import name_cell, out, print_json, print_table, say

SHOWN = 15
KINDS: dict[Literal["always", "newly", "no_longer"], str] = {
    "always": "hallucinated in every run",
    "newly": "hallucinated in the last run only",
    "no_longer": "hallucinated in every run but the last",
}


def canaries(*runs: Path, json: bool = False) -> None:
    """List the questions whose answers are hallucinations in every run, newly, or no longer.

    A question that is answered with a hallucination in every run is a canary: once it is answered
    without one, the system has improved. A new hallucination shows a regression.

    For example:

        mnemoscope canaries runs/v1/hybrid runs/v2/hybrid

        mnemoscope canaries old/result.json new/result.json

    Parameters
    ----------
    runs
        Run directories of `mnemoscope run personas`, or result.json or questions.jsonl of Recall
        Bench, oldest first.
    json
        Print JSON instead of a table.
    """
    from mnemoscope.analysis.hallucination import canaries as follow

    if len(runs) < 2:
        raise UsageError("give at least two run directories or files, oldest first")
    labels = [str(path) for path in runs]
    if len(set(labels)) < len(labels):
        raise UsageError("a run directory or file is given twice")
    found = follow({label: api.canary_records(label) for label in labels})
    if json:
        print_json(found)
        return
    counts = found["counts"]
    for kind, meaning in KINDS.items():
        title = f"{counts[kind]:,} × {meaning}"
        if not counts[kind]:
            say(out, title)
            continue
        rows = [(name_cell(one["question"]), one["category"]) for one in found[kind][:SHOWN]]
        print_table(("question", "category"), rows, title=title)
        if more := counts[kind] - len(rows):
            say(out, f"and {more:,} more, which --json lists")
    rest = f"{counts['unsteady']:,} hallucinated in some runs, {counts['never']:,} in none"
    say(out, f"{rest}, {found['not_compared']:,} not judged in the last run and an earlier one")
    listed = [one for kind in (*KINDS, "unsteady") for one in found[kind]]  # type: ignore[literal-required]
    if uneven := sum(len({judged for _, judged in one["runs"].values()}) > 1 for one in listed):
        say(
            out,
            f"{uneven:,} of these questions were judged more often in one run than in another, and "
            "one hallucination at any checkpoint counts: more answers have more chances of it",
        )
