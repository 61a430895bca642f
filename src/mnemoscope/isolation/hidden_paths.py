"""Which paths a system may not read, under all the names that they have on this machine."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_MOST_LISTED = 2000
"""Entries that are looked at, in one folder, to find a file for the self-test."""


def all_names(paths: Iterable[Path]) -> tuple[Path, ...]:
    """The real paths, and those under which other mounts show the same files.

    A path below another one is left out: it needs no rule.
    """
    found = {str(path): path for path in every_name(paths)}
    return tuple(
        path for name, path in found.items() if not any(above in found for above in _above(name))
    )


def every_name(paths: Iterable[Path]) -> Iterator[Path]:
    """The same with the paths below others."""
    mounts = list(_mounts())
    for path in paths:
        real = os.path.realpath(path)
        yield Path(real)
        yield from _mounted_elsewhere(real, mounts)


def raw_disks() -> list[Path]:
    """The block devices that this user may read; they contain every file.

    File systems mounted below /dev hold no device files of the machine. One of them is /dev/shm,
    where programs keep any number of files.
    """
    found = []
    for folder, inner, names in os.walk("/dev"):
        inner[:] = (name for name in inner if not os.path.ismount(Path(folder, name)))
        for path in (Path(folder, name) for name in names):
            with suppress(OSError):
                if stat.S_ISBLK(path.lstat().st_mode) and os.access(path, os.R_OK):
                    found.append(path)
    return found


def hard_links(files: Iterable[Path]) -> list[Path]:
    """The files that have a second name, which no rule by path can cover."""
    found = []
    for file in files:
        with suppress(OSError):
            known = file.stat()
            if stat.S_ISREG(known.st_mode) and known.st_nlink > 1:
                found.append(file)
    return found


def contains(hidden: Iterable[Path], place: Path) -> Path | None:
    """The hidden path that is the place, or contains it."""
    real = os.path.realpath(place)
    around = {real, *_above(real)}
    return next((path for path in hidden if str(path) in around), None)


def readable_files(hidden: Iterable[Path], given: Sequence[Path] = ()) -> list[str]:
    """One file of each hidden path, for the self-test; `given` are the child's own folders."""
    found = []
    for path in hidden:
        files = [path] if path.is_file() else _files_in(path)
        own = (file for file in files if contains(given, file) is None)
        if first := next((file for file in own if os.access(file, os.R_OK)), None):
            found.append(str(first))
    return found


def _files_in(folder: Path) -> Iterator[Path]:
    seen = 0
    for place, _, names in os.walk(folder):
        for path in (Path(place, name) for name in names):
            if path.is_file() and not path.is_symlink():
                yield path
        seen += len(names)
        if seen > _MOST_LISTED:
            return


# A run compares hundreds of paths with each mount and with each other. Comparing them as text takes
# a tenth of the time that `Path.parents` and `Path.is_relative_to` take.


def _above(path: str) -> Iterator[str]:
    """The folders that contain an absolute path."""
    while path != os.sep:
        path = path.rpartition(os.sep)[0] or os.sep
        yield path


def _inside(path: str, folder: str) -> str | None:
    """The rest of a path below a folder, which is empty for the folder itself; None outside."""
    if path == folder:
        return ""
    start = f"{folder.rstrip(os.sep)}{os.sep}"
    return path[len(start) :] if path.startswith(start) else None


class _Mount(NamedTuple):
    device: str
    root: str
    """The folder of the file system that is mounted."""
    place: str


def _mounts() -> Iterator[_Mount]:
    with suppress(OSError), Path("/proc/self/mountinfo").open(encoding="utf-8") as lines:
        for line in lines:
            fields = line.split(" ")
            root, place = (field.encode().decode("unicode_escape") for field in fields[3:5])
            yield _Mount(fields[2], str(Path(root)), str(Path(place)))


def _mounted_elsewhere(path: str, mounts: list[_Mount]) -> Iterator[Path]:
    around = [mount for mount in mounts if _inside(path, mount.place) is not None]
    if not around:
        return
    own = max(around, key=lambda mount: len(mount.place))  # one contains the other: the inner one
    inside = str(Path(own.root, _inside(path, own.place) or ""))
    for mount in mounts:
        if mount.device == own.device and (rest := _inside(inside, mount.root)) is not None:
            other = Path(mount.place, rest)
            if str(other) != path and os.access(other, os.F_OK):
                yield other
