"""Findings of an audit about days and questions: their codes, counts and files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.datasets.persona_folder import QuestionEntry

DAY_CODES: Mapping[str, str] = {
    "missing-day": "a day of the history has no log",
    "empty-day": "a log has no text",
    "missing-session": "the log of a day lacks a session in which something had to happen",
    "date-drift": "a log names the day before or after instead of its own date",
}
"""Codes for days."""
QUESTION_CODES: Mapping[str, str] = {
    "unreadable": "the entry breaks the format; a run would reject it",
    "unknown-day": "a relevant day has no log",
    "value-absent": "a number, date, code or name of the answer is not in the evidence",
    "entity-missing": "a name in the question occurs nowhere in the evidence",
    "no-overlap": "question and answer share no word with the evidence",
    "day-number": "the question uses day numbers, which the evidence does not contain",
    "whole-window": "the relevant days are a whole window of seven",
    "duplicate-question": "another question asks the same",
    "evidence-after-checkpoint": "it may only be asked before all of its evidence exists",
    "category-doubt": "a negative-recall question whose answer denies nothing",
}
"""Codes for questions that need no model."""
MODEL_CODES: Mapping[str, str] = {
    "not-answerable": "the evidence alone does not give the answer",
    "loose-evidence": "fewer days than the relevant ones give the answer",
    "leaks": "the model answers it correctly without any evidence",
    "superseded": "a later day changes the answer",
}
"""Codes for questions that need a model."""
CODES = {**DAY_CODES, **QUESTION_CODES, **MODEL_CODES}


class RepairProposal(msgspec.Struct, frozen=True, omit_defaults=True):
    """A proposed change of a question."""

    relevant_days: tuple[int, ...] = ()
    irrelevant_after: int | None = None
    question: str = ""
    """The question in other words."""
    drop: bool = False


class AuditFinding(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding about a question or a day."""

    code: str
    why: str
    question: str = ""
    day: int | None = None
    proposal: RepairProposal | None = None


class Tally(NamedTuple):
    """One row of the table: the count of a code."""

    code: str
    meaning: str
    days: int
    questions: int
    """Questions with the finding; for a code of days, those that depend on such a day."""
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
        shown = tuple(f"{one.question or f'day {one.day}'}: {one.why}" for one in found[:examples])
        rows.append(Tally(code, meaning, len(days), len(asked), shown))
    return rows


def write_proposals(path: Path, findings: Iterable[AuditFinding]) -> int:
    """Write the proposals by question for the user to decide; the number of questions."""
    by_question: dict[str, list[dict[str, object]]] = {}
    for finding in findings:
        if finding.proposal is not None and finding.question:
            change = msgspec.to_builtins(finding.proposal)
            proposal = {"code": finding.code, **change, "why": finding.why}
            by_question.setdefault(finding.question, []).append(proposal)
    written = [{"id": id, "proposals": proposals} for id, proposals in by_question.items()]
    note = "# Proposed by an audit; nothing was changed. Edit questions.yaml by hand.\n"
    write_atomically(path, (note + dump_yaml(written)).encode())
    return len(written)
