"""A cache keyed by content: each distinct text is computed once, however many processes ask.

Values are bytes in one SQLite file; byte-range locks on a file beside it keep two processes from
computing the same content at the same time. What is in here can always be computed again.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

import platformdirs

from mnemoscope._store.errors import DataError, MnemoscopeError

# Few enough that a batch of any size takes its locks quickly (the kernel keeps them in a list),
# enough that unrelated single keys seldom wait for one another.
_BUCKETS = 4096
_OPENING = _BUCKETS
# For keys that are computed one by one and slowly: no two of them wait for one another by chance.
MANY_BUCKETS = 1 << 40
_KEYS_A_SELECT = 500
_BUSY_SECONDS = 60.0


def default_cache_dir() -> Path:
    """MNEMOSCOPE_CACHE, or the user's cache folder."""
    chosen = os.environ.get("MNEMOSCOPE_CACHE")
    return Path(chosen).expanduser() if chosen else Path(platformdirs.user_cache_dir("mnemoscope"))


class ContentCache:
    """Text to bytes within one namespace; with no path, in this process's memory only.

    Every text asked for counts once: in `computed` if this object computed it, else in `reused`.
    """

    def __init__(self, path: Path | None, namespace: str, *, buckets: int = _BUCKETS) -> None:
        self.computed = 0
        self.reused = 0
        self._store = _MemoryStore() if path is None else _SqliteStore(path)
        self._buckets = buckets
        # Beyond the usual buckets, where others do not mean something else by the same byte.
        self._first_bucket = 0 if buckets <= _BUCKETS else _OPENING + 1
        name = namespace.encode()
        # The length in front keeps ("ab", "c") apart from ("a", "bc").
        self._prefix = blake2b(len(name).to_bytes(8, "big") + name, digest_size=20)

    def get_or_compute(
        self, texts: Sequence[str], compute: Callable[[list[str]], list[bytes]]
    ) -> list[bytes]:
        """The value of each text, in order; those not known yet go to `compute` in one call.

        `compute` gets distinct texts and must not call the cache itself.
        """
        keys = []
        for text in texts:
            hasher = self._prefix.copy()
            hasher.update(text.encode("utf-8", "surrogatepass"))
            keys.append(hasher.digest())
        by_key = dict(zip(keys, texts, strict=True))
        found = self._store.read(list(by_key))
        missing = [key for key in by_key if key not in found]
        fresh: dict[bytes, bytes] = {}
        if missing:
            numbers = (int.from_bytes(key[:8], "big") % self._buckets for key in missing)
            with self._store.locks.take({self._first_bucket + number for number in numbers}):
                found |= self._store.read(missing)
                missing = [key for key in missing if key not in found]
                if missing:
                    values = compute([by_key[key] for key in missing])
                    fresh = dict(zip(missing, values, strict=True))
                    self._store.write(fresh)
        self.computed += len(fresh)
        self.reused += len(texts) - len(fresh)
        found |= fresh
        return [found[key] for key in keys]

    def close(self) -> None:
        self._store.close()


class _BucketLocks:
    """Locks on numbered buckets between threads and, with a file, between processes.

    The kernel frees the byte-range locks of a process when it dies.
    """

    def __init__(self, path: Path | None) -> None:
        # Never closed: closing any descriptor of a file drops all the process's locks on it.
        self._file = -1 if path is None else os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._taken: set[int] = set()
        self._changed = threading.Condition()

    @contextmanager
    def take(self, buckets: set[int]) -> Iterator[None]:
        """Hold all of them in the block; threads with disjoint sets run side by side."""
        # Threads take turns first: byte-range locks do not hold between threads of one process.
        with self._changed:
            self._changed.wait_for(lambda: self._taken.isdisjoint(buckets))
            self._taken |= buckets
        try:
            # In ascending order everywhere, so that no two processes wait for each other.
            for bucket in sorted(buckets) if self._file >= 0 else ():
                self._lock(bucket)
            yield
        finally:
            for bucket in buckets if self._file >= 0 else ():
                fcntl.lockf(self._file, fcntl.LOCK_UN, 1, bucket)
            with self._changed:
                self._taken -= buckets
                self._changed.notify_all()

    def _lock(self, bucket: int) -> None:
        while True:
            try:
                fcntl.lockf(self._file, fcntl.LOCK_EX, 1, bucket)
                return
            except OSError as error:
                # The kernel sees processes, not threads, and may take two pairs of threads that
                # wait in order for a circle; the lock is free as soon as its holder is done.
                if error.errno != errno.EDEADLK:
                    raise
                time.sleep(0.005)


