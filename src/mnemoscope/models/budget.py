"""The money that a run may spend, shared by its worker processes.

The worst-case cost of a request is reserved before it is sent and replaced by its real cost
afterwards, so the limit holds for concurrent requests too. `CostEstimate` gives the worst case.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.sharedctypes import RawArray
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.file_locks import lock_range, unlock_range
from mnemoscope._store.private_files import open_private
from mnemoscope.models.chat import Prompt
from mnemoscope.models.http_errors import PerProcess

# Other processes cannot notify this one, so it polls.
_POLL_SECONDS = 0.02
# Rounding errors of sums of many floats; far below any cost.
_TOLERANCE = 1e-9

_TOKENS_A_CHARACTER = 1 / 3
_MARGIN = 1.05
_FRAME_TOKENS = 32


class BudgetExhausted(MnemoscopeError):
    """The next request could cost more than the rest of the budget."""


class Reservation:
    """Money reserved for one request; the holder sets `cost` to what was really spent."""

    def __init__(self, amount: float) -> None:
        self.amount = amount
        self.cost = 0.0


class Budget:
    """`limit` dollars for the whole run, of which `already` were spent before.

    The accounts are shared memory: create the budget before the fork. Each process has its own
    slot; the process that created the budget has slot 0.
    """

    def __init__(self, limit: float, already: float, slots: int, lock: Path) -> None:
        if not (math.isfinite(limit) and limit > 0):
            raise UsageError(f"--max-cost {limit} is not a limit; give dollars above 0")
        self.limit = limit
        self._already = already
        # Both have one entry a slot.
        self._spent = RawArray("d", max(1, slots))
        self._reserved = RawArray("d", max(1, slots))
        # Never closed while in use: closing any descriptor of it drops the process's lock.
        self._file = open_private(lock, os.O_RDWR)
        self.adopt(0)

    def adopt(self, slot: int) -> None:
        """Use `slot` for the accounts of this process from now on.

        What a killed former owner spent stays; its reservations are released.
        """
        self._slot = slot
        # New ones: a thread of the parent may have held the inherited lock while it forked.
        self._turn = threading.Condition(threading.Lock())
        self._held: list[Reservation] = []
        self.free(slot)

    def free(self, slot: int) -> None:
        """Release what the dead owner of a slot had reserved."""
        with self._turn, self._locked():
            self._reserved[slot] = 0.0

    @property
    def spent(self) -> float:
        """The spending of all processes, and what was spent before."""
        return self._already + float(sum(self._spent))

    @contextmanager
    def reserve(self, amount: float) -> Iterator[Reservation]:
        """Reserve the amount inside the block; wait if other reservations leave too little.

        Raises BudgetExhausted if it would not fit even after those are released.
        """
        reservation = Reservation(amount)
        with self._turn:
            while not self._try_reserve(reservation):
                self._turn.wait(_POLL_SECONDS)
        try:
            yield reservation
        finally:
            with self._turn, self._locked():
                self._spent[self._slot] += reservation.cost
                self._held.remove(reservation)
                self._reserved[self._slot] = sum(held.amount for held in self._held)
                self._turn.notify_all()

    def _try_reserve(self, reservation: Reservation) -> bool:
        with self._locked():
            spent, amount = self.spent, reservation.amount
            if spent + amount > self.limit + _TOLERANCE:
                # Waiting does not help: what is spent never becomes less.
                raise BudgetExhausted(
                    f"${spent:.4f} of ${self.limit:.4f} are spent, and the next request could cost "
                    f"${amount:.4f}; give a higher --max-cost and run the same command: it "
                    "continues from what is recorded (--estimate shows the cost of the whole run)"
                )
            if spent + sum(self._reserved) + amount > self.limit + _TOLERANCE:
                return False
            self._held.append(reservation)
            self._reserved[self._slot] = sum(held.amount for held in self._held)
            return True

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes out; fcntl locks do not hold between threads, hence `_turn`."""
        lock_range(self._file)
        try:
            yield
        finally:
            unlock_range(self._file)


class CostEstimate:
    """An upper bound for the tokens of a prompt, learnt from the replies so far.

    Vocabularies differ too much for a fixed ratio: the bound uses the highest number of tokens
    per character that the server has counted.
    """

    def __init__(self) -> None:
        self._seen = 0.0
        self._learnt = False
        # A fork could inherit a lock that is held.
        self._first = PerProcess(threading.Lock)

    @contextmanager
    def first_alone(self) -> Iterator[None]:
        """One request at a time until the first reply: several could exceed the bound together."""
        with ExitStack() as held:
            if not self._learnt:
                held.enter_context(self._first.get())
                if self._learnt:  # by the request that held the lock
                    held.close()
            yield

    def learn(self, prompt: Prompt, counted: int | None) -> None:
        """Take a reply's count into account; None where the server counts no tokens."""
        if counted is not None:
            self._seen = max(self._seen, counted / max(1, sum(map(len, _texts(prompt)))))
        self._learnt = True

    def seen_input(self, prompt: Prompt) -> int:
        """Tokens at the highest rate so far; 0 before the first count."""
        return math.ceil(self._seen * sum(map(len, _texts(prompt))))

    def most_input(self, prompt: Prompt) -> float:
        texts = _texts(prompt)
        characters = sum(map(len, texts))
        # Every byte beyond the first of a character may be one more token.
        size = sum(len(text.encode("utf-8", "backslashreplace")) for text in texts)
        rate = _MARGIN * max(self._seen, _TOKENS_A_CHARACTER)
        return _FRAME_TOKENS + rate * characters + size - characters


def _texts(prompt: Prompt) -> tuple[str, str, str]:
    schema = b"" if prompt.schema is None else msgspec.json.encode(prompt.schema)
    return prompt.system, prompt.user, schema.decode()


_open: Budget | None = None


def open_budget(opened: Budget | None) -> None:
    """Charge every model of this process, and of the processes it forks, to this budget."""
    global _open
    _open = opened


def current_budget() -> Budget | None:
    return _open
