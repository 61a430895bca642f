"""Findings: what an audit holds against a day or a question, counted and written down."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.datasets.persona_folder import QuestionEntry

DAY_CODES: Mapping[str, str] = {
    "missing-day": "a day of the life has no log",
    "empty-day": "a log says nothing",
    "missing-session": "something had to happen in a session that the log of the day has not",
    "date-drift": "a log never names its own date, but the day before or after",
}
"""What can be wrong with a day."""
QUESTION_CODES: Mapping[str, str] = {
    "unreadable": "the entry breaks the format; a run would refuse it",
    "unknown-day": "a relevant day has no log",
    "value-absent": "a number, date, code or name of the answer is not in the evidence",
    "entity-missing": "a name in the question occurs nowhere in the evidence",
    "no-overlap": "question and answer share no word with the evidence",
    "day-number": "the question speaks of day numbers, which the evidence never mentions",
    "whole-window": "the relevant days are a whole window of seven",
    "duplicate-question": "the same is asked twice",
    "evidence-after-checkpoint": "it may only be asked before all of its evidence is there",
    "category-doubt": "a negative question whose answer denies nothing",
}
"""What can be wrong with a question, as far as that shows without a model."""
MODEL_CODES: Mapping[str, str] = {
    "not-answerable": "the evidence alone does not give the answer",
    "loose-evidence": "fewer days than the relevant ones give the answer",
    "leaks": "it is answered rightly without any evidence",
    "superseded": "a later day changes the answer",
}
"""What only a model can tell."""
CODES = {**DAY_CODES, **QUESTION_CODES, **MODEL_CODES}


class RepairProposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person who edits the questions could do."""

    relevant_days: tuple[int, ...] = ()
    irrelevant_after: int | None = None
    question: str = ""
    """Other words for it."""
    drop: bool = False


class AuditFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of the trail: about a question, or about a day."""

    code: str
    why: str
    question: str = ""
    day: int | None = None
    proposal: RepairProposal | None = None


class Tally(NamedTuple):
    """One row of the table: how often a code was found."""

    code: str
    meaning: str
    days: int
    questions: int
    """Those that have it; of what is wrong with days, those that lean on such a day."""
    examples: tuple[str, ...]


def tally(
    findings: Sequence[AuditFinding], entries: Sequence[QuestionEntry], examples: int = 2
) -> list[Tally]:
    """A row for each code that was found, in the order of the codes."""
    rows: list[Tally] = []
    for code, meaning in CODES.items():
        found = [finding for finding in findings if finding.code == code]
        if not found:
            continue
        days = {finding.day for finding in found if finding.day is not None}
        asked = {finding.question for finding in found if finding.question}
        if code in DAY_CODES:
            asked |= {entry.id for entry in entries if days & set(entry.relevant_days)}
        shown = tuple(_example(finding) for finding in found[:examples])
        rows.append(Tally(code, meaning, len(days), len(asked), shown))
    return rows


def _example(finding: AuditFinding) -> str:
    return f"{finding.question or f'day {finding.day}'}: {finding.why}"


def write_proposals(path: Path, findings: Iterable[AuditFinding]) -> int:
    """All that is proposed, by question, for a person to decide; how many questions."""
    by_question: dict[str, list[dict[str, object]]] = {}
    for finding in findings:
        if finding.proposal is not None and finding.question:
            change = msgspec.to_builtins(finding.proposal)
            told = {"code": finding.code, **change, "why": finding.why}
            by_question.setdefault(finding.question, []).append(told)
    written = [{"id": id, "proposals": told} for id, told in by_question.items()]
    note = "# Proposed by an audit; nothing was changed. Edit questions.yaml by hand.\n"
    write_atomically(path, (note + dump_yaml(written)).encode())
    return len(written)
