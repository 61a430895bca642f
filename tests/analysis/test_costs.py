"""Tokens and costs, by phase and by side."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.analysis.costs import PHASES, accounts, phase_of
from mnemoscope.types import Timing, Usage

READ = Usage(requests=1, input_tokens=1000, output_tokens=10, cost=0.002, paid=0.002)
JUDGED = Usage(requests=2, retries=1, input_tokens=300, output_tokens=4, cost=0.001, paid=0.001)
STORED = Usage(cached=5, input_tokens=5000, cost=0.01)


def run() -> list[Timing]:
    return [
        Timing("s", index_ms=9.0, usage=STORED),
        Timing("s", "q1", recall_ms=1.0),
        Timing("s", "q1", answer_ms=1.0, usage=READ),
        Timing("s", "q1", judge_ms=1.0, usage=JUDGED),
        Timing("s", "q2", recall_ms=1.0),
        Timing("s", "q2", answer_ms=1.0, usage=READ),
    ]


def test_each_phase_has_its_own_sum() -> None:
    phases = accounts(run())["phases"]
    assert list(phases) == list(PHASES)
    assert (phases["answer"]["requests"], phases["answer"]["input_tokens"]) == (2, 2000)
    assert (phases["judge"]["retries"], phases["judge"]["cost"]) == (1, 0.001)
    assert phases["recall"]["requests"] == 0


def test_cached_replies_count_as_cost_but_not_as_paid() -> None:
    remembered = accounts(run())["phases"]["remember"]
    assert (remembered["cached"], remembered["cost"], remembered["paid"]) == (5, 0.01, 0.0)


def test_the_system_pays_for_memory_and_the_harness_for_answers_and_verdicts() -> None:
    sides = accounts(run())["sides"]
    assert sides["system"]["cost"] == pytest.approx(0.01)
    assert sides["harness"]["cost"] == pytest.approx(0.005)
    alone = accounts(run(), system_answers=True)["sides"]
    assert alone["system"]["cost"] == pytest.approx(0.014)
    assert alone["harness"]["cost"] == pytest.approx(0.001)


def test_totals_are_also_given_per_question() -> None:
    result = accounts(run())
    assert result["questions"] == 2
    assert result["total"]["cost"] == pytest.approx(0.015)
    assert result["per_question"] is not None
    assert result["per_question"]["cost"] == pytest.approx(0.0075)
    assert result["per_question"]["requests"] == 2.0


def test_a_phase_that_a_killed_run_repeated_is_paid_twice_for_one_question() -> None:
    twice = [*run(), Timing("s", "q2", answer_ms=2.0, usage=READ)]
    result = accounts(twice)
    assert result["questions"] == 2
    assert result["phases"]["answer"]["paid"] == pytest.approx(0.006)


def test_one_estimated_count_makes_the_sum_an_estimate() -> None:
    result = accounts([*run(), Timing("s", "q3", judge_ms=1.0, usage=Usage(estimated=True))])
    assert result["estimated"]
    assert result["phases"]["judge"]["estimated"]
    assert not result["phases"]["answer"]["estimated"]


def test_a_run_without_models_costs_nothing() -> None:
    result = accounts([Timing("s", "q", recall_ms=1.0)])
    assert result["total"]["cost"] == 0
    assert result["estimated"] is False
    assert accounts([])["per_question"] is None


def test_what_failed_before_it_was_timed_belongs_to_recalling_or_remembering() -> None:
    assert phase_of(Timing("s", "q")) == "recall"
    assert phase_of(Timing("s")) == "remember"


@st.composite
def timings(draw: st.DrawFn) -> list[Timing]:
    made = []
    for number in range(draw(st.integers(0, 8))):
        usage = Usage(requests=1, cost=draw(st.floats(0, 1)), paid=draw(st.floats(0, 1)))
        recall, answer, judge = draw(st.permutations([1.0, None, None]))
        about = ("s", f"q{number % 3}", "")
        made.append(Timing(*about, recall, answer, judge, usage=usage))
    return made


@given(timings())
def test_sums_do_not_depend_on_the_order_and_the_sides_make_up_the_total(
    lines: list[Timing],
) -> None:
    result = accounts(lines)
    assert json.dumps(accounts(lines[::-1])) == json.dumps(result)
    for name in ("requests", "cost", "paid"):
        together = sum(side[name] for side in result["sides"].values())
        assert together == pytest.approx(result["total"][name])
        assert sum(own[name] for own in result["phases"].values()) == pytest.approx(together)
