"""What follows from a failure: a record, a restart of the system, or the end of the run.

A server dies, a connection drops: the scenario is ingested again and asked on. So many times that
is free; after that each loss costs the question in flight, so that the run comes to an end.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.http_errors import without_keys

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def error_line(error: BaseException) -> str:
    """The error in one line as it is recorded, with no key in it."""
    return printable(without_keys(f"{type(error).__name__}: {error}")[:500])


def timed_out(error: BaseException) -> bool:
    """Whether the connector of a system or a model's client has waited for too long."""
    return isinstance(error, TimeoutError) or (isinstance(error, ModelFailure) and error.timed_out)


def stop_if_ours(error: BaseException) -> None:
    """Stop the run where not the system failed but what it stands on.

    A full disk, a broken cache, an endpoint that is down: recorded, it would count for good; a
    stopped run goes on when it is mended.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MnemoscopeError):
            raise cause
        if isinstance(cause, OSError) and cause.errno in _DISK_FULL:
            raise MnemoscopeError(error_line(error)) from error
        cause = cause.__cause__ or cause.__context__


class NeedsRestart(Exception):
    """The system is gone; what is not settled is to be asked of one that ingests it all again."""

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

    def must_be_paid(self, error: SystemLost, *, alone: bool = True) -> bool:
        """Whether the question in flight pays for the loss; where several were, none does.

        Being late or replying nonsense is what came of a first attempt: there is no second one.
        """
        if isinstance(error, TimeoutError | BadReply):
            return True
        return alone and self._used >= self._free

    def restart(self, lost: NeedsRestart) -> None:
        """Take one of the free restarts, unless it is paid for; and say so."""
        if lost.paid:
            self.tell(lost.error, f"{lost.paid}; lives it again")
        elif self._used < self._free:
            self._used += 1
            self.tell(lost.error, f"lives it again, {self._used} of {self._free}")
        else:  # several questions were in flight
            self.tell(lost.error, "lives it again, to be asked one by one")

    def tell(self, error: SystemLost, what_now: str) -> None:
        """Tell the user at once and in one write: other processes write there, too."""
        said = f"{self._scenario}: the system was lost ({error_line(error)}), {what_now}\n"
        with suppress(OSError):
            os.write(2, said.encode("utf-8", "backslashreplace"))
