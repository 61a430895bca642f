"""A system that does harm gets its true status, and a system beside it the same bytes as alone."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.runner import harmful_systems
from tests.runner.harmful_systems import EXPECTED, IN_CHILD, ONLY_IN_WORKER, Harmless
from tests.runner.test_statuses import Made, asks_for_trouble, scenario
from tests.waiting import all_gone, eventually

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.runner import scheduler, worker_process
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems.loader import Plan, plan, plan_here

HERE = Path(__file__).parent
LIMITS = Limits(recall=300, remember=400, restarts=1)
GROUPS = 6
SYSTEMS = list(EXPECTED)


def in_worker(kind: type) -> Plan:
    """The system as a class from Python, which runs in the worker process."""
    return plan_here(Spec(kind.__name__), kind)


def in_child(kind: type) -> Plan:
    """The system in a child process, as `module:Class`."""
    module = "mnemoscope.connectors.serve_stdio"
    command = f"{sys.executable} -S -m {module} harmful_systems:{kind.__name__}"
    return plan(Spec.labelled(f"{kind.__name__}=stdio:{command},live=on"))


def by_name(kind: type) -> Plan:
    """The system as `module:Class`, wherever such a system runs."""
    return plan(Spec.labelled(f"{kind.__name__}=harmful_systems:{kind.__name__}"))


def ran(
    plans: Sequence[Plan], out: Path, limits: Limits = LIMITS, workers: int = 2
) -> dict[str, RunDirectory]:
    """The runs of these systems, and that of bm25 beside them, by name."""
    bm25 = plan(Spec("bm25"))
    made = Made((scenario(0), scenario(1)))
    runs = run(made, [*plans, bm25], out, Settings(depth=3, workers=workers, limits=limits))
    return {one.path.name: one for one in runs}


@pytest.fixture(scope="module")
def bm25_alone(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    return ran([], tmp_path_factory.mktemp("alone"))["bm25"].trials_path.read_bytes()


@pytest.fixture(autouse=True)
def _short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_process, "_CLOSE", 0.2)
    monkeypatch.setattr(scheduler, "_FAREWELL", 0.5)


@pytest.fixture
def left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where systems note the processes that they leave behind."""
    place = tmp_path / "left"
    place.mkdir()
    monkeypatch.setenv("LEFT", str(place))
    return place


def assert_true_status(
    done: RunDirectory, kind: type, *statuses: str, error: str = "", everywhere: bool = False
) -> None:
    """Questions that ask for trouble, or all, have one of the statuses; the others are answered."""
    trials = list(done.trials())
    assert done.manifest().state == "complete"
    assert len(trials) == 12
    for trial in trials:
        if asks_for_trouble(trial) or everywhere:
            assert trial.status in statuses, (kind, trial.status, trial.error)
            assert error in trial.error
        else:
            assert trial.status == "answered", (kind, trial.status, trial.error)
            assert trial.ranking[0] == trial.evidence[0]
        assert len(trial.error) <= 500
        assert trial.error.isprintable()
        assert len(trial.ranking) <= 6
    assert len(done.trials_path.read_bytes()) < 100_000
    assert not done.read_json("timing.json")["index_bytes"]


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_hostile_class_gets_its_true_status_and_changes_nothing_beside_it(
    group: int, bm25_alone: bytes, tmp_path: Path, left: Path
) -> None:
    kinds = SYSTEMS[group::GROUPS]

    runs = ran([in_worker(kind) for kind in kinds], tmp_path / "out")

    for kind in kinds:
        status, error, everywhere, _ = EXPECTED[kind]
        done = runs[kind.__name__]
        assert_true_status(done, kind, status, error=error, everywhere=everywhere)
    assert runs["bm25"].trials_path.read_bytes() == bm25_alone
    assert not any(left.iterdir()) or eventually(lambda: all_gone(left))


def test_a_flood_on_stderr_is_passed_on_in_part(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    ran([in_worker(harmful_systems.FloodsStderr)], tmp_path / "out")

    said = capfd.readouterr().err
    assert 1 <= said.count("what this system writes to stderr from here on is left out") <= 2
    assert "line of a flood" in said
    assert len(said) < 2 * (1 << 20) + 10_000  # of two workers


def test_there_are_at_least_forty_hostile_systems() -> None:
    assert len(SYSTEMS) >= 40


@pytest.mark.parametrize(
    ("host", "kinds", "workers"),
    [
        *((in_child, IN_CHILD[group::2], 2) for group in range(2)),
        # With one worker, all of them and bm25 are asked by the same process.
        *((by_name, SYSTEMS[group::GROUPS], 1) for group in range(GROUPS)),
    ],
)
def test_a_hostile_system_by_name_gets_its_true_status_and_changes_nothing_beside_it(
    host: Callable[[type[Harmless]], Plan],
    kinds: list[type[Harmless]],
    workers: int,
    bm25_alone: bytes,
    tmp_path: Path,
    left: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(HERE), *sys.path]))
    kinds = [kind for kind in kinds if kind not in ONLY_IN_WORKER]

    runs = ran([host(kind) for kind in kinds], tmp_path / "out", workers=workers)

    for kind in kinds:
        status, _, everywhere, elsewhere = EXPECTED[kind]
        done = runs[kind.__name__]
        assert_true_status(done, kind, status, elsewhere or status, everywhere=everywhere)
    assert runs["bm25"].trials_path.read_bytes() == bm25_alone
    assert not any(left.iterdir()) or eventually(lambda: all_gone(left))


@pytest.mark.parametrize(
    ("name", "error"),
    [
        ("HangsInConstructor", "its constructor took longer than 1 s"),
        ("HangsInIdentity", "its identity took longer than 1 s"),
        ("InterruptsConstructor", r"Unheard: not today \\ud800 \\x1b\[2J"),
        ("HasASurrogateIdentity", "surrogates not allowed"),
        ("HasAHugeIdentity", r"identity\(\) returned more than 1 MiB"),
    ],
)
def test_a_system_that_cannot_be_built_is_refused_with_its_reason(
    name: str, error: str, tmp_path: Path
) -> None:
    kind = getattr(harmful_systems, name)

    with pytest.raises(UsageError, match=error):
        ran([in_worker(kind)], tmp_path / "out", Limits(remember=1))

    assert not (tmp_path / "out").exists()
