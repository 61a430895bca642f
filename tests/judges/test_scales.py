"""A judge's scale: what is on it, what passes, and what is refused."""

from __future__ import annotations

import pytest

from mnemoscope.judges import Case, EachCaseAlone, Unjudged
from mnemoscope.judges.appeal import ask, decide
from mnemoscope.judges.judge_panel import PanelOfJudges
from mnemoscope.types import Grade, Question, Scale

CASE = Case(Question("q1", "Where?", reference="Oslo"), "Oslo")


class Stars(EachCaseAlone):
    """Gives always the same number of stars, from 1 to 5; 4 are a pass."""

    scale = Scale("stars", 1, 5, passing=4)

    def __init__(self, stars: float) -> None:
        self.stars = stars

    def judge(self, case: Case) -> Grade:
        return Grade(self.stars)


class Unscaled(EachCaseAlone):
    scale = "big"  # not a Scale: somebody's own attribute

    def judge(self, case: Case) -> Grade:
        return Grade(7.0)


@pytest.mark.parametrize(("stars", "fails"), [(1, True), (3.9, True), (4, False), (5, False)])
def test_the_scale_says_what_passes(stars: float, fails: bool) -> None:
    assert ask(Stars(stars), CASE).fails is fails


@pytest.mark.parametrize("stars", [0, 5.1, -1])
def test_a_grade_that_is_not_on_the_scale_is_no_verdict(stars: float) -> None:
    with pytest.raises(Unjudged, match="outside its scale, 1 to 5"):
        ask(Stars(stars), CASE)


def test_without_a_scale_any_number_is_a_grade_and_half_passes() -> None:
    assert ask(Unscaled(), CASE) == Grade(7.0)
    assert Grade(0.49).fails and not Grade(0.5).fails


def test_a_scale_without_limits_holds_every_number() -> None:
    assert all(map(Scale("gain", None, None).holds, (-1e9, 0, 1e9)))
    assert Scale("gain", None, None).range == "no limit to no limit"


def test_an_appeal_is_made_below_the_passing_grade_of_the_scale() -> None:
    heard = decide(Stars(3), Stars(5), CASE)
    assert heard.final == Grade(5, passing=4)
    assert heard.primary == Grade(3, passing=4)
    assert decide(Stars(4), Stars(1), CASE).primary is None


def test_a_panel_counts_who_passes_on_its_own_scale() -> None:
    panel = PanelOfJudges([("a", Stars(3)), ("b", Stars(4)), ("c", Stars(5))])
    said = panel.judge(CASE)
    assert isinstance(said, Grade)
    assert (said.value, said.votes) == (1.0, {"a": 3.0, "b": 4.0, "c": 5.0})
