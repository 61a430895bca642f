"""Replies that could not be used, kept beside a life for people to read; never read again here."""

from __future__ import annotations

import re
import threading
from pathlib import Path

from mnemoscope._store.jsonl import printable, write_atomically

FOLDER = "rejected"
KEPT = 10
"""So many of each pass, the newest ones: enough to see what is wrong with a model."""
_LONGEST_NAME = 200
"""Bytes; file systems take 255 with what is put around it while it is written."""
_NOT_IN_NAMES = re.compile(r"[^\w@.-]+")


class RejectedReplies:
    """What one pass keeps: of each thing that came to nothing the last reply."""

    def __init__(self, home: Path, pass_name: str) -> None:
        self._folder = home / FOLDER / pass_name
        self._writing = threading.Lock()

    def keep(self, about: str, reply: str) -> Path:
        """Where the reply is now; the oldest goes where there are too many."""
        path = self._path(about)
        with self._writing:
            write_atomically(path, printable(reply).encode())
            others = sorted(
                (one for one in self._folder.glob("*.txt") if one != path),
                key=lambda one: one.stat().st_mtime_ns,
            )
            for oldest in others[: max(0, len(others) + 1 - KEPT)]:
                oldest.unlink()
        return path

    def drop(self, about: str) -> None:
        """The thing was written after all."""
        with self._writing:
            self._path(about).unlink(missing_ok=True)

    def _path(self, about: str) -> Path:
        name = _NOT_IN_NAMES.sub("-", about).encode()[:_LONGEST_NAME]
        return self._folder / f"{name.decode(errors='ignore')}.txt"
