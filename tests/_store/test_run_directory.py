"""A run directory contains one run, has one writer, and records the hashes of its files."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import DataError, MissingData, RunConflict
from mnemoscope._store.jsonl import Journal, write_atomically, write_json
from mnemoscope._store.run_directory import RunDirectory, find_runs
from mnemoscope.types import Ingestion, Timing, Trial

IDENTITY = {"benchmark": {"name": "made", "options": {"k": (1, 2)}}, "depth": 50}


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    impatient = functools.partialmethod(RunDirectory._take_lock, patience=0.0)
    monkeypatch.setattr(RunDirectory, "_take_lock", impatient)


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    """A run that was begun and left."""
    run = RunDirectory(tmp_path / "runs" / "bm25")
    run.open(IDENTITY, notes=["a note"])
    run.release()
    return run


def test_a_run_is_begun_once_and_continued_with_the_new_settings(run: RunDirectory) -> None:
    begun = run.manifest()

    continued = run.open(IDENTITY, notes=["another note"])

    assert (continued.fingerprint, continued.started) == (begun.fingerprint, begun.started)
    assert continued.notes == run.manifest().notes == ["another note"]
    assert (begun.state, begun.notes) == ("running", ["a note"])
    assert begun.started is not None
    run.release()


OTHER = {"benchmark": {"name": "made", "options": {"k": (1, 3)}}, "depth": 10}


@pytest.mark.parametrize("recorded", ["trials.jsonl", "units/000000.trials.jsonl"])
def test_another_identity_is_refused_with_what_differs(recorded: str, run: RunDirectory) -> None:
    write_atomically(run.path / recorded, b"{}\n")

    with pytest.raises(RunConflict) as caught:
        run.open(OTHER)

    assert "benchmark.options.k: [1, 2] → [1, 3]; depth: 50 → 10" in str(caught.value)
    (run.path / recorded).unlink()
    assert run.open(IDENTITY).identity["depth"] == 50, "the refusal kept the lock"
    run.release()


def test_a_run_without_records_may_be_replaced(run: RunDirectory) -> None:
    run.trials_path.touch()

    assert run.open(OTHER).identity["depth"] == 10
    assert run.manifest().identity["depth"] == 10
    run.release()


def test_trials_without_a_manifest_are_refused(run: RunDirectory) -> None:
    run.trials_path.touch()
    run.manifest_path.unlink()

    with pytest.raises(RunConflict, match="contains trials but no manifest"):
        run.open(IDENTITY)
    assert not run.manifest_path.exists()


def test_drafts_of_a_killed_process_are_cleared_away(run: RunDirectory) -> None:
    draft = run.path / ".metrics.json.1.draft"
    draft.touch()

    run.open(IDENTITY)

    assert not draft.exists()
    run.release()


def test_only_one_may_write_at_a_time(run: RunDirectory) -> None:
    run.open(IDENTITY)

    with pytest.raises(RunConflict, match="another process is writing"):
        RunDirectory(run.path).open(IDENTITY)

    run.release()
    second = RunDirectory(run.path)
    assert second.open(IDENTITY).state == "running"
    second.release()


def test_the_lock_is_held_until_the_workers_are_gone(run: RunDirectory) -> None:
    run.open(IDENTITY)
    fork = multiprocessing.get_context("fork")
    ours, theirs = fork.Pipe()
    worker = fork.Process(target=theirs.recv)
    worker.start()
    run.release()

    with pytest.raises(RunConflict, match="another process is writing"):
        run.open(IDENTITY)

    ours.send("go home")
    worker.join()
    assert run.open(IDENTITY).state == "running"
    run.release()


def test_a_finished_run_records_the_hashes_of_its_files(run: RunDirectory) -> None:
    run.trials_path.write_bytes(b"{}\n")
    write_json(run.path / "metrics.json", {"overall": {}})
    manifest = run.manifest()

    run.finish(manifest)

    finished = run.manifest()
    assert finished.state == "complete"
    assert finished.finished is not None
    assert set(finished.files) == {"trials.jsonl", "metrics.json", "trials.chain.jsonl"}
    for name, sha256 in finished.files.items():
        assert hashlib.sha256((run.path / name).read_bytes()).hexdigest() == sha256


def test_the_journal_gives_back_what_was_recorded(run: RunDirectory) -> None:
    lines: list[Trial | Ingestion] = [
        Ingestion("s", 3),
        Trial("s", "q1", "answered", evidence=("a",), ranking=("a", "b"), scores=(0.5, None)),
        Trial("s", "q2", "timeout", error="no answer within 1 s"),
    ]
    assert not list(run.journal())
    assert not list(run.timings())
    with Journal(run.trials_path) as journal:
        for line in lines:
            journal.append(line)
    with Journal(run.timings_path) as journal:
        journal.append(Timing("s", "q1", recall_ms=0.5))

    assert list(run.journal()) == lines
    assert list(run.ingestions()) == lines[:1]
    assert list(run.trials()) == lines[1:]
    assert list(run.timings()) == [Timing("s", "q1", recall_ms=0.5)]


@pytest.mark.parametrize("name", ["manifest.json", "metrics.json"])
def test_a_damaged_file_is_named(name: str, run: RunDirectory) -> None:
    (run.path / name).write_bytes(b'{"fingerprint": ')
    read: dict[str, Any] = {"manifest.json": run.manifest}

    with pytest.raises(DataError, match=name):
        read.get(name, lambda: run.read_json(name))()


def test_a_missing_file_is_named(run: RunDirectory, tmp_path: Path) -> None:
    with pytest.raises(MissingData, match="no manifest"):
        RunDirectory(tmp_path).manifest()
    with pytest.raises(MissingData, match=r"no metrics\.json; is the run complete\?"):
        run.read_json("metrics.json")


def test_runs_are_found_here_or_directly_below(run: RunDirectory, tmp_path: Path) -> None:
    (run.path.parent / "no run").mkdir()

    assert [found.path for found in find_runs(run.path)] == [run.path]
    assert [found.label for found in find_runs(run.path.parent)] == ["bm25"]
    with pytest.raises(MissingData, match="no run directory"):
        find_runs(tmp_path)
