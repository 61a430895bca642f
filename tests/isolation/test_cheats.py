"""Cheats that look for labels outside of what they are given get chance, or are blocked.

All of them run in one command, as root and as a user without rights, beside bm25.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.isolation.mechanisms import require
from tests.optional import missing

import mnemoscope as ms
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.verify import Verification, verify
from mnemoscope.isolation.lock import Mechanism, best_mechanism

ADAPTER = Path(__file__).parent / "cheating_adapter.py"
SEARCHES = (
    *("argument", "open-files", "memory", "names", "runs", "caches", "processes", "disks"),
    *("scratch", "limits"),
)
FOLLOWERS = ("planted", "planted-rarely", "planted-deep", "planted-journal")
WITHOUT_LOCK = ("argument", "memory", "names", "runs", "caches", "processes", "scratch", "limits")
"""The searches that succeed at level 1, also without root."""
WITHOUT_LABELS = ("memory", "limits")
NOBODY = 65534
WITH_LOCK = """
from mnemoscope.runner import isolation_setup
isolation_setup.best_mechanism = lambda: {!r}
from mnemoscope.cli import main
main()
"""
PYTHONS = (sys.executable, "/usr/bin/python3")
PACKAGES = os.pathsep.join(str(Path(one.__file__ or "").parents[1]) for one in (ms, msgspec))


def nobody_can_run(python: str) -> bool:
    check = f"import sys, mnemoscope.cli.app; assert sys.version_info[:2] == {sys.version_info[:2]}"
    try:
        done = subprocess.run(
            [python, "-c", check],
            user=NOBODY,
            group=NOBODY,
            cwd="/",
            env={"PYTHONPATH": PACKAGES},
            capture_output=True,
            check=False,
        )
    except OSError:
        return False
    return done.returncode == 0


class World:
    """A folder with data, a cache, an earlier run and a ledger, and runs of cheats in it."""

    def __init__(
        self,
        folder: Path,
        write_locomo: Callable[..., Path],
        user: int | None,
        python: str,
        lock: Mechanism | None = None,
    ) -> None:
        self.folder, self._user, self._python = folder, user, python
        self._start = ["-m", "mnemoscope"] if lock is None else ["-c", WITH_LOCK.format(lock)]
        self.is_root = user is None and os.geteuid() == 0
        for name in ("data", "cache", "home", "home/decoys", "earlier/bm25", "tmp", "adapter"):
            (folder / name).mkdir(parents=True)
        self.data = write_locomo(folder / "data" / "locomo10.json", 2, 30, 40)
        shutil.copyfile(self.data, folder / "cache" / "copy.json")
        (folder / "earlier" / "bm25" / "manifest.json").write_text("{}")
        self._write_earlier_journal()
        line = {"path": str(folder / "earlier" / "bm25")}
        (folder / "home" / "attempts.jsonl").write_text(json.dumps(line) + "\n")
        shutil.copyfile(ADAPTER, folder / "adapter" / "adapter.py")
        # The scratch folder of a system in another run, which runs at the same time.
        self._scratch = folder / "tmp" / f"mnemoscope-{os.geteuid() if user is None else user}"
        (self._scratch / "host-neighbour" / "tmp").mkdir(parents=True)
        shutil.copyfile(self.data, self._scratch / "host-neighbour" / "tmp" / "store.json")

    def _write_earlier_journal(self) -> None:
        lines = []
        for sample in json.loads(self.data.read_text()):
            for asked in sample["qa"]:
                sessions = {name.partition(":")[0] for name in asked["evidence"]}
                evidence = [f"{sample['sample_id']}/{one}" for one in sessions]
                question = asked["question"].partition(" ")[0]
                lines.append(json.dumps({"question": question, "evidence": evidence}))
        (self.folder / "earlier" / "bm25" / "trials.jsonl").write_text("\n".join(lines) + "\n")

    def run(self, out: str, modes: tuple[str, ...], *more: str) -> None:
        places = {
            "data": str(self.data),
            "out": str(self.folder / out),
            "cache": str(self.folder / "cache"),
            "home": str(self.folder / "home"),
            "earlier": str(self.folder / "earlier"),
            "scratch": str(self._scratch),
            "parent": 0,
        }
        (self.folder / "adapter" / "places.json").write_text(json.dumps(places))
        adapter = self.folder / "adapter"
        words = [self._python, *self._start, "run", "locomo", "--data", str(self.data)]
        words += ["--out", str(self.folder / out), "--workers", "1", *more]
        for mode in modes:
            command = f"{self._python} -S -E {adapter}/adapter.py {adapter}/places.json {mode}"
            words += ["--system", f"{mode}=stdio:{command},live=on"]
        environment = {
            **os.environ,
            "HOME": str(self.folder / "home"),
            "TMPDIR": str(self.folder / "tmp"),
            "MNEMOSCOPE_CACHE": str(self.folder / "cache"),
            "MNEMOSCOPE_DATA_HOME": str(self.folder / "home"),
            "PYTHONPATH": PACKAGES,
        }
        if self._user is not None:
            for path in (self.folder, *self.folder.glob("**/*")):
                os.chown(path, self._user, self._user)
        done = subprocess.run(
            words,
            env=environment,
            cwd=self.folder,
            user=self._user,
            group=self._user,
            extra_groups=None if self._user is None else [],
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-3000:]

    def manifest(self, out: str, mode: str) -> dict[str, Any]:
        place = self.folder / out / mode / "manifest.json"
        return dict(json.loads(place.read_text()))

    def recall(self, out: str, mode: str) -> dict[str, Any]:
        place = self.folder / out / mode / "metrics.json"
        return dict(json.loads(place.read_text())["overall"]["recall@10"])

    def reached(self, out: str, mode: str) -> int:
        place = self.folder / out / mode / "timing.json"
        return int(json.loads(place.read_text())["counters"].get("reached", 0))

    def verified(self, out: str, mode: str) -> Verification:
        return verify(RunDirectory(self.folder / out / mode))


@pytest.fixture(scope="module", params=["root", "nobody"])
def world(request: pytest.FixtureRequest, write_locomo: Callable[..., Path]) -> Iterator[World]:
    """All cheats with the lock and, of those that succeed without it, one run without it."""
    if best_mechanism() is None:
        missing("this machine has no lock")
    user, python = None, sys.executable
    if request.param == "nobody":
        user = NOBODY
        if os.geteuid() != 0:
            missing("only root can run a command as another user")
        python = next(filter(nobody_can_run, PYTHONS), "")
        if not python:
            missing("the user nobody cannot run a Python of this version with these packages")
    folder = Path(tempfile.mkdtemp(prefix="mnemoscope-cheats-")).resolve()
    folder.chmod(0o755)
    try:
        world = World(folder, write_locomo, user, python)
        world.run("locked", (*SEARCHES, *FOLLOWERS, "honest"))
        world.run("open", WITHOUT_LOCK, "--no-baselines", "--isolation", "1")
        yield world
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def test_the_same_searches_get_chance_under_bubblewrap(write_locomo: Callable[..., Path]) -> None:
    require("bubblewrap")
    folder = Path(tempfile.mkdtemp(prefix="mnemoscope-cheats-")).resolve()
    try:
        world = World(folder, write_locomo, None, sys.executable, "bubblewrap")
        world.run("locked", (*SEARCHES, "planted", "honest"), "--no-baselines")
        for mode in SEARCHES:
            found = world.recall("locked", mode)
            # The parent that it sees is bubblewrap's own process, which never had a label.
            assert world.reached("locked", mode) == 0 or mode in WITHOUT_LABELS, mode
            assert found["ci95"][0] - 0.05 <= found["chance"] <= found["ci95"][1] + 0.05, mode
        isolation = world.manifest("locked", "honest")["isolation"]
        assert (isolation["mechanism"], isolation["level"]) == ("bubblewrap", 3)
        assert world.verified("locked", "honest").gate("isolation").passed
        assert world.verified("locked", "planted").status == "BLOCKED"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.mark.parametrize("mode", SEARCHES)
def test_a_search_for_labels_gets_chance(world: World, mode: str) -> None:
    found = world.recall("locked", mode)

    assert world.reached("locked", mode) == 0
    assert found["ci95"][0] - 0.05 <= found["chance"] <= found["ci95"][1] + 0.05
    assert world.manifest("locked", mode)["isolation"]["level"] == 3
    assert world.verified("locked", mode).gate("isolation").passed


@pytest.mark.parametrize("mode", WITHOUT_LOCK)
def test_the_same_search_succeeds_without_the_lock(world: World, mode: str) -> None:
    if mode not in WITHOUT_LABELS:
        assert world.recall("open", mode)["mean"] > 0.99
    if mode != "memory" or world.is_root:
        assert world.reached("open", mode) > 0
    gate = world.verified("open", mode).gate("isolation")
    assert "level 1: labels were not given; it could have read the data files" in gate.why


@pytest.mark.parametrize("mode", FOLLOWERS)
def test_a_system_that_follows_planted_labels_is_blocked(world: World, mode: str) -> None:
    found = world.verified("locked", mode)

    assert found.status == "BLOCKED"
    assert "planted labels followed" in found.gate("isolation").why
    assert world.recall("locked", mode)["mean"] < 0.6


def test_an_honest_system_is_not_blocked(world: World) -> None:
    gate = world.verified("locked", "honest").gate("isolation")

    assert gate.passed
    assert "could not read data, runs or our memory" in gate.why
    assert "expected" in gate.why


def test_built_in_systems_beside_cheats_give_the_same_bytes(world: World, tmp_path: Path) -> None:
    alone = ms.run("locomo", systems="bm25", data=world.data, out=tmp_path, progress=False)

    for name in ("bm25", "random", "oracle"):
        beside = world.folder / "locked" / name / "trials.jsonl"
        assert beside.read_bytes() == (alone[name].path / "trials.jsonl").read_bytes()
    assert world.manifest("locked", "oracle")["isolation"]["sees_labels"] is True


def test_nothing_is_left_behind(world: World) -> None:
    [root] = (world.folder / "tmp").glob("mnemoscope-*")
    assert {path.name for path in root.iterdir()} == {"README", "host-neighbour"}
    assert not list((world.folder / "home").glob("mnemoscope-data-*"))
    # The secret of the decoys stays, so that the next run shows the same ones.
    [secret] = (world.folder / "home" / "decoys").iterdir()
    assert secret.stat().st_mode & 0o777 == 0o600
