"""Memory that a worker shares with its parent: what the worker is doing, and since when.

It has no lock, so a process that is killed while it writes does not block another process.
"""

from __future__ import annotations

import multiprocessing
import time
from ctypes import Structure, c_bool, c_double, c_int
from typing import NamedTuple

REMEMBERING = -1
"""Used as the position while memories are ingested."""
RECALLING, ANSWERING, JUDGING = range(3)
CALLS = (
    *("", "constructor", "identity", "reset", "remember", "build_index", "ready", "forget"),
    *("fork", "stats", "index_size_bytes", "close"),
)
"""The calls of a system's code of which one is made at a time; the first means none."""
_HALF = 60.0
"""After so many seconds a call that ingests counts as half done: it does not say how far it is."""

fork = multiprocessing.get_context("fork")


class InFlight(Structure):
    """One thing that a worker is doing: a question, or ingestion."""

    _fields_ = (("since", c_double), ("position", c_int), ("phase", c_int))
    since: float
    """When it began; 0.0 while nothing is in flight in this slot."""
    position: int
    phase: int

    def start(self, position: int, phase: int = RECALLING) -> None:
        self.position, self.phase = position, phase
        self.since = time.monotonic()

    def stop(self) -> None:
        self.since = 0.0


class Signals(Structure):
    """Values that a worker and its parent share."""

    _fields_ = (
        ("called_at", c_double),
        ("call", c_int),
        ("settled", c_int),
        ("ingested", c_int),
        ("ingesting", c_int),
        ("restarts", c_int),
        ("is_halted", c_bool),
        ("has_called", c_bool),
    )
    is_halted: bool
    """Set by the parent: finish what is in flight, and begin nothing new."""
    settled: int
    """Counted by the worker: the questions of its unit that are done."""
    ingested: int
    """The memories of its unit that the system has ingested."""
    ingesting: int
    """Those that it will have ingested after the call in flight."""
    restarts: int
    """The losses of the unit's system that have not failed a question."""
    has_called: bool
    """Whether the unit has called its system in this process."""
    call: int
    """The call in flight, as a position in CALLS."""
    called_at: float

    def note_call(self, call: str) -> None:
        """Note that a call of the system begins; an empty text, that it has ended."""
        if call:
            self.called_at = time.monotonic()
            self.has_called = True
        self.call = CALLS.index(call)

    def note_batch(self, first: int, end: int) -> None:
        """Note that these memories are given to the system, perhaps not for the first time."""
        if first >= self.ingesting:
            self.ingested, self.ingesting = first, end

    def seconds_in(self, *calls: str) -> float:
        """How long one of these calls has been in flight; 0.0 if none is."""
        return time.monotonic() - self.called_at if CALLS[self.call] in calls else 0.0

    @property
    def memories(self) -> float:
        """How many memories are ingested, with an estimate for those of the call in flight."""
        seconds = self.seconds_in("remember", "build_index", "ready")
        share = seconds / (seconds + _HALF) if seconds else 1.0
        return self.ingested + (self.ingesting - self.ingested) * share


class Heartbeat(NamedTuple):
    """Everything that one worker has in flight, in shared memory."""

    slots: list[InFlight]
    shared: Signals
