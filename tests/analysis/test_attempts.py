"""Every run that was begun counts as an attempt, also after its folder is deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope._store import attempt_ledger
from mnemoscope._store.attempt_ledger import ledger_path, read_ledger
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.attempts import attempts_of
from mnemoscope.analysis.verify import verify
from mnemoscope.cli.app import invoke

Make = Callable[..., RunDirectory]
HITS = [True, False] * 10


def told(run: RunDirectory) -> str:
    return attempts_of(run.path, run.manifest()).text


def test_the_first_and_only_attempt_is_not_remarkable(make_run: Make, tmp_path: Path) -> None:
    run = make_run(tmp_path / "a" / "mine", HITS)

    assert attempts_of(run.path, run.manifest()) == (1, 1, "", False, "", True)
    assert verify(run).gate("attempts").why == "attempt 1 of 1"
    events = [line.event for line in read_ledger().of_run(run.manifest().id)]
    assert events == ["start", "finish"]
    assert read_ledger(run.path.parent / "attempts.jsonl").of_run(run.manifest().id)


def test_attempts_are_counted_after_the_runs_were_deleted(make_run: Make, tmp_path: Path) -> None:
    for _ in range(2):
        lucky = make_run(tmp_path / "mine", HITS)
        shutil.rmtree(lucky.path)
    run = make_run(tmp_path / "mine", HITS)

    said = told(run)

    assert said.startswith("attempt 3 of 3, the first counts: ")
    assert said.count("was finished with the same journal and is deleted") == 2
    assert "attempts" not in verify(run).failed, "the same journal is the same result"


def test_an_unlucky_run_that_was_deleted_leaves_the_lucky_one_unverified(
    make_run: Make, tmp_path: Path
) -> None:
    shutil.rmtree(make_run(tmp_path / "mine", [False] * 20).path)
    lucky = make_run(tmp_path / "mine", [True] * 20)

    gate = verify(lucky).gate("attempts")

    assert not gate.passed
    assert "attempt 2 of 2, the first counts" in gate.why
    assert "attempt 1 was finished with another journal and is deleted" in gate.why


def test_the_first_attempt_stays_verified_whatever_comes_later(
    make_run: Make, tmp_path: Path
) -> None:
    first = make_run(tmp_path / "a" / "mine", [True] * 20)
    make_run(tmp_path / "b" / "mine", [False] * 20)

    assert verify(first).gate("attempts").passed
    assert told(first).startswith("attempt 1 of 2, the first counts: attempt 2 was finished with")


def test_an_abandoned_attempt_is_named(make_run: Make, tmp_path: Path) -> None:
    done = make_run(tmp_path / "b" / "mine", HITS)
    begun = RunDirectory(tmp_path / "c" / "mine")
    begun.open(done.manifest().identity)
    begun.release()

    assert f"attempt 2 was not finished ({begun.path})" in told(done)
    shutil.rmtree(begun.path)
    assert f"attempt 2 was not finished and is deleted ({begun.path})" in told(done)


def test_reports_and_the_output_say_which_attempt_it_is(
    write_locomo: Callable[..., Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=1, sessions=4, questions=4)
    command = ["run", "locomo", "--data", str(data), "--out", str(tmp_path / "out")]
    command += ["--system", "recency", "--no-arms", "--workers", "1"]
    assert invoke(command) == 0
    assert "attempt" not in capsys.readouterr().out.replace("attempts.jsonl", "")
    shutil.rmtree(tmp_path / "out")

    assert invoke(command) == 0

    assert "attempt 2 of 2, the first counts" in " ".join(capsys.readouterr().out.split())
    report = (tmp_path / "out/recency/report.md").read_text()
    assert "attempt 2 of 2, the first counts" in report
    assert invoke(command) == 0, "a repeated command continues and is no attempt"
    assert len(read_ledger().starts(ms.load(tmp_path / "out").runs[0].manifest.fingerprint)) == 2


def test_a_dry_run_is_no_attempt(make_run: Make, tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "dry")
    run.open({"benchmark": {"name": "made"}}, counted=False)
    run.release()

    assert not ledger_path().exists()
    assert not (tmp_path / "attempts.jsonl").exists()


@pytest.mark.parametrize(
    ("tamper", "problem"),
    [
        (lambda lines: [lines[0].replace("start", "finish", 1), *lines[1:]], "was edited before"),
        (lambda lines: [*lines[:1], *lines[2:]], "was edited before line 2"),
        (lambda lines: [lines[1], lines[0], *lines[2:]], "was edited before line 1"),
        (lambda lines: ["{torn", *lines[1:]], "line 1 cannot be read"),
    ],
)
def test_an_edited_ledger_is_noticed(
    tamper: Callable[[list[str]], list[str]], problem: str, make_run: Make, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "mine", HITS)
    make_run(tmp_path / "other" / "mine", [True] * 20)
    lines = ledger_path().read_text().splitlines()
    ledger_path().write_text("".join(f"{line}\n" for line in tamper(lines)))

    gate = verify(run).gate("attempts")

    assert not gate.passed
    assert problem in gate.why


def test_lines_removed_from_the_end_of_the_ledger_are_noticed(
    make_run: Make, tmp_path: Path
) -> None:
    make_run(tmp_path / "a" / "mine", HITS)
    run = make_run(tmp_path / "b" / "mine", [True] * 20)
    lines = ledger_path().read_text().splitlines(keepends=True)
    ledger_path().write_text("".join(lines[:2]))

    gate = verify(run).gate("attempts")

    assert not gate.passed
    assert "the start of this run is removed" in gate.why


def test_on_another_machine_the_attempts_are_unknown(
    make_run: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "a" / "mine", HITS)
    monkeypatch.setenv("MNEMOSCOPE_DATA_HOME", str(tmp_path / "elsewhere"))
    moved = tmp_path / "b" / "mine"
    shutil.copytree(run.path, moved)

    gate = verify(RunDirectory(moved)).gate("attempts")

    assert gate.passed
    assert gate.why == "unknown here: the ledger of this machine does not know the run"


def test_a_ledger_that_cannot_be_written_warns_once_and_the_run_goes_on(
    make_run: Make,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("MNEMOSCOPE_DATA_HOME", str(tmp_path / "file" / "below"))
    monkeypatch.setattr(attempt_ledger, "_warned", set())

    run = make_run(tmp_path / "a" / "mine", HITS)
    make_run(tmp_path / "a" / "other", HITS)

    assert caplog.text.count("the ledger of attempts cannot be written") == 1
    assert run.manifest().attempt == 0
    assert verify(run).gate("attempts").why.startswith("unknown here")


def test_a_torn_line_of_a_killed_process_is_dropped(make_run: Make, tmp_path: Path) -> None:
    make_run(tmp_path / "a" / "mine", HITS)
    with ledger_path().open("a") as file:
        file.write('{"before":"12')

    run = make_run(tmp_path / "b" / "mine", HITS)

    assert not read_ledger().problem
    assert told(run).startswith("attempt 2 of 2")
    assert all(json.loads(line) for line in ledger_path().read_text().splitlines())
