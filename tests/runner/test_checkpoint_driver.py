"""Checkpoints: a system has seen exactly so much, unchanged by questions, none asked twice."""

from __future__ import annotations

import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.log_folder import logs

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.personas import Personas
from mnemoscope.runner.pipeline import Pipeline, plan_judge, plan_reader
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.systems import BUILT_IN
from mnemoscope.systems.loader import plan, plan_here
from mnemoscope.types import Answer, Ingestion, Trial, Verdict

if TYPE_CHECKING:
    from tests.conftest import CommandProcess, StartCommand

RANGES = "3d,6d,9d,full"
ASKED = 6 + 12 + 18 + 24
RECORDED = ("trials.jsonl", "metrics.json", "raw_retrievals.jsonl", "longitudinal.json")


@pytest.fixture(scope="module")
def life(write_persona: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_persona(tmp_path_factory.mktemp("personas"))


@pytest.fixture(autouse=True)
def _watched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))


def go(
    life: Path,
    out: Path,
    *systems: str,
    settings: Settings = Settings(workers=1),
    ranges: str = RANGES,
    **pipeline: Any,
) -> list[RunDirectory]:
    for part, planner in (("reader", plan_reader), ("judge", plan_judge)):
        if part in pipeline:
            pipeline[part] = planner(Spec.parse(pipeline[part]))
    if "appellate" in pipeline:
        pipeline["appellate"] = plan_judge(Spec.parse(pipeline["appellate"]))
    dataset = Personas(life, ranges=ranges)
    # `Hangs` changes the heartbeat of the worker, so it must run there.
    plans = [(plan_here if one.endswith(":Hangs") else plan)(Spec.parse(one)) for one in systems]
    return run(dataset, plans, out, settings, pipeline=Pipeline(**pipeline))


def recorded(directory: RunDirectory) -> dict[str, bytes]:
    return {name: (directory.path / name).read_bytes() for name in RECORDED}


def lines_of(directory: RunDirectory, kind: type[Any]) -> list[Any]:
    return [line for line in directory.journal() if isinstance(line, kind)]


@pytest.mark.parametrize("system", BUILT_IN)
def test_fork_fresh_and_incremental_give_the_same_bytes(
    system: str, life: Path, tmp_path: Path
) -> None:
    parts: dict[str, Any] = {"reader": "extractive", "judge": "ledger"}
    forked, fresh, ongoing = (
        go(life, tmp_path / way, system, lifecycle=way, **parts)[0]
        for way in ("fork", "fresh", "incremental")
    )

    assert len(lines_of(forked, Verdict)) == ASKED
    assert recorded(forked) == recorded(fresh) == recorded(ongoing)


def test_a_copy_is_asked_so_that_questions_do_not_change_the_system(
    life: Path, tmp_path: Path
) -> None:
    forked = go(life, tmp_path / "fork", "watched_systems:Forgetful", lifecycle="fork")[0]
    fresh = go(life, tmp_path / "fresh", "watched_systems:Watched")[0]
    spoiled = go(life, tmp_path / "inc", "watched_systems:Forgetful", lifecycle="incremental")[0]

    def first_asked(directory: RunDirectory) -> list[Trial]:
        trials = {(trial.checkpoint, trial.question): trial for trial in lines_of(directory, Trial)}
        firsts: dict[str, Trial] = {}
        for timing in directory.timings():  # in the order in which the questions were asked
            if timing.question:
                trial = trials[timing.checkpoint, timing.question]
                firsts.setdefault(timing.checkpoint, trial)
        return [firsts[label] for label in RANGES.split(",")]

    assert [len(trial.ranking) for trial in first_asked(forked)] == [3, 6, 9, 12]
    assert first_asked(forked) == first_asked(fresh)
    assert [len(trial.ranking) for trial in first_asked(spoiled)] == [3, 3, 3, 3]


