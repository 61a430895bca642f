"""Judges that ask no model: exact, F1, ROUGE-L; and panels of judges."""

from __future__ import annotations

import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.registry import bind_arguments
from mnemoscope._store.spec import Spec
from mnemoscope.judges import JUDGES, Case, Judge, Unjudged
from mnemoscope.judges.judge_panel import PanelOfJudges
from mnemoscope.judges.plain_judges import F1, Exact, RougeL, Substring
from mnemoscope.text.overlap import locomo_f1, rouge_l
from mnemoscope.types import Expectation, Grade, Question, Scenario, Score


def _case(
    answer: str,
    reference: str = "",
    category: str = "4",
    expects: Expectation = "answer",
    *,
    abstained: bool = False,
) -> Case:
    question = Question("q1", "What?", reference=reference, category=category, expects=expects)
    return Case(question, answer, abstained=abstained)


@pytest.mark.parametrize(
    ("answer", "value"),
    [("the red kite!", 1.0), ("Red, Kite", 1.0), ("a red kites", 0.0), ("kite red", 0.0)],
)
def test_exact_wants_the_same_normalised_words(answer: str, value: float) -> None:
    assert Exact().judge(_case(answer, "A red kite.")) == Grade(value)


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("It is the Riyadh region.", 1.0),
        ("London, Riyadh Region, or Rome", 1.0),
        ("Riyadh and its region", 0.0),
        ("", 0.0),
    ],
)
def test_substring_accepts_the_reference_anywhere(answer: str, value: float) -> None:
    """Also in a list of guesses: that is the official rule, and `contains` refuses it."""
    assert Substring().judge(_case(answer, "Riyadh Region")).value == value


@pytest.mark.parametrize("category", ["1", "2", "3", "4", "temporal-reasoning"])
def test_f1_goes_by_the_category_of_the_question(category: str) -> None:
    said, wanted = "tea, green cups", "cups, tea; cake"
    grade = F1().judge(_case(said, wanted, category))
    assert isinstance(grade, Grade)
    assert grade.value == locomo_f1(said, wanted, category)


def test_f1_of_adversarial_questions_is_decided_by_locomos_phrases() -> None:
    def value(answer: str, *, abstained: bool) -> float:
        return F1().judge(_case(answer, "", "5", "abstain", abstained=abstained)).value

    assert value("It is not mentioned.", abstained=True) == 1.0
    assert value("No idea.", abstained=True) == 0.0
    assert value("A kite.", abstained=False) == 0.0


def test_rouge_l_cuts_as_its_option_says() -> None:
    target = JUDGES.get("rouge-l")
    judge = target(**bind_arguments(target, Spec.parse("rouge-l,tokens=whitespace")))
    assert judge.judge(_case("Red kite!", "red kite.")).value == pytest.approx(0.5)
    assert RougeL().judge(_case("a red kite", "red kite")) == Grade(
        rouge_l("a red kite", "red kite")
    )
    with pytest.raises(UsageError, match="whitespace"):
        bind_arguments(target, Spec.parse("rouge-l,tokens=letters"))


@pytest.mark.parametrize("judge", [Exact(), F1(), RougeL()])
def test_a_question_with_neither_answer_nor_reference_is_decided_by_abstaining(
    judge: Judge,
) -> None:
    silent = judge.judge(_case("I do not know", "", "x", "abstain", abstained=True))
    talking = judge.judge(_case("A kite", "", "x", "abstain"))
    assert (silent.fails, talking.fails) == (False, True)


@pytest.mark.parametrize("judge", [Exact(), F1(), RougeL()])
def test_without_a_reference_there_is_nothing_to_judge_by(judge: Judge) -> None:
    with pytest.raises(Unjudged, match="q1 has no reference"):
        judge.judge(_case("A kite"))


