"""A cache keyed by content: each distinct text is computed once, however many processes ask.

Values are bytes in one SQLite file. Byte-range locks on a file beside it keep two processes from
computing the same content at the same time. Every value can be computed again.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from mnemoscope._store.errors import DataError, MnemoscopeError
from mnemoscope._store.file_locks import lock_range, unlock_range
from mnemoscope._store.private_files import (
    is_private_run,
    make_private,
    make_private_file,
    note_open_folder,
    open_private,
)

if TYPE_CHECKING:  # a cache in memory needs no database
    import sqlite3

# Few enough that a batch of any size takes its locks quickly (the kernel keeps them in a list),
# enough that unrelated single keys seldom wait for one another.
_BUCKETS = 4096
_OPENING = _BUCKETS
# For keys that are computed one by one and slowly: two of them never share a bucket by chance.
MANY_BUCKETS = 1 << 40
_KEYS_A_SELECT = 500
_WRITABLE_BY_OTHERS = 0o022
_BUSY_SECONDS = 60.0
_TABLE = "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
_INSERT = "INSERT OR REPLACE INTO entries VALUES (?, ?)"


def default_cache_dir() -> Path:
    """MNEMOSCOPE_CACHE, or the user's cache folder."""
    if chosen := os.environ.get("MNEMOSCOPE_CACHE"):
        return Path(chosen).expanduser()
    import platformdirs  # takes long to import, and a child has the variable

    return Path(platformdirs.user_cache_dir("mnemoscope"))


UNCACHED = "MNEMOSCOPE_UNCACHED"
"""While this variable is set, caches compute everything: so that times are those of the systems."""


@contextmanager
def without_caches() -> Iterator[None]:
    """In the block, and in the processes that are started in it, no cache returns anything."""
    before = os.environ.get(UNCACHED)
    os.environ[UNCACHED] = "1"
    try:
        yield
    finally:
        if before is None:
            del os.environ[UNCACHED]
        else:
            os.environ[UNCACHED] = before


def text_cache(name: str) -> Path | None:
    """The file of a cache whose values contain texts; None while a private run is under way."""
    return None if is_private_run() else default_cache_dir() / name


def _protect(folder: Path) -> None:
    """Take our own cache folder away from other users.

    One that the user chose may contain other things; it gets a note if others can replace files.
    """
    if folder == default_cache_dir() and not os.environ.get("MNEMOSCOPE_CACHE"):
        make_private(folder)
    elif folder.stat().st_mode & _WRITABLE_BY_OTHERS:
        note_open_folder(folder)


@dataclass
class _BucketLocks:
    """Locks on numbered buckets between threads and, with a file, between processes.

    The kernel frees the byte-range locks of a process when it dies.
    """

    file: int = -1
    """Never closed: closing any descriptor of a file drops all the process's locks on it."""
    _taken: set[int] = field(default_factory=set)
    _changed: threading.Condition = field(default_factory=threading.Condition)

    @contextmanager
    def take(self, buckets: set[int]) -> Iterator[None]:
        """Hold all of them in the block; threads with disjoint sets run side by side."""
        # Threads take turns first: byte-range locks do not hold between threads of one process.
        with self._changed:
            self._changed.wait_for(lambda: self._taken.isdisjoint(buckets))
            self._taken |= buckets
        # In ascending order everywhere, so that two processes never wait for each other.
        waiting = sorted(buckets) if self.file >= 0 else []
        try:
            for bucket in waiting:
                lock_range(self.file, 1, bucket)
            yield
        finally:
            for bucket in waiting:
                unlock_range(self.file, 1, bucket)
            with self._changed:
                self._taken -= buckets
                self._changed.notify_all()


