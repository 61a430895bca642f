"""A system of a few lines: memories that share the most words with the question."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.types import Hit, Memory, Query


class WordCount:
    """Ranks by the number of different words in common; of equals, the latest comes first."""

    def reset(self, scope: str) -> None:
        self._memories: list[tuple[str, set[str]]] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self._memories += [(memory.id, set(memory.text.lower().split())) for memory in memories]

    def recall(self, query: Query, k: int) -> list[Hit]:
        asked = set(query.text.lower().split())
        ranked = [(len(asked & own), place, id) for place, (id, own) in enumerate(self._memories)]
        return [Hit(id, float(shared)) for shared, _, id in sorted(ranked, reverse=True)[:k]]