def test_each_memory_is_given_once_to_a_system_that_can_be_copied(
    life: Path, tmp_path: Path
) -> None:
    ranges = "1-12/1"
    forked = go(life, tmp_path / "fork", "bm25", ranges=ranges)[0]
    fresh = go(life, tmp_path / "fresh", "bm25", ranges=ranges, lifecycle="fresh")[0]

    assert forked.read_json("timing.json")["counters"]["memories_given"] == 12
    assert fresh.read_json("timing.json")["counters"]["memories_given"] == sum(range(1, 13))
    assert recorded(forked)["metrics.json"] == recorded(fresh)["metrics.json"]


def test_lifecycle_fork_is_refused_for_a_system_without_fork(life: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match=r"no fork\(\): choose --lifecycle fresh"):
        go(life, tmp_path, "watched_systems:Watched", lifecycle="fork")


def test_questions_in_parallel_and_any_number_of_workers_give_the_same_bytes(
    life: Path, write_persona: Callable[..., Path], tmp_path: Path
) -> None:
    write_persona(tmp_path / "two", id="one")
    write_persona(tmp_path / "two", id="other")
    parts: dict[str, Any] = {"reader": "extractive", "judge": "ledger"}
    alone = go(tmp_path / "two", tmp_path / "a", "hybrid", "fts5", **parts)
    many = go(
        tmp_path / "two",
        tmp_path / "b",
        "hybrid",
        "fts5",
        settings=Settings(workers=3),
        parallelism=4,
        **parts,
    )

    assert [recorded(one) for one in alone] == [recorded(one) for one in many]


def test_the_clock_and_the_pool_are_those_of_the_checkpoint(life: Path, tmp_path: Path) -> None:
    directory = go(life, tmp_path, "bm25")[0]

    assert {trial.checkpoint: trial.pool for trial in lines_of(directory, Trial)} == {
        "3d": 3,
        "6d": 6,
        "9d": 9,
        "full": 12,
    }
    ingested = lines_of(directory, Ingestion)
    assert [(line.checkpoint, line.memories) for line in ingested] == [
        ("3d", 3),
        ("6d", 6),
        ("9d", 9),
        ("full", 12),
    ]
    assert directory.manifest().checkpoints == RANGES.split(",")
    assert {trial.checkpoint for trial in directory.trials()} == {"full"}


