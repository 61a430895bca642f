"""Ends the processes that a system leaves behind, also those in other sessions (Linux).

A process that outlives its run keeps the lock of that run, and could read what a later run hides.
While children run, our process adopts orphans, so that each process of a system stays below us.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

_PR_SET_CHILD_SUBREAPER, _PR_GET_CHILD_SUBREAPER = 36, 37
_END_SECONDS = 5.0
"""How long processes that start others all the time are chased."""
_PAUSE = 0.002
_ZOMBIE = "Z"
_LONGEST_STAT = 4096
"""Bytes; a line of /proc/PID/stat has about 300."""
OnLeftBehind = Callable[[str], None]


class _Hook:
    call: OnLeftBehind = staticmethod(lambda name: None)


_hook = _Hook()


class _Process(NamedTuple):
    parent: int
    group: int
    name: str
    state: str


def on_left_behind(call: OnLeftBehind) -> None:
    """Call this with the name of each process that a child started from now on leaves behind."""
    _hook.call = call


def current_hook() -> OnLeftBehind:
    return _hook.call


def adopt_orphans() -> bool:
    """Become the parent of descendants whose own parent ends; returns whether that was so before.

    Elsewhere than on Linux nothing happens.
    """
    if not sys.platform.startswith("linux"):
        return True
    library = ctypes.CDLL(None)
    before = ctypes.c_int()
    library.prctl(_PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    if not before.value:
        library.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    return bool(before.value)


@contextmanager
def adopted_orphans() -> Iterator[None]:
    """Adopt orphans while the block runs, and end those of locked children after it."""
    before = adopt_orphans()
    try:
        yield
    finally:
        end_locked_orphans()
        if not before:
            ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)


def descendants(pid: int) -> set[int]:
    """The processes below this one."""
    return _below({pid}, _processes())


def adopted(pids: set[int]) -> set[int]:
    """Those of the processes that are our children now, because their parent has ended."""
    found = _processes()
    own = os.getpid()
    return {pid for pid in pids & found.keys() if found[pid].parent == own and pid not in _started}


def end_processes_of(child: int, below: set[int], mark: str) -> list[str]:
    """End what is left of a child that has ended; returns the names of what had left its group.

    `below` are the processes that it had. Orphans are recognised by the `mark` in their variables,
    or, if they removed it, by the lock, which they cannot remove.
    """
    return _end(lambda found: below | _orphans_of(found, mark), child)


def end_locked_orphans() -> list[str]:
    """End the orphans of locked children whose worker was killed."""
    return _end(lambda found: _orphans_of(found, ""), 0)


def _end(find: Callable[[dict[int, _Process]], set[int]], group: int) -> list[str]:
    names: dict[int, str] = {}
    until = time.monotonic() + _END_SECONDS
    while sys.platform.startswith("linux"):
        found = _processes()
        roots = find(found)
        alive = {
            pid
            for pid in (roots | _below(roots, found)) & found.keys()
            if found[pid].state != _ZOMBIE
        }
        for pid in alive:
            if found[pid].group != group:
                names[pid] = found[pid].name
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in roots & found.keys():
            if found[pid].parent == os.getpid():
                with suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
        if not alive or time.monotonic() > until:
            break
        time.sleep(_PAUSE)
    return [names[pid] for pid in sorted(names)]


def _orphans_of(found: dict[int, _Process], mark: str) -> set[int]:
    """Our adopted children that have this mark, or the lock and no mark of another child."""
    own = os.getpid()
    we_are_restricted = _is_restricted(own)
    orphans = set()
    for pid in (pid for pid, one in found.items() if one.parent == own and pid not in _started):
        marks = _variables(pid)
        if mark and mark.encode() in marks:
            orphans.add(pid)
        elif not we_are_restricted and _is_restricted(pid):
            others = (one for one in _started.values() if one and one != mark)
            if not any(one.encode() in marks for one in others):
                orphans.add(pid)
    return orphans


_started: dict[int, str] = {}
"""The children that this process started and has not ended, each with its mark."""


def note_started(pid: int, mark: str) -> None:
    _started[pid] = mark


def note_ended(pid: int) -> None:
    _started.pop(pid, None)


def _variables(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def _is_restricted(pid: int) -> bool:
    """Whether a process has no_new_privs, which the lock sets and nothing can remove."""
    with suppress(OSError):
        return b"\nNoNewPrivs:\t1" in Path(f"/proc/{pid}/status").read_bytes()
    return False


def _below(roots: set[int], found: dict[int, _Process]) -> set[int]:
    children: dict[int, list[int]] = {}
    for pid, one in found.items():
        children.setdefault(one.parent, []).append(pid)
    below: set[int] = set()
    waiting = list(roots)
    while waiting:
        new = [pid for pid in children.get(waiting.pop(), ()) if pid not in below]
        below.update(new)
        waiting += new
    return below


def _processes() -> dict[int, _Process]:
    """All processes that can be seen."""
    found = {}
    for pid in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208 - `iterdir` takes longer
        with suppress(OSError, ValueError):
            stat = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
            try:
                line = os.read(stat, _LONGEST_STAT).decode("utf-8", "replace")
            finally:
                os.close(stat)
            before, _, rest = line.rpartition(")")
            state, parent, group = rest.split(maxsplit=3)[:3]
            name = before.partition("(")[2]
            found[int(pid)] = _Process(int(parent), int(group), name, state)
    return found
