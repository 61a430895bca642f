"""The price of a host process: whole LoCoMo by the command, bm25 built in and a hosted copy of it.

Each figure is of the whole command: start, imports, all questions, files. Both are measured in
turn, and the best of several rounds counts.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
SYSTEMS = {
    "bm25, built in": "bm25,cache=false",
    "a copy of it in a host": "copy=bm25_copy:Bm25Copy,cache=false",
}


class CommandCost(NamedTuple):
    cpu: float
    wall: float


def costs(data: Path | None, rounds: int, workers: int) -> dict[str, CommandCost]:
    """The best CPU and wall time of each system; an error if their journals differ."""
    best: dict[str, CommandCost] = {}
    for _ in range(rounds):
        journals = set()
        for name, system in SYSTEMS.items():
            with tempfile.TemporaryDirectory() as folder:
                cost = _cost(system, data, Path(folder), workers)
                [journal] = Path(folder).glob("*/trials.jsonl")
                journals.add(journal.read_bytes())
            before = best.get(name, cost)
            best[name] = CommandCost(min(cost.cpu, before.cpu), min(cost.wall, before.wall))
        if len(journals) != 1:
            raise SystemExit("the journals of bm25 and of its hosted copy differ")
    return best


def _cost(system: str, data: Path | None, out: Path, workers: int) -> CommandCost:
    command = [sys.executable, "-m", "mnemoscope", "run", "locomo", "--no-baselines"]
    command += ["--system", system, "--out", str(out), "--workers", str(workers)]
    command += ["--data", str(data)] if data else []
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    before, started = _children(), time.perf_counter()
    done = subprocess.run(
        command,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return CommandCost(_children() - before, time.perf_counter() - started)


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
