"""Writers: clients that ingest further memories while others recall."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from msgspec import Struct

from mnemoscope.runner.failures import error_line
from mnemoscope.types import Memory


class TurnLock:
    """Many recalls at a time, or one write, in the order in which they came.

    The contract does not promise that a library can be written to during a recall: a program that
    contains it has to take turns, and waiting for a turn is part of its latency.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._recalls = 0
        self._is_writing = False

    @contextmanager
    def recall(self) -> Iterator[None]:
        with self._turn(lambda: not self._is_writing):
            self._recalls += 1
        try:
            yield
        finally:
            with self._changed:
                self._recalls -= 1
                self._changed.notify_all()

    @contextmanager
    def write(self) -> Iterator[None]:
        with self._turn(lambda: not self._recalls and not self._is_writing):
            self._is_writing = True
        try:
            yield
        finally:
            with self._changed:
                self._is_writing = False
                self._changed.notify_all()

    @contextmanager
    def _turn(self, is_free: Callable[[], bool]) -> Iterator[None]:
        """Wait until this call is the first that waits, and it may begin."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            self._changed.wait_for(lambda: self._waiting[0] is ticket and is_free())
            self._waiting.popleft()
            yield
            self._changed.notify_all()


class WriteCounts(Struct, frozen=True):
    """What the writers of a step did."""

    memories: int
    planned: int
    errors: int
    error: str
    """The first error."""
    latencies: tuple[float, ...]
    """Seconds of each write, in the order in which they returned."""


class Writers:
    """Threads that write batches of memories in order, spread evenly over the step."""

    def __init__(
        self,
        remember: Callable[[Sequence[Memory]], object],
        memories: Sequence[Memory],
        *,
        writers: int,
        rate: float,
        batch: int = 1,
    ) -> None:
        """`rate` is how many memories are due each second, for all writers together."""
        self._remember, self._memories = remember, memories
        self._rate, self._batch = rate, batch
        self._next = 0
        self._taking = threading.Lock()
        self._stop = threading.Event()
        self._written = 0
        self._errors: list[str] = []
        self._latencies: list[float] = []
        self._threads = [
            threading.Thread(target=self._work, daemon=True, name=f"load-writer-{number}")
            for number in range(writers)
        ]

    def start(self) -> None:
        self._began = time.perf_counter()
        for thread in self._threads:
            thread.start()

    def finish(self, seconds: float) -> WriteCounts:
        """Stop the writers, and wait so long for the writes that have begun."""
        self._stop.set()
        for thread in self._threads:
            thread.join(seconds)
        return WriteCounts(
            self._written,
            len(self._memories),
            len(self._errors),
            self._errors[0] if self._errors else "",
            tuple(self._latencies),
        )

    def _work(self) -> None:
        while True:
            with self._taking:
                first, self._next = self._next, self._next + self._batch
            batch = self._memories[first : first + self._batch]
            due = self._began + first / self._rate
            if not batch or self._stop.wait(max(0.0, due - time.perf_counter())):
                return
            began = time.perf_counter()
            try:
                self._remember(batch)
            except BaseException as problem:  # the system's errors are counted
                self._errors.append(error_line(problem))
                continue
            self._latencies.append(time.perf_counter() - began)
            with self._taking:
                self._written += len(batch)