class ContentCache:
    """Text to bytes within one namespace; without a path, in this process's memory only.

    Every text asked for counts once: in `computed` if this object computed it, else in `reused`.
    The file has one connection, which is opened at its first use; threads take turns with it.
    """

    def __init__(self, path: Path | None, namespace: str, *, buckets: int = _BUCKETS) -> None:
        self.computed = 0
        self.reused = 0
        self._is_off = bool(os.environ.get(UNCACHED))
        self._path = path and path.expanduser().absolute()
        self._entries: dict[bytes, bytes] = {}
        """The values, where there is no path."""
        self._entry_locks = _BucketLocks()
        self._database: sqlite3.Connection | None = None
        self._turn = threading.RLock()
        self._buckets = buckets
        # Beyond the usual buckets, whose numbers other caches of the same file use.
        self._first_bucket = 0 if buckets <= _BUCKETS else _OPENING + 1
        name = namespace.encode()
        # The length in front keeps ("ab", "c") apart from ("a", "bc").
        self._prefix = blake2b(len(name).to_bytes(8, "big") + name, digest_size=20)
        if path is not None:
            _caches.add(self)

    def get_or_compute(
        self, texts: Sequence[str], compute: Callable[[list[str]], list[bytes]]
    ) -> list[bytes]:
        """The value of each text, in order; those not known yet go to `compute` in one call.

        `compute` gets distinct texts, unless caches are off, and must not call the cache itself.
        """
        if self._is_off:
            self.computed += len(texts)
            return compute(list(texts))
        keys = []
        for text in texts:
            hasher = self._prefix.copy()
            hasher.update(text.encode("utf-8", "surrogatepass"))
            keys.append(hasher.digest())
        by_key = dict(zip(keys, texts, strict=True))
        found = self._read(list(by_key))
        missing = [key for key in by_key if key not in found]
        fresh: dict[bytes, bytes] = {}
        if missing:
            numbers = (int.from_bytes(key[:8], "big") % self._buckets for key in missing)
            with self._locks.take({self._first_bucket + number for number in numbers}):
                found |= self._read(missing)
                missing = [key for key in missing if key not in found]
                if missing:
                    values = compute([by_key[key] for key in missing])
                    fresh = dict(zip(missing, values, strict=True))
                    if self._path is None:
                        self._entries |= fresh
                    else:
                        with self._use() as database, database:
                            database.execute("BEGIN IMMEDIATE")
                            database.executemany(_INSERT, fresh.items())
        self.computed += len(fresh)
        self.reused += len(texts) - len(fresh)
        found |= fresh
        return [found[key] for key in keys]

    def close(self) -> None:
        """Close the file, which the next use opens again; drop what is in memory only."""
        self._entries.clear()
        with self._turn:
            if self._database is not None:
                self._database.close()
                self._database = None

    def renew(self) -> None:
        """In a forked child: leave alone what the parent had open, and the lock it may hold."""
        if self._database is not None:
            _inherited.append(self._database)
        self._database, self._turn = None, threading.RLock()

    @property
    def _locks(self) -> _BucketLocks:
        """This process's locks on the file, which all its caches in that file share."""
        if self._path is None:
            return self._entry_locks
        if self._path not in _locks_by_path:
            try:
                beside = self._path.with_name(f"{self._path.name}.lock")
                made = _BucketLocks(open_private(beside, os.O_RDWR))
                _protect(self._path.parent)
            except OSError as error:
                raise MnemoscopeError(
                    f"cannot create the cache {self._path}: {error.strerror}; "
                    "set MNEMOSCOPE_CACHE to another folder"
                ) from error
            _locks_by_path.setdefault(self._path, made)
        return _locks_by_path[self._path]

    def _read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        if self._path is None:
            return {key: self._entries[key] for key in keys if key in self._entries}
        found: dict[bytes, bytes] = {}
        with self._use() as database:
            for start in range(0, len(keys), _KEYS_A_SELECT):
                part = keys[start : start + _KEYS_A_SELECT]
                marks = ",".join("?" * len(part))
                found.update(
                    database.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", part)
                )
        return found

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        import sqlite3

        assert self._path is not None
        with self._turn:
            try:
                if self._database is None:
                    # Switching to WAL does not wait for other processes as statements do.
                    with self._locks.take({_OPENING}):
                        # SQLite gives the files next to it the same mode.
                        make_private_file(self._path)
                        self._database = sqlite3.connect(
                            self._path,
                            timeout=_BUSY_SECONDS,
                            isolation_level=None,
                            check_same_thread=False,
                        )
                        self._database.execute("PRAGMA journal_mode = WAL")
                        self._database.execute("PRAGMA synchronous = NORMAL")
                        self._database.execute(_TABLE)
                yield self._database
            except sqlite3.OperationalError as error:
                self.close()
                raise MnemoscopeError(
                    f"cannot use the cache {self._path}: {error}; check that the disk has space "
                    "and the file can be written, or set MNEMOSCOPE_CACHE to another folder"
                ) from error
            except sqlite3.DatabaseError as error:
                self.close()
                raise DataError(
                    f"this cache is damaged ({error}); delete it together with its -wal and -shm "
                    "neighbours and run again: everything in it can be computed again",
                    file=self._path,
                ) from error


_caches: weakref.WeakSet[ContentCache] = weakref.WeakSet()
"""Those with a file."""
_locks_by_path: dict[Path, _BucketLocks] = {}
_inherited: list[sqlite3.Connection] = []
"""SQLite forbids to use them in a child, and closing one could cut the parent's locks."""


def _close_before_fork() -> None:
    """Close all connections.

    Closing one later in the parent would unlink files that the children, which share its memory of
    them, go on using.
    """
    for cache in list(_caches):
        cache.close()


def _renew_after_fork() -> None:
    _locks_by_path.clear()
    for cache in list(_caches):
        cache.renew()


os.register_at_fork(before=_close_before_fork, after_in_child=_renew_after_fork)
