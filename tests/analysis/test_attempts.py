"""Every run that was begun counts as an attempt, also after its folder is deleted."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope._store import attempt_ledger
from mnemoscope._store.attempt_keys import AttemptKeys, attempt_keys
from mnemoscope._store.attempt_ledger import ledger_path, read_ledger
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.attempts import attempts_of, unfinished_before
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


SYSTEM = """
class Mine:
    def reset(self, scope):
        self.ids = []

    def remember(self, memories):
        self.ids += [memory.id for memory in memories]

    def recall(self, query, k):
        return self.ids[:k]
"""
COMMENTED = SYSTEM.replace("class Mine:", 'class Mine:  # luckier\n    """Mine."""\n')
BETTER = SYSTEM.replace("self.ids[:k]", "self.ids[::-1][:k]")


def test_a_comment_does_not_start_the_attempts_anew_and_other_code_is_named(
    write_locomo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=1, sessions=4, questions=4)
    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.syspath_prepend(str(code))

    def attempt(name: str, source: str) -> RunDirectory:
        (code / "my_system.py").write_text(source)
        found = ms.run(
            "locomo",
            systems={"mine": "my_system:Mine"},
            data=data,
            out=tmp_path / name,
            baselines=False,
            workers=1,
            isolation=1,
            progress=False,
        )
        return found["mine"].directory

    first, second, third = (
        attempt(name, source)
        for name, source in (("first", SYSTEM), ("second", COMMENTED), ("third", BETTER))
    )

    assert first.manifest().fingerprint != second.manifest().fingerprint
    assert second.manifest().attempt == 2
    assert told(second).startswith("attempt 2 of 2, the first counts: attempt 1 was finished with")
    assert third.manifest().attempt == 1
    assert told(third) == "3 attempts of this system on this benchmark (2 with other code)"
    assert told(third) in (third.path / "report.md").read_text()
    assert verify(third).gate("attempts").passed, "a better system may be run again"


def test_the_code_of_a_command_is_compared_without_comments(tmp_path: Path) -> None:
    adapter = tmp_path / "adapter.py"

    def keys(source: str) -> AttemptKeys:
        adapter.write_text(source)
        files = {str(adapter): sha256_file(adapter)}
        system = {"spec": f"stdio:python {adapter}", "files_sha256": files}
        return attempt_keys({"benchmark": {"name": "made"}, "system": system})

    plain, commented, other = keys("a = 1\n"), keys("# a\na   =   1\n"), keys("a = 2\n")

    assert plain == commented
    assert plain.same != other.same
    assert plain.experiment == other.experiment
    assert keys("not python (").same != plain.same
    assert attempt_keys({"system": {"spec": "bm25"}}) == AttemptKeys("", "", ())


def test_a_renamed_or_otherwise_set_system_is_recognised_by_its_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A new name of the class or the file, an argument or another depth gives a new fingerprint."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def keys(module: str, name: str, source: str, options: str = "", depth: int = 10) -> set[str]:
        file = tmp_path / f"{module}.py"
        file.write_text(source)
        system = {"spec": f"{module}:{name}{options}", "source_sha256": sha256_file(file)}
        return {
            *attempt_keys({"benchmark": {"name": "made"}, "depth": depth, "system": system}).code
        }

    mine = keys("keyed_mine", "Mine", SYSTEM)

    assert len(mine) == 1
    assert keys("keyed_other", "Mine", COMMENTED) == mine
    assert keys("keyed_third", "Luckier", SYSTEM.replace("Mine", "Luckier")) == mine
    assert keys("keyed_mine", "Mine", SYSTEM, ",unused=1", depth=11) == mine
    assert keys("keyed_better", "Mine", BETTER) != mine


def test_an_argument_that_a_command_ignores_is_recognised(tmp_path: Path) -> None:
    adapter, renamed, data = (tmp_path / name for name in ("adapter.py", "renamed.py", "seed"))
    for file, text in ((adapter, "a = 1\n"), (renamed, "a = 1\n"), (data, "7")):
        file.write_text(text)

    def keys(*files: Path, words: str = "") -> set[str]:
        command = " ".join(map(str, files))
        hashes = {str(file): sha256_file(file) for file in files}
        hashes["/usr/bin/python3"] = "the same program for all systems"
        system = {"spec": f"stdio:/usr/bin/python3 {command}{words}", "files_sha256": hashes}
        return {*attempt_keys({"benchmark": {"name": "made"}, "system": system}).code}

    mine = keys(adapter)

    assert len(mine) == 1, "the interpreter is no code of the system"
    assert keys(adapter, words=" --seed 3") == mine
    assert keys(renamed) == mine
    assert mine < keys(adapter, data)


def test_renaming_the_system_until_it_is_lucky_is_named(
    write_locomo: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=1, sessions=4, questions=4)
    (tmp_path / "code").mkdir()
    monkeypatch.syspath_prepend(str(tmp_path / "code"))

    def attempt(name: str) -> RunDirectory:
        (tmp_path / "code" / f"module_{name}.py").write_text(SYSTEM.replace("Mine", name))
        found = ms.run(
            "locomo",
            systems={"mine": f"module_{name}:{name}"},
            data=data,
            out=tmp_path / name,
            baselines=False,
            workers=1,
            isolation=1,
            progress=False,
        )
        return found["mine"].directory

    first, second = attempt("First"), attempt("Second")
    shutil.rmtree(first.path)

    assert told(second) == "1 more run of this code under other names or settings"
    assert told(second) in (second.path / "report.md").read_text()
    assert verify(second).gate("attempts").passed, "other settings may be tried; it is said"


def test_a_comment_does_not_hide_an_attempt_that_was_abandoned(
    make_run: Make, tmp_path: Path
) -> None:
    run = make_run(tmp_path / "b" / "mine", HITS)
    own = read_ledger().start_of(run.manifest().id)
    assert own is not None
    key = "the code without comments"
    attempt_ledger.start_attempt(tmp_path / "x" / "mine", "another", AttemptKeys(key, ""))
    started = attempt_ledger.start_attempt(
        tmp_path / "y" / "mine", own.fingerprint, AttemptKeys(key, "")
    )
    manifest = run.manifest()
    manifest.id = started.id

    assert unfinished_before(tmp_path / "y" / "mine", manifest) == 1


def test_a_system_that_takes_our_rights_to_the_ledger_does_not_stop_the_count(
    tmp_path: Path,
) -> None:
    """A locked system can change modes; root can write to the file whatever its mode is."""
    attempt_ledger.start_attempt(tmp_path / "a", "one")
    for mode in (0o000, 0o400):
        ledger_path().chmod(mode)
        ledger_path().parent.chmod(mode)
        attempt_ledger.start_attempt(tmp_path / "b", "one")

        assert ledger_path().stat().st_mode & 0o777 == 0o600
        assert ledger_path().parent.stat().st_mode & 0o700 == 0o700
    assert [line.attempt for line in read_ledger().starts("one")] == [1, 2, 3]
