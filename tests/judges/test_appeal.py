"""When the second judge decides, and which excerpts a judge gets."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.judges import Case, Unjudged
from mnemoscope.judges.appeal import CaseVerdict, checked, decide, excerpts
from mnemoscope.types import Memory, Question, Scenario, Score

CASE = Case(Question("q", "What?"), "That.")


class Fixed:
    def __init__(self, score: Score | None) -> None:
        self.score = score
        self.cases = 0

    def begin(self, scenario: Scenario) -> None:
        pass

    def judge(self, case: Case) -> Score:
        self.cases += 1
        if self.score is None:
            raise Unjudged("cannot tell")
        return self.score


@pytest.mark.parametrize(
    ("score", "fails"),
    [
        (Score(3, 2, 1), False),
        (Score(2, 1, 1), False),
        (Score(1, 1, 1), True),
        (Score(3, 2, 0), True),
        (Score(0, 0, 1), True),
    ],
)
def test_an_answer_fails_below_four_or_invented_or_with_nothing_right(
    score: Score, fails: bool
) -> None:
    assert score.fails is fails


def test_a_passing_verdict_is_final() -> None:
    second = Fixed(Score(0, 0, 0))
    verdict = decide(Fixed(Score(3, 2, 1)), second, CASE)
    assert (verdict.final, verdict.primary, second.cases) == (Score(3, 2, 1), None, 0)


def test_the_second_judge_decides_if_the_first_one_fails_the_answer() -> None:
    verdict = decide(Fixed(Score(0, 0, 1)), Fixed(Score(3, 1, 1)), CASE)
    assert verdict == CaseVerdict(Score(3, 1, 1), Score(0, 0, 1))


def test_without_a_second_judge_the_first_verdict_stands() -> None:
    assert decide(Fixed(Score(0, 0, 1)), None, CASE) == CaseVerdict(Score(0, 0, 1))


def test_the_first_verdict_stands_if_the_second_judge_reaches_none() -> None:
    verdict = decide(Fixed(Score(0, 0, 1)), Fixed(None), CASE)
    assert (verdict.final, verdict.primary) == (Score(0, 0, 1), None)
    assert verdict.error.startswith("the appeal failed: ")


class Down:
    def begin(self, scenario: Scenario) -> None: ...

    def judge(self, case: Case) -> Score:
        raise MnemoscopeError("the endpoint is down")


def test_a_second_judge_whose_endpoint_is_down_stops_the_run() -> None:
    with pytest.raises(MnemoscopeError, match="the endpoint is down"):
        decide(Fixed(Score(0, 0, 1)), Down(), CASE)


@pytest.mark.parametrize(
    "marks", [(4, 0, 0), (0, -1, 0), (0, 0, 2), ("3", 2, 1), (True, 2, 1), (float("nan"), 2, 1)]
)
def test_marks_outside_the_rubric_are_no_verdict(marks: tuple[Any, ...]) -> None:
    with pytest.raises(Unjudged):
        checked(Score(*marks))


def test_marks_are_rounded_and_reasons_made_printable() -> None:
    assert checked(Score(2.6, 1, 1, "\ud800")) == Score(3, 1, 1, "\\ud800")  # type: ignore[arg-type]
    with pytest.raises(Unjudged, match="NoneType"):
        checked(None)


def test_a_first_judge_that_fails_leaves_the_case_unjudged() -> None:
    with pytest.raises(Unjudged):
        decide(Fixed(None), Fixed(Score(3, 2, 1)), CASE)


def history(per_day: int = 1) -> Scenario:
    first = datetime(2026, 2, 27, tzinfo=UTC)
    memories = [
        Memory(f"{day}/{part}", f"day {day} part {part}\n", first + timedelta(day - 1))
        for day in range(1, 8)
        for part in range(per_day)
    ]
    named = [
        Memory(m.id, m.text, m.at, metadata={"day": int(m.id.partition("/")[0])}) for m in memories
    ]
    return Scenario("life", tuple(named), ())


def test_excerpts_show_the_days_around_the_evidence_in_order() -> None:
    question = Question("q", "What?", relevant_days=(6, 2))

    shown = excerpts(history(), question, window=1, memories=7)

    assert shown == (
        "--- DAY 1 (2026-02-27) ---\n\nday 1 part 0\n\n"
        "--- DAY 2 (2026-02-28) ---\n\nday 2 part 0\n\n"
        "--- DAY 3 (2026-03-01) ---\n\nday 3 part 0\n\n"
        "--- DAY 5 (2026-03-03) ---\n\nday 5 part 0\n\n"
        "--- DAY 6 (2026-03-04) ---\n\nday 6 part 0\n\n"
        "--- DAY 7 (2026-03-05) ---\n\nday 7 part 0"
    )


def test_excerpts_hold_nothing_the_system_had_not_seen() -> None:
    question = Question("q", "What?", relevant_days=(4,))
    assert "DAY 5" not in excerpts(history(), question, window=2, memories=4)


def test_the_pieces_of_a_day_stand_under_one_heading() -> None:
    shown = excerpts(history(2), Question("q", "What?", relevant_days=(3,)), window=1, memories=14)
    assert shown.count("--- DAY") == 3
    assert "day 3 part 0\n\nday 3 part 1" in shown


def test_no_window_shows_nothing() -> None:
    assert excerpts(history(), Question("q", "What?", relevant_days=(3,)), 0, 7) == ""
