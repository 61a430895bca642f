"""What can be seen of a run that another process writes, without taking its lock.

The lock file contains how many questions the run will ask. Only its size and text change, so
writing it costs a run nothing, and the file is empty again when the run ends.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from pathlib import Path
from typing import BinaryIO

import msgspec

LOCK = ".lock"
_LENGTH = 80
"""The text is padded to this length: a reader never sees parts of two texts."""
_RECENT = 30.0
"""Seconds since the last change of a file, where locks cannot be listed."""
_LOCKS = Path("/proc/locks")


class ExpectedQuestions(msgspec.Struct, frozen=True):
    """How many questions a run will ask; a question counts at each checkpoint that asks it."""

    total: int
    is_estimate: bool = False
    """Whether scenarios are still to be read."""


def note_expected(lock: int, expected: ExpectedQuestions) -> None:
    """Write it into the lock file that this process holds."""
    os.pwrite(lock, msgspec.json.encode(expected).ljust(_LENGTH), 0)


def expected_questions(folder: Path) -> ExpectedQuestions | None:
    """What the lock file says; None if it says nothing."""
    try:
        with open_regular(folder / LOCK) as file:
            return msgspec.json.decode(file.read(_LENGTH), type=ExpectedQuestions)
    except (OSError, msgspec.DecodeError):
        return None


def is_being_written(folder: Path) -> bool:
    """Whether a process holds the lock of the run, or changed a file of it just now.

    The kernel's list of locks does not show those of other containers and machines.
    """
    try:
        place = (folder / LOCK).lstat()
        for line in _LOCKS.read_text(encoding="ascii", errors="replace").splitlines():
            fields = line.split()
            if len(fields) > 5 and fields[1] == "FLOCK" and fields[5].endswith(f":{place.st_ino}"):
                return True
    except OSError:
        pass
    return time.time() - _last_change(folder) < _RECENT


def _last_change(folder: Path) -> float:
    latest = 0.0
    for place in (folder / "trials.jsonl", folder / "units"):
        try:
            latest = max(latest, place.lstat().st_mtime)
            if place.name == "units":
                with os.scandir(place) as entries:
                    times = (one.stat(follow_symlinks=False).st_mtime for one in entries)
                    latest = max(latest, *times, 0.0)
        except OSError:  # a spool is deleted when it was merged
            continue
    return latest


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; a symbolic link or a pipe is refused."""
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "is not a regular file", str(path))
    return os.fdopen(file, "rb")
