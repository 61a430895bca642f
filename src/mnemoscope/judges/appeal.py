"""Appeals: a second judge for verdicts that fail, and the days around the evidence to judge by."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from mnemoscope.core.nouns import Memory, Question, Scenario, Score
from mnemoscope.judges import Case, Judge


class Hearing(NamedTuple):
    """What a case came to."""

    final: Score
    primary: Score | None
    """What the first judge said, where a second one decided."""


def hear(primary: Judge, appellate: Judge | None, case: Case) -> Hearing:
    """Judge a case, and let the second judge decide where the first one fails the answer."""
    return appeal(primary.judge(case), appellate, case)


def appeal(score: Score, appellate: Judge | None, case: Case) -> Hearing:
    """A second judge that comes to no score leaves the first verdict, and has not been heard."""
    if appellate is None or not score.fails:
        return Hearing(score, None)
    try:
        return Hearing(appellate.judge(case), score)
    except Exception:
        return Hearing(score, None)


def excerpts(scenario: Scenario, question: Question, window: int, memories: int) -> str:
    """The days within `window` of a relevant day, for a judge that wants to see for itself.

    Only of the first `memories`: what the system could not have known yet must not be held
    against its answer. (The reference implementation shows later days as well.)
    """
    if window <= 0:
        return ""
    wanted = {
        day
        for relevant in question.relevant_days
        for day in range(relevant - window, relevant + window + 1)
    }
    days: dict[int, list[Memory]] = {}
    for memory in scenario.memories[:memories]:
        day = memory.metadata.get("day")
        if isinstance(day, int) and day in wanted:
            days.setdefault(day, []).append(memory)
    return "\n\n".join(_day(day, days[day]) for day in sorted(days))


def _day(day: int, memories: Iterable[Memory]) -> str:
    pieces = list(memories)
    at = pieces[0].at
    date = "undated" if at is None else at.date().isoformat()
    return "\n\n".join([f"--- DAY {day} ({date}) ---", *(piece.text.strip() for piece in pieces)])
