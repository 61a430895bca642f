"""BEAM's score by rubric items: two protocols that differ, and the order of events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope._store.errors import UsageError
from mnemoscope.judges import Case, Unjudged
from mnemoscope.judges.nuggets_judge import NuggetsJudge, order_score
from mnemoscope.models.chat import Prompt
from mnemoscope.runner.answer_setup import check_judges
from mnemoscope.types import Expectation, Question

MODEL = f"{__name__}:Scripted"


class Scripted:
    """Marks an item by the marks given; two texts are the same event if one contains the other."""

    marks: ClassVar[dict[str, Any]] = {}
    prompts: ClassVar[list[Prompt]] = []

    def complete(self, prompt: Prompt) -> str:
        self.prompts.append(prompt)
        if "yes or no" in prompt.user:
            line = prompt.user.split(">\n")[1].split("\n</")[0]
            return "yes" if f"\n{line}\n" in prompt.user.split("Line of")[0] else "no"
        [mark] = [mark for item, mark in self.marks.items() if f"ment:\n{item}\n" in prompt.user]
        return json.dumps({"reasoning": "so", "score": mark})


@pytest.fixture(autouse=True)
def sent() -> Iterator[list[Prompt]]:
    Scripted.marks, Scripted.prompts = {"names Oslo": 1, "names the year": 0.5, "is short": 0}, []
    yield Scripted.prompts


def case(
    answer: str = "Oslo",
    category: str = "summarization",
    rubric: tuple[str, ...] = ("names Oslo", "names the year", "is short"),
    expects: Expectation = "answer",
    *,
    abstained: bool = False,
) -> Case:
    question = Question("q", "Where?", category=category, rubric=rubric, expects=expects)
    return Case(question, answer, abstained=abstained)


def test_half_marks_count_only_under_the_fractional_protocol(sent: list[Prompt]) -> None:
    official = NuggetsJudge(MODEL).judge(case())
    fractional = NuggetsJudge(MODEL, protocol="fractional").judge(case())
    assert official.value == pytest.approx(1 / 3)
    assert fractional.value == pytest.approx(1.5 / 3)
    assert official.reasoning == "Marks of the items: 1, 0.5, 0."
    assert len(sent) == 6


def test_the_two_protocols_are_different_judges() -> None:
    """The cheat: compare a fork's mean with the official figure under one name."""
    official, other = NuggetsJudge(MODEL), NuggetsJudge(MODEL, protocol="fractional")
    assert official.identity() != other.identity()


EVENTS = ("moved", "married", "retired")


@pytest.mark.parametrize(
    ("answer", "value"),
    [
        ("moved\nmarried\nretired", 1.0),
        ("retired\nmarried\nmoved", 0.0),
        ("moved\nretired\nmarried", 2 / 3),
    ],
)
def test_events_are_scored_by_their_order(answer: str, value: float) -> None:
    judged = NuggetsJudge(MODEL).judge(case(answer, "event_ordering", EVENTS))
    assert judged.value == pytest.approx(value)


def test_events_are_marked_one_by_one_under_the_fractional_protocol() -> None:
    Scripted.marks = {"moved": 1, "married": 1, "retired": 0}
    judge = NuggetsJudge(MODEL, protocol="fractional")
    backwards = judge.judge(case("married\nmoved", "event_ordering", EVENTS))
    assert backwards.value == pytest.approx(2 / 3)


def test_empty_answers_need_no_model(sent: list[Prompt]) -> None:
    judge = NuggetsJudge(MODEL)
    assert judge.judge(case(" ")).value == 0
    assert judge.judge(case("", expects="abstain", abstained=True)).value == 1
    assert judge.judge(case("", abstained=True)).value == 0
    assert sent == []


def test_a_question_without_rubric_and_a_mark_off_the_scale_are_unjudged() -> None:
    with pytest.raises(Unjudged, match="no rubric items"):
        NuggetsJudge(MODEL).judge(case(rubric=()))
    for mark in (0.7, True, "1", None):
        Scripted.marks = dict.fromkeys(Scripted.marks, mark)
        with pytest.raises(Unjudged, match=r'no "score" that is 0, 0\.5 or 1'):
            NuggetsJudge(MODEL).judge(case())


def test_only_datasets_with_rubrics_can_be_judged() -> None:
    check_judges("beam", ["nuggets,model=x:y"], None)
    with pytest.raises(UsageError, match="marks the items of a rubric, and locomo has none"):
        check_judges("locomo", ["nuggets,model=x:y"], None)


@given(st.permutations(list(range(5))), st.lists(st.sampled_from(range(8)), min_size=1, max_size=7))
def test_the_order_is_kendalls_tau_b(expected: list[int], found: list[int]) -> None:
    """Against scipy, with the ranks that the official script gives."""
    from scipy.stats import kendalltau  # large, and every process collects this file

    texts, others = [f"e{n}" for n in expected], [f"e{n}" for n in found]
    union = list(dict.fromkeys([*texts, *others]))
    ranks = [
        [{item: n for n, item in enumerate(one, 1)}.get(item, len(union) + 1) for item in union]
        for one in (texts, others)
    ]
    tau = kendalltau(*ranks).statistic
    if tau == tau:  # not undefined
        assert order_score(texts, others) == pytest.approx((tau + 1) / 2)


def test_where_tau_is_undefined_only_the_same_list_is_right() -> None:
    """The cheat: repeat one line until all ranks are tied."""
    assert order_score(["moved"], ["moved"]) == 1.0
    assert order_score([*"abcde"], ["a"] * 6) == 0.0
