"""Systems that take time on a clock of their own, and a clock that only they and waiting move."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from mnemoscope.types import Hit, Memory, Query


class SimulatedClock:
    """Time passes when a call takes some, or when a client waits; with one client it is exact."""

    def __init__(self) -> None:
        self._now = 0.0

    def now(self) -> float:
        return self._now

    def wait_until(self, when: float, stop: threading.Event) -> None:
        self._now = max(self._now, when)

    def take(self, seconds: float) -> None:
        self._now += seconds


class Timed:
    """Returns nothing after a millisecond; the recall of number `stalled` takes a second."""

    def __init__(self, clock: SimulatedClock, stalled: int = -1, each: float = 0.001) -> None:
        self._clock, self._stalled, self._each = clock, stalled, each
        self.received: list[Query] = []
        self.ingested: list[Memory] = []

    def reset(self, scope: str) -> None:
        self.ingested = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.ingested += memories

    def recall(self, query: Query, k: int) -> list[Hit]:
        self.received.append(query)
        is_stall = len(self.received) - 1 == self._stalled  # the warm-up is number 0
        self._clock.take(1.0 if is_stall else self._each)
        return []


class TakesTurns(Timed):
    """Notes whether a recall and a write, or two writes, run at the same time."""

    overlaps = 0
    _recalls = 0
    _writes = 0

    def remember(self, memories: Sequence[Memory]) -> None:
        self._writes += 1
        self.overlaps += self._recalls > 0 or self._writes > 1
        time.sleep(0.001)
        super().remember(memories)
        self._writes -= 1

    def recall(self, query: Query, k: int) -> list[Hit]:
        self._recalls += 1
        self.overlaps += self._writes > 0
        time.sleep(0.001)
        self._recalls -= 1
        return []


class Fails(Timed):
    """Every fourth recall raises at once."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        super().recall(query, k)
        if len(self.received) % 4 == 0:
            raise ValueError("no index")
        return []


class Hangs(Timed):
    """Answers five recalls; later ones wait until the test ends."""

    def __init__(self) -> None:
        super().__init__(SimulatedClock())
        self.end = threading.Event()

    def recall(self, query: Query, k: int) -> list[Hit]:
        super().recall(query, k)
        if len(self.received) > 5:
            self.end.wait(60)
        return []
