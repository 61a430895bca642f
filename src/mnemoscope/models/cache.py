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
from contextlib import AbstractContextManager, contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

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
        self._store: _Store = _Memory(buckets) if path is None else _File(path, buckets)
        name = namespace.encode()
        # The length in front keeps ("ab", "c") apart from ("a", "bc").
        self._prefix = blake2b(len(name).to_bytes(8, "big") + name, digest_size=20)

    def get_or_compute(
        self, texts: Sequence[str], compute: Callable[[list[str]], list[bytes]]
    ) -> list[bytes]:
        """The value of each text, in order; those not known yet go to `compute` in one call.

        `compute` gets distinct texts and must not call the cache itself.
        """
        keys = [self._key(text) for text in texts]
        by_key = dict(zip(keys, texts, strict=True))
        found = self._store.read(list(by_key))
        missing = [key for key in by_key if key not in found]
        fresh: dict[bytes, bytes] = {}
        if missing:
            with self._store.exclusive(missing):
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

    def _key(self, text: str) -> bytes:
        hasher = self._prefix.copy()
        hasher.update(text.encode("utf-8", "surrogatepass"))
        return hasher.digest()


class _Store(Protocol):
    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]: ...
    def write(self, entries: Mapping[bytes, bytes]) -> None: ...
    def exclusive(self, keys: Sequence[bytes]) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


class _Turns:
    """Takes all of a set or waits: threads of one process with disjoint sets run side by side."""

    def __init__(self) -> None:
        self._taken: set[int] = set()
        self._changed = threading.Condition()

    @contextmanager
    def take(self, items: set[int]) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._taken.isdisjoint(items))
            self._taken |= items
        try:
            yield
        finally:
            with self._changed:
                self._taken -= items
                self._changed.notify_all()


class _Memory:
    def __init__(self, buckets: int) -> None:
        self._buckets = buckets
        self._entries: dict[bytes, bytes] = {}
        self._turns = _Turns()

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        return {key: self._entries[key] for key in keys if key in self._entries}

    def write(self, entries: Mapping[bytes, bytes]) -> None:
        self._entries.update(entries)

    def exclusive(self, keys: Sequence[bytes]) -> AbstractContextManager[None]:
        return self._turns.take({_bucket(key, self._buckets) for key in keys})

    def close(self) -> None:
        self._entries.clear()


class _File:
    def __init__(self, path: Path, buckets: int) -> None:
        _files.add(self)
        self._buckets = buckets
        self._path = path.expanduser().absolute()
        # One connection a process. Those inherited through a fork stay here, untouched: SQLite
        # forbids to use them in the child, and closing one could cut the parent's locks.
        self._connections: dict[int, _Connection] = {}

    def read(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        with self._connection() as database:
            for start in range(0, len(keys), _KEYS_A_SELECT):
                part = keys[start : start + _KEYS_A_SELECT]
                marks = ",".join("?" * len(part))
                found.update(
                    database.execute(f"SELECT key, value FROM entries WHERE key IN ({marks})", part)
                )
        return found

    def write(self, entries: Mapping[bytes, bytes]) -> None:
        with self._connection() as database, database:
            database.execute("BEGIN IMMEDIATE")
            database.executemany("INSERT OR REPLACE INTO entries VALUES (?, ?)", entries.items())

    def exclusive(self, keys: Sequence[bytes]) -> AbstractContextManager[None]:
        return _locks(self._path).take({_bucket(key, self._buckets) for key in keys})

    def close(self) -> None:
        if (connection := self._connections.pop(os.getpid(), None)) is not None:
            connection.close()

    def _connection(self) -> AbstractContextManager[sqlite3.Connection]:
        process = os.getpid()
        if (connection := self._connections.get(process)) is None:
            connection = self._connections.setdefault(process, _Connection(self._path))
        return connection.use()


# A connection must not be open while the process forks: closing it later in the parent would
# unlink files that the children, who share its memory of them, go on using.
_files: weakref.WeakSet[_File] = weakref.WeakSet()


def _close_before_fork() -> None:
    for file in list(_files):
        file.close()


os.register_at_fork(before=_close_before_fork)


class _Connection:
    """This process's connection to the file, opened at first use, one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database: sqlite3.Connection | None = None
        self._lock = threading.Lock()

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
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

    def close(self) -> None:
        with self._lock:
            self._drop()

    def _open(self) -> sqlite3.Connection:
        with _locks(self._path).take({_OPENING}):
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


class _Locks:
    """Byte-range locks of one process on one side file; the kernel frees them when it dies."""

    def __init__(self, path: Path) -> None:
        # Never closed: closing any descriptor of a file drops all the process's locks on it.
        self._file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self._turns = _Turns()

    @contextmanager
    def take(self, buckets: set[int]) -> Iterator[None]:
        # fcntl locks do not hold between threads of one process, so threads take turns first.
        with self._turns.take(buckets):
            try:
                # In ascending order everywhere, so that no two processes wait for each other.
                for bucket in sorted(buckets):
                    self._lock(bucket)
                yield
            finally:
                for bucket in buckets:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, bucket)

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


_locks_of_process: dict[tuple[int, Path], _Locks] = {}


def _locks(path: Path) -> _Locks:
    key = (os.getpid(), path)
    if (locks := _locks_of_process.get(key)) is None:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            made = _Locks(path.with_name(f"{path.name}.lock"))
        except OSError as error:
            raise MnemoscopeError(
                f"the cache {path} cannot be made: {error.strerror}; "
                "MNEMOSCOPE_CACHE names another folder"
            ) from error
        locks = _locks_of_process.setdefault(key, made)
    return locks


def _bucket(key: bytes, buckets: int) -> int:
    # Beyond the usual ones, where others do not mean something else by the same byte.
    first = 0 if buckets <= _BUCKETS else _OPENING + 1
    return first + int.from_bytes(key[:8], "big") % buckets
