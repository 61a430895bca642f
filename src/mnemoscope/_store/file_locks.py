"""Locks between processes on ranges of a file; the kernel frees those of a process that dies."""

from __future__ import annotations

import errno
import fcntl
import time
from typing import IO

_RETRY_SECONDS = 0.005


def lock_range(file: int | IO[bytes], length: int = 0, start: int = 0) -> None:
    """Wait for the lock on a range; a length of 0 means the whole file.

    The kernel sees processes, not threads. It may take two pairs of threads that wait in order for
    a deadlock; the lock is free once its holder is done, so this asks again.
    """
    while True:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX, length, start)
        except OSError as error:
            if error.errno != errno.EDEADLK:
                raise
            time.sleep(_RETRY_SECONDS)
        else:
            return


def unlock_range(file: int | IO[bytes], length: int = 0, start: int = 0) -> None:
    fcntl.lockf(file, fcntl.LOCK_UN, length, start)
