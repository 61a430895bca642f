"""Keeps other processes of the same user from reading the memory of this one (Linux).

The memory of a run's parent and of its workers contains labels. Root can read it nevertheless;
the lock of a child prevents that.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE = 3, 4


@contextmanager
def unreadable_memory() -> Iterator[None]:
    """Deny /proc/PID/mem, environ, fd and ptrace to unprivileged processes while the block runs.

    A forked process inherits this; a program that it starts does not.
    """
    before = _prctl(_PR_GET_DUMPABLE)
    _prctl(_PR_SET_DUMPABLE, 0)
    try:
        yield
    finally:
        if before == 1:
            _prctl(_PR_SET_DUMPABLE, 1)


def _prctl(option: int, value: int = 0) -> int:
    """The result of the call; -1 where it does not exist."""
    if sys.platform != "linux":
        return -1
    try:
        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
    except (OSError, AttributeError):
        return -1