class _MemoryStore:
    def __init__(self) -> None:
        self.locks = _BucketLocks(None)
        self._entries: dict[bytes, bytes] = {}

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self._entries[key] for key in keys if key in self._entries}

    def write(self, entries: Mapping[bytes, bytes]) -> None:
        self._entries.update(entries)

    def close(self) -> None:
        self._entries.clear()


class _SqliteStore:
    """One connection of this process to the file, opened at first use, one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path.expanduser().absolute()
        self._database: sqlite3.Connection | None = None
        self._lock = threading.Lock()
        _stores.add(self)

    @property
    def locks(self) -> _BucketLocks:
        """Those of this process on the file, whatever store asks."""
        if self._path not in _locks:
            try:
                self._path.parent.mkdir(parents=True, exist_ok=True)
                made = _BucketLocks(self._path.with_name(f"{self._path.name}.lock"))
            except OSError as error:
                raise MnemoscopeError(
                    f"the cache {self._path} cannot be made: {error.strerror}; "
                    "MNEMOSCOPE_CACHE names another folder"
                ) from error
            _locks.setdefault(self._path, made)
        return _locks[self._path]

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._use() as database:
            for start in range(0, len(keys), _KEYS_A_SELECT):
                part = keys[start : start + _KEYS_A_SELECT]
                marks = ",".join("?" * len(part))
                found.update(
                    database.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", part)
                )
        return found

    def write(self, entries: Mapping[bytes, bytes]) -> None:
        with self._use() as database, database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", entries.items())

    def close(self) -> None:
        with self._lock:
            self._drop()

    @contextmanager
    def _use(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                if self._database is None:
                    self._database = self._open()
                yield self._database
            except sqlite3.OperationalError as error:
                raise MnemoscopeError(
                    f"the cache {self._path} cannot be used: {error}; is the disk full or the "
                    "file read-only? MNEMOSCOPE_CACHE names another folder"
                ) from error
            except sqlite3.DatabaseError as error:
                self._drop()
                raise DataError(
                    f"this cache is damaged ({error}); delete it together with its -wal and -shm "
                    "neighbours and run again: everything in it can be computed again",
                    file=self._path,
                ) from error

    def _open(self) -> sqlite3.Connection:
        with self.locks.take({_OPENING}):
            # Switching to WAL does not wait for other processes as statements do; hence the lock.
            database = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute("PRAGMA synchronous = NORMAL")
                database.execute(
                    "CREATE TABLE IF NOT EXISTS entries (key BLOB PRIMARY KEY, value BLOB NOT NULL)"
                )
            except sqlite3.Error:
                database.close()
                raise
        return database

    def _drop(self) -> None:
        if self._database is not None:
            self._database.close()
            self._database = None

    def renew(self) -> None:
        """In a forked child: leave alone what the parent had open, and the lock it may hold."""
        if self._database is not None:
            _inherited.append(self._database)
        self._database, self._lock = None, threading.Lock()


_stores: weakref.WeakSet[_SqliteStore] = weakref.WeakSet()
_locks: dict[Path, _BucketLocks] = {}
_inherited: list[sqlite3.Connection] = []
"""SQLite forbids to use them in a child, and closing one could cut the parent's locks."""


def _close_before_fork() -> None:
    """Close all connections.

    Closing one later in the parent would unlink files that the children, who share its memory of
    them, go on using.
    """
    for store in list(_stores):
        store.close()


def _renew_after_fork() -> None:
    _locks.clear()
    for store in list(_stores):
        store.renew()


os.register_at_fork(before=_close_before_fork, after_in_child=_renew_after_fork)
