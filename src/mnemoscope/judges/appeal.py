"""Appeals: a second judge for failing verdicts; and excerpts of the days around the evidence."""

from __future__ import annotations

from math import isfinite
from typing import NamedTuple

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import printable
from mnemoscope.judges import MARKS, Case, Judge, Unjudged, scale_of
from mnemoscope.types import Grade, Memory, Question, Scale, Scenario, Score


class CaseVerdict(NamedTuple):
    """The verdict on a case."""

    final: Score | Grade
    primary: Score | Grade | None = None
    """The verdict of the first judge, if the second one decided."""
    error: str = ""
    """Why the second judge reached no verdict."""


def ask(judge: Judge, case: Case) -> Score | Grade:
    """The verdict of a judge, checked against the scale that it declares."""
    return checked(judge.judge(case), scale_of(judge))


def checked(score: object, scale: Scale | None = None) -> Score | Grade:
    """The verdict in a form that can be stored; Unjudged if it is invalid.

    A score has whole marks of the rubric. A grade is a number on the scale of the judge.
    """
    if isinstance(score, Grade):
        return _checked_grade(score, scale)
    if not isinstance(score, Score):
        raise Unjudged(f"the judge returned {type(score).__name__}, not a Score or Grade")
    marks: list[int] = []
    for name, most in MARKS.items():
        mark = getattr(score, name)
        if isinstance(mark, bool) or not isinstance(mark, int | float) or not isfinite(mark):
            raise Unjudged(f"the judge gave {mark!r} for {name}, which is not a number")
        if not 0 <= round(mark) <= most:
            raise Unjudged(f"the judge gave {mark} for {name}, which must be 0 to {most}")
        marks.append(round(mark))
    correctness, completeness, hallucination = marks
    reasoning = printable(str(score.reasoning))
    return Score(correctness, completeness, hallucination, reasoning, dict(score.votes))


def _checked_grade(grade: Grade, scale: Scale | None) -> Grade:
    value = grade.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value):
        raise Unjudged(f"the judge gave {value!r} as its grade, which is not a number")
    if scale is not None and not scale.holds(value):
        raise Unjudged(f"the judge gave {value}, which is outside its scale, {scale.range}")
    passing = scale.passing if scale else grade.passing
    odds = grade.log_odds
    if odds is not None and (not isinstance(odds, int | float) or not isfinite(odds)):
        raise Unjudged(f"the judge gave {odds!r} as log-odds, which is not a number")
    reasoning = printable(str(grade.reasoning))
    return Grade(float(value), reasoning, dict(grade.votes), passing, odds)


def decide(primary: Judge, appellate: Judge | None, case: Case) -> CaseVerdict:
    """Judge a case; the second judge decides if the first one fails the answer.

    If the second judge reaches no verdict, the first verdict stands. An endpoint that is down stops
    the run.
    """
    score = ask(primary, case)
    if appellate is None or not score.fails:
        return CaseVerdict(score)
    try:
        second = ask(appellate, case)
        if type(second) is not type(score):
            raise Unjudged(
                "the two judges use different scales: one gives scores, the other grades"
            )
        return CaseVerdict(second, score)
    except MnemoscopeError:
        raise
    except (Exception, SystemExit) as error:
        return CaseVerdict(score, error=f"the appeal failed: {type(error).__name__}: {error}")


def excerpts(scenario: Scenario, question: Question, window: int, memories: int) -> str:
    """The days within `window` of a relevant day, for a judge to check the answer against.

    Only the first `memories` are used, because the system had not ingested later ones. (The
    reference implementation shows later days too.)
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
    parts: list[str] = []
    for day, pieces in sorted(days.items()):
        at = pieces[0].at
        date = "undated" if at is None else at.date().isoformat()
        parts += [f"--- DAY {day} ({date}) ---", *(piece.text.strip() for piece in pieces)]
    return "\n\n".join(parts)
