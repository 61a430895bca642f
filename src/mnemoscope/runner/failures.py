"""What follows from a failure: a recorded error, a restart of the system, or the end of the run.

When a server dies or a connection drops, the scenario is ingested again from the start. A scenario
has a number of free restarts. After those, each loss fails the question in flight, so that the run
ends.
"""

from __future__ import annotations

import errno
import os
from contextlib import suppress

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.http_errors import without_keys
from mnemoscope.text.display import one_line

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def error_line(error: BaseException) -> str:
    """The error as recorded: one line, without API keys."""
    return printable(without_keys(f"{type(error).__name__}: {error}")[:500])


def timed_out(error: BaseException) -> bool:
    """Whether a connector or a model's client timed out."""
    return isinstance(error, TimeoutError) or (isinstance(error, ModelFailure) and error.timed_out)


def stop_if_ours(error: BaseException) -> None:
    """Stop the run if not the system failed but its environment.

    A full disk, a broken cache or an endpoint that is down must not be recorded as a result. A
    stopped run continues after the cause is fixed.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MnemoscopeError):
            raise cause
        if isinstance(cause, OSError) and cause.errno in _DISK_FULL:
            raise MnemoscopeError(error_line(error)) from error
        cause = cause.__cause__ or cause.__context__


class NeedsRestart(Exception):
    """The system is gone; the open questions are asked after the scenario is ingested again."""

    def __init__(self, error: SystemLost, paid: str = "") -> None:
        super().__init__(error)
        self.error = error
        self.paid = paid
        """Which question failed because of the loss; empty if a free restart is used."""


class Restarts(msgspec.Struct):
    """How often one scenario's system was lost."""

    scenario: str
    free: int
    used: int = 0

    def must_be_paid(self, error: SystemLost, *, alone: bool = True) -> bool:
        """Whether the question in flight fails because of the loss; never if several are in flight.

        A timeout or an unreadable reply is the result of the question: it is not asked again.
        """
        if isinstance(error, TimeoutError | BadReply):
            return True
        return alone and self.used >= self.free

    def restart(self, lost: NeedsRestart) -> None:
        """Use one of the free restarts, unless a question failed for it; print which."""
        again = "the conversation is ingested again from the start"
        if lost.paid:
            self.warn(lost.error, f"{lost.paid}; {again}")
        elif self.used < self.free:
            self.used += 1
            self.warn(lost.error, f"{again}, restart {self.used} of {self.free}")
        else:  # several questions were in flight
            self.warn(lost.error, f"{again}, and its questions are asked one by one")

    def warn(self, error: SystemLost, consequence: str) -> None:
        """Print a warning in one write, because other processes write to stderr, too."""
        text = f"{self.scenario}: the system was lost ({error_line(error)}); {consequence}"
        with suppress(OSError):
            os.write(2, f"{one_line(text)}\n".encode("utf-8", "backslashreplace"))
