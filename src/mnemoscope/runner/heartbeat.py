"""The pulse: memory that a worker shares with its parent, to say what it is at and since when.

It needs no lock, so a process that is killed in the middle leaves nothing behind that others would
wait for.
"""

from __future__ import annotations

import multiprocessing
import time

REMEMBERING = -1
"""In place of a question's position while memories are taken in."""
RECALLING, ANSWERING, JUDGING = range(3)
_HALT, _SETTLED, _HEAD, _WIDTH = 0, 1, 2, 3

fork = multiprocessing.get_context("fork")


class Beat:
    """One thing in flight: a question, or the remembering."""

    def __init__(self, heartbeat: Heartbeat, number: int) -> None:
        self._cells = heartbeat.cells
        self._first = _HEAD + _WIDTH * number

    def start(self, position: int, phase: int = RECALLING) -> None:
        self._cells[self._first + 1] = position
        self._cells[self._first + 2] = phase
        self._cells[self._first] = time.monotonic()

    def stop(self) -> None:
        self._cells[self._first] = 0.0

    @property
    def since(self) -> float:
        """When it began; 0 while nothing is in flight here."""
        return float(self._cells[self._first])

    @property
    def position(self) -> int:
        return int(self._cells[self._first + 1])

    @property
    def phase(self) -> int:
        return int(self._cells[self._first + 2])


class Heartbeat:
    """Everything that one worker has in flight."""

    def __init__(self, abreast: int) -> None:
        self.cells = fork.Array("d", [0.0] * (_HEAD + _WIDTH * abreast), lock=False)
        self.beats = [Beat(self, number) for number in range(abreast)]

    @property
    def active(self) -> list[Beat]:
        return [beat for beat in self.beats if beat.since]

    def halt(self) -> None:
        """Ask the worker to finish what is in flight and begin nothing new."""
        self.cells[_HALT] = 1.0

    @property
    def halted(self) -> bool:
        return bool(self.cells[_HALT])

    @property
    def settled(self) -> int:
        """How many questions of the unit in work are done with."""
        return int(self.cells[_SETTLED])

    @settled.setter
    def settled(self, number: int) -> None:
        self.cells[_SETTLED] = number
