"""The audit without a model: finds errors in days and questions, and proposes repairs.

Repairs depend on numbers, dates, codes and names: an answer without them gets no proposal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from mnemoscope.datasets.day_logs import drift, pieces
from mnemoscope.datasets.persona_folder import QuestionEntry
from mnemoscope.datasets.personas import DAY_NUMBERS, longest_row
from mnemoscope.datasets.repair_check import WEEK
from mnemoscope.personas.audit.audited_history import AuditedHistory
from mnemoscope.personas.audit.findings import AuditFinding, RepairProposal
from mnemoscope.personas.write.question_rules import (
    COMMON,
    DENIAL,
    asked_words,
    unknown_names,
    word_stems,
)
from mnemoscope.personas.write.session_schedule import SessionSchedule
from mnemoscope.text.matching import normalise

QuestionCheck = Callable[[AuditedHistory, QuestionEntry], Iterator[AuditFinding]]
_HEADING = re.compile(r"^#.*$", re.MULTILINE)


def static_audit(history: AuditedHistory) -> list[AuditFinding]:
    """All findings of a history, in a fixed order."""
    return [*check_days(history), *check_questions(history)]


def check_days(history: AuditedHistory) -> Iterator[AuditFinding]:
    """The findings about days, in order."""
    schedule = SessionSchedule.of(history.files)
    for day in range(1, max(history.files.days, *history.logs) + 1):
        if day not in history.logs:
            # A simulated history has a log for every day, others only for scheduled days.
            if history.ledger is not None or schedule.sessions(day):
                yield AuditFinding(
                    "missing-day", f"{history.files.log(day).name} is not there", day=day
                )
            continue
        text = history.logs[day]
        if not re.search(r"\w", _HEADING.sub("", text)):
            yield AuditFinding("empty-day", "nothing but headings", day=day)
            continue
        there = {piece.session for piece in pieces(text, "session")}
        for session, why in _expected(history, schedule, day).items():
            if session not in there:
                yield AuditFinding("missing-session", f"no session {session}, {why}", day=day)
        today = history.files.date_of(day)
        if off := drift(text, today):
            written = "before" if off < 0 else "after"
            yield AuditFinding(
                "date-drift", f"is {today}, but its log names the day {written} only", day=day
            )


def _expected(history: AuditedHistory, schedule: SessionSchedule, day: int) -> dict[str, str]:
    """The sessions that the day must have, and why.

    A ledger gives the session of each fact. A history that our passes wrote follows the schedule;
    in others only the directed events are certain.
    """
    if history.ledger is not None:
        return {fact.session: f"where {fact.id} was said" for fact in history.facts(day)}
    if history.written_here:
        return dict.fromkeys(schedule.sessions(day), "which the calendar has")
    expected: dict[str, str] = {}
    for arc in history.files.arcs.arcs:
        if any(arc.directed(day)) or day in (arc.wrong_day, arc.corrected_day):
            expected.setdefault(arc.primary_session, f"where {arc.id} has an event")
    return expected


def check_questions(history: AuditedHistory) -> Iterator[AuditFinding]:
    """The findings about questions, in their order."""
    for problem in history.unreadable:
        yield AuditFinding("unreadable", problem, question=_named(problem))
    for entry in history.entries:
        for check in _CHECKS:
            yield from check(history, entry)
    yield from _duplicates(history.entries)


def wants_evidence(entry: QuestionEntry) -> bool:
    """Whether the logs must contain its answer: not a refusal, not a question without an answer."""
    disclosed = entry.expected_disclosure in (None, "answer")
    return disclosed and entry.category != "negative-recall" and not entry.no_evidence


def _unknown_day(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    unknown = sorted(set(entry.relevant_days) - set(history.logs))
    if unknown:
        left = history.evidence(entry)
        proposal = RepairProposal(relevant_days=left) if left else RepairProposal(drop=True)
        yield AuditFinding(
            "unknown-day", f"no log of {_days(unknown)}", entry.id, proposal=proposal
        )


def _value_absent(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    days = history.evidence(entry)
    if not wants_evidence(entry) or not days or not (missing := history.absent(entry, days)):
        return
    elsewhere = days_with(history, entry)
    proposal = RepairProposal(relevant_days=elsewhere) if elsewhere else None
    why = f"{', '.join(missing)} is nowhere in {_days(days)}"
    yield AuditFinding("value-absent", why, entry.id, proposal=proposal)


def _entity_missing(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    days = history.evidence(entry)
    if not wants_evidence(entry) or not days:
        return
    if strange := unknown_names(entry.question, history.files.persona, map(history.stems, days)):
        why = f"{', '.join(strange)} is nowhere in {_days(days)}"
        yield AuditFinding("entity-missing", why, entry.id)


def _no_overlap(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    days = history.evidence(entry)
    if not wants_evidence(entry) or not days:
        return
    asked = word_stems(f"{entry.question} {entry.answer}") - COMMON
    if asked and not any(asked & history.stems(day) for day in days):
        yield AuditFinding(
            "no-overlap",
            f"shares no word with {_days(days)}",
            entry.id,
            proposal=RepairProposal(drop=True),
        )


def _day_number(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    days = history.evidence(entry)
    for named in DAY_NUMBERS.finditer(entry.question):
        if not any(_says(history.plain(day), normalise(named[0])) for day in days):
            why = f"speaks of “{named[0]}”; logs know dates only"
            proposal = RepairProposal(
                question=DAY_NUMBERS.sub(partial(_dated, history), entry.question)
            )
            yield AuditFinding("day-number", why, entry.id, proposal=proposal)
            return


def _whole_window(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    days = tuple(sorted(set(entry.relevant_days)))
    if entry.no_evidence or not len(days) == WEEK == longest_row(days):
        return
    fewer = fewer_days(history, entry) if wants_evidence(entry) else ()
    proposal = RepairProposal(relevant_days=fewer) if fewer else None
    yield AuditFinding("whole-window", f"{_days(days)}, all of them", entry.id, proposal=proposal)


def _after_checkpoint(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    last, until = max(entry.relevant_days), entry.irrelevant_after
    if until is not None and until < last:
        why = f"may be asked until day {until}, but day {last} belongs to its evidence"
        yield AuditFinding("evidence-after-checkpoint", why, entry.id)


def _category(history: AuditedHistory, entry: QuestionEntry) -> Iterator[AuditFinding]:
    if entry.category == "negative-recall" and not DENIAL.search(str(entry.answer)):
        yield AuditFinding(
            "category-doubt", f"negative-recall, answered “{entry.answer}”", entry.id
        )


_CHECKS: Sequence[QuestionCheck] = (
    _unknown_day,
    _value_absent,
    _entity_missing,
    _no_overlap,
    _day_number,
    _whole_window,
    _after_checkpoint,
    _category,
)


def _duplicates(entries: Sequence[QuestionEntry]) -> Iterator[AuditFinding]:
    """Questions with the same words that may be asked at the same time."""
    asked: dict[tuple[str, str | None], list[QuestionEntry]] = {}
    for entry in entries:
        same = asked.setdefault((asked_words(entry.question), entry.query_session), [])
        for first in same:
            if _together(first, entry):
                proposal = RepairProposal(drop=True) if first.answer == entry.answer else None
                yield AuditFinding(
                    "duplicate-question", f"{first.id} asks it too", entry.id, proposal=proposal
                )
                break
        same.append(entry)


def _together(one: QuestionEntry, other: QuestionEntry) -> bool:
    """Whether there is a day on which both may be asked."""
    until = min(e.irrelevant_after or 10**9 for e in (one, other))
    return max(*one.relevant_days, *other.relevant_days) <= until


def _says(text: str, wording: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(wording)}(?!\w)", text) is not None


def _dated(history: AuditedHistory, named: re.Match[str]) -> str:
    """Day numbers as the dates that they stand for."""
    numbers = map(int, re.findall(r"\d+", named[0]))
    return " to ".join(str(history.files.date_of(number)) for number in numbers)


def _named(problem: str) -> str:
    """The id, or else the number, of the entry in a format error."""
    found = re.search(r"\(id ([^)]+)\)", problem) or re.search(r"(entry \d+)", problem)
    return found[1] if found else ""


def _days(days: Sequence[int]) -> str:
    if len(days) > 2 and longest_row(tuple(days)) == len(days):
        return f"days {days[0]}–{days[-1]}"
    return ("day " if len(days) == 1 else "days ") + ", ".join(map(str, days))


def fewer_days(history: AuditedHistory, entry: QuestionEntry) -> tuple[int, ...]:
    """The fewest relevant days that contain every value that all of them contain; else none.

    Among days with equally many values, the one that shares more words with question and answer
    comes first, then the earlier one.
    """
    days = history.evidence(entry)
    everything = set(history.absent(entry, ())) - set(history.absent(entry, days))
    asked = word_stems(f"{entry.question} {entry.answer}")
    holds = {day: everything - set(history.absent(entry, (day,))) for day in days}
    chosen: list[int] = []
    left = everything
    while left:
        best = max(
            days, key=lambda day: (len(holds[day] & left), len(asked & history.stems(day)), -day)
        )
        if not holds[best] & left:
            return ()
        chosen.append(best)
        left = left - holds[best]
    return tuple(sorted(chosen)) if 0 < len(chosen) < len(days) else ()


def days_with(history: AuditedHistory, entry: QuestionEntry) -> tuple[int, ...]:
    """The first day whose log contains every value of the answer; empty if there is none."""
    if not history.absent(entry, ()):
        return ()
    until = entry.irrelevant_after or max(history.logs)
    for day in history.logs:
        if day <= until and not history.absent(entry, (day,)):
            return (day,)
    return ()
