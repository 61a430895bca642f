"""The price of a host process: whole LoCoMo with bm25 built in, and with a copy of it.

The copy runs in a host process, by the command and by a script, and by the same script in the
worker process. Each figure is of the whole command: start, imports, all questions, files. All are
measured in turn, in several rounds.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rounds import Cost

HERE = Path(__file__).resolve().parent


class CommandCost(NamedTuple):
    cpu: Cost
    wall: Cost


def _command(system: str, data: str, out: str, workers: int) -> list[str]:
    command = ["-m", "mnemoscope", "run", "locomo", "--no-baselines"]
    command += ["--system", system, "--out", out, "--workers", str(workers)]
    return command + (["--data", data] if data else [])


def _script(place: str, data: str, out: str, workers: int) -> list[str]:
    return [str(HERE / "bm25_copy.py"), place, data, out, str(workers)]


COMMANDS: dict[str, Callable[[str, str, int], list[str]]] = {
    "bm25, built in": partial(_command, "bm25,cache=false"),
    "a copy of it in a host": partial(_command, "copy=bm25_copy:Bm25Copy"),
    "a script with the copy in the worker": partial(_script, "here"),
    "the same script with the copy in a host": partial(_script, "hosted"),
}


def costs(data: Path | None, rounds: int, workers: int) -> dict[str, CommandCost]:
    """The CPU and wall time of each command; an error if their journals differ."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in COMMANDS}
    for _ in range(rounds):
        journals = set()
        for name, words in COMMANDS.items():
            with tempfile.TemporaryDirectory() as folder:
                taken[name].append(_times(words(str(data or ""), folder, workers)))
                [journal] = Path(folder).glob("*/trials.jsonl")
                journals.add(journal.read_bytes())
        if len(journals) != 1:
            raise SystemExit("the journals of bm25 and of its copies differ")
    return {
        name: CommandCost(*map(Cost, zip(*times, strict=True))) for name, times in taken.items()
    }


def _times(words: list[str]) -> tuple[float, float]:
    """CPU and wall seconds of a command."""
    path = os.pathsep.join([str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])])
    before, started = _children(), time.perf_counter()
    done = subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SystemExit(done.stderr)
    return _children() - before, time.perf_counter() - started


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
