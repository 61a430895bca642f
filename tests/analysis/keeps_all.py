"""A system that returns all memories, and has no `forget`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class KeepsAll:
    """All memories in the order of time."""

    def reset(self, scope: str) -> None:
        self._ids: list[str] = []

    def remember(self, memories: Sequence[Any]) -> None:
        self._ids += [memory.id for memory in memories]

    def recall(self, query: Any, k: int) -> list[dict[str, str]]:
        return [{"id": id} for id in self._ids]
