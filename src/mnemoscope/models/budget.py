"""The money that a run may spend, shared by its worker processes.

Before a request its worst case is set aside, afterwards what it really cost; so the limit holds
whatever runs at the same time. The accounts are shared memory: make the purse before the fork.
`Foresight` says what the worst case of a prompt is.
"""

from __future__ import annotations

import fcntl
import itertools
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
    """Money set aside for one request. Whoever holds it says in `cost` what was really spent."""

    def __init__(self, amount: float) -> None:
        self.amount = amount
        self.cost = 0.0


class Budget:
    """`limit` dollars for the whole run, of which `already` were spent before.

    Each process has a slot of its own, the one that made the purse slot 0 unless it says otherwise.
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
                        raise BudgetExhausted(_empty(spent, self.limit, amount))
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
        if self._learnt:
            yield
            return
        lock = self._first.get()
        lock.acquire()
        if self._learnt:  # by the one we waited for
            lock.release()
            yield
            return
        try:
            yield
        finally:
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


def _empty(spent: float, limit: float, amount: float) -> str:
    return (
        f"${spent:.4f} of ${limit:.4f} are spent, and the next request could cost ${amount:.4f}; "
        "everything recorded is kept: give a higher --max-cost and run the same command "
        "(--estimate says what all of it takes)"
    )


_within_budget: Budget | None = None


def open_budget(opened: Budget | None) -> None:
    """From now on every model of this process, and of those it forks, pays out of it."""
    global _within_budget
    _within_budget = opened


def current_budget() -> Budget | None:
    return _within_budget
