"""A system is built once a process, by the worker that will host it, and never in the parent."""

from __future__ import annotations

import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.runner.test_statuses import Made
from tests.waiting import eventually

from mnemoscope._store.errors import MnemoscopeError, RunConflict, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.runner.conformance import check_system
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import describe
from mnemoscope.systems.loader import plan, plan_here

_ADAPTER = """
import os, sys
from mnemoscope.connectors.serve_stdio import serve

class Words:
    def __init__(self):
        with open({log!r}, "a") as log:
            print("started", os.getpid(), file=log)

    def reset(self, scope):
        self.texts = {{}}

    def remember(self, memories):
        self.texts |= {{memory.id: memory.text for memory in memories}}

    def recall(self, query, k):
        last = query.text.rsplit(maxsplit=1)[-1]
        return sorted(self.texts, key=lambda id: last not in self.texts[id].split())[:k]

    def close(self):
        with open({log!r}, "a") as log:
            print("closed", os.getpid(), file=log)

serve(Words())
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the systems of these tests say what becomes of them."""
    place = tmp_path / "log.txt"
    monkeypatch.setenv("BUILT_LOG", str(place))
    place.touch()
    return place


@pytest.fixture
def adapter(tmp_path: Path, log: Path) -> str:
    """A stdio adapter that counts its starts, as a spec."""
    program = tmp_path / "adapter.py"
    program.write_text(_ADAPTER.format(log=str(log)))
    return f"stdio:{sys.executable} {program},live=on"


def said(log: Path) -> list[tuple[str, int]]:
    lines = (line.split() for line in log.read_text().splitlines())
    return [(what, int(pid)) for what, pid in lines]


HERE = "logged_systems"


def ran(out: Path, *specs: str, workers: int = 1, pipeline: Pipeline = Pipeline()) -> list[str]:
    """The states of the runs."""
    plans = [plan(Spec.parse(spec)) for spec in specs]
    runs = run(Made(), plans, out, Settings(depth=3, workers=workers), pipeline=pipeline)
    return [str(one.manifest().state) for one in runs]


def test_a_process_behind_stdio_starts_once_for_a_run_with_one_worker(
    adapter: str, log: Path, tmp_path: Path
) -> None:
    assert ran(tmp_path / "out", adapter, "bm25") == ["complete"] * 2

    (started, first), (closed, last) = said(log)
    assert (started, closed) == ("started", "closed")
    assert first == last


def test_a_process_behind_stdio_starts_once_for_the_command_with_its_baselines(
    adapter: str, log: Path, tmp_path: Path, write_locomo: Callable[..., Path]
) -> None:
    data = write_locomo(tmp_path / "locomo.json", conversations=2, sessions=3, questions=3)
    command = ["run", "locomo", "--data", str(data), "--out", str(tmp_path / "out")]

    assert invoke([*command, "--system", f"mine={adapter}", "--workers", "1"]) == 0

    assert [what for what, _ in said(log)] == ["started", "closed"]


def test_a_complete_run_that_is_resumed_builds_its_system_once_and_closes_it(
    adapter: str, log: Path, tmp_path: Path
) -> None:
    ran(tmp_path / "out", adapter)
    log.write_text("")

    assert ran(tmp_path / "out", adapter) == ["complete"]

    assert [what for what, _ in said(log)] == ["started", "closed"]


def test_no_system_is_built_in_the_parent_and_each_worker_builds_its_own_once(
    log: Path, tmp_path: Path
) -> None:
    ran(tmp_path / "out", f"{HERE}:WithReset", workers=2)

    built = Counter(pid for what, pid in said(log) if what == "built")
    assert os.getpid() not in built
    assert set(built.values()) == {1}
    assert Counter(pid for what, pid in said(log) if what == "closed") == built


def test_a_system_without_reset_serves_its_first_scenario_as_it_was_described(
    log: Path, tmp_path: Path
) -> None:
    ran(tmp_path / "out", f"{HERE}:Logged")

    assert [what for what, _ in said(log)] == ["built", "closed"] * 2  # two scenarios


