"""The money that a run may spend, shared by its worker processes.

Before a request its worst case is set aside, afterwards what it really cost; so the limit holds
whatever runs at the same time. The accounts are shared memory: make the purse before the fork.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import RawArray
from pathlib import Path

from mnemoscope.core.errors import MnemoscopeError

# Other processes cannot wake us.
_LOOK_AGAIN_SECONDS = 0.02
# Sums of many small floats; far below what anything costs.
_NOTHING = 1e-9


class PurseEmpty(MnemoscopeError):
    """The next request could cost more than is left."""


class Reservation:
    """Money set aside for one request. Whoever holds it says in `cost` what was really spent."""

    def __init__(self, amount: float) -> None:
        self.amount = amount
        self.cost = 0.0


class Purse:
    """`limit` dollars for the whole run, of which `already` were spent before.

    Each process has a slot of its own, the one that made the purse slot 0 unless it says otherwise.
    """

    def __init__(self, limit: float, already: float, slots: int, lock: Path) -> None:
        self.limit = limit
        self._already = already
        # Per slot what was spent, then what is set aside.
        self._spent = RawArray("d", max(1, slots))
        self._reserved = RawArray("d", max(1, slots))
        lock.parent.mkdir(parents=True, exist_ok=True)
        # Never closed while in use: closing any descriptor of it drops the process's lock.
        self._file = os.open(lock, os.O_RDWR | os.O_CREAT, 0o644)
        self.adopt(0)

    def adopt(self, slot: int) -> None:
        """This process keeps its accounts in `slot` from now on.

        What a former owner spent stays; what it had set aside when it was killed is set free.
        """
        self._slot = slot
        # New ones: a thread of the parent may have held the inherited lock while it forked.
        self._turn = threading.Condition(threading.Lock())
        self._open: dict[int, float] = {}
        self._numbers = itertools.count()
        self.free(slot)

    def free(self, slot: int) -> None:
        """Set free what the dead owner of a slot had set aside."""
        with self._turn, self._alone():
            self._reserved[slot] = 0.0

    @property
    def spent(self) -> float:
        """All processes together, with what was spent before."""
        return self._already + float(sum(self._spent))

    @contextmanager
    def reserve(self, amount: float) -> Iterator[Reservation]:
        """Set the amount aside inside the block, after waiting for others if they are in the way.

        Where not even their end would leave enough, PurseEmpty.
        """
        number = self._set_aside(amount)
        reservation = Reservation(amount)
        try:
            yield reservation
        finally:
            with self._turn, self._alone():
                self._spent[self._slot] += reservation.cost
                del self._open[number]
                self._reserved[self._slot] = sum(self._open.values())
                self._turn.notify_all()

    def _set_aside(self, amount: float) -> int:
        with self._turn:
            while True:
                with self._alone():
                    spent = self.spent
                    if spent + amount > self.limit + _NOTHING:
                        # What others have set aside can only become spent, never less than that.
                        raise PurseEmpty(_empty(spent, self.limit))
                    if spent + sum(self._reserved) + amount <= self.limit + _NOTHING:
                        number = next(self._numbers)
                        self._open[number] = amount
                        self._reserved[self._slot] = sum(self._open.values())
                        return number
                self._turn.wait(_LOOK_AGAIN_SECONDS)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process is in here; fcntl locks do not hold between threads, hence `_turn`."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


def _empty(spent: float, limit: float) -> str:
    return (
        f"${spent:.4f} of ${limit:.4f} are spent and the next request could cost more than what is "
        "left; nothing is lost: give a higher --max-cost and run the same command"
    )


_purse: Purse | None = None


def open_purse(opened: Purse | None) -> None:
    """From now on every model of this process, and of those it forks, pays out of it."""
    global _purse
    _purse = opened


def purse() -> Purse | None:
    return _purse
