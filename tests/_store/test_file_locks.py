"""Locks on ranges of a file, where the kernel takes threads that wait in order for a deadlock."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

import pytest

from mnemoscope._store import file_locks
from mnemoscope._store.file_locks import lock_range, unlock_range


def take_both(file: int, first: int, second: int) -> int:
    """Lock two bytes; once the kernel calls it a deadlock, free the first, as its thread would."""
    refused = 0

    def lockf(file: int, command: int, length: int, start: int) -> None:
        nonlocal refused
        try:
            fcntl.lockf(file, command, length, start)
        except OSError as error:
            assert error.errno == errno.EDEADLK
            refused += 1
            fcntl.lockf(file, fcntl.LOCK_UN, 1, first)
            raise

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            file_locks, "fcntl", type("F", (), {"lockf": lockf, "LOCK_EX": fcntl.LOCK_EX})
        )
        lock_range(file, 1, second)
    return refused


def test_a_supposed_deadlock_is_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "locks"
    path.touch()
    holds, go = os.pipe(), os.pipe()
    child = os.fork()
    file = os.open(path, os.O_RDWR)
    if child == 0:
        refused = 255
        try:
            lock_range(file, 1, 1)
            os.write(holds[1], b".")
            os.read(go[0], 1)
            refused = take_both(file, 1, 0)
        finally:
            os._exit(refused)
    lock_range(file, 1, 0)
    os.read(holds[0], 1)
    os.write(go[1], b".")
    refused = take_both(file, 0, 1)
    unlock_range(file, 1, 1)
    unlock_range(file, 1, 0)
    of_child = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.close(file)

    assert of_child < 255
    assert refused + of_child == 1


def test_other_errors_are_not_retried() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        lock_range(1 << 20, 1, 0)
