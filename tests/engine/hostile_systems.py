"""Systems that misbehave, each in one way; the tests select them as hostile_systems:Name."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

from mnemoscope.core.nouns import Memory, Query


class _Keeps:
    """Remembers; what it recalls of the memories depends on nothing but the question."""

    def __init__(self) -> None:
        self.memories: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories.extend(memories)


class Slow(_Keeps):
    """Takes its time, and tells every question it is asked to the file in $SLOW_LOG."""

    def remember(self, memories: Sequence[Memory]) -> None:
        time.sleep(0.01)
        super().remember(memories)

    def recall(self, query: Query, k: int) -> list[tuple[str, float]]:
        if log := os.environ.get("SLOW_LOG"):
            with Path(log).open("a") as file:
                file.write(f"{query.text}\n")
        time.sleep(0.005)
        start = len(query.text) % len(self.memories)
        turned = self.memories[start:] + self.memories[:start]
        return [(memory.id, 1 / rank) for rank, memory in enumerate(turned[:k], 1)]
