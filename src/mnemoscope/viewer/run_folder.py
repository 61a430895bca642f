"""The runs below the viewer's folder: their ids, their states, and what they contain.

A request names a run by its id, never by a path. Symbolic links are not followed. What was read of
a run is kept until one of its files changes.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from threading import Lock
from typing import Literal, NamedTuple

from mnemoscope._store.errors import EditedRun, MnemoscopeError, UsageError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.run_directory import Manifest, RunDirectory, is_run
from mnemoscope._store.seal import PRESENTED
from mnemoscope._store.watched_run import is_being_written
from mnemoscope.reports.run_view import RunView, dataset_title

RunState = Literal["complete", "running", "interrupted", "edited", "unreadable"]
Signature = tuple[tuple[str, int, int, int], ...]
"""Name, inode, size and time of change of each file of a run.

The time is that of the inode: the time of the content can be set back after an edit.
"""

MOST_RUNS = 1_000
MOST_FOLDERS = 20_000
DEEPEST = 6
"""Levels of folders that are searched for runs."""
_ID_LENGTH = 12
_SHORT = 8


class ViewedRun(NamedTuple):
    """One run below the folder, as it was when it was last read."""

    id: str
    name: str
    """Its path below the folder."""
    path: Path
    state: RunState
    signature: Signature
    problem: str = ""
    """Why it has no figures."""
    manifest: Manifest | None = None
    """None for an edited or unreadable run."""
    view: RunView | None = None
    """The figures of a complete run."""

    @property
    def directory(self) -> RunDirectory:
        # Its files were checked when this was read; another signature reads it again.
        return RunDirectory(self.path, checked=False)

    @property
    def set(self) -> str:
        """The key of the runs that it can be compared with; empty if its data are not known."""
        if self.manifest is None:
            return ""
        identity = self.manifest.identity
        about = {"benchmark": identity.get("benchmark"), "depth": identity.get("depth")}
        return fingerprint(about)[:_ID_LENGTH]

    @property
    def benchmark(self) -> str:
        return str(self.manifest.identity["benchmark"]["name"]) if self.manifest else ""

    @property
    def options(self) -> str:
        """The options of the benchmark: `granularity=session, dates=off`."""
        if self.manifest is None:
            return ""
        about = self.manifest.identity["benchmark"]
        title = dataset_title("", about["options"])
        return title.strip(" ()")

    @property
    def system(self) -> str:
        return str(self.manifest.identity["system"]["spec"]) if self.manifest else ""


class RunFolder:
    """Finds the runs below one folder and reads them."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UsageError(f"{root} is not a folder: name one that contains runs")
        self.root = root.resolve()
        self.is_truncated = False
        """Whether the last search ended before all folders were searched."""
        self._paths: dict[str, Path] = {}
        self._read: dict[Path, ViewedRun] = {}
        self._lock = Lock()

    def runs(self) -> list[ViewedRun]:
        """All runs, sorted by their paths."""
        with self._lock:
            self._search()
            found = [self._viewed(path) for path in self._paths.values()]
        return [one for one in found if one is not None]

    def run(self, id: str) -> ViewedRun | None:
        """The run with this id; None if there is none below the folder."""
        with self._lock:
            if id not in self._paths:
                self._search()
            path = self._paths.get(id)
            return self._viewed(path) if path is not None else None

    def _search(self) -> None:
        self.is_truncated = False
        found: list[Path] = []
        folders, seen = [(self.root, 0)], 0
        while folders:
            place, depth = folders.pop()
            seen += 1
            if seen > MOST_FOLDERS or len(found) >= MOST_RUNS:
                self.is_truncated = True
                break
            if is_run(place):
                found.append(place)
                continue
            if depth < DEEPEST:
                folders += [(one, depth + 1) for one in reversed(_folders_in(place))]
        self._paths = {_id_of(path, self.root): path for path in sorted(found)}
        self._read = {path: one for path, one in self._read.items() if path in found}

    def _viewed(self, path: Path) -> ViewedRun | None:
        try:
            if path.resolve() != path or not is_run(path):  # replaced by a link, or deleted
                return None
            signature, link = _signature(path)
        except OSError:
            return None
        known = self._read.get(path)
        if known is None or known.signature != signature or known.state == "running":
            known = self._read[path] = self._reading(path, signature, link)
        return known

    def _reading(self, path: Path, signature: Signature, link: str) -> ViewedRun:
        name = path.relative_to(self.root).as_posix()
        about = (_id_of(path, self.root), path.name if name == "." else name, path)
        if link:
            problem = f"{link} is a symbolic link, which is not followed"
            return ViewedRun(*about, "unreadable", signature, problem)
        directory = RunDirectory(path)
        try:
            manifest = directory.manifest()
            view = RunView.of(directory) if manifest.state == "complete" else None
            found = ViewedRun(*about, "complete", signature, "", manifest, view)
            found.set, found.options, found.system  # noqa: B018  a manifest may lack them
            if view is not None:
                return found
        except EditedRun as error:
            return ViewedRun(*about, "edited", signature, self.shown(error))
        except (
            MnemoscopeError,
            OSError,
            LookupError,
            TypeError,
            ValueError,
            AttributeError,
        ) as error:
            return ViewedRun(*about, "unreadable", signature, self.shown(error))
        is_running = manifest.state == "running" and is_being_written(path)
        state: RunState = "running" if is_running else "interrupted"
        return ViewedRun(*about, state, signature, "", manifest)

    def shown(self, error: Exception) -> str:
        """An error without the path of the folder, which pages do not show."""
        text = str(error) if isinstance(error, MnemoscopeError) else repr(error)
        return text.replace(f"{self.root}{os.sep}", "").replace(str(self.root), self.root.name)


def _folders_in(place: Path) -> list[Path]:
    """The folders directly below, without links and hidden ones, sorted."""
    try:
        with os.scandir(place) as entries:
            names = [
                one.name
                for one in entries
                if not one.name.startswith(".") and one.is_dir(follow_symlinks=False)
            ]
    except OSError:  # not readable for this user
        return []
    return [place / name for name in sorted(names)]


def _signature(path: Path) -> tuple[Signature, str]:
    """The signature of a run, and the name of a symbolic link in it if there is one."""
    found, link = [], ""
    with os.scandir(path) as entries:
        for one in entries:
            about = one.stat(follow_symlinks=False)
            found.append((one.name, about.st_ino, about.st_size, about.st_ctime_ns))
            link = link or (one.name if one.is_symlink() else "")
    for name in PRESENTED:
        if name.startswith("../") and (place := path / name).exists():
            about = place.lstat()
            found.append((name, about.st_ino, about.st_size, about.st_ctime_ns))
    return tuple(sorted(found)), link


def _id_of(path: Path, root: Path) -> str:
    name = os.fsencode(path.relative_to(root))
    return hashlib.sha256(name).hexdigest()[:_ID_LENGTH]


def short_hash(set: str) -> str:
    """What tells two sets of the same benchmark apart: the data or the depth differ."""
    return set[:_SHORT]
