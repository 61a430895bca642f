"""The extractive reader's short answers on LoCoMo, on conversations that it was not chosen on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pytest

from mnemoscope.datasets.locomo import Locomo
from mnemoscope.readers import Passage, Reader, Reply
from mnemoscope.readers.extractive import SHORT_ABSTENTION, Extractive
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.text.overlap import locomo_f1
from mnemoscope.types import Query, Question, Scenario

CHOSEN_ON = ("conv-26", "conv-30", "conv-41")
"""The conversations that benchmarks/train_reader.py uses."""


class Answered(NamedTuple):
    question: Question
    reply: Reply

    @property
    def f1(self) -> float:
        return locomo_f1(self.reply.text, self.question.reference, self.question.category)


class AlwaysSilent:
    """The cheat: a quarter of all questions has no answer."""

    def read(self, query: Query, passages: object) -> Reply:
        return Reply(SHORT_ABSTENTION, abstained=True)


@pytest.fixture(scope="module")
def held_back(shared_data: Callable[[str], Path]) -> list[Scenario]:
    scenarios = Locomo(shared_data("locomo"), granularity="turn").scenarios()
    return [scenario for scenario in scenarios if scenario.id not in CHOSEN_ON]


def answers(scenarios: list[Scenario], reader: Reader, bm25: bool = False) -> Iterator[Answered]:
    for scenario in scenarios:
        memories = {memory.id: memory for memory in scenario.memories}
        system = Bm25()
        if bm25:
            system.reset(scenario.id)
            system.remember(scenario.memories)
        for question in scenario.questions:
            query = Query(question.text, question.now)
            ids = [hit.id for hit in system.recall(query, 10)] if bm25 else question.evidence
            found = [memories[id] for id in ids]
            passages = [Passage(one.id, one.text, one.at, one.session) for one in found]
            yield Answered(question, reader.read(query, passages))


def mean(answered: list[Answered], expects: str = "") -> float:
    return fmean(one.f1 for one in answered if expects in ("", one.question.expects))


def test_answers_are_short_and_tell_good_memory_from_bad(held_back: list[Scenario]) -> None:
    evidence = list(answers(held_back, Extractive()))
    searched = list(answers(held_back, Extractive(), bm25=True))

    assert len(evidence) == 1489
    assert mean(evidence) >= 0.40
    assert mean(evidence, "answer") >= 0.31
    assert mean(searched) >= 0.20
    assert mean(searched, "answer") >= 0.17
    assert mean(evidence, "answer") - mean(searched, "answer") >= 0.08
    for answered in (evidence, searched):
        given = [one.reply for one in answered if not one.reply.abstained]
        assert fmean(len(reply.text.split()) for reply in given) < 12
        # Most questions that have an answer get one.
        assert len(given) >= 0.7 * len(answered)


def test_silence_scores_only_on_questions_without_an_answer(held_back: list[Scenario]) -> None:
    silent = list(answers(held_back, AlwaysSilent()))
    assert mean(silent) > 0.2
    assert mean(silent, "answer") < 0.02
