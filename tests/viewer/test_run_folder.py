"""Which runs the viewer finds, and the state that it gives each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.watched_run import ExpectedQuestions, expected_questions
from mnemoscope.viewer import run_folder
from mnemoscope.viewer.run_folder import RunFolder

IDENTITY = {
    "benchmark": {"name": "locomo", "options": {}, "sha256": []},
    "system": {"spec": "mine"},
    "depth": 50,
}


def test_runs_are_found_at_any_depth_but_not_in_hidden_folders(
    recorded: Path, tmp_path: Path
) -> None:
    for place in ("a/b/c/deep", ".hidden/not"):
        shutil.copytree(recorded / "locomo" / "luck", tmp_path / place)
    found = RunFolder(tmp_path)
    assert [one.name for one in found.runs()] == ["a/b/c/deep"]
    assert not found.is_truncated


def test_a_folder_that_is_a_run_is_listed_by_its_name(recorded: Path) -> None:
    [one] = RunFolder(recorded / "locomo" / "luck").runs()
    assert (one.name, one.state) == ("luck", "complete")


def test_the_search_is_bounded_and_says_so(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        (tmp_path / str(number)).mkdir()
    monkeypatch.setattr(run_folder, "MOST_FOLDERS", 3)
    found = RunFolder(tmp_path)
    assert found.runs() == []
    assert found.is_truncated


def test_an_edit_after_the_listing_is_named_and_the_figures_are_gone(
    recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "runs" / "copy"
    shutil.copytree(recorded / "locomo" / "luck", copy)
    found = RunFolder(tmp_path / "runs")
    [before] = found.runs()
    assert before.state == "complete" and before.view is not None
    metrics = copy / "metrics.json"
    metrics.write_text(metrics.read_text().replace("0.", "1.", 1))
    after = found.run(before.id)
    assert after is not None
    assert (after.state, after.view) == ("edited", None)
    assert "metrics.json was changed" in after.problem
    assert str(tmp_path) not in after.problem


def test_a_run_is_running_while_its_lock_is_held(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "runs" / "mine")
    manifest = run.open(IDENTITY)
    found = RunFolder(tmp_path / "runs")
    assert [one.state for one in found.runs()] == ["running"]
    run.note_expected(ExpectedQuestions(1_986, is_estimate=True))
    assert expected_questions(run.path) == ExpectedQuestions(1_986, True)
    run.note_expected(ExpectedQuestions(7))
    assert expected_questions(run.path) == ExpectedQuestions(7)
    manifest.state = "interrupted"
    run.save(manifest)
    run.release()
    assert [one.state for one in found.runs()] == ["interrupted"]
    assert expected_questions(run.path) is None  # nothing is left in the lock file
    assert (run.path / ".lock").read_bytes() == b""


def test_a_killed_run_is_interrupted(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "runs" / "mine")
    run.open(IDENTITY)
    run.release()  # as when its process is killed: the manifest still says running
    assert [one.state for one in RunFolder(tmp_path / "runs").runs()] == ["interrupted"]


def test_a_manifest_that_is_not_json_is_not_readable(tmp_path: Path) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "manifest.json").write_text("{")
    [one] = RunFolder(tmp_path).runs()
    assert one.state == "unreadable" and one.problem


@pytest.mark.parametrize(
    "manifest",
    [
        {"identity": {}, "state": "running"},
        {"identity": {"benchmark": 7, "system": {"spec": "x"}}, "state": "interrupted"},
        {"identity": {"benchmark": {"name": "a", "options": []}, "system": 3}, "state": "complete"},
    ],
)
def test_a_manifest_that_lacks_what_pages_show_is_not_readable(
    manifest: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "odd").mkdir()
    content = json.dumps({"fingerprint": "f", "schema": 1, **manifest})
    (tmp_path / "odd" / "manifest.json").write_text(content)
    [one] = RunFolder(tmp_path).runs()
    assert (one.state, one.manifest) == ("unreadable", None)
