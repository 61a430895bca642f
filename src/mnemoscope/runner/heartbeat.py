"""Memory that a worker shares with its parent, to say what it is doing and since when.

It needs no lock, so a process that is killed while it writes blocks no other process.
"""

from __future__ import annotations

import multiprocessing
import time
from ctypes import Structure, c_bool, c_double, c_int
from multiprocessing.sharedctypes import RawArray, RawValue

REMEMBERING = -1
"""In place of a question's position while memories are taken in."""
RECALLING, ANSWERING, JUDGING = range(3)

fork = multiprocessing.get_context("fork")


class InFlight(Structure):
    """One thing that a worker is doing: a question, or the remembering."""

    _fields_ = (("since", c_double), ("position", c_int), ("phase", c_int))
    since: float
    """When it began; 0 while nothing is in flight here."""
    position: int
    phase: int

    def start(self, position: int, phase: int = RECALLING) -> None:
        self.position, self.phase = position, phase
        self.since = time.monotonic()

    def stop(self) -> None:
        self.since = 0.0


class _Shared(Structure):
    _fields_ = (("is_halted", c_bool), ("settled", c_int))
    is_halted: bool
    settled: int


class Heartbeat:
    """Everything that one worker has in flight, and two words between it and its parent.

    The parent sets `shared.is_halted`: finish what is in flight, and begin nothing new. The worker
    counts in `shared.settled` the questions of its unit that are done with.
    """

    def __init__(self, parallelism: int) -> None:
        self.slots: list[InFlight] = list(RawArray(InFlight, parallelism))
        self.shared: _Shared = RawValue(_Shared)

    @property
    def active(self) -> list[InFlight]:
        return [slot for slot in self.slots if slot.since]
