"""On LoCoMo's turns a system that rewrites and merges loses little, and overclaiming gains nothing.

On the conversations that the thresholds of the carrying test were not chosen on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import pytest
from tests.fact_merger import FactMerger

from mnemoscope.analysis.measure import Depth, Metrics, measure
from mnemoscope.datasets import open_dataset
from mnemoscope.runner.pipeline import Ask
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Hit, Memory, Query, Scenario

Shared = Callable[[str], Path]
POINTS = 0.02


class Recalls(Protocol):
    def remember(self, memories: Sequence[Memory]) -> None: ...

    def recall(self, query: Query, k: int) -> list[Hit]: ...


@pytest.fixture(scope="module")
def held_back(shared_data: Shared) -> list[Scenario]:
    dataset = open_dataset("locomo", shared_data("locomo"), {"granularity": "turn"})
    return list(dataset.scenarios())[8:]


def figures(system: Recalls, scenarios: Sequence[Scenario]) -> Metrics:
    trials = []
    for scenario in scenarios:
        builder = TrialBuilder(scenario)
        system.remember(scenario.memories)
        for question in scenario.questions:
            asked = Query(question.text, question.now, question.session)
            trials.append(builder.trial(Ask("", question), system.recall(asked, 10)))
    return measure(trials, [], Depth(10))


def recall(found: Metrics) -> float:
    return found["overall"]["recall@10"]["mean"]


@pytest.fixture(scope="module")
def verbatim(held_back: list[Scenario]) -> Metrics:
    return figures(FactMerger(rewrites=False), held_back)


def test_a_paraphrasing_merger_with_sources_is_within_two_points(
    held_back: list[Scenario], verbatim: Metrics
) -> None:
    rewritten = figures(FactMerger(), held_back)
    assert abs(recall(rewritten) - recall(verbatim)) < POINTS
    claimed = rewritten["credit"]["claimed"]["recall@10"]["mean"]
    assert claimed == pytest.approx(recall(verbatim)), "the same ranking of the same sources"
    assert rewritten["credit"]["questions"] > 0


def test_a_paraphrasing_merger_without_sources_is_within_two_points(
    held_back: list[Scenario], verbatim: Metrics
) -> None:
    rewritten = figures(FactMerger(sources=False), held_back)
    assert abs(recall(rewritten) - recall(verbatim)) < POINTS
    assert rewritten["credit"]["claimed"]["recall@10"]["mean"] == 0, "it names nothing"
    counts = rewritten["credit"]["sources_per_hit"]
    assert counts is not None and counts["median"] == 2, "each fact was made of two turns"


class Everything:
    """One hit, or ten, that name every memory."""

    def __init__(self, hits: int, text: str) -> None:
        self.hits = hits
        self.text = text

    def remember(self, memories: Sequence[Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: Query, k: int) -> list[Hit]:
        shares = [tuple(self.ids[n :: self.hits]) for n in range(self.hits)]
        return [Hit(f"hit {n}", text=self.text, sources=own) for n, own in enumerate(shares)]


def test_everything_in_one_hit_is_exactly_chance(held_back: list[Scenario]) -> None:
    for name, figure in figures(Everything(1, ""), held_back)["overall"].items():
        assert figure["mean"] == pytest.approx(figure["chance"], abs=1e-9), name


@pytest.mark.parametrize(("hits", "text"), [(1, "ok"), (10, "summary")])
def test_texts_that_say_nothing_are_not_above_chance(
    held_back: list[Scenario], hits: int, text: str
) -> None:
    found = figures(Everything(hits, text), held_back)
    for name, figure in found["overall"].items():
        assert figure["mean"] == 0, name
    claimed, primary = found["credit"]["claimed"]["recall@10"], found["overall"]["recall@10"]
    assert claimed["mean"] is not None and primary["chance"] is not None
    assert claimed["mean"] <= 1.5 * primary["chance"]
