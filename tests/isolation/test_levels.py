"""Levels of isolation: the highest possible by default, recorded, and never lower in silence."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.optional import missing

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.verify import verify
from mnemoscope.isolation.levels import BUILT_IN_SYSTEMS, lowest, recorded_isolation
from mnemoscope.isolation.lock import best_mechanism
from mnemoscope.runner import isolation_setup
from mnemoscope.systems import BUILT_IN
from mnemoscope.systems.loader import plan
from mnemoscope.types import Isolation

ADAPTER = """
import json, sys
ids = []
for line in sys.stdin:
    call = json.loads(line)
    method, params, result = call["method"], call["params"], None
    if method == "hello":
        methods = ["reset", "remember", "recall"]
        result = {"name": "first", "version": "1", "methods": methods, "identity": {}}
    elif method == "reset":
        ids = []
    elif method == "remember":
        ids += [memory["id"] for memory in params["memories"]]
    elif method == "recall":
        result = ids[: params["k"]]
    print(json.dumps({"jsonrpc": "2.0", "id": call["id"], "result": result}), flush=True)
"""
LEVEL_2 = Isolation("child", 2, mechanism="Landlock ABI 7", starts=2, passed=2)
LEVEL_3 = Isolation("child", 3, mechanism="Landlock ABI 7", decoys_sha256="ab")


@pytest.fixture
def folder(tmp_path: Path, write_locomo: Callable[..., Path]) -> Path:
    """Data and the system's own code in one folder."""
    write_locomo(tmp_path / "locomo10.json", 2, 12, 6)
    (tmp_path / "adapter.py").write_text(ADAPTER)
    return tmp_path


def run(folder: Path, out: str = "runs", isolation: int | None = None, **more: object) -> Manifest:
    system = f"stdio:{sys.executable} -S {folder / 'adapter.py'}"
    results = ms.run(
        "locomo",
        systems={"first": system},
        data=folder / "locomo10.json",
        out=folder / out,
        baselines=False,
        workers=1,
        isolation=isolation,  # type: ignore[arg-type]
        **{"progress": False, **more},  # type: ignore[arg-type]
    )
    return results["first"].manifest


def level_of(manifest: Manifest) -> int | None:
    assert manifest.isolation is not None
    return manifest.isolation.level


def need_lock() -> None:
    if best_mechanism() is None:
        missing("this machine has no lock")


