"""The baselines: no memory, random, recency, full context and the oracle."""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Sequence
from typing import Self

from mnemoscope.systems.builtin.growing_list import GrowingList
from mnemoscope.types import Hit, Memory, Query, Question, Selector


class NoMemory:
    """Remembers nothing."""

    def reset(self, scope: str) -> None:
        pass

    def remember(self, memories: Sequence[Memory]) -> None:
        pass

    def forget(self, selector: Selector) -> None:
        pass

    def fork(self) -> Self:
        return self

    def recall(self, query: Query, k: int) -> list[Hit]:
        return []


class _Listed:
    """Keeps the memories in the order given."""

    def reset(self, scope: str) -> None:
        self.scope = scope
        self.memories: GrowingList[Memory] = GrowingList()

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories.extend(memories)

    def forget(self, selector: Selector) -> None:
        gone = selector.ids
        self.memories = GrowingList(memory for memory in self.memories if memory.id not in gone)

    def fork(self) -> Self:
        twin = copy.copy(self)
        twin.memories = self.memories.fork()
        return twin


class Random(_Listed):
    """A shuffle that depends only on the seed, the scope and the question's text."""

    def __init__(self, seed: int = 42) -> None:
        self.seed = seed

    def recall(self, query: Query, k: int) -> list[Hit]:
        key = f"{self.seed}\0{self.scope}\0{query.text}".encode()
        draw = random.Random(hashlib.sha256(key).digest())
        chosen = draw.sample(range(len(self.memories)), min(k, len(self.memories)))
        return [Hit(self.memories[place].id) for place in chosen]


class Recency(_Listed):
    """The latest memory first; of one moment, the last given first."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        latest = self.memories.since(max(0, len(self.memories) - k))
        return [Hit(memory.id) for memory in reversed(latest)]


class FullContextBaseline(_Listed):
    """All memories in time order: the input of a reader with an unlimited context."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        return [Hit(memory.id) for memory in self.memories]


class Oracle(_Listed):
    """Gets the question with its labels, as no other system does, and recalls the evidence."""

    def recall(self, question: Question, k: int) -> list[Hit]:
        parts: dict[str, list[str]] = {}
        for memory in self.memories:
            parts.setdefault(memory.part_of or memory.id, []).append(memory.id)
        evidence = [id for id in question.evidence if id in parts]
        evidence.sort(key=lambda id: -question.grades.get(id, 1))
        return [Hit(part, score=1.0) for id in evidence for part in parts[id]][:k]
