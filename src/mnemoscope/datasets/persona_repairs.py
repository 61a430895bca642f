"""Repairs of the published 180-day history of Recall Bench: a list that comes with the package.

Each repair names what it changes, the old and the new value, its kind and its reason. The list
applies only to the files whose hashes it has, and each reading checks every repair against the
logs. Nothing else is repaired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
from msgspec import Struct

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.datasets.day_logs import day_files, digest
from mnemoscope.datasets.persona_folder import PersonaFolder, QuestionEntry

REPAIRS_FILE = Path(__file__).with_name("recall_bench_180d.json")
REPAIRS_SHA256 = "31b859dec0a9b65ac1c932320dcffe73b27295e56fe1728fb327f23d6669052e"
"""Of the list as released: a run with an edited one says so."""
KINDS: Mapping[str, str] = {
    "log-date": "the log's own date, not the one that its number gives",
    "question-date": "the question's date is not that of its log",
    "answer-date": "the answer's date is not that of its log",
    "day-number": "the question names days by number, which no log does",
    "unnamed-window": "the question speaks of a window or week and does not say which",
    "bare-weekday": "the question names a weekday and no date",
    "whole-week": "the evidence is a whole week, and fewer days state the answer",
    "loose-evidence": "the evidence has other days that do not state the answer",
    "absent-evidence": "the evidence lacks the answer, which another day states",
    "category": "labelled as a question without an answer, and has one",
    "answer-wording": "the answer speaks of the data set instead of the logs",
}
Field = Literal["date", "question", "answer", "category", "evidence"]


class StatedFacts(Struct, frozen=True, forbid_unknown_fields=True):
    """What the evidence of a question must state, each fact in one line of a log.

    `tuesday & basketball` needs both in the line, `bottom line|bottom-line` one of the two.
    """

    id: str
    facts: tuple[str, ...]
    hold: Literal["all", "any"] = "all"
    """Whether each day states all facts, or any of them and all days together each."""


class Repair(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One change of a question or of a log's date."""

    id: str
    """The question, or the memory of the day."""
    field: Field
    old: str | tuple[int, ...]
    new: str | tuple[int, ...]
    kind: str
    reason: str
    facts: tuple[str, ...] = ()
    hold: Literal["all", "any"] = "all"


class RepairList(Struct, frozen=True, forbid_unknown_fields=True):
    """All repairs of one history, and the hashes of the files that they belong to."""

    name: str
    persona: str
    source: str
    licence: str
    files: Mapping[str, str]
    repairs: tuple[Repair, ...]
    confirmed: tuple[StatedFacts, ...]
    """Evidence that was checked in the same way and stays: each of its days states the answer."""

    def counts(self) -> dict[str, int]:
        """How many repairs there are of each kind."""
        found = Counter(repair.kind for repair in self.repairs)
        return {kind: found[kind] for kind in KINDS if found[kind]}


class RepairedQuestions(NamedTuple):
    """The questions and dates of a history after its repairs."""

    entries: list[QuestionEntry]
    """With their old `relevant_days`, which decide when a question is asked."""
    evidence: dict[str, tuple[int, ...]]
    """The days that count as evidence, where they are not the `relevant_days`."""
    dates: dict[int, date]
    """The dates of logs, where they are not those of the day's number."""


def read_repairs(path: Path = REPAIRS_FILE) -> RepairList:
    """The list that comes with the package."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=RepairList)
    except msgspec.DecodeError as error:
        raise DataError(str(error), file=path) from None


def repairs_for(folder: PersonaFolder, path: Path = REPAIRS_FILE) -> RepairList:
    """The repairs of this history; UsageError if they belong to other files."""
    listed = read_repairs(path)
    home = folder.arcs.parent
    found = {
        str(file.relative_to(home).as_posix()): sha256_file(file)
        for file in (folder.arcs, folder.questions)
    }
    found[folder.memories.name] = digest(tuple(day_files(folder.memories).values()))
    other = [name for name, sha256 in listed.files.items() if found.get(name) != sha256]
    if other:
        raise UsageError(
            f"{home}: there are no repairs for this history. {listed.name} is for the published "
            f"180 days of {listed.persona} in Recall Bench, and here {other[0]} is missing or has "
            "another sha256; omit --repairs"
        )
    return listed


def apply_repairs(
    listed: RepairList, entries: Sequence[QuestionEntry], dates: Mapping[str, tuple[int, date]]
) -> RepairedQuestions:
    """Apply all repairs. `dates` gives the day and the date of each memory's log.

    Raises DataError if a repair names what is not there, or another old value.
    """
    by_id = {entry.id: entry for entry in entries}
    evidence: dict[str, tuple[int, ...]] = {}
    moved: dict[int, date] = {}
    changed: set[tuple[str, str]] = set()
    for repair in listed.repairs:
        there = dates if repair.field == "date" else by_id
        if repair.id not in there:
            raise _broken(listed, repair, "the history has no such id")
        if repair.kind not in KINDS:
            raise _broken(listed, repair, f"unknown kind {repair.kind!r}")
        if (repair.id, repair.field) in changed:
            raise _broken(listed, repair, "is repaired twice")
        changed.add((repair.id, repair.field))
        old = _value(repair, by_id.get(repair.id), dates)
        if old != repair.old:
            raise _broken(listed, repair, f"the old value is {repair.old!r}, but it is {old!r}")
        if repair.field == "date":
            moved[dates[repair.id][0]] = date.fromisoformat(str(repair.new))
        elif repair.field == "evidence":
            evidence[repair.id] = tuple(map(int, repair.new))
        else:
            new = {repair.field: repair.new}
            by_id[repair.id] = msgspec.structs.replace(by_id[repair.id], **new)
    return RepairedQuestions([by_id[entry.id] for entry in entries], evidence, moved)


def _value(
    repair: Repair, entry: QuestionEntry | None, dates: Mapping[str, tuple[int, date]]
) -> str | tuple[int, ...]:
    if entry is None:
        return dates[repair.id][1].isoformat()
    if repair.field == "evidence":
        return entry.relevant_days
    return str(getattr(entry, repair.field))


def _broken(listed: RepairList, repair: Repair, problem: str) -> DataError:
    return DataError(f"{repair.id}, field `{repair.field}`: {problem}", file=listed.name)
