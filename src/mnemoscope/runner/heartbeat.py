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
    """Two values that a worker and its parent share."""

    _fields_ = (("is_halted", c_bool), ("settled", c_int))
    is_halted: bool
    """Set by the parent: finish what is in flight, and begin nothing new."""
    settled: int
    """Counted by the worker: the questions of its unit that are done."""


class Heartbeat(NamedTuple):
    """Everything that one worker has in flight, in shared memory."""

    slots: list[InFlight]
    shared: Signals
