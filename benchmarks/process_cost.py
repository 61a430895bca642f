"""What a command costs: CPU time and peak memory of its whole tree of processes.

Peak memory is the largest sum of the resident high-water marks (VmHWM) of all processes that live
at the same time. Pages that processes share count once for each, and the marks need not have been
reached at the same moment, so the figure is an upper bound. A process that lives for less than a
sampling interval may be missed.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

_INTERVAL = 0.05


class ProcessCost(NamedTuple):
    """The cost of one command."""

    cpu_s: float
    """User and system time of all its processes."""
    peak_bytes: int
    wall_s: float


class CommandFailed(Exception):
    """The command ended with an error; its standard error is the message."""


def process_cost(
    command: Sequence[str], environment: Mapping[str, str], folder: Path
) -> ProcessCost:
    """Run a command to its end; what it prints goes to files in the folder."""
    started, stop = time.perf_counter(), threading.Event()
    errors = folder / "stderr.txt"
    with (folder / "stdout.txt").open("wb") as out, errors.open("wb") as err:
        process = subprocess.Popen(
            command, env={**os.environ, **environment}, stdout=out, stderr=err
        )
        watch = _PeakMemory(process.pid, stop)
        watch.start()
        _, status, used = os.wait4(process.pid, 0)
    stop.set()
    watch.join()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise CommandFailed(f"{' '.join(command)}\n{errors.read_text(errors='replace')}")
    wall = time.perf_counter() - started
    return ProcessCost(used.ru_utime + used.ru_stime, max(watch.peak, used.ru_maxrss << 10), wall)


class _PeakMemory(threading.Thread):
    """Watches the memory of a process and of its descendants."""

    def __init__(self, root: int, stop: threading.Event) -> None:
        super().__init__(daemon=True)
        self.peak = 0
        self._root = root
        self._stop_event = stop

    def run(self) -> None:
        while not self._stop_event.wait(_INTERVAL):
            self.peak = max(self.peak, sum(map(_high_water, _tree(self._root))))


def _tree(root: int) -> list[int]:
    """The process and all its descendants that live now."""
    found, waiting = [], [root]
    while waiting:
        process = waiting.pop()
        found.append(process)
        for thread in _listed(Path(f"/proc/{process}/task")):
            try:
                children = (thread / "children").read_text()
            except OSError:
                continue
            waiting += map(int, children.split())
    return found


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        return []


def _high_water(process: int) -> int:
    """The most resident bytes that a process has had; 0 if it is gone."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return 0
    marks = [line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:")]
    return int(marks[0]) << 10 if marks else 0
