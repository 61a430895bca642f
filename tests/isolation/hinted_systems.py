"""Systems that rank by what they can count, read or time; hinted_systems:Name."""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime
from hashlib import sha256

from mnemoscope.types import Memory, Query

_WARM_UP = "warm-up"


class RanksByPlace:
    """Ranks memories by how near they are to the place that it takes for the evidence's."""

    def __init__(self, asked: int = 20) -> None:
        self._asked = asked

    def reset(self, scope: str) -> None:
        self.memories: list[Memory] = []
        self.requests = 0

    def remember(self, memories: Sequence[Memory]) -> None:
        self.memories += memories

    def recall(self, query: Query, k: int) -> list[str]:
        if query.text == _WARM_UP:
            return []
        self.requests += 1
        guess = self.place(query) * len(self.memories)
        order = sorted(range(len(self.memories)), key=lambda place: abs(place + 0.5 - guess))
        return [self.memories[place].id for place in order[:k]]

    def place(self, query: Query) -> float:
        """Where the evidence is, as a share of all memories."""
        return (self.requests - 0.5) / self._asked


class CountsRequests(RanksByPlace):
    """The k-th of n questions is about what was said at k/n of the conversation."""


class CountsBackwards(RanksByPlace):
    """Files with the newest first."""

    def place(self, query: Query) -> float:
        return 1 - super().place(query)


class ReadsIds(RanksByPlace):
    """The memory whose id has a hash like the question's."""

    def place(self, query: Query) -> float:
        digits = [sha256(memory.id.encode()).digest()[0] for memory in self.memories]
        wanted = sha256(query.text.encode()).digest()[0]
        return min(range(len(digits)), key=lambda one: abs(digits[one] - wanted)) / len(digits)


class ReadsTheClock(RanksByPlace):
    """How long the harness took since the last reply, as a share of the longest time so far."""

    def reset(self, scope: str) -> None:
        super().reset(scope)
        self._last, self._longest = time.perf_counter(), 1e-9

    def recall(self, query: Query, k: int) -> list[str]:
        self._took = time.perf_counter() - self._last
        self._longest = max(self._longest, self._took)
        try:
            return super().recall(query, k)
        finally:
            self._last = time.perf_counter()

    def place(self, query: Query) -> float:
        return self._took / self._longest


class ReadsTimes(RanksByPlace):
    """The memory whose time is nearest to that of the question, or to today."""

    def place(self, query: Query) -> float:
        now = query.now or datetime.now(UTC)
        apart = [abs((now - memory.at).total_seconds()) for memory in self.memories if memory.at]
        return (apart.index(min(apart)) + 0.5) / len(apart) if apart else 0.5
