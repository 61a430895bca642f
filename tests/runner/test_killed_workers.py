"""A worker or a system that is killed from outside costs no figure: same bytes as undisturbed.

Each kill is decided by the number of calls that the system has noted in a log. The system waits in
that call, so the process is killed in the middle of it.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.log_folder import logs
from tests.runner.test_statuses import Made, scenario
from tests.waiting import eventually

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.connectors import serve_stdio
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.personas import Personas
from mnemoscope.runner.pipeline import Lifecycle, Pipeline
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.runner.worker_process import Worker
from mnemoscope.systems.loader import plan

HERE = Path(__file__).parent
STDIO = f"noted=stdio:{sys.executable} -S {serve_stdio.__file__} noted_system:Noted,live=on"
HOSTED = "noted=noted_system:Noted"
KILLS = 4
"""In each run."""
SEEDS = range(5)
"""For each of two ways of running a system: 40 kills in all."""
SCENARIOS = 3
CALLS = SCENARIOS * (1 + 6)
"""The least that a run of `Made` notes: each scenario is ingested, and six questions are asked."""


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
        while left and not over.wait(0.01):
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
    """Where the system notes its calls."""
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", str(HERE))
    log = logs(tmp_path) / "calls.txt"
    log.touch()
    monkeypatch.setenv("NOTED", str(log))
    return log


def restarts(done: RunDirectory) -> int:
    counters: dict[str, int] = done.read_json("timing.json")["counters"]
    return counters.get("restarts", 0)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    place = tmp_path_factory.mktemp("undisturbed")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(HERE))
        patch.setenv("NOTED", str(logs(place) / "calls.txt"))
        done = put(HOSTED, dataset(), place / "out")
    assert restarts(done) == 0
    assert len((logs(place) / "calls.txt").read_text().splitlines()) >= CALLS
    return done.trials_path.read_bytes()


def dataset() -> Dataset:
    return Made(tuple(scenario(number) for number in range(SCENARIOS)))


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("spec", [HOSTED, STDIO], ids=["hosted", "stdio"])
def test_processes_killed_at_random_calls_leave_the_bytes_of_an_undisturbed_run(
    spec: str, seed: int, undisturbed: bytes, log: Path, tmp_path: Path
) -> None:
    draw = random.Random(seed)
    # The first call is an ingestion, so that each run is killed in one.
    numbers = [1, *draw.sample(range(2, CALLS), KILLS - 1)]
    # The process of the system can be killed, and the worker that has started it.
    victims = draw.choices([1, 2], k=KILLS)

    with killer(log, numbers, victims) as killed:
        disturbed = put(spec, dataset(), tmp_path / "out")

    assert disturbed.trials_path.read_bytes() == undisturbed
    assert killed.total() == restarts(disturbed) == KILLS
    assert killed["remember"] >= 1


@pytest.mark.parametrize("lifecycle", ["fork", "fresh", "incremental"])
def test_a_history_with_checkpoints_survives_kills(
    lifecycle: Lifecycle,
    write_persona: Callable[..., Path],
    log: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    history = Personas(write_persona(tmp_path / "data"), ranges="3d,6d,full")
    spec = "noted=noted_system:Copied"
    undisturbed = put(spec, history, tmp_path / "undisturbed", lifecycle)
    calls = len(log.read_text().splitlines())
    log.write_text("")
    numbers = [1, *random.Random(lifecycle).sample(range(2, calls), KILLS - 1)]

    with killer(log, numbers, [1] * KILLS) as killed:
        disturbed = put(spec, history, tmp_path / "disturbed", lifecycle)

    assert disturbed.trials_path.read_bytes() == undisturbed.trials_path.read_bytes()
    assert killed.total() == restarts(disturbed) == KILLS


def test_a_worker_that_waits_for_a_unit_is_replaced(
    undisturbed: bytes, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No call is lost, so that nothing counts as a restart."""
    killed: list[int] = []

    def is_idle_and_dead(self: Worker) -> bool:
        if self.unit is None and self.describes and not killed:
            assert self.process.pid
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)
            assert eventually(lambda: has_ended.__get__(self))
        return bool(has_ended.__get__(self))

    has_ended = Worker.__dict__["has_ended"]
    monkeypatch.setattr(Worker, "has_ended", property(is_idle_and_dead))

    done = put(HOSTED, dataset(), tmp_path / "out")

    assert killed
    assert done.trials_path.read_bytes() == undisturbed
    assert restarts(done) == 0