class TestFailures:
    def test_a_timeout_is_a_status_not_an_answer(self, life: Path, tmp_path: Path) -> None:
        quick = Settings(workers=1, limits=Limits(recall=5))
        parts: dict[str, Any] = {"reader": "extractive", "judge": "ledger"}
        directory = go(
            life, tmp_path, "watched_systems:Hangs", settings=quick, ranges="2d", **parts
        )[0]

        by_question = {trial.question: trial for trial in lines_of(directory, Trial)}
        assert by_question["tester-q003"].status == "timeout"
        assert "tester-q003" not in {line.question for line in lines_of(directory, Answer)}
        assert "tester-q003" not in {line.question for line in lines_of(directory, Verdict)}
        point = directory.read_json("longitudinal.json")["checkpoints"][0]
        assert (point["asked"], point["judged"], point["statuses"]["timeout"]) == (4, 3, 1)
        low, high = point["overall"]["bounds"]
        assert low < high == point["overall"]["mean"]

    def test_compat_recall_bench_judges_the_timeout_marker(
        self, life: Path, tmp_path: Path
    ) -> None:
        quick = Settings(workers=1, limits=Limits(recall=5))
        parts: dict[str, Any] = {
            "reader": "extractive",
            "judge": "ledger",
            "compat": "recall-bench",
        }
        directory = go(
            life, tmp_path, "watched_systems:Hangs", settings=quick, ranges="2d", **parts
        )[0]

        answers = {line.question: line for line in lines_of(directory, Answer)}
        assert answers["tester-q003"].text == "[TIMEOUT]"
        point = directory.read_json("longitudinal.json")["checkpoints"][0]
        assert (point["asked"], point["judged"]) == (4, 4)

    def test_a_reader_that_hangs_gives_a_timeout_of_the_answer(
        self, life: Path, tmp_path: Path
    ) -> None:
        quick = Settings(workers=1, limits=Limits(recall=5))
        parts: dict[str, Any] = {"reader": "watched_systems:HangingReader", "judge": "ledger"}
        directory = go(life, tmp_path, "recency", settings=quick, ranges="2d", **parts)[0]

        answers = {line.question: line for line in lines_of(directory, Answer)}
        assert answers["tester-q003"].status == "timeout"
        assert len(lines_of(directory, Trial)) == 4
        assert len(lines_of(directory, Verdict)) == 3

    def test_a_case_that_cannot_be_judged_is_unjudged_not_zero(
        self, life: Path, tmp_path: Path
    ) -> None:
        parts: dict[str, Any] = {
            "reader": "watched_systems:Slowly",
            "judge": "watched_systems:Harsh",
        }
        directory = go(life, tmp_path, "recency", ranges="2d", window=1, **parts)[0]

        verdicts = {line.question: line for line in lines_of(directory, Verdict)}
        assert verdicts["tester-q003"].score is None
        assert verdicts["tester-q003"].error == "cannot make it out"
        assert "--- DAY 1" in verdicts["tester-q001"].score.reasoning
        point = directory.read_json("longitudinal.json")["checkpoints"][0]
        assert (point["statuses"]["unjudged"], point["overall"]["n"]) == (1, 3)

    def test_an_appeal_decides_and_keeps_both_scores_unless_it_fails(
        self, life: Path, tmp_path: Path
    ) -> None:
        parts: dict[str, Any] = {
            "reader": "watched_systems:Slowly",
            "judge": "watched_systems:Harsh",
            "appellate": "watched_systems:Mild",
        }
        directory = go(life, tmp_path, "recency", ranges="3d", **parts)[0]

        verdicts = {line.question: line for line in lines_of(directory, Verdict)}
        heard, unheard = verdicts["tester-q001"], verdicts["tester-q005"]
        assert (heard.score.composite, heard.primary.composite) == (6, 1)
        assert (unheard.score.composite, unheard.primary) == (1, None)

    def test_questions_after_a_failed_ingestion_are_not_indexed(
        self, life: Path, tmp_path: Path
    ) -> None:
        directory = go(life, tmp_path, "watched_systems:RefusesLater", lifecycle="incremental")[0]

        statuses = Counter((t.checkpoint, t.status) for t in lines_of(directory, Trial))
        assert statuses == {
            ("3d", "answered"): 6,
            ("6d", "not-indexed"): 12,
            ("9d", "not-indexed"): 18,
            ("full", "not-indexed"): 24,
        }
        errors = [bool(line.error) for line in lines_of(directory, Ingestion)]
        assert errors == [False, True, True, True]

    def test_a_system_with_answer_needs_no_recall(self, life: Path, tmp_path: Path) -> None:
        directory = go(
            life, tmp_path, "watched_systems:Answers", system_answers=True, judge="ledger"
        )[0]

        assert not lines_of(directory, Trial)
        point = directory.read_json("longitudinal.json")["checkpoints"][-1]
        assert point["categories"]["factual-recall"]["mean"] == 6
        assert point["statuses"]["error"] == 1

    def test_an_invalid_reply_is_an_error_of_that_question_only(
        self, life: Path, tmp_path: Path
    ) -> None:
        parts: dict[str, Any] = {"reader": "watched_systems:Nonsense", "judge": "ledger"}
        directory = go(life, tmp_path, "recency", ranges="3d", **parts)[0]

        statuses = Counter(line.status for line in lines_of(directory, Answer))
        assert statuses == {"error": 5, "answered": 1}
        written = [line.text for line in lines_of(directory, Answer) if line.text]
        assert written == ["half \\ud800"]

    def test_marks_beyond_the_rubric_are_unjudged(self, life: Path, tmp_path: Path) -> None:
        parts: dict[str, Any] = {"judge": "watched_systems:Lavish"}
        parts["reader"] = "watched_systems:Slowly"
        directory = go(life, tmp_path, "recency", ranges="2d", **parts)[0]

        assert {line.score for line in lines_of(directory, Verdict)} == {None}
        assert "which must be 0 to 3" in lines_of(directory, Verdict)[0].error

    def test_in_parallel_only_the_question_that_kills_the_worker_fails(
        self, life: Path, tmp_path: Path
    ) -> None:
        directory = go(life, tmp_path, "watched_systems:Deadly", ranges="3d", parallelism=4)[0]

        statuses = {line.question: line.status for line in lines_of(directory, Trial)}
        assert Counter(statuses.values()) == {"answered": 5, "error": 1}
        assert statuses["tester-q003"] == "error"

    def test_in_parallel_a_slow_judge_is_not_a_recall_timeout(
        self, life: Path, tmp_path: Path
    ) -> None:
        quick = Settings(workers=1, limits=Limits(recall=10))
        parts: dict[str, Any] = {"judge": "watched_systems:SlowJudge", "parallelism": 2}
        parts["reader"] = "watched_systems:Slowly"
        directory = go(life, tmp_path, "recency", settings=quick, ranges="2d", **parts)[0]

        assert {line.status for line in lines_of(directory, Trial)} == {"answered"}
        assert len(lines_of(directory, Verdict)) == 4

    def test_lifecycle_auto_falls_back_to_fresh_if_fork_fails(
        self, life: Path, tmp_path: Path
    ) -> None:
        fallen_back = go(life, tmp_path / "auto", "watched_systems:BadFork")[0]
        fresh = go(life, tmp_path / "fresh", "watched_systems:Watched")[0]

        assert lines_of(fallen_back, Trial) == lines_of(fresh, Trial)
        with pytest.raises(Exception, match=r"fork\(\) failed: RuntimeError: cannot be copied"):
            go(life, tmp_path / "fork", "watched_systems:BadFork", lifecycle="fork")


