"""A system with two legs, one of which never finds anything."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.types import Memory, Query


class TwoLegs:
    """Recalls the first memories, by one leg; the other compares whole texts with the query."""

    def __init__(self) -> None:
        self._memories: list[Memory] = []
        self._asked = 0

    def reset(self, scope: str) -> None:
        self._memories = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self._memories += memories

    def recall(self, query: Query, k: int) -> list[str]:
        self._asked += 1
        return [memory.id for memory in self._memories[:k]]

    def stats(self) -> dict[str, int]:
        return {
            "leg_first_asked": self._asked,
            "leg_first_answered": self._asked,
            "leg_equal_asked": self._asked,
            "leg_equal_answered": 0,
        }
