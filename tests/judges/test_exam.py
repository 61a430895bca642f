"""The exam: its probes, what it finds in judges that are known to be bad, how results are kept."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.judges import Case, Unjudged
from mnemoscope.judges.exam import (
    ExamResult,
    KindResult,
    Probe,
    Share,
    load_probes,
    take,
)
from mnemoscope.judges.longmemeval_judge import LongMemEvalJudge
from mnemoscope.judges.model_judges import Binary, Rubric
from mnemoscope.models.budget import BudgetExhausted, current_budget
from mnemoscope.models.chat import Prompt
from mnemoscope.types import Grade, Scenario, Score

PROBES = load_probes()
RIGHT = '{"reasoning": "r", "verdict": "CORRECT"}'
WRONG = '{"reasoning": "r", "verdict": "WRONG"}'


class Fixed:
    """A judge by a function."""

    def __init__(self, say: Callable[[Case], Score | Grade]) -> None:
        self.say = say

    def begin(self, scenario: Scenario) -> None:
        assert not scenario.questions

    def judge(self, case: Case) -> Score | Grade:
        return self.say(case)


def _knows(case: Case) -> Grade:
    """What somebody says who knows the probes."""
    probe = next(probe for probe in PROBES if probe.id == case.question.id)
    return Grade(float(probe.acceptable))


def _as_reply(acceptable: bool, prompt: Prompt) -> str:
    if prompt.schema and "correctness" in prompt.schema["properties"]:
        good, bad = (3, 2, 1), (0, 0, 0)
        marks = dict(zip(("correctness", "completeness", "hallucination"), good, strict=True))
        if not acceptable:
            marks = dict(zip(marks, bad, strict=True))
        return msgspec.json.encode(marks).decode()
    return RIGHT if acceptable else WRONG


class AlwaysCorrect:
    def complete(self, prompt: Prompt) -> str:
        return _as_reply(True, prompt)


class AlwaysWrong:
    def complete(self, prompt: Prompt) -> str:
        return _as_reply(False, prompt)


class Rubbish:
    def complete(self, prompt: Prompt) -> str:
        return "It depends on how one looks at it."


def _probe_of(prompt: Prompt) -> Probe:
    found = re.search(r"<(answer-\w+)>\n(.*)\n</\1>", prompt.user, re.DOTALL)
    assert found is not None
    fitting = [p for p in PROBES if p.answer == found[2] and p.question in prompt.user]
    assert fitting
    return fitting[0]


class Perfect:
    """Knows the key, and finds the probe by what it is shown of it."""

    def complete(self, prompt: Prompt) -> str:
        return _as_reply(_probe_of(prompt).acceptable, prompt)


class Known(Perfect):
    """Says who it is, so that its replies are kept."""

    def identity(self) -> dict[str, Any]:
        return {"model": "known"}


class Obedient:
    """Knows the key, but does what an answer tells it."""

    def complete(self, prompt: Prompt) -> str:
        probe = _probe_of(prompt)
        return _as_reply(probe.acceptable or probe.kind == "injection", prompt)


def test_the_probes_are_many_of_every_kind_and_all_different() -> None:
    kinds = Counter(probe.kind for probe in PROBES)
    assert len(PROBES) >= 100
    assert sum(probe.acceptable for probe in PROBES) >= 40
    assert len(kinds) == 11
    assert min(kinds.values()) >= 5
    assert len({(probe.question, probe.answer) for probe in PROBES}) == len(PROBES)


def test_the_probes_cover_every_question_type_and_have_a_reference_each() -> None:
    assert {probe.type for probe in PROBES} == {
        "single-session-user",
        "single-session-assistant",
        "single-session-preference",
        "multi-session",
        "temporal-reasoning",
        "knowledge-update",
    }
    assert all(probe.reference.strip() and probe.answer.strip() for probe in PROBES)
    for probe in PROBES:
        unanswerable = probe.kind in ("correct-refusal", "confabulated")
        assert (probe.expects == "abstain") == unanswerable, probe.id


@pytest.mark.parametrize("kind", ["right-paraphrase", "right-verbose", "correct-refusal"])
def test_kinds_of_right_answers_are_acceptable(kind: str) -> None:
    assert all(probe.acceptable for probe in PROBES if probe.kind == kind)


def test_only_negations_are_of_both_sorts() -> None:
    sorts: dict[str, set[bool]] = {}
    for probe in PROBES:
        sorts.setdefault(probe.kind, set()).add(probe.acceptable)
    assert {kind for kind, found in sorts.items() if len(found) == 2} == {"negated"}


def test_a_judge_with_the_key_passes_without_a_mistake() -> None:
    result = take(Fixed(_knows), PROBES)
    assert result.passed
    assert result.mistakes == ()
    assert result.usage is None
    assert result.false_accept.of + result.false_reject.of == len(PROBES)


def strict_longmemeval(model: str) -> LongMemEvalJudge:
    """With the deviation that reads CORRECT and WRONG, which the models here say."""
    return LongMemEvalJudge(model, rules="strict")


@pytest.mark.parametrize("judge", [Binary, Rubric, strict_longmemeval])
def test_every_model_judge_puts_the_probe_before_its_model(judge: Callable[[str], Any]) -> None:
    result = take(judge(f"{__name__}:Perfect"), PROBES, parallelism=4)
    assert result.passed
    assert result.mistakes == ()
    assert result.usage is not None
    assert result.usage.requests == len(PROBES)


@pytest.mark.parametrize("judge", [Binary, Rubric, strict_longmemeval])
def test_a_judge_that_always_says_correct_is_caught(judge: Callable[[str], Any]) -> None:
    result = take(judge(f"{__name__}:AlwaysCorrect"), PROBES)
    assert not result.passed
    assert (result.false_accept.rate, result.false_reject.rate) == (1.0, 0.0)


@pytest.mark.parametrize("judge", [Binary, Rubric, strict_longmemeval])
def test_a_judge_that_always_says_wrong_is_caught(judge: Callable[[str], Any]) -> None:
    result = take(judge(f"{__name__}:AlwaysWrong"), PROBES)
    assert not result.passed
    assert (result.false_accept.rate, result.false_reject.rate) == (0.0, 1.0)


def test_a_judge_that_obeys_answers_is_caught() -> None:
    result = take(Binary(f"{__name__}:Obedient"), PROBES)
    assert not result.passed
    assert {mistake.kind for mistake in result.mistakes} == {"injection"}
    assert result.false_accept.rate > 0.10


def test_a_judge_without_verdicts_is_unjudged_and_fails() -> None:
    result = take(Binary(f"{__name__}:Rubbish"), PROBES[:20])
    assert not result.passed
    assert result.unjudged == Share(20, 20, 1.0)
    assert result.false_accept == result.false_reject == Share(0, 0, 0.0)
    assert {mistake.what for mistake in result.mistakes} == {"unjudged"}


def test_shares_are_of_what_was_judged_and_counted_by_kind() -> None:
    def say(case: Case) -> Grade:
        if case.question.id == "vague-wrong-01":
            raise Unjudged("mumbled")
        return Grade(1.0)

    few = [p for p in PROBES if p.id in ("vague-wrong-01", "vague-wrong-02", "right-verbose-01")]
    result = take(Fixed(say), few)
    assert result.unjudged == Share(1, 3, 1 / 3)
    assert result.false_accept == Share(1, 1, 1.0)
    assert result.false_reject == Share(0, 1, 0.0)
    assert result.kinds == {
        "right-verbose": KindResult(1, 0, 0, 0, wrong=0, right=1),
        "vague-wrong": KindResult(2, 1, 0, 1, wrong=1, right=0),
    }
    assert [(one.probe, one.what) for one in result.mistakes] == [
        ("vague-wrong-01", "unjudged"),
        ("vague-wrong-02", "false accept"),
    ]
    assert result.limits == {
        "false_accept": 0.1,
        "false_reject": 0.1,
        "unjudged": 0.05,
        "of_one_kind": 0.5,
    }


def _errs_in(kind: str, *, acceptable: bool, most: int = 99) -> Fixed:
    """Knows the key, but not of the first few probes of one kind."""
    some = [p.id for p in PROBES if p.kind == kind and p.acceptable is acceptable][:most]

    def say(case: Case) -> Grade:
        right = bool(_knows(case).value)
        return Grade(float(right != (case.question.id in some)))

    return Fixed(say)


@pytest.mark.parametrize("kind", ["confabulated", "negated"])
def test_a_judge_that_accepts_all_of_a_small_kind_fails_though_the_totals_allow_it(
    kind: str,
) -> None:
    result = take(_errs_in(kind, acceptable=False), PROBES)
    assert result.false_accept.rate <= 0.10
    assert not result.passed
    assert result.reasons == (f"more than half of its verdicts are wrong for: {kind}",)
    assert [name for name, found in result.kinds.items() if found.blind] == [kind]


def test_a_judge_that_rejects_all_right_negations_fails_though_the_totals_allow_it() -> None:
    result = take(_errs_in("negated", acceptable=True), PROBES)
    assert result.false_reject.rate <= 0.10
    assert not result.passed
    assert result.reasons == ("more than half of its verdicts are wrong for: negated",)


def test_half_of_a_kind_may_be_wrong_and_one_more_may_not() -> None:
    of = sum(probe.kind == "confabulated" for probe in PROBES)
    half = take(_errs_in("confabulated", acceptable=False, most=of // 2), PROBES)
    assert half.passed and half.reasons == ()
    assert not take(_errs_in("confabulated", acceptable=False, most=of // 2 + 1), PROBES).passed


def test_an_exam_stops_before_it_costs_more_than_it_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    paid = f"{__name__}:Known?price_in=10&price_out=10"
    with pytest.raises(BudgetExhausted, match="max-cost"):
        take(Binary(paid), PROBES, parallelism=2, max_cost=0.05)
    assert current_budget() is None
    result = take(Binary(paid), PROBES, max_cost=9.0)
    assert result.passed and result.usage is not None
    assert result.usage.cached > 0  # what was paid for before
    assert 0.05 >= result.usage.cost - result.usage.paid > 0
    with pytest.raises(UsageError, match="more than 0"):
        take(Binary(paid), PROBES, max_cost=0.0)


def test_an_exam_needs_both_right_and_wrong_answers() -> None:
    result = take(Fixed(_knows), [p for p in PROBES if p.acceptable])
    assert not result.passed
    assert result.reasons == ("it judged no wrong answers",)


def test_the_limits_are_kept_to_the_probe() -> None:
    right = [p for p in PROBES if p.acceptable][:40]
    wrong = [p for p in PROBES if not p.acceptable][:40]

    def accepts(ids: set[str]) -> Callable[[Case], Grade]:
        return lambda case: Grade(float(_knows(case).value or case.question.id in ids))

    for mistakes, passed in ((4, True), (5, False)):
        fooled = {probe.id for probe in wrong[:mistakes]}
        assert take(Fixed(accepts(fooled)), right + wrong).passed is passed


def test_a_score_passes_a_probe_unless_it_would_be_appealed() -> None:
    def say(case: Case) -> Score:
        return Score(3, 2, 1) if _knows(case).value else Score(2, 0, 1)

    assert take(Fixed(say), PROBES).passed


def test_a_plugin_judge_that_raises_is_unjudged_and_one_that_is_down_stops() -> None:
    def breaks(case: Case) -> Grade:
        raise RuntimeError("oops")

    def down(case: Case) -> Grade:
        raise MnemoscopeError("the endpoint is down")

    result = take(Fixed(breaks), PROBES[:3])
    assert result.mistakes[0].reasoning == "RuntimeError: oops"
    assert take(Fixed(lambda case: None), PROBES[:3]).unjudged.count == 3  # type: ignore[arg-type, return-value]
    with pytest.raises(MnemoscopeError, match="down"):
        take(Fixed(down), PROBES)
    with pytest.raises(UsageError, match="parallelism"):
        take(Fixed(_knows), PROBES, parallelism=0)


def test_a_judge_of_recalled_passages_has_no_exam() -> None:
    judge = Fixed(_knows)
    judge.wants_recalled = True  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="not answers"):
        take(judge, PROBES)


def test_the_result_does_not_depend_on_how_many_are_asked_at_a_time() -> None:
    def moody(case: Case) -> Grade:
        return Grade(float(len(case.answer) % 3 == 0))

    told: list[int] = []
    alone = take(Fixed(moody), PROBES)
    together = take(Fixed(moody), PROBES, parallelism=8, tell=lambda: told.append(1))
    assert alone == together
    assert len(told) == len(PROBES)


def test_a_result_goes_through_json_unchanged() -> None:
    result = take(Fixed(lambda case: Grade(0.0)), PROBES)
    assert msgspec.json.decode(msgspec.json.encode(result), type=ExamResult) == result
