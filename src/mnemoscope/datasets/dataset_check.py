"""Check a dataset: read all of it, count, list repairs and losses, scan for leaked labels."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from mnemoscope.datasets.base import DataFile, Dataset, Findings, withheld_of
from mnemoscope.datasets.leakage import leaks
from mnemoscope.datasets.strata_rules import BrokenRule


class Checked(NamedTuple):
    """The result of a check."""

    counts: dict[str, int]
    findings: Findings
    files: list[DataFile]
    leaked: list[str]
    broken: list[BrokenRule]
    """The questions that break a rule of their stratum; only `strata` has such rules."""
    problems: list[str]
    """Why the check fails; empty if it passes."""


def check(dataset: Dataset, *, subset: bool = False) -> Checked:
    """Read the whole dataset once. `subset` accepts files whose hash is not the pinned one."""
    leaked: list[str] = []
    measured = 0
    repeated: Counter[str] = Counter()
    for scenario in dataset.scenarios():
        leaked += leaks(scenario)
        measured += sum(bool(question.evidence) for question in scenario.questions)
        repeated.update(memory.id for memory in scenario.memories)
    twice = [id for id, n in repeated.items() if n > 1]
    files = dataset.files()
    problems = [f"memory id {id!r} is used by {repeated[id]} memories" for id in twice[:10]]
    problems += leaked[:10]
    if not subset:
        problems += [
            f"{file.path.name}: sha256 {file.sha256} is not the pinned {file.pinned} "
            "(pass --subset if the file is a part of the dataset)"
            for file in files
            if file.matches_pin is False
        ]
    broken: list[BrokenRule] = getattr(dataset, "broken", [])
    problems += [f"withheld: {reason}" for reason in withheld_of(dataset).values()]
    counts = {**dataset.counts(), "questions with evidence": measured}
    return Checked(counts, dataset.findings, files, leaked, broken, problems)
