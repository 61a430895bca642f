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
    found = dict.fromkeys(every_name(paths))
    return tuple(path for path in found if not any(parent in found for parent in path.parents))


def every_name(paths: Iterable[Path]) -> Iterator[Path]:
    """The same with the paths below others."""
    mounts = list(_mounts())
    for path in paths:
        real = Path(os.path.realpath(path))
        yield real
        yield from _mounted_elsewhere(real, mounts)


def raw_disks() -> list[Path]:
    """The block devices that this user may read; they contain every file."""
    found = []
    for folder, _, names in os.walk("/dev"):
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
    real = Path(os.path.realpath(place))
    return next((path for path in hidden if path == real or path in real.parents), None)


def readable_files(hidden: Iterable[Path], decoys: Sequence[Path] = ()) -> list[str]:
    """One file of each hidden path that we can read ourselves, and no decoy, for the self-test."""
    found = []
    for path in hidden:
        files = [path] if path.is_file() else _files_in(path)
        own = (file for file in files if contains(decoys, file) is None)
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


class _Mount(NamedTuple):
    device: str
    root: Path
    """The folder of the file system that is mounted."""
    place: Path


def _mounts() -> Iterator[_Mount]:
    with suppress(OSError), Path("/proc/self/mountinfo").open(encoding="utf-8") as lines:
        for line in lines:
            fields = line.split(" ")
            root, place = (field.encode().decode("unicode_escape") for field in fields[3:5])
            yield _Mount(fields[2], Path(root), Path(place))


def _mounted_elsewhere(path: Path, mounts: list[_Mount]) -> Iterator[Path]:
    around = [mount for mount in mounts if path.is_relative_to(mount.place)]
    if not around:
        return
    own = max(around, key=lambda mount: len(mount.place.parts))
    inside = own.root / path.relative_to(own.place)
    for mount in mounts:
        if mount.device == own.device and inside.is_relative_to(mount.root):
            other = mount.place / inside.relative_to(mount.root)
            if other != path and os.access(other, os.F_OK):
                yield other
