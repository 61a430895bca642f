"""The money that a run may spend, shared by its worker processes.

Before a request its worst case is set aside, afterwards what it really cost; so the limit holds
whatever runs at the same time. `CostEstimate` says what the worst case of a prompt is.
"""

from __future__ import annotations

import fcntl
import math
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.sharedctypes import RawArray
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.chat import Prompt
from mnemoscope.models.http_errors import PerProcess

# Other processes cannot wake us.
_LOOK_AGAIN_SECONDS = 0.02
# Sums of many small floats; far below what anything costs.
_NOTHING = 1e-9

_TOKENS_A_CHARACTER = 1 / 3
_MARGIN = 1.05
_FRAME_TOKENS = 32


class BudgetExhausted(MnemoscopeError):
    """The next request could cost more than is left."""


class Reservation:
    """Money set aside for one request; its holder says in `cost` what was really spent."""

    def __init__(self, amount: float) -> None:
        self.amount = amount
        self.cost = 0.0


class Budget:
    """`limit` dollars for the whole run, of which `already` were spent before.

    The accounts are shared memory: make the budget before the fork. Each process has a slot of its
    own; the one that made the budget has slot 0.
    """

    def __init__(self, limit: float, already: float, slots: int, lock: Path) -> None:
        if not (math.isfinite(limit) and limit > 0):
            raise UsageError(f"--max-cost {limit} is no ceiling; give dollars, more than 0")
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
        self._held: list[Reservation] = []
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

        BudgetExhausted where not even their end would leave enough.
        """
        reservation = Reservation(amount)
        with self._turn:
            while not self._set_aside(reservation):
                self._turn.wait(_LOOK_AGAIN_SECONDS)
        try:
            yield reservation
        finally:
            with self._turn, self._alone():
                self._spent[self._slot] += reservation.cost
                self._held.remove(reservation)
                self._reserved[self._slot] = sum(held.amount for held in self._held)
                self._turn.notify_all()

    def _set_aside(self, reservation: Reservation) -> bool:
        with self._alone():
            spent, amount = self.spent, reservation.amount
            if spent + amount > self.limit + _NOTHING:
                # What others have set aside can only become spent, never less than that.
                raise BudgetExhausted(
                    f"${spent:.4f} of ${self.limit:.4f} are spent, and the next request could cost "
                    f"${amount:.4f}; everything recorded is kept: give a higher --max-cost and run "
                    "the same command (--estimate says what all of it takes)"
                )
            if spent + sum(self._reserved) + amount > self.limit + _NOTHING:
                return False
            self._held.append(reservation)
            self._reserved[self._slot] = sum(held.amount for held in self._held)
            return True

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other process is in here; fcntl locks do not hold between threads, hence `_turn`."""
        fcntl.lockf(self._file, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.lockf(self._file, fcntl.LOCK_UN)


class CostEstimate:
    """How many tokens a model makes of a prompt at most, as far as its replies have shown.

    Vocabularies differ too much for a guess to hold: the most tokens a character that a server
    counted is what the next prompts are measured by.
    """

    def __init__(self) -> None:
        self._seen = 0.0
        self._learnt = False
        # A fork could inherit a lock locked.
        self._first = PerProcess(threading.Lock)

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """Until a reply has come, one at a time: many at once could all be dearer than expected."""
        lock = None if self._learnt else self._first.get()
        if lock is not None:
            lock.acquire()
            if self._learnt:  # by the one that was waited for
                lock.release()
                lock = None
        try:
            yield
        finally:
            if lock is not None:
                lock.release()

    def learn(self, prompt: Prompt, counted: int | None) -> None:
        """A reply came. Where its server counts no tokens we bill by our own estimate anyway."""
        if counted is not None:
            self._seen = max(self._seen, counted / max(1, sum(map(len, _texts(prompt)))))
        self._learnt = True

    def seen_input(self, prompt: Prompt) -> int:
        """At the densest rate so far; 0 before the first count."""
        return math.ceil(self._seen * sum(map(len, _texts(prompt))))

    def most_input(self, prompt: Prompt) -> float:
        texts = _texts(prompt)
        characters = sum(map(len, texts))
        # Every byte beyond the first of a character may be a token of its own.
        size = sum(len(text.encode("utf-8", "backslashreplace")) for text in texts)
        rate = _MARGIN * max(self._seen, _TOKENS_A_CHARACTER)
        return _FRAME_TOKENS + rate * characters + size - characters


def _texts(prompt: Prompt) -> tuple[str, str, str]:
    schema = b"" if prompt.schema is None else msgspec.json.encode(prompt.schema)
    return prompt.system, prompt.user, schema.decode()


_open: Budget | None = None


def open_budget(opened: Budget | None) -> None:
    """From now on every model of this process, and of those it forks, pays out of it."""
    global _open
    _open = opened


def current_budget() -> Budget | None:
    return _open