class TestKilled:
    """The command line's own runs, in processes of their own, killed with SIGKILL."""

    def command(self, life: Path, out: Path) -> list[object]:
        return [
            *("run", "personas", "--data", life, "--out", out, "--ranges", RANGES),
            *("--system", "watched_systems:Watched", "--reader", "watched_systems:Slowly"),
            *("--judge", "ledger", "--no-arms", "--no-heatmap-png", "--workers", 1),
        ]

    def test_a_run_killed_in_the_middle_of_checkpoints_asks_nothing_twice(
        self, life: Path, start_command: StartCommand, tmp_path: Path
    ) -> None:
        log, out, whole = logs(tmp_path) / "asked.txt", tmp_path / "killed", tmp_path / "whole"
        log.touch()
        undisturbed = start_command(self.command(life, whole))
        assert undisturbed.wait() == 0, undisturbed.output

        draw = random.Random(4)
        kills = 0
        while kills < 10:
            # So slow that it is not done before a busy machine comes to the kill.
            process = start_command(self.command(life, out), WATCHED_LOG=log, WATCHED_SECONDS=0.02)
            wanted = len(log.read_text().splitlines()) + draw.randint(2, 12)
            self.wait_for(wanted, log, process)
            if process.kill(with_workers=bool(kills % 2)) != -signal.SIGKILL:
                break
            kills += 1
        last = start_command(self.command(life, out), WATCHED_LOG=log)

        assert last.wait() == 0, last.output
        assert kills >= 5, "most runs were over before they could be killed"
        run = "watched_systems-Watched"
        assert recorded(RunDirectory(out / run)) == recorded(RunDirectory(whole / run))
        asked = Counter(line for line in log.read_text().splitlines() if line.startswith("recall"))
        assert len(asked) == ASKED
        assert asked.total() - ASKED <= kills, "more than what was in flight"

    def wait_for(self, number: int, log: Path, process: CommandProcess) -> None:
        while len(log.read_text().splitlines()) < number and not process.gone:
            time.sleep(0.002)


def test_another_reader_is_another_run(life: Path, tmp_path: Path) -> None:
    go(life, tmp_path, "recency", ranges="2d", reader="watched_systems:Slowly", judge="ledger")

    with pytest.raises(Exception, match="differences: reader"):
        go(life, tmp_path, "recency", ranges="2d", reader="extractive", judge="ledger")


def test_unknown_readers_and_judges_are_named_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match="unknown reader 'telepathy': known are extractive"):
        plan_reader(Spec("telepathy"))
    with pytest.raises(UsageError, match="unknown judge 'jury': known are ledger"):
        plan_judge(Spec("jury"))
