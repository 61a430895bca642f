"""The progress of a run that another process writes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import mnemoscope as ms
from mnemoscope._store.jsonl import encode_lines
from mnemoscope._store.run_directory import Manifest
from mnemoscope.api import ProgressUpdate
from mnemoscope.types import Answer, Grade, Ingestion, Trial, Verdict
from mnemoscope.viewer.live_pages import progress_text
from mnemoscope.viewer.live_progress import LiveProgress, RunWatcher
from mnemoscope.viewer.run_folder import RunFolder


def watcher(path: Path, **identity: Any) -> RunWatcher:
    return RunWatcher(path, Manifest("f", identity, id="i"))


@pytest.fixture
def spool(tmp_path: Path) -> Path:
    (tmp_path / "units").mkdir()
    return tmp_path / "units" / "000000.trials.jsonl"


def append(path: Path, *lines: object) -> None:
    with path.open("ab") as file:
        file.write(encode_lines(list(lines)))


def test_a_line_that_is_being_written_is_counted_when_it_is_complete(
    tmp_path: Path, spool: Path
) -> None:
    found = watcher(tmp_path)
    append(spool, Ingestion("c", 12), Trial("c", "q1", "answered"))
    line = encode_lines([Trial("c", "q2", "timeout")])
    with spool.open("ab") as file:
        file.write(line[:9])
    first = found.progress()
    assert (first.done, first.memories, first.statuses) == (1, 12, {"answered": 1})
    with spool.open("ab") as file:
        file.write(line[9:])
    assert found.progress().statuses == {"answered": 1, "timeout": 1}


def test_lines_that_move_from_a_spool_to_the_journal_count_once(
    tmp_path: Path, spool: Path
) -> None:
    found = watcher(tmp_path)
    append(spool, Trial("c", "q1", "answered"), Trial("c", "q2", "answered"))
    assert found.progress().done == 2
    (tmp_path / "trials.jsonl").write_bytes(spool.read_bytes())
    assert found.progress().done == 2
    spool.unlink()
    append(tmp_path / "trials.jsonl", Trial("c", "q1", "answered", checkpoint="7d"))
    assert found.progress().done == 3


def test_a_question_is_done_when_its_last_phase_is(tmp_path: Path, spool: Path) -> None:
    found = watcher(tmp_path, reader="system", judge={"spec": "f1"})
    append(
        spool,
        Trial("c", "q1", "answered"),
        Trial("c", "q2", "answered"),
        Trial("c", "q3", "error"),
        Answer("c", "q1", "abstained"),
        Answer("c", "q2", "answered"),
        Verdict("c", "q1", grade=Grade(1.0)),
    )
    now = found.progress()
    assert now.done == 2
    assert now.statuses == {"abstained": 1, "error": 1}
    append(spool, Verdict("c", "q2", error="no reply"))
    assert found.progress().statuses == {"abstained": 1, "error": 1, "unjudged": 1}


def test_a_file_that_begins_anew_and_lines_that_are_not_json_do_no_harm(
    tmp_path: Path, spool: Path
) -> None:
    found = watcher(tmp_path)
    append(spool, Trial("c", "q1", "answered"), Trial("c", "q2", "answered"))
    assert found.progress().done == 2
    spool.write_bytes(b"not json\n" + encode_lines([Trial("c", "q3", "answered")]))
    assert found.progress().done == 3


def test_a_link_among_the_spools_is_not_read(tmp_path: Path, spool: Path) -> None:
    other = tmp_path / "other.jsonl"
    append(other, Trial("c", "q1", "answered"))
    spool.symlink_to(other)
    assert watcher(tmp_path).progress().done == 0


def test_the_time_left_follows_from_the_progress_so_far(
    tmp_path: Path, spool: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = iter([0.0, 10.0])
    monkeypatch.setattr("mnemoscope.viewer.live_progress.time.monotonic", lambda: next(clock))
    (tmp_path / ".lock").write_bytes(msgspec.json.encode({"total": 30, "is_estimate": True}))
    found = watcher(tmp_path)
    append(spool, Trial("c", "q1", "answered"))
    assert found.progress().seconds_left is None
    append(spool, *(Trial("c", f"q{number}", "answered") for number in range(2, 7)))
    now = found.progress()
    assert (now.done, now.total, now.is_estimate) == (6, 30, True)
    assert now.seconds_left == pytest.approx(24 * 10 / 5)
    assert progress_text(now).startswith("6 of about 30 questions done, 48 s left")


def test_a_real_run_is_seen_while_it_runs_and_says_how_many_questions_it_asks(
    tmp_path: Path, write_locomo: Callable[..., Path]
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=3, questions=5)
    folder, seen = tmp_path / "runs", []

    def look(_: ProgressUpdate) -> None:
        for run in RunFolder(folder).runs():
            assert run.manifest is not None
            now = RunWatcher(run.path, run.manifest).progress()
            seen.append((run.state, now.done, now.total, now.is_estimate))

    ms.run(
        "locomo", systems="bm25", data=data, out=folder, baselines=False, workers=1, progress=look
    )
    assert {state for state, *_ in seen} == {"running"}
    assert {total for _, _, total, _ in seen} <= {None, 50, 15}  # LoCoMo has 10 conversations
    assert seen[-1][1:] == (15, 15, False)
    [after] = RunFolder(folder).runs()
    assert after.state == "complete"


def test_without_a_total_only_what_is_done_is_told() -> None:
    now = LiveProgress(1_234, None, False, None, {}, 5)
    assert progress_text(now) == "1,234 questions done; 5 memories ingested"
