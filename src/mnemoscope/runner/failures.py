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

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, error_text
from mnemoscope._store.private_files import is_private_run
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.http_errors import without_keys
from mnemoscope.text.display import one_line

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_LONGEST_CHAIN = 100
"""Causes of an error that are followed; a foreign exception may be its own cause."""


def error_line(error: BaseException) -> str:
    """The error as recorded: one line, without API keys; in a private run only its type."""
    if is_private_run():
        return f"{error_text(error).partition(':')[0]}: (private)"
    return one_line(without_keys(error_text(error)), 500)


def is_a(error: BaseException, kind: type[BaseException]) -> bool:
    """Like `isinstance`, which would ask a foreign exception for its `__class__`."""
    return issubclass(type(error), kind)


def timed_out(error: BaseException) -> bool:
    """Whether a connector or a model's client timed out."""
    if is_a(error, ModelFailure):
        return bool(getattr(error, "timed_out", False))
    return is_a(error, TimeoutError)


def stop_if_ours(error: BaseException) -> None:
    """Stop the run if not the system failed but its environment.

    A full disk, a broken cache or an endpoint that is down must not be recorded as a result. A
    stopped run continues after the cause is fixed.
    """
    cause: BaseException | None = error
    for _ in range(_LONGEST_CHAIN):
        if cause is None:
            return
        if is_a(cause, MnemoscopeError):
            raise cause
        if is_a(cause, OSError) and OSError.__dict__["errno"].__get__(cause) in _DISK_FULL:
            raise MnemoscopeError(error_line(error)) from error
        cause = _cause_of(cause)


def _cause_of(error: BaseException) -> BaseException | None:
    # The class of a foreign exception may have an attribute of its own with this name.
    slots = BaseException.__dict__
    cause: BaseException | None = slots["__cause__"].__get__(error)
    return slots["__context__"].__get__(error) if cause is None else cause


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

    def restart(self, cause: str, paid: str = "") -> None:
        """Use one of the free restarts, unless a question failed for it; print which."""
        again = "the conversation is ingested again from the start"
        if paid:
            self.warn(cause, f"{paid}; {again}")
        elif self.used < self.free:
            self.used += 1
            self.warn(cause, f"{again}, restart {self.used} of {self.free}")
        else:  # several questions were in flight
            self.warn(cause, f"{again}, and its questions are asked one by one")

    def warn(self, cause: str, consequence: str) -> None:
        warn(f"{self.scenario}: the system was lost ({cause}); {consequence}")


def warn(text: str) -> None:
    """Print a warning in one write, because other processes write to stderr, too."""
    with suppress(OSError):
        os.write(2, f"{one_line(text)}\n".encode("utf-8", "backslashreplace"))
