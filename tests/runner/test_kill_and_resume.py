"""A run that is killed, interrupted or torn ends with the same bytes, and asks nothing twice.

The runs here are the command line's own, in processes of their own, and the kills are SIGKILL.
"""

from __future__ import annotations

import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.log_folder import logs

from mnemoscope._store.errors import RunConflict
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.journal_chain import JournalChain, seal_spool
from mnemoscope._store.jsonl import write_json
from mnemoscope._store.run_directory import RECORDED, RunDirectory
from mnemoscope._store.unfinished_runs import note_unfinished

if TYPE_CHECKING:
    from tests.conftest import CommandProcess, StartCommand

HERE = Path(__file__).parent
SLOW = "hostile_systems:Slow"
SYSTEMS = (SLOW, "bm25", "hybrid", "random")
FOLDERS = ("hostile_systems-Slow", "bm25", "hybrid", "random")
QUESTIONS = 6 * 20
WORKERS = 2
EARLY_KILLS, LATE_KILLS = 15, 5


@pytest.fixture(scope="module")
def locomo(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_locomo(tmp_path_factory.mktemp("data") / "locomo10.json")


def command(
    data: Path,
    out: Path,
    *more: object,
    systems: tuple[str, ...] = SYSTEMS,
    workers: int = WORKERS,
) -> list[object]:
    chosen = [part for name in systems for part in ("--system", name)]
    places = ("--data", data, "--out", out)
    return ["run", "locomo", *places, *chosen, "--no-arms", "--workers", workers, *more]


def recorded_bytes(out: Path) -> dict[str, bytes]:
    return {
        f"{folder.name}/{name}": (folder / name).read_bytes()
        for folder in sorted(out.iterdir())
        if folder.is_dir()
        for name in RECORDED
    }


def same_as(reference: Path, out: Path, folder: str) -> bool:
    return all(
        (out / folder / name).read_bytes() == (reference / folder / name).read_bytes()
        for name in RECORDED
    )


@pytest.fixture(scope="module")
def undisturbed(
    locomo: Path, start_command: StartCommand, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    out = tmp_path_factory.mktemp("undisturbed")
    process = start_command(command(locomo, out))
    assert process.wait() == 0, process.output
    return out


class Log:
    """What the slow system was asked, in order, over all runs."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def questions(self) -> list[str]:
        asked = (line.split()[0] for line in self.path.read_text().splitlines())
        return [question for question in asked if question != "warm-up"]

    def wait_for(self, number: int, process: CommandProcess) -> None:
        while len(self.questions()) < number and not process.gone:
            time.sleep(0.002)

    def wait_for_all(self, process: CommandProcess) -> None:
        while len(set(self.questions())) < QUESTIONS and not process.gone:
            time.sleep(0.002)


def recorded_questions(run: Path) -> set[str]:
    """All questions with a complete line in the journal or a spool."""
    files = [run / "trials.jsonl", *run.glob("units/*.trials.jsonl")]
    lines = [
        line
        for file in files
        if file.exists()
        for line in file.read_bytes().splitlines(keepends=True)
    ]
    return {question for line in lines if line.endswith(b"\n") and (question := _question_of(line))}


def _question_of(line: bytes) -> str:
    question: str = json.loads(line).get("question", "")
    return question


def kill_at_random_moments(
    start: Callable[[], CommandProcess], log: Log, slow: Path, draw: random.Random
) -> list[tuple[int, set[str]]]:
    """Start, kill, start again; for each kill, what had been asked by then and what recorded."""
    kills: list[tuple[int, set[str]]] = []
    attempts, window = 0, 0.4
    while len(kills) < EARLY_KILLS + LATE_KILLS:
        attempts += 1
        assert attempts < 60, "most runs were over before they could be killed"
        process = start()
        if len(kills) >= EARLY_KILLS:  # among the last questions, the merging, the measuring
            log.wait_for_all(process)
            time.sleep(draw.uniform(0, window))
        elif attempts % 5:  # in the middle of a unit
            log.wait_for(len(log.questions()) + draw.randint(1, 6), process)
            time.sleep(draw.uniform(0, 0.006))
        else:  # anywhere from the first moment on
            time.sleep(draw.uniform(0, window))
        if process.kill(with_workers=bool(attempts % 3)) == -signal.SIGKILL:
            # First what is recorded: workers that outlive their parent for a moment go on asking.
            recorded = recorded_questions(slow)
            kills.append((len(log.questions()), recorded))
        else:  # this machine is faster
            window /= 2
    return kills


@pytest.mark.parametrize("seed", [20, 21])
def test_a_run_killed_twenty_times_ends_with_the_bytes_of_an_undisturbed_one(
    seed: int, locomo: Path, undisturbed: Path, start_command: StartCommand, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", Log(logs(tmp_path) / "asked.txt")
    start = functools.partial(start_command, command(locomo, out), SLOW_LOG=log.path)

    kills = kill_at_random_moments(start, log, out / FOLDERS[0], random.Random(seed))
    last = start()

    assert last.wait() == 0, last.output
    assert recorded_bytes(out) == recorded_bytes(undisturbed)
    assert [RunDirectory(out / name).manifest().state for name in FOLDERS] == ["complete"] * 4
    assert not list(out.glob("*/units")), "spools are left over"
    assert not list(out.glob("*/.*.draft")), "drafts are left over"
    asked = Counter(log.questions())
    assert len(asked) == QUESTIONS
    assert asked.total() - QUESTIONS <= len(kills) * WORKERS, "more than what was in flight"
    for position, recorded in kills:
        assert not recorded.intersection(log.questions()[position:]), "asked again though recorded"


def test_control_c_leaves_the_run_interrupted_and_the_same_command_continues_it(
    locomo: Path, undisturbed: Path, start_command: StartCommand, tmp_path: Path
) -> None:
    out, log = tmp_path / "out", Log(logs(tmp_path) / "asked.txt")
    arguments = command(locomo, out, systems=(SLOW,))
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    # So slow that it is not done before a busy machine comes to the interrupt.
    told = {"PYTHONPATH": path, "SLOW_LOG": str(log.path), "SLOW_SECONDS": "0.2"}
    process = subprocess.Popen(
        [sys.executable, "-m", "mnemoscope.cli.app", *map(str, arguments)],
        env={**os.environ, **told},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    while len(log.questions()) < 10 and process.poll() is None:
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate()

    assert process.returncode == 130
    assert "repeat the command to continue" in said
    assert "Traceback" not in said
    assert RunDirectory(out / FOLDERS[0]).manifest().state == "interrupted"
    recorded = recorded_questions(out / FOLDERS[0])
    assert 0 < len(recorded) < QUESTIONS
    position = len(log.questions())

    resumed = start_command(arguments, SLOW_LOG=log.path)

    assert resumed.wait() == 0, resumed.output
    assert RunDirectory(out / FOLDERS[0]).manifest().state == "complete"
    assert not recorded.intersection(log.questions()[position:])
    assert same_as(undisturbed, out, FOLDERS[0])


@pytest.mark.parametrize("workers", [1, 3])
def test_any_number_of_workers_gives_the_same_bytes(
    workers: int, locomo: Path, undisturbed: Path, start_command: StartCommand, tmp_path: Path
) -> None:
    process = start_command(command(locomo, tmp_path / "out", workers=workers))

    assert process.wait() == 0, process.output
    assert recorded_bytes(tmp_path / "out") == recorded_bytes(undisturbed)


class Damaged:
    """A finished run, changed to the state after a kill at a certain moment."""

    def __init__(self, run: Path) -> None:
        self.run = run
        self.journal = run / "trials.jsonl"
        self.units = run / "units"
        self.units.mkdir()
        lines = self.journal.read_bytes().splitlines(keepends=True)
        self.scenarios = [
            [line for line in lines if json.loads(line)["scenario"] == f"conv-{number}"]
            for number in range(6)
        ]
        for name in RECORDED[1:]:
            (run / name).unlink()

    def whole(self, end: int) -> bytes:
        """The journal of the scenarios before `end`."""
        return b"".join(line for lines in self.scenarios[:end] for line in lines)

    def part(self, scenario: int, lines: int, torn: int = 0) -> bytes:
        """The first lines of a scenario, and the first bytes of the next one."""
        own = self.scenarios[scenario]
        return b"".join(own[:lines]) + (own[lines][:torn] if torn else b"")

    def spool(self, scenario: int, content: bytes) -> None:
        path = self.units / f"{scenario:06}.trials.jsonl"
        path.write_bytes(content)
        seal_spool(path)

    def settle(self) -> None:
        """Give manifest, timings and hash chain the state that they had at that moment."""
        manifest = RunDirectory(self.run, checked=False).manifest()
        manifest.state = "running"
        write_json(self.run / "manifest.json", manifest)
        note_unfinished(self.run, manifest=[sha256_file(self.run / "manifest.json")])
        written = self.journal.read_bytes()
        begun = [end for end in range(1, 7) if len(written) > len(self.whole(end - 1))]
        timings = self.run / "timings.jsonl"
        lines = timings.read_bytes().splitlines(keepends=True)
        chain = JournalChain(self.run, manifest.fingerprint)
        chain.path.unlink()
        head, kept = chain.start(), b""
        for end in begun:
            RunDirectory(self.run).note_merged(head)  # the last merge may have been interrupted
            name = f"conv-{end - 1}"
            own = b"".join(line for line in lines if json.loads(line)["scenario"] == name)
            head = chain.advance(head, name, b"".join(self.scenarios[end - 1]), own)
            kept += own
        timings.write_bytes(kept)


def torn_last_line_of_the_journal(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(6)[:-9])


def torn_newline_of_the_journal(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(6)[:-1])


def torn_first_line_of_the_journal(run: Damaged) -> None:
    run.journal.write_bytes(run.part(0, 0, torn=5))


def torn_last_line_of_a_spool(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(2))
    run.spool(2, run.part(2, 7, torn=20))


def torn_first_line_of_a_spool(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(2))
    run.spool(2, run.part(2, 0, torn=3))


def later_scenarios_finished_first(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(1))
    run.spool(2, run.part(2, 21))
    run.spool(4, run.part(4, 21))


def killed_between_append_and_unlink(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(3))
    run.spool(2, run.part(2, 21))


def killed_in_the_middle_of_an_append(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(2) + run.part(2, 8, torn=30))
    run.spool(2, run.part(2, 21))


def killed_in_the_first_byte_of_an_append(run: Damaged) -> None:
    run.journal.write_bytes(run.whole(2) + run.part(2, 0, torn=1))
    run.spool(2, run.part(2, 21))


@pytest.mark.parametrize(
    "damage",
    [
        torn_last_line_of_the_journal,
        torn_newline_of_the_journal,
        torn_first_line_of_the_journal,
        torn_last_line_of_a_spool,
        torn_first_line_of_a_spool,
        later_scenarios_finished_first,
        killed_between_append_and_unlink,
        killed_in_the_middle_of_an_append,
        killed_in_the_first_byte_of_an_append,
    ],
)
def test_files_left_by_a_kill_are_repaired(
    damage: Callable[[Damaged], None],
    locomo: Path,
    undisturbed: Path,
    start_command: StartCommand,
    tmp_path: Path,
) -> None:
    shutil.copytree(undisturbed / "random", tmp_path / "random")
    run = Damaged(tmp_path / "random")
    damage(run)
    run.settle()

    process = start_command(command(locomo, tmp_path, systems=("random",)))

    assert process.wait() == 0, process.output
    assert same_as(undisturbed, tmp_path, "random")
    assert not (tmp_path / "random" / "units").exists()


@pytest.fixture
def finished(undisturbed: Path, tmp_path: Path) -> Path:
    """A folder of one finished run, of `random`."""
    out = tmp_path / "out"
    shutil.copytree(undisturbed / "random", out / "random")
    return out


def test_other_options_are_refused_by_name_and_touch_nothing(
    finished: Path, locomo: Path, start_command: StartCommand
) -> None:
    before = recorded_bytes(finished)

    process = start_command(
        command(locomo, finished, "--depth", 7, "--granularity", "turn", systems=("random",))
    )

    assert process.wait() == 1
    said = " ".join(process.output.split())
    assert "contains another run" in said
    assert "depth: 50 → 7" in said
    assert "benchmark.options.granularity: 'session' → 'turn'" in said
    assert recorded_bytes(finished) == before


def test_other_data_is_refused_by_name(
    finished: Path, write_locomo: Callable[..., Path], start_command: StartCommand, tmp_path: Path
) -> None:
    other = write_locomo(tmp_path / "locomo10.json", seed=2)

    process = start_command(command(other, finished, systems=("random",)))

    assert process.wait() == 1
    assert "benchmark.sha256" in process.output


def test_other_arguments_of_the_system_are_refused_by_name(
    finished: Path, locomo: Path, start_command: StartCommand
) -> None:
    (finished / "random").rename(finished / "random,seed=7")

    process = start_command(command(locomo, finished, systems=("random,seed=7",)))

    assert process.wait() == 1
    assert "system.arguments.seed: 42 → 7" in " ".join(process.output.split())


def test_a_second_process_is_refused_while_the_first_is_alive(
    locomo: Path, start_command: StartCommand, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    impatient = functools.partialmethod(RunDirectory._take_lock, patience=0.05)
    monkeypatch.setattr(RunDirectory, "_take_lock", impatient)
    log, gate = Log(logs(tmp_path) / "asked.txt"), logs(tmp_path) / "gate"
    process = start_command(
        command(locomo, tmp_path / "out", systems=(SLOW,)), SLOW_LOG=log.path, SLOW_GATE=gate
    )
    log.wait_for(1, process)
    run = RunDirectory(tmp_path / "out" / FOLDERS[0])
    identity = run.manifest().identity

    with pytest.raises(RunConflict, match="another process is writing"):
        run.open(identity)

    gate.touch()
    assert process.wait() == 0, process.output
    assert run.open(identity).state == "complete"
    run.release()


def test_repeats_that_are_killed_end_with_the_same_bytes(
    locomo: Path, start_command: StartCommand, tmp_path: Path
) -> None:
    def start(out: Path, log: Log, seconds: float = 0.0) -> CommandProcess:
        systems = (SLOW, "random")
        asked = command(locomo, out, "--repeat", 2, "--questions", 40, systems=systems)
        return start_command(asked, SLOW_LOG=log.path, SLOW_SECONDS=seconds)

    out, whole = tmp_path / "out", tmp_path / "whole"
    log = Log(logs(tmp_path) / "asked.txt")
    for number in (5, 30):
        # So slow that it is not done before a busy machine comes to the kill.
        process = start(out, log, seconds=0.03)
        log.wait_for(number, process)
        assert process.kill(with_workers=number > 5) == -signal.SIGKILL
    last = start(out, log)
    assert last.wait() == 0, last.output
    again = start(whole, log)
    assert again.wait() == 0, again.output

    folders = ["hostile_systems-Slow@1", "hostile_systems-Slow@2", "random@1", "random@2"]
    assert sorted(path.name for path in out.glob("*/")) == folders
    assert recorded_bytes(out) == recorded_bytes(whole)
    sets = json.loads((out / "repeats.json").read_text())
    assert sets == json.loads((whole / "repeats.json").read_text())
    assert not sets["random"]["problems"] and not sets["random"]["identical"]
    assert sets["hostile_systems-Slow"]["identical"]