class _Says:
    """A judge that always says the same, or cannot come to anything."""

    def __init__(self, said: Score | Grade | Exception) -> None:
        self.said = said
        self.begun = ""

    def begin(self, scenario: Scenario) -> None:
        self.begun = scenario.id

    def judge(self, case: Case) -> Score | Grade:
        if isinstance(self.said, Exception):
            raise self.said
        return self.said


def _panel(*said: Score | Grade | Exception) -> PanelOfJudges:
    return PanelOfJudges([(f"j{number}", _Says(one)) for number, one in enumerate(said, 1)])


RIGHT, WRONG = Grade(1.0, "fits"), Grade(0.0)


def test_a_panel_grades_by_majority_and_keeps_the_votes() -> None:
    grade = _panel(RIGHT, WRONG, RIGHT).judge(_case("x"))
    assert isinstance(grade, Grade)
    assert (grade.value, grade.votes) == (1.0, {"j1": 1.0, "j2": 0.0, "j3": 1.0})
    assert "j1: fits" in grade.reasoning
    assert _panel(WRONG, WRONG, RIGHT).judge(_case("x")).fails


def test_a_tied_panel_fails_the_answer() -> None:
    assert _panel(RIGHT, WRONG).judge(_case("x")).fails


def test_a_panel_scores_by_the_median_of_each_mark() -> None:
    score = _panel(Score(3, 0, 1), Score(1, 2, 1), Score(2, 1, 0)).judge(_case("x"))
    assert isinstance(score, Score)
    assert (score.correctness, score.completeness, score.hallucination) == (2, 1, 1)
    assert score.votes == {"j1": 4 / 6, "j2": 4 / 6, "j3": 0.5}


def test_of_two_scores_the_lower_marks_count() -> None:
    score = _panel(Score(3, 1, 1), Score(2, 2, 0)).judge(_case("x"))
    assert isinstance(score, Score)
    assert (score.correctness, score.completeness, score.hallucination) == (2, 1, 0)


@pytest.mark.parametrize("grades", [(RIGHT, WRONG), (RIGHT, RIGHT), (RIGHT,)])
def test_scores_and_grades_are_never_put_together(grades: tuple[Grade, ...]) -> None:
    with pytest.raises(Unjudged, match=r"rubric \(j1\).*one number \(j2.*cannot be combined"):
        _panel(Score(3, 2, 1), *grades).judge(_case("x"))


def test_judges_without_a_verdict_are_left_out_while_half_of_them_have_one() -> None:
    silent = Unjudged("mumbled")
    grade = _panel(RIGHT, silent).judge(_case("x"))
    assert grade.votes == {"j1": 1.0}
    assert "j2: mumbled (not counted)" in grade.reasoning
    with pytest.raises(Unjudged, match="1 of 3 judges reached a verdict; j2: mumbled"):
        _panel(RIGHT, silent, silent).judge(_case("x"))


def test_what_stops_a_run_is_not_swallowed_by_a_panel() -> None:
    with pytest.raises(MnemoscopeError, match="down"):
        _panel(RIGHT, MnemoscopeError("the endpoint is down")).judge(_case("x"))


def test_a_panel_begins_with_all_and_shows_recalled_text_where_one_wants_it() -> None:
    one, other = _Says(RIGHT), _Says(RIGHT)
    panel = PanelOfJudges([("one", one), ("other", other)])
    panel.begin(Scenario("s1", (), ()))
    assert (one.begun, other.begun) == ("s1", "s1")
    assert not panel.wants_recalled
    other.wants_recalled = True  # type: ignore[attr-defined]
    assert panel.wants_recalled
    assert panel.identity() == {"panel": {"one": {}, "other": {}}}


def test_a_panel_needs_two_judges_with_different_names() -> None:
    with pytest.raises(UsageError, match="two or more judges"):
        PanelOfJudges([("a", _Says(RIGHT))])
    with pytest.raises(UsageError, match="different names"):
        PanelOfJudges([("a", _Says(RIGHT)), ("a", _Says(WRONG))])
