"""Deletes run directories for `--fresh`; the ledger of attempts keeps that they existed."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterable
from pathlib import Path

from mnemoscope._store.errors import RunConflict
from mnemoscope._store.run_directory import is_run
from mnemoscope._store.watched_run import LOCK

_UNFINISHED = ("units", "trials.jsonl", "timings.jsonl", LOCK)


def delete_runs(folder: Path, labels: Iterable[str]) -> list[Path]:
    """Delete the runs with these labels; refuse folders of others, and runs that are written now.

    Everything is checked before the first is deleted.
    """
    found = [place for label in labels if (place := folder / label).exists()]
    for place in found:
        if place.is_symlink() or not place.is_dir():
            raise RunConflict(f"--fresh: {place} is not a folder of its own; delete it yourself")
        is_ours = is_run(place) or any((place / name).exists() for name in _UNFINISHED)
        if not is_ours and any(place.iterdir()):
            raise RunConflict(f"--fresh: {place} is not a run; delete it yourself")
        if _is_locked(place / LOCK):
            raise RunConflict(f"--fresh: another process is writing {place}")
    for place in found:
        shutil.rmtree(place)
    return found


def _is_locked(lock: Path) -> bool:
    """Whether a process holds the lock of a run."""
    if not lock.exists():
        return False
    with lock.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False
