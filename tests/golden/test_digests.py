"""Texts with a part of every session are not recall: they take as many places as sessions."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import pytest

from mnemoscope.analysis.credit import places_of
from mnemoscope.analysis.measure import Depth
from mnemoscope.datasets import open_dataset
from mnemoscope.runner.pipeline import Ask
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.text.carrying import _SENTENCE, CarryingTest
from mnemoscope.types import Hit, Memory, Scenario

Shared = Callable[[str], Path]
QUESTIONS = 25


@pytest.fixture(scope="module")
def conversation(shared_data: Shared) -> Scenario:
    dataset = open_dataset("locomo", shared_data("locomo"), {"granularity": "session"})
    return next(iter(dataset.scenarios()))


def sentences(memory: Memory) -> list[str]:
    return [one for one in _SENTENCE.split(memory.text) if one.strip()]


def digest(memory: Memory, share: float, draw: random.Random) -> str:
    own = sentences(memory)
    kept = sorted(draw.sample(range(len(own)), max(1, round(share * len(own)))))
    return " ".join(own[place] for place in kept)


@pytest.mark.parametrize(("share", "hits"), [(0.2, 1), (0.25, 1), (0.5, 1), (0.25, 10)])
def test_digests_of_all_sessions_score_chance(
    conversation: Scenario, share: float, hits: int
) -> None:
    draw = random.Random(1)
    digests = [digest(memory, share, draw) for memory in conversation.memories]
    returned = [Hit(f"d{n}", text="\n".join(digests[n::hits])) for n in range(hits)]
    builder, depth = TrialBuilder(conversation), Depth(10)
    column = depth.names.index("recall@10")
    recall, chance, places = [], [], []

    asked = [question for question in conversation.questions if question.evidence]
    for question in draw.sample(asked, QUESTIONS):
        trial = builder.trial(Ask("", question), draw.sample(returned, hits))
        recall.append(depth.values(trial)[column])
        chance.append(depth.chances(trial)[column])
        places.append(sum(places_of(trial, id) for id in trial.ranking))

    spread = (sum((one - fmean(recall)) ** 2 for one in recall) ** 0.5) / QUESTIONS
    assert fmean(recall) <= fmean(chance) + 1.96 * spread
    assert fmean(places) >= 0.7 * len(conversation.memories)


@pytest.mark.parametrize("length", [3, 6, 10_000])
def test_an_extract_of_one_session_takes_one_place(conversation: Scenario, length: int) -> None:
    carrying, draw = CarryingTest(conversation.memories), random.Random(2)
    for memory in conversation.memories:
        own = sentences(memory)
        first = draw.randrange(max(1, len(own) - length))
        found = carrying.made_of(" ".join(own[first : first + length]), ())
        assert len(found) <= 1
        assert length < 10_000 or found == (memory.id,)
