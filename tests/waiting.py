"""Waiting for what comes in its own time, which nobody measures; and whether processes are gone."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path


def eventually(is_so: Callable[[], bool], seconds: float = 60) -> bool:
    until = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > until:
            return False
        time.sleep(0.01)
    return True


def is_gone(pid: int) -> bool:
    """No such process, or one that nobody has waited for yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def all_gone(place: Path) -> bool:
    """Whether all processes are that have left a file of their number in this folder."""
    pids = [int(file.name) for file in place.iterdir()]
    return bool(pids) and all(map(is_gone, pids))
