"""Appeals: a second judge for verdicts that fail, and the days around the evidence to judge by."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import NamedTuple

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import printable
from mnemoscope.judges import MARKS, Case, Judge, Unjudged, scale_of
from mnemoscope.types import Grade, Memory, Question, Scale, Scenario, Score


class Hearing(NamedTuple):
    """What a case came to."""

    final: Score | Grade
    primary: Score | Grade | None = None
    """What the first judge said, where a second one decided."""
    error: str = ""
    """Why the second one could not be heard."""


def hear(primary: Judge, appellate: Judge | None, case: Case) -> Hearing:
    """Judge a case, and let the second judge decide where the first one fails the answer."""
    return appeal(ask(primary, case), appellate, case)


def ask(judge: Judge, case: Case) -> Score | Grade:
    """What the judge says of the case, checked against the scale that it declares."""
    return checked(judge.judge(case), scale_of(judge))


def checked(score: object, scale: Scale | None = None) -> Score | Grade:
    """What the judge gave, as it can be written; a judge that gives anything else has not judged.

    A score is in whole marks of the rubric, a grade is a number on the judge's scale.
    """
    if isinstance(score, Grade):
        return _checked_grade(score, scale)
    if not isinstance(score, Score):
        raise Unjudged(f"the judge returned {type(score).__name__}, no Score and no Grade")
    marks: list[int] = []
    for name, most in MARKS.items():
        mark = getattr(score, name)
        if isinstance(mark, bool) or not isinstance(mark, int | float) or not isfinite(mark):
            raise Unjudged(f"the judge gave {mark!r} for {name}, which is no number")
        if not 0 <= round(mark) <= most:
            raise Unjudged(f"the judge gave {mark} for {name}, which goes from 0 to {most}")
        marks.append(round(mark))
    correctness, completeness, hallucination = marks
    reasoning = printable(str(score.reasoning))
    return Score(correctness, completeness, hallucination, reasoning, dict(score.votes))


def _checked_grade(grade: Grade, scale: Scale | None) -> Grade:
    value = grade.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise Unjudged(f"the judge gave {value!r} as its grade, which is no number")
    if scale is not None and not scale.holds(value):
        raise Unjudged(f"the judge gave {value}, which is outside its scale, {scale.range}")
    passing = scale.passing if scale else grade.passing
    return Grade(float(value), printable(str(grade.reasoning)), dict(grade.votes), passing)


def appeal(score: Score | Grade, appellate: Judge | None, case: Case) -> Hearing:
    """A second judge that comes to no score leaves the first verdict, and has not been heard.

    What it stands on must hold, though: an endpoint that is down stops the run.
    """
    if appellate is None or not score.fails:
        return Hearing(score)
    try:
        second = ask(appellate, case)
        if type(second) is not type(score):
            raise Unjudged("the second judge does not measure what the first one does")
        return Hearing(second, score)
    except MnemoscopeError:
        raise
    except (Exception, SystemExit) as error:
        return Hearing(score, error=f"no appeal was heard: {type(error).__name__}: {error}")


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
