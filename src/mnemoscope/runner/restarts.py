"""A system that is lost in the middle of a scenario: who pays for it, and what is told of it.

A server dies, a connection drops: the scenario is lived again and asked on. So many times that is
free; after that each loss costs the question in flight, so that it comes to an end.
"""

from __future__ import annotations

import os
from contextlib import suppress

from mnemoscope._store.errors import BadReply, SystemLost
from mnemoscope.runner.failures import describe


class Lost(Exception):
    """The system is gone; what is not settled is to be asked of one that lives it all again."""

    def __init__(self, error: SystemLost, paid: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.paid = paid
        """What it has cost already; empty where it takes one of the free restarts."""


class Restarts:
    """How often one scenario's system was lost."""

    def __init__(self, scenario: str, free: int) -> None:
        self._scenario = scenario
        self._free = free
        self._used = 0

    def costs(self, error: SystemLost, *, alone: bool = True) -> bool:
        """Whether what was going on pays for the loss; where several things were, nobody does.

        Being late or replying nonsense is what came of a first attempt: there is no second one.
        """
        if isinstance(error, TimeoutError | BadReply):
            return True
        return alone and self._used >= self._free

    def live_again(self, lost: Lost) -> None:
        """Take one of the free restarts, unless it is paid for; and say so."""
        if lost.paid:
            self.tell(lost.error, f"{lost.paid}; lives it again")
        elif self._used < self._free:
            self._used += 1
            self.tell(lost.error, f"lives it again, {self._used} of {self._free}")
        else:  # several questions were in flight
            self.tell(lost.error, "lives it again, to be asked one by one")

    def tell(self, error: SystemLost, what_now: str) -> None:
        """At once and in one write: other processes write there, too."""
        said = f"{self._scenario}: the system was lost ({describe(error)}), {what_now}\n"
        with suppress(OSError):
            os.write(2, said.encode("utf-8", "backslashreplace"))
