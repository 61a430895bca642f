"""Send requests from several clients, in a closed or an open loop, and note when each was due.

In a closed loop a client sends its next request when the last one has returned, so a stall of the
system delays the requests that would have met it, and they are never measured (coordinated
omission). In an open loop requests are due at times that do not depend on the system, and latency
counts from the time at which a request was due, also if all clients were still busy then.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from typing import Literal, Protocol

from msgspec import Struct

from mnemoscope._store.errors import SystemLost
from mnemoscope.runner.failures import error_line, is_a, timed_out

Arrivals = Literal["poisson", "fixed"]
_POLL = 0.1
"""Seconds between two updates of the progress."""


class LoadClock(Protocol):
    """The time that requests are due by and measured with; tests have one of their own."""

    def now(self) -> float: ...

    def wait_until(self, when: float, stop: threading.Event) -> None:
        """Return at that time, or when the event is set."""
        ...


class MonotonicClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.perf_counter()

    def wait_until(self, when: float, stop: threading.Event) -> None:
        left = when - time.perf_counter()
        if left > 0:
            stop.wait(left)


class Request(Struct, frozen=True, omit_defaults=True):
    """One request; times are seconds since the step began."""

    number: int
    question: str
    due: float
    """When it should have been sent; in a closed loop, when it was."""
    sent: float
    done: float
    error: str = ""
    late: bool = False
    """Whether it got no reply in time, or was not sent before the step ended: `done` is then a
    lower limit."""
    result: int = -1
    """The number of its result among the distinct results; -1 without a result."""

    @property
    def latency(self) -> float:
        return self.done - self.due


class Pattern(Struct, frozen=True):
    """How requests arrive: `rate` a second in an open loop, or from `clients` in a closed loop."""

    clients: int
    rate: float | None = None
    arrivals: Arrivals = "poisson"

    @property
    def loop(self) -> Literal["open", "closed"]:
        return "closed" if self.rate is None else "open"

    @property
    def name(self) -> str:
        return f"{self.clients} clients" if self.rate is None else f"{self.rate:g} requests/s"


class StepLimits(Struct, frozen=True):
    """When a step ends: after so many requests, or so many seconds."""

    requests: int
    seconds: float
    timeout: float
    """Seconds that a request may take; in an open loop also how long after its last due time
    requests are still sent."""


def due_times(pattern: Pattern, bounds: StepLimits, seed: int) -> Iterator[float]:
    """The seconds at which the requests of an open loop are due."""
    assert pattern.rate is not None
    rng = random.Random(seed)
    due = 0.0
    for number in range(bounds.requests):
        if due >= bounds.seconds:
            return
        yield due
        if pattern.arrivals == "poisson":
            due += rng.expovariate(pattern.rate)
        else:
            due = (number + 1) / pattern.rate


class LoadGenerator:
    """The clients of one step: threads that take the next request and send it when it is due."""

    def __init__(
        self,
        ask: Callable[[int], int],
        question_of: Callable[[int], str],
        pattern: Pattern,
        bounds: StepLimits,
        *,
        seed: int = 0,
        clock: LoadClock | None = None,
    ) -> None:
        """`ask` sends the request of this number, and returns the number of its result."""
        self._ask, self._question_of = ask, question_of
        self._pattern, self._bounds = pattern, bounds
        self._clock = clock or MonotonicClock()
        self._due = due_times(pattern, bounds, seed) if pattern.rate is not None else None
        self._taken = 0
        self._taking = threading.Lock()
        self._in_flight: dict[int, tuple[float, float]] = {}
        self._done: dict[int, Request] = {}
        self._began = 0.0
        self.stop = threading.Event()
        """Ends the step: requests in flight are still awaited."""
        self.lost = ""
        """Why the system is gone, if it is; the step ends then."""

    def run(self, update: Callable[[int], None] = lambda done: None) -> list[Request]:
        """Send all requests, and return them in the order in which they were due.

        After Ctrl-C, `results` has those that were answered.
        """
        self._began = self._clock.now()
        threads = [
            threading.Thread(target=self._work, daemon=True, name=f"load-client-{number}")
            for number in range(self._pattern.clients)
        ]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(_POLL)
                    update(len(self._done))
                    if self._is_overdue():
                        return self.results()
        finally:
            self.stop.set()
        return self.results()

    def results(self) -> list[Request]:
        """The requests so far; those in flight count as late."""
        now = self._now()
        found = dict(self._done)
        for number, (due, sent) in list(self._in_flight.items()):
            found.setdefault(
                number,
                Request(number, self._question_of(number), due, sent, now, "no reply", late=True),
            )
        return [found[number] for number in sorted(found)]

    def _is_overdue(self) -> bool:
        """Whether a request hangs: a system in this process cannot be interrupted."""
        limit = self._bounds.timeout
        return any(self._now() - sent > limit + 1 for _, sent in list(self._in_flight.values()))

    def _now(self) -> float:
        return self._clock.now() - self._began

    def _work(self) -> None:
        while not self.stop.is_set() and (taken := self._take()) is not None:
            number, due = taken
            if self._due is not None:
                self._clock.wait_until(self._began + due, self.stop)
                if self.stop.is_set():
                    return
            sent = self._now()
            if self._due is None:
                due = sent
                if sent >= self._bounds.seconds:
                    return
            self._send(number, due, sent)

    def _take(self) -> tuple[int, float] | None:
        with self._taking:
            if self._due is not None:
                due = next(self._due, None)
            else:
                due = 0.0 if self._taken < self._bounds.requests else None
            if due is None:
                return None
            self._taken += 1
            return self._taken - 1, due

    def _send(self, number: int, due: float, sent: float) -> None:
        question = self._question_of(number)
        if sent > self._bounds.seconds + self._bounds.timeout:
            self._done[number] = Request(
                number, question, due, sent, sent, "not sent: all clients were busy", late=True
            )
            return
        self._in_flight[number] = (due, sent)
        result, error, late = -1, "", False
        try:
            result = self._ask(number)
        except BaseException as problem:  # the system's errors are counted, whatever they are
            error, late = error_line(problem), timed_out(problem)
            if is_a(problem, SystemLost):
                self.lost = error
                self.stop.set()
        self._done[number] = Request(number, question, due, sent, self._now(), error, late, result)
        self._in_flight.pop(number, None)
