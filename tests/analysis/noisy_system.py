"""A dataset and a noisy system whose variance components are known exactly."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import mnemoscope as ms
from mnemoscope.datasets.base import DatasetInfo, FileDataset
from mnemoscope.stats.variance_components import RepeatComponents
from mnemoscope.types import Memory, Question, Scenario

EVIDENCE = 10
"""Memories that answer each question; as many others are in the pool."""
REPEATS = 5
CONVERSATION, QUESTION, BOTH, REPEAT = 0.16, 0.12, 0.06, 0.1
"""The standard deviations of the planted effects on the chance to find a memory."""
_FOUND = re.compile(r"conversation (\d+), question (\d+)")


class ManyQuestions(FileDataset):
    """Conversations with questions that have ten evidence memories each."""

    info = DatasetInfo(name="many-questions")

    def __init__(self, data: Path, *, conversations: int = 6, questions: int = 8) -> None:
        super().__init__(data)
        self.conversations, self.questions = conversations, questions
        self.expected_scenarios = conversations
        self.paths = {}

    def read(self) -> Iterator[Scenario]:
        for c in range(self.conversations):
            ids = [f"c{c}-m{number}" for number in range(2 * EVIDENCE)]
            yield Scenario(
                f"c{c}",
                tuple(Memory(id, f"memory {number}") for number, id in enumerate(ids)),
                tuple(
                    Question(
                        f"c{c}-q{q}",
                        f"conversation {c}, question {q}",
                        evidence=tuple(ids[:EVIDENCE]),
                    )
                    for q in range(self.questions)
                ),
            )


class Noisy:
    """Finds each evidence memory with a chance that varies as planted.

    The chance is 0.5 + conversation + question + repeat + repeat by conversation. Effects are
    plus or minus their standard deviation, in balance within a conversation and within a repeat.
    The five effects of repeats have the planted variance. So recall@10 has these components, and
    the residual of ten independent draws.
    """

    def __init__(self, seed: int = 42) -> None:
        self.seed = seed
        self.ids: list[str] = []

    def remember(self, memories: Sequence[ms.Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: ms.Query, k: int) -> list[str]:
        found = _FOUND.fullmatch(query.text)
        assert found
        c, q = map(int, found.groups())
        chance = 0.5 + self._effects(c, q)
        draw = random.Random(f"{self.seed} {query.text}")
        hits = sum(draw.random() < chance for _ in range(EVIDENCE))
        return [*self.ids[:hits], *self.ids[EVIDENCE : 2 * EVIDENCE - hits]]

    def _effects(self, c: int, q: int) -> float:
        repeat = (self.seed - 42) % REPEATS
        both = random.Random(f"both {c // 2} {repeat}").choice((-1, 1)) * (1 - 2 * (c % 2))
        return (
            CONVERSATION * random.Random(f"conversation {c}").choice((-1, 1))
            + QUESTION * (1 - 2 * (q % 2))
            + REPEAT * (repeat - 2) / math.sqrt(2.5)
            + BOTH * both
        )


class Unseeded(Noisy):
    """Noise that no seed decides."""

    def __init__(self) -> None:
        super().__init__(random.SystemRandom().randrange(10**9))


class Deaf(Noisy):
    """Takes a seed and does not use it."""

    def __init__(self, seed: int = 42) -> None:
        super().__init__(42)


def planted() -> RepeatComponents:
    chances = CONVERSATION**2 + QUESTION**2 + BOTH**2 + REPEAT**2 * (REPEATS - 1) / REPEATS
    return RepeatComponents(
        CONVERSATION**2, QUESTION**2, REPEAT**2, BOTH**2, (0.25 - chances) / EVIDENCE
    )