@pytest.mark.parametrize("out", ["runs", "."])
def test_the_default_is_the_highest_level_also_beside_the_data(
    folder: Path, out: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    need_lock()
    monkeypatch.chdir(folder)

    found = run(folder, out).isolation

    assert found is not None
    assert (found.level, found.starts, found.passed) == (3, 1, 1)
    assert "could not read" in verify(RunDirectory(folder / out / "first")).gate("isolation").why


@pytest.mark.parametrize(("asked", "level"), [(0, 1), (1, 1), (2, 2), (3, 3)])
def test_a_level_can_be_asked_for_and_does_not_change_the_fingerprint(
    folder: Path, asked: int, level: int
) -> None:
    need_lock()
    found = run(folder, isolation=asked)

    assert level_of(found) == level
    assert found.fingerprint == run(folder, "other", 1).fingerprint
    report = (folder / "runs" / "first" / "report.md").read_text()
    assert ("labels were not given" in report) is (level == 1)
    assert (folder / "runs" / "first" / "decoys.jsonl").exists() is (level == 3)


def test_a_machine_without_a_lock_says_so_and_refuses_a_higher_level(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(isolation_setup, "best_mechanism", lambda: None)

    found = run(folder).isolation
    assert found is not None
    assert (found.level, found.why) == (
        1,
        "this machine has no Landlock, bubblewrap or sandbox-exec",
    )
    assert found.why in (folder / "runs" / "first" / "report.md").read_text()
    with pytest.raises(UsageError, match=r"--isolation 2 is not possible .* has no Landlock"):
        run(folder, "other", 2)


def test_data_with_a_second_name_cannot_be_locked_away(folder: Path) -> None:
    need_lock()
    (folder / "second.json").hardlink_to(folder / "locomo10.json")

    assert level_of(run(folder)) == 1
    with pytest.raises(UsageError, match="second name"):
        run(folder, "other", 2)


def test_a_server_that_we_did_not_start_is_within_reach(folder: Path) -> None:
    with pytest.raises(UsageError, match="is a server that we did not start, which is level 0"):
        ms.run(
            "locomo",
            systems="http:http://127.0.0.1:9",
            data=folder,
            out=folder / "runs",
            isolation=1,
            progress=False,
        )


IN_FOLDER = """
class First:
    def reset(self, scope):
        self.ids = []

    def remember(self, memories):
        self.ids += [memory.id for memory in memories]

    def recall(self, query, k):
        return self.ids[:k]
"""


def test_a_class_by_name_runs_in_the_worker_if_level_0_is_asked_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "first_system.py").write_text(IN_FOLDER)
    monkeypatch.syspath_prepend(str(folder))
    about = {"data": folder / "locomo10.json", "baselines": False, "workers": 1, "progress": False}
    results = ms.run(
        "locomo",
        systems={"first": "first_system:First"},
        out=folder / "zero",
        isolation=0,
        **about,  # type: ignore[arg-type]
    )
    assert level_of(results["first"].manifest) == 0
    assert verify(results["first"].directory).status != "VERIFIED"


def test_a_class_with_the_name_of_a_built_in_system_is_not_trusted() -> None:
    namespace: dict[str, type] = {}
    exec(IN_FOLDER.replace("First", "bm25"), namespace)
    assert plan(Spec("bm25"), namespace["bm25"]).hosting == "worker"
    assert plan(Spec("bm25")).hosting == "built-in"


def test_the_lowest_level_of_all_resumes_counts(folder: Path) -> None:
    need_lock()

    def stop(update: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=stop)
    begun = RunDirectory(folder / "runs" / "first").manifest()
    assert (begun.state, level_of(begun)) == ("interrupted", 3)

    assert level_of(run(folder, isolation=1)) == 1


def test_a_resumed_run_keeps_its_decoys(folder: Path) -> None:
    need_lock()

    def stop(update: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(folder, progress=stop)
    begun = RunDirectory(folder / "runs" / "first").manifest().isolation
    found = run(folder).isolation

    assert begun is not None
    assert found is not None
    assert found.decoys_sha256 == begun.decoys_sha256 != ""
    assert found.starts == begun.starts + 1
    assert verify(RunDirectory(folder / "runs" / "first")).gate("isolation").passed


def test_answers_made_later_keep_the_isolation_of_the_recall(folder: Path) -> None:
    need_lock()
    before = run(folder)

    later = ms.answer(folder / "runs" / "first", reader="extractive", data=folder, progress=False)

    assert later["first"].manifest.isolation == before.isolation
    assert later["first"].directory.read_json("metrics.json")["errors"] == {}
    assert verify(later["first"].directory).gate("isolation").passed


def test_edited_decoys_are_noticed(folder: Path) -> None:
    need_lock()
    run(folder)
    place = folder / "runs" / "first" / "decoys.jsonl"
    _, *rest = place.read_text().splitlines()
    place.write_text("\n".join(['{"secret":"00"}', *rest]))

    gate = verify(RunDirectory(folder / "runs" / "first")).gate("isolation")
    assert not gate.passed
    assert "secret is not the one" in gate.why


@pytest.mark.parametrize(
    ("before", "now", "level"),
    [
        (LEVEL_2, LEVEL_3, 2),
        (LEVEL_3, LEVEL_2, 2),
        (LEVEL_3, Isolation("child", 3, decoys_sha256="cd"), 2),
        (Isolation("child", 1), LEVEL_3, 1),
        (None, LEVEL_3, 0),
    ],
)
def test_a_continued_run_has_the_lower_level(
    before: Isolation | None, now: Isolation, level: int
) -> None:
    assert lowest(before, now, is_new=False).level == level
    assert lowest(before, now, is_new=True).level == now.level


def test_runs_without_a_record_are_ours_by_name_or_within_reach() -> None:
    assert set(BUILT_IN) == BUILT_IN_SYSTEMS
    for spec, level in (("bm25,k1=1.2", None), ("my:Memory", 0), ("bm25s", 0), ("", 0)):
        assert recorded_isolation(None, {"system": {"spec": spec}}).level == level
    assert recorded_isolation(None, {"system": {"spec": "oracle"}}).sees_labels