def test_the_identity_of_a_system_is_in_the_manifest(log: Path, tmp_path: Path) -> None:
    ran(tmp_path / "out", f"{HERE}:WithReset,note=beware")

    manifest = RunDirectory(next((tmp_path / "out").glob("*/manifest.json")).parent).manifest()
    assert manifest.notes == ["beware"]
    assert manifest.identity["system"]["notes"] == ["beware"]
    assert manifest.identity["system"]["arguments"] == {"note": "beware"}


@pytest.mark.parametrize(
    ("spec", "kind", "error"),
    [
        (f"{HERE}:OnlyAnswers", UsageError, r"no recall\(query, k\): give --reader system"),
        (f"{HERE}:NeedsMore", MnemoscopeError, "this system needs a package that is not installed"),
        ("bm25,k1=-1", UsageError, "k1=-1.0: must be 0 or more"),
        ("stdio:false", UsageError, "cannot build stdio:false: AdapterDied: hello: false ended"),
    ],
)
def test_a_system_that_cannot_be_run_is_refused_before_anything_is_written(
    spec: str, kind: type[Exception], error: str, log: Path, tmp_path: Path
) -> None:
    with pytest.raises(kind, match=error):
        ran(tmp_path / "out", f"{HERE}:WithReset", spec)

    assert not (tmp_path / "out").exists()
    assert [what for what, _ in said(log)] == ["built", "closed"]


def test_a_system_whose_building_ends_the_process_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot build .*: AdapterDied: .* died of SIGKILL"):
        ran(tmp_path / "out", f"{HERE}:DiesWhenBuilt")

    assert not (tmp_path / "out").exists()


def test_a_system_that_must_answer_and_cannot_is_refused(log: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"--reader system: .*WithReset has no answer\(query\)"):
        ran(tmp_path / "out", f"{HERE}:WithReset", pipeline=Pipeline(system_answers=True))


def test_a_conformance_check_builds_nothing_in_the_parent(log: Path) -> None:
    [result] = check_system(plan(Spec(f"{HERE}:WithReset")), names=["k"])

    assert result.verdict == "passed"
    assert os.getpid() not in {pid for _, pid in said(log)}
    assert [what for what, _ in said(log)] == ["built", "closed"]


@pytest.mark.parametrize("name", ["NeedsMore", "OnlyRemembers"])
def test_a_conformance_check_refuses_what_cannot_be_checked(name: str) -> None:
    error = {"NeedsMore": "needs a package", "OnlyRemembers": r"has no recall\(query, k\)"}[name]
    with pytest.raises(MnemoscopeError, match=error):
        check_system(plan(Spec(f"{HERE}:{name}")), names=["k"])


def test_systems_can_be_described_in_a_new_process(log: Path) -> None:
    [known] = describe([plan(Spec(f"{HERE}:WithReset", {"note": "beware"}))])

    assert (known.notes, known.recalls, known.answers) == (["beware"], True, False)
    assert known.is_described
    assert os.getpid() not in {pid for _, pid in said(log)}
    assert [what for what, _ in said(log)] == ["built", "closed"]


def test_the_first_worker_keeps_the_run_locked_when_the_parent_is_killed(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was forked before the lock was taken, and may still be writing."""
    parent = os.fork()
    if not parent:
        try:
            plans = [plan_here(Spec(f"{HERE}:HoldsTheInterpreter"))]  # in the worker itself
            run(Made(), plans, tmp_path / "out", Settings(depth=3, workers=1))
        finally:
            os._exit(0)
    assert eventually(lambda: any(what == "stopped" for what, _ in said(log)))
    worker = next(pid for what, pid in said(log) if what == "stopped")
    directory = RunDirectory(next((tmp_path / "out").glob("*/manifest.json")).parent)
    try:
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        with pytest.raises(RunConflict, match=re.escape("another process is writing")):
            directory._take_lock(patience=0.05)
    finally:
        os.kill(worker, signal.SIGKILL)
    directory._take_lock(patience=30)
    directory.release()
