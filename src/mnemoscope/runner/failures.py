"""Whose failure it is: the system's, which is recorded, or ours, which stops the run."""

from __future__ import annotations

import errno

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.http_errors import without_keys

_DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def describe(error: BaseException) -> str:
    """The error in one line as it is recorded, with no key in it."""
    return printable(without_keys(f"{type(error).__name__}: {error}")[:500])


def timed_out(error: BaseException) -> bool:
    """Whether somebody waited for too long, be it the door of a system or a model's client."""
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
            raise MnemoscopeError(describe(error)) from error
        cause = cause.__cause__ or cause.__context__
