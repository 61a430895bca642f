"""Files and folders that only their user can read: runs, caches, locks, ledgers.

They contain the user's memories, and labels that systems under test must not read. The modes do not
depend on the umask.
"""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

PRIVATE_RUN = "MNEMOSCOPE_PRIVATE"
"""Set while a private run is under way: its texts are neither cached on disk nor printed."""
_FILE, _FOLDER = 0o600, 0o700
_OTHERS = 0o077
_told: set[Path] = set()
"""Folders for which a note was logged."""


def is_private_run() -> bool:
    """Whether a private run is under way in this process or the one that started it."""
    return bool(os.environ.get(PRIVATE_RUN))


def make_private_folder(path: Path) -> None:
    """Create the folder and its parents for this user only; existing ones stay as they are."""
    if path.is_dir():
        return
    if path.parent != path:
        make_private_folder(path.parent)
    try:
        path.mkdir(_FOLDER)
    except FileExistsError:
        if not path.is_dir():
            raise
        return
    with suppress(OSError):  # the umask may have removed the user's own rights
        path.chmod(_FOLDER)


def make_private(path: Path) -> None:
    """Take an existing folder of ours away from other users; log a note if that fails.

    Call it only for folders that contain nothing else. A folder with the sticky bit, such as /tmp,
    belongs to all users and stays as it is.
    """
    found = path.stat()
    if not found.st_mode & _OTHERS or found.st_mode & stat.S_ISVTX:
        return
    try:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)
    except OSError:
        note_open_folder(path)


def note_open_folder(path: Path) -> None:
    """Log a note, once, if other users can read or replace files in the folder."""
    if path not in _told and path.exists() and path.stat().st_mode & _OTHERS:
        _told.add(path)
        import logging  # each host process imports this module, and seldom needs it

        logging.getLogger(__name__).warning(
            "note: other users of this machine can use the folder %s; run: chmod 700 %s", path, path
        )


def open_private(path: Path, flags: int) -> int:
    """A descriptor of the file, which is created and made private as needed; also its folder."""
    make_private_folder(path.parent)
    file = os.open(path, flags | os.O_CREAT | os.O_CLOEXEC, _FILE)
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and stat.S_IMODE(found.st_mode) != _FILE:
        try:
            os.fchmod(file, _FILE)
        except OSError:  # the file of another user, or a file system without modes
            note_open_folder(path.parent)
    return file


def restore_rights(path: Path) -> None:
    """Give the user the rights to a file of ours and to its folder again.

    No lock keeps a system from changing the modes of files that it can neither read nor write.
    """
    for place, mode in ((path.parent, _FOLDER), (path, _FILE)):
        with suppress(OSError):
            found = stat.S_IMODE(place.stat().st_mode)
            if found & mode != mode:
                place.chmod(found | mode)


def make_private_file(path: Path) -> None:
    """Create the file, or take it away from other users, without opening one that exists.

    Closing a descriptor of a file drops the locks of the whole process on it.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        os.close(open_private(path, os.O_RDWR))
        return
    if mode & _OTHERS:
        with suppress(OSError):
            path.chmod(_FILE)


def write_private(path: Path, *, append: bool = False) -> BinaryIO:
    """The private file, opened to be written anew or at its end."""
    how = os.O_APPEND if append else os.O_TRUNC
    return os.fdopen(open_private(path, os.O_WRONLY | how), "ab" if append else "wb")
