"""What can be wrong with questions, as far as it shows without a model."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mnemoscope.datasets.persona_folder import Entry
from mnemoscope.datasets.personas import DAY_NUMBERS, WEEK, longest_row
from mnemoscope.personas.audit.audited_log import AuditedLife
from mnemoscope.personas.audit.findings import Finding, Proposal
from mnemoscope.personas.audit.repairs import days_with, fewer_days
from mnemoscope.personas.write.question_wording import (
    COMMON,
    DENIAL,
    asked_words,
    strangers,
    word_stems,
)
from mnemoscope.text.matching import normalise

Check = Callable[[AuditedLife, Entry], Iterator[Finding]]


def check_questions(life: AuditedLife) -> Iterator[Finding]:
    """All findings, question by question."""
    for one in life.unreadable:
        yield Finding("unreadable", one.problem, question=_named(one.problem))
    for entry in life.entries:
        for check in _CHECKS:
            yield from check(life, entry)
    yield from _duplicates(life.entries)


def wants_evidence(entry: Entry) -> bool:
    """Whether the logs must hold its answer: neither a refusal nor a silence."""
    told = entry.expected_disclosure in (None, "answer")
    return told and entry.category != "negative-recall" and not entry.no_evidence


def _unknown_day(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    unknown = sorted(set(entry.relevant_days) - set(life.logs))
    if unknown:
        left = life.evidence(entry)
        proposal = Proposal(relevant_days=left) if left else Proposal(drop=True)
        yield Finding("unknown-day", f"no log of {_days(unknown)}", entry.id, proposal=proposal)


def _value_absent(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    days = life.evidence(entry)
    if not wants_evidence(entry) or not days or not (missing := life.absent(entry, days)):
        return
    elsewhere = days_with(life, entry)
    proposal = Proposal(relevant_days=elsewhere) if elsewhere else None
    why = f"{', '.join(missing)} is nowhere in {_days(days)}"
    yield Finding("value-absent", why, entry.id, proposal=proposal)


def _entity_missing(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    days = life.evidence(entry)
    if not wants_evidence(entry) or not days:
        return
    if strange := strangers(entry.question, life.home.persona, map(life.stems, days)):
        why = f"{', '.join(strange)} is nowhere in {_days(days)}"
        yield Finding("entity-missing", why, entry.id)


def _no_overlap(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    days = life.evidence(entry)
    if not wants_evidence(entry) or not days:
        return
    asked = word_stems(f"{entry.question} {entry.answer}") - COMMON
    if asked and not any(asked & life.stems(day) for day in days):
        yield Finding(
            "no-overlap",
            f"shares no word with {_days(days)}",
            entry.id,
            proposal=Proposal(drop=True),
        )


def _day_number(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    days = life.evidence(entry)
    for named in DAY_NUMBERS.finditer(entry.question):
        if not any(_says(life.plain(day), normalise(named[0])) for day in days):
            why = f"speaks of “{named[0]}”; logs know dates only"
            proposal = Proposal(question=DAY_NUMBERS.sub(partial(_dated, life), entry.question))
            yield Finding("day-number", why, entry.id, proposal=proposal)
            return


def _whole_window(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    days = tuple(sorted(set(entry.relevant_days)))
    if entry.no_evidence or not len(days) == WEEK == longest_row(days):
        return
    fewer = fewer_days(life, entry) if wants_evidence(entry) else ()
    proposal = Proposal(relevant_days=fewer) if fewer else None
    yield Finding("whole-window", f"{_days(days)}, all of them", entry.id, proposal=proposal)


def _after_checkpoint(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    last, until = max(entry.relevant_days), entry.irrelevant_after
    if until is not None and until < last:
        why = f"may be asked until day {until}, but day {last} belongs to its evidence"
        yield Finding("evidence-after-checkpoint", why, entry.id)


def _category(life: AuditedLife, entry: Entry) -> Iterator[Finding]:
    if entry.category == "negative-recall" and not DENIAL.search(str(entry.answer)):
        yield Finding("category-doubt", f"negative-recall, answered “{entry.answer}”", entry.id)


_CHECKS: Sequence[Check] = (
    _unknown_day,
    _value_absent,
    _entity_missing,
    _no_overlap,
    _day_number,
    _whole_window,
    _after_checkpoint,
    _category,
)


def _duplicates(entries: Sequence[Entry]) -> Iterator[Finding]:
    """The same words while the same time; asked again after it has expired is another question."""
    asked: dict[tuple[str, str | None], list[Entry]] = {}
    for entry in entries:
        same = asked.setdefault((asked_words(entry.question), entry.query_session), [])
        for first in same:
            if _together(first, entry):
                proposal = Proposal(drop=True) if first.answer == entry.answer else None
                yield Finding(
                    "duplicate-question", f"{first.id} asks it too", entry.id, proposal=proposal
                )
                break
        same.append(entry)


def _together(one: Entry, other: Entry) -> bool:
    """Whether there is a day on which both may be asked."""
    until = min(e.irrelevant_after or 10**9 for e in (one, other))
    return max(*one.relevant_days, *other.relevant_days) <= until


def _says(text: str, wording: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", text) is not None


def _dated(life: AuditedLife, named: re.Match[str]) -> str:
    """Day numbers as the dates that they stand for."""
    numbers = map(int, re.findall(r"\d+", named[0]))
    return " to ".join(str(life.home.date_of(number)) for number in numbers)


def _named(problem: str) -> str:
    """The id, or else the number, of the entry that a format error speaks of."""
    found = re.search(r"\(id ([^)]+)\)", problem) or re.search(r"(entry \d+)", problem)
    return found[1] if found else ""


def _days(days: Sequence[int]) -> str:
    if len(days) > 2 and longest_row(tuple(days)) == len(days):
        return f"days {days[0]}–{days[-1]}"
    return ("day " if len(days) == 1 else "days ") + ", ".join(map(str, days))
