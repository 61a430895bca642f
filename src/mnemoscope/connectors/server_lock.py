"""Lock a server that has one space for all clients: one process of this machine may use it.

Two processes that take turns would read each other's memories, and no call would fail.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from pathlib import Path

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.private_files import open_private


class ServerLock:
    """A lock that one process holds until it releases it or ends."""

    def __init__(self, target: str) -> None:
        self._target = target
        digest = hashlib.sha256(target.encode()).hexdigest()[:16]
        self._path = Path(tempfile.gettempdir()) / f"mnemoscope-{os.getuid()}-{digest}.lock"
        self._held: tuple[int, int] | None = None
        """The file's descriptor, and the process that opened it."""

    @property
    def is_mine(self) -> bool:
        return self._held is not None and self._held[1] == os.getpid()

    def take(self) -> None:
        if self.is_mine:
            return
        file = open_private(self._path, os.O_RDWR | os.O_NOFOLLOW)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            raise MnemoscopeError(
                f"the server at {self._target} holds one memory at a time, and another worker, "
                "run or system of this run is using it: use one system and --workers 1, or start "
                "a server for each; then repeat the command to resume, nothing recorded is lost"
            ) from None
        self._held = file, os.getpid()

    def release(self) -> None:
        if self._held is not None and self.is_mine:
            os.close(self._held[0])
        self._held = None
