"""Which lines of children were shown already, shared by a process and the workers it forks.

Each worker starts the same commands, and each start prints the same warnings.
"""

from __future__ import annotations

import mmap
import re
import tempfile
import threading
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b

from mnemoscope._store.file_locks import lock_range, unlock_range

_PLACES = 1 << 15
_KEY = 8
_NUMBER = re.compile(rb"0x[0-9a-f]+|\d+", re.I)
_WARNING = re.compile(rb"\bwarn(?:ing)?\b|Warning:", re.I)


class ShownLines:
    """A set of hashes in memory that forked processes share; a full set shows every line."""

    def __init__(self) -> None:
        self._table = mmap.mmap(-1, _PLACES * _KEY)
        # Its lock is released by the system if a process is killed while it holds it.
        self._file = tempfile.TemporaryFile()  # noqa: SIM115
        self._threads = threading.Lock()

    def add(self, words: Sequence[str], line: bytes) -> bool:
        """Note a line of a command; return whether it is new."""
        key = blake2b(repr((tuple(words), line)).encode(), digest_size=_KEY).digest()
        with self._threads, suppress(OSError):
            lock_range(self._file)
            try:
                return self._insert(key)
            finally:
                unlock_range(self._file)
        return True

    def _insert(self, key: bytes) -> bool:
        first = int.from_bytes(key, "little")
        for step in range(16):
            at = (first + step) % _PLACES * _KEY
            found = self._table[at : at + _KEY]
            if found == key:
                return False
            if not any(found):
                self._table[at : at + _KEY] = key
                return True
        return True


def is_warning(line: bytes) -> bool:
    return bool(_WARNING.search(line))


def without_numbers(line: bytes) -> bytes:
    """A warning without its times, process ids and addresses, which differ at each start."""
    return _NUMBER.sub(b"0", line)
