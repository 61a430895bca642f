"""Systems with a mistake; the tests select them as misspelt_systems:Name."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.types import Memory, Query


class Misspelt:
    """The name of its remember is misspelt."""

    def reset(self, scope: str) -> None:
        self.memories: list[Memory] = []

    def rememeber(self, memories: Sequence[Memory]) -> None:
        self.memories.extend(memories)

    def recall(self, query: Query, k: int) -> list[str]:
        return [memory.id for memory in self.memories[:k]]


class RecallMisspelt:
    def remember(self, memories: Sequence[Memory]) -> None: ...

    def recal(self, query: Query, k: int) -> list[str]:
        return []


one_of_them = Misspelt()


def bare_function(query: Query, k: int) -> list[str]:
    return ["m1"][:k]


class RaisesInRemember:
    def remember(self, memories: Sequence[Memory]) -> None:
        raise ValueError(f"no room for {memories[0].id}")

    def recall(self, query: Query, k: int) -> list[str]:
        return []


class Replaces:
    """Keeps only the memories of the last call."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories = list(memories)

    def recall(self, query: Query, k: int) -> list[str]:
        asked = set(query.text.split())
        best = sorted(self.memories, key=lambda memory: -len(asked & set(memory.text.split())))
        return [memory.id for memory in best[:k]]
