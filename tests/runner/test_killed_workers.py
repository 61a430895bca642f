"""A worker or a system that is killed from outside costs no figure: same bytes as undisturbed.

Each kill is decided by the number of calls that the system has noted in a log: the test sends it
while the call is in progress, since the call waits for it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.runner.test_statuses import Made, scenario

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.base import Dataset
from mnemoscope.runner.pipeline import Lifecycle, Pipeline
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query

HERE = Path(__file__).parent
MODULE = "mnemoscope.connectors.serve_stdio"
STDIO = f"noted=stdio:{sys.executable} -m {MODULE} test_killed_workers:Noted"
IN_WORKER = "noted=test_killed_workers:Noted"
KILLS = 4
"""In each run."""
SEEDS = range(5)
"""For each way of running a system: 2 × 5 × 4 kills."""


class Noted:
    """Notes each call in $NOTED, and waits at each call whose number is a file in $NOTED.kill."""

    def __init__(self) -> None:
        self.ids: list[str] = []

    def note(self, verb: str) -> None:
        log = os.environ["NOTED"]
        with open(log, "a") as file:  # noqa: PTH123  # the child starts faster without
            file.write(f"{verb} {os.getpid()} {os.getppid()}\n")
            number = file.tell()
        with open(log) as file:  # noqa: PTH123
            calls = file.read(number).count("\n")
        while os.path.exists(f"{log}.kill/{calls}"):  # noqa: PTH110
            time.sleep(0.002)

    def reset(self, scope: str) -> None:
        self.ids = []

    def remember(self, memories: Sequence[Memory]) -> None:
        self.note("remember")
        self.ids += [memory.id for memory in memories]

    def recall(self, query: Query, k: int) -> Any:
        self.note("recall")
        start = len(query.text) % (len(self.ids) or 1)
        return [*self.ids[start:], *self.ids[:start]][:k]


@contextmanager
def killer(log: Path, numbers: Sequence[int], victims: Sequence[int]) -> Iterator[Counter[str]]:
    """Kill a process in the calls with these numbers; the Counter says in which verbs.

    A victim is 1 for the process that runs the system's code, and 2 for its parent.
    """
    marks = Path(f"{log}.kill")
    marks.mkdir()
    for number in numbers:
        (marks / str(number)).touch()
    killed: Counter[str] = Counter()
    over = threading.Event()

    def watch() -> None:
        left = dict(zip(numbers, victims, strict=True))
        while left and not over.wait(0.002):
            lines = log.read_text().splitlines()
            for number in [number for number in left if number <= len(lines)]:
                words = lines[number - 1].split()
                os.kill(int(words[left.pop(number)]), signal.SIGKILL)
                killed[words[0]] += 1
                (marks / str(number)).unlink()

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


def put(spec: str, dataset: Dataset, out: Path, lifecycle: Lifecycle = "auto") -> RunDirectory:
    settings = Settings(depth=3, workers=2, limits=Limits(restarts=KILLS))
    plans = [plan(Spec.labelled(spec)), plan(Spec("bm25"))]
    return run(dataset, plans, out, settings, pipeline=Pipeline(lifecycle=lifecycle))[0]


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), str(HERE.parents[1]), *sys.path]))
    return use_log(tmp_path / "calls.txt", monkeypatch)


def use_log(log: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    log.touch()
    monkeypatch.setenv("NOTED", str(log))
    return log


def restarts(done: RunDirectory) -> int:
    counters: dict[str, int] = done.read_json("timing.json")["counters"]
    return counters.get("restarts", 0)


SCENARIOS = 3
CALLS = SCENARIOS * (1 + 6)
"""The least that a run of `Made` notes: each scenario is ingested, and six questions are asked."""


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spec", [IN_WORKER, STDIO], ids=["in-worker", "stdio"])
def test_processes_killed_at_random_calls_leave_the_bytes_of_an_undisturbed_run(
    spec: str, seed: int, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = Made(tuple(scenario(number) for number in range(SCENARIOS)))
    undisturbed = put(spec, dataset, tmp_path / "undisturbed")
    calm = log.read_text().splitlines()
    log = use_log(tmp_path / "calls-2.txt", monkeypatch)
    draw = random.Random(seed)
    # The first call is always an ingestion, so that each run is killed in one.
    numbers = [1, *sorted(draw.sample(range(2, CALLS), KILLS - 1))]
    # Behind stdio both the child and the worker that has started it can be killed.
    victims = draw.choices([1, 2] if spec == STDIO else [1], k=KILLS)

    with killer(log, numbers, victims) as killed:
        disturbed = put(spec, dataset, tmp_path / "disturbed")

    assert disturbed.trials_path.read_bytes() == undisturbed.trials_path.read_bytes()
    assert killed.total() == restarts(disturbed) == KILLS
    assert killed["remember"] >= 1
    assert restarts(undisturbed) == 0
    assert len(calm) >= CALLS
