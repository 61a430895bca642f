"""What a system does wrong gets the status that is true, and harms nothing but its own question."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.described import described
from tests.log_folder import logs
from tests.waiting import is_gone

from mnemoscope._store.errors import DataError, MnemoscopeError, RunConflict, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.base import DataFile, DatasetInfo, Findings
from mnemoscope.runner import scheduler, worker
from mnemoscope.runner.heartbeat import RECALLING, Heartbeat, InFlight, Signals
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import Settings, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.runner.worker_process import SHARED, Worker
from mnemoscope.systems.loader import plan, plan_here
from mnemoscope.types import Ingestion, Memory, Question, Scalar, Scenario, Trial

TROUBLE = (1, 3)
"""Which of a scenario's six questions have the word in them; each asks for another memory."""


def scenario(number: int) -> Scenario:
    first = 6 * number
    return Scenario(
        f"s{number}",
        tuple(Memory(str(id), f"it lies at place {id}") for id in range(first, first + 6)),
        tuple(
            Question(
                f"s{number}/q{place}",
                f"{'trouble with' if place in TROUBLE else 'where is'} {first + place}",
                evidence=(str(first + place),),
                category="odd" if place % 2 else "even",
            )
            for place in range(6)
        ),
    )


@dataclass
class Made:
    """A dataset out of scenarios."""

    made: tuple[Scenario, ...] = (scenario(0), scenario(1))
    name: str = "made"
    info: DatasetInfo = DatasetInfo(name="made")  # noqa: RUF009
    category_names: Mapping[str, str] = field(default_factory=dict)
    original_ids: Mapping[tuple[str, str], str] = field(default_factory=dict)
    pool_known: bool = True
    expected_scenarios: int | None = 2
    findings: Findings = field(default_factory=Findings)

    @property
    def options(self) -> dict[str, Scalar]:
        return {}

    def files(self) -> list[DataFile]:
        return []

    def scenarios(self) -> Iterator[Scenario]:
        return iter(self.made)

    def counts(self) -> Mapping[str, int]:
        return {}


class Outcome:
    """What a finished run has to say."""

    def __init__(self, run: RunDirectory) -> None:
        self.run = run
        self.trials: list[Trial] = list(run.trials())
        self.ingestions: list[Ingestion] = list(run.ingestions())
        self.metrics: dict[str, Any] = run.read_json("metrics.json")

    def split(self, chosen: Callable[[Trial], bool]) -> tuple[list[Trial], list[Trial]]:
        return [t for t in self.trials if chosen(t)], [t for t in self.trials if not chosen(t)]


Put = Callable[..., Outcome]


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Put the two scenarios to a system of hostile_systems, in the worker itself.

    One worker gets both, so that what the system does in the first can harm the second.
    """

    def put(name: str, limits: Limits = Limits(), workers: int = 1) -> Outcome:
        plans = [plan_here(Spec.parse(f"hostile_systems:{name}"))]
        [finished] = run(
            Made(), plans, tmp_path / "out", Settings(depth=3, limits=limits, workers=workers)
        )
        return Outcome(finished)

    return put


def asks_for_trouble(trial: Trial) -> bool:
    return int(trial.question[-1]) in TROUBLE


def is_in_scenario_1(trial: Trial) -> bool:
    return trial.scenario == "s1"


def assert_answered_well(trials: list[Trial]) -> None:
    """Answered, and with the evidence first."""
    assert trials
    for trial in trials:
        assert trial.status == "answered", trial
        assert trial.ranking[0] == trial.evidence[0]
        assert not trial.error


@pytest.mark.parametrize(
    ("system", "error"),
    [
        ("Raises", "ValueError: no idea"),
        ("RaisesLate", "ValueError: after the first hit"),
        ("RaisesWhatCannotBeWritten", "half a character"),
        ("LeavesWithSystemExit", "SystemExit: 3"),
        ("Exits", "the process exited with code 3"),
        ("Segfaults", "the process died of SIGSEGV"),
        ("ReturnsNone", "recall returned NoneType None"),
        ("ReturnsString", "recall returned str"),
        ("ReturnsInt", "recall returned int"),
        ("ReturnsDict", "recall returned dict"),
        ("ReturnsNestedLists", "recall returned list"),
        ("Bools", "recall returned bool True as a hit"),
        ("BadDicts", "recall returned a hit that cannot be read"),
        ("WronglyTypedHits", "recall returned a hit that cannot be read"),
    ],
)
def test_a_recall_that_fails_is_an_error_of_its_own_question_only(
    system: str, error: str, put: Put
) -> None:
    outcome = put(system)

    failed, others = outcome.split(asks_for_trouble)
    assert [trial.status for trial in failed] == ["error"] * 4
    for trial in failed:
        assert error in trial.error
        assert trial.ranking == ()
    assert_answered_well(others)
    assert outcome.run.manifest().state == "complete"
    assert outcome.metrics["statuses"] == {"answered": 8, "error": 4}


def test_a_recall_that_hangs_is_a_timeout_of_its_own_question_only(put: Put) -> None:
    outcome = put("Hangs", Limits(recall=300))

    failed, others = outcome.split(asks_for_trouble)
    assert [(trial.status, trial.error) for trial in failed] == [
        ("timeout", "no answer within 300 s")
    ] * 4
    assert_answered_well(others)


def test_failures_lower_coverage_and_open_bounds_instead_of_counting_as_zeros(put: Put) -> None:
    metrics = put("Raises").metrics

    assert metrics["questions"] == {
        "asked": 12,
        "scorable": 12,
        "measured": 8,
        "clusters": 2,
        "without_evidence": 0,
        "coverage": pytest.approx(8 / 12),
    }
    hit = metrics["overall"]["hit@1"]
    assert (hit["mean"], hit["n"]) == (1.0, 8)
    assert hit["bounds"] == pytest.approx([8 / 12, 1.0])
    # All trouble is in the category of the odd questions.
    assert metrics["by_category"]["odd"]["hit@1"]["bounds"] == pytest.approx([2 / 6, 1.0])
    assert "bounds" not in metrics["by_category"]["even"]["hit@1"]


def test_without_failures_there_are_no_bounds(put: Put) -> None:
    metrics = put("Plain").metrics

    assert metrics["questions"]["coverage"] == 1
    assert "bounds" not in metrics["overall"]["hit@1"]


def test_a_system_that_always_fails_completes_without_any_figure(put: Put) -> None:
    outcome = put("RaisesAlways")

    assert outcome.metrics["statuses"] == {"error": 12}
    assert outcome.metrics["questions"]["coverage"] == 0
    assert outcome.metrics["overall"] == {}
    assert outcome.run.manifest().state == "complete"


def test_no_hits_is_status_empty_and_counts_as_wrong(put: Put) -> None:
    outcome = put("ReturnsNothing")

    empty, others = outcome.split(asks_for_trouble)
    assert [trial.status for trial in empty] == ["empty"] * 4
    assert_answered_well(others)
    assert outcome.metrics["questions"]["coverage"] == 1
    assert outcome.metrics["overall"]["hit@1"]["mean"] == pytest.approx(8 / 12)
    assert "bounds" not in outcome.metrics["overall"]["hit@1"]


def test_unknown_ids_are_counted_and_keep_their_rank(put: Put) -> None:
    outcome = put("UnknownIds")

    strange, others = outcome.split(asks_for_trouble)
    for trial in strange:
        assert trial.status == "answered"
        assert trial.ranking == ("elsewhere", trial.evidence[0], "nowhere")
        assert trial.unknown == 2
    assert outcome.metrics["hits"]["unknown_ids"] == 8
    assert outcome.metrics["by_category"]["odd"]["mrr@3"]["mean"] == pytest.approx(
        (4 * 1 / 2 + 2 * 1) / 6
    )
    assert_answered_well(others)


def test_duplicates_are_counted_and_the_ranks_behind_them_close_up(put: Put) -> None:
    outcome = put("Duplicates")

    repeated, others = outcome.split(asks_for_trouble)
    assert all(len(trial.ranking) == 3 for trial in repeated)
    assert outcome.metrics["hits"]["duplicates"] == 4
    assert outcome.metrics["hits"]["returned"] == 3 * 12
    # The evidence is third as it came, and second without the repetition.
    assert outcome.metrics["by_category"]["odd"]["mrr@3"]["mean"] == pytest.approx(
        (4 * 1 / 2 + 2 * 1) / 6
    )
    assert_answered_well(others)


@pytest.mark.parametrize(
    ("system", "scores"),
    [
        ("Pairs", (0.5, None, 1.0)),
        ("NumpyPairs", (0.5, 0.25, 0.125)),
        ("Dicts", (0.5, None)),
        ("Ints", ()),
    ],
)
def test_hits_are_read_in_every_supported_format(
    system: str, scores: tuple[float | None, ...], put: Put
) -> None:
    outcome = put(system)

    assert_answered_well(outcome.trials)
    shaped, _ = outcome.split(asks_for_trouble)
    assert [trial.scores for trial in shaped] == [scores] * 4
    assert outcome.metrics["hits"]["unknown_ids"] == 0


def test_a_hit_costs_the_text_it_shows_or_else_its_memory(put: Put) -> None:
    shaped, _ = put("Dicts").split(asks_for_trouble)

    memory = -(-len("it lies at place 2") // 4)
    assert [trial.tokens for trial in shaped][:2] == [(10, memory), (10, memory)]


def test_hits_of_our_own_type_keep_order_and_score(put: Put) -> None:
    shaped, _ = put("Hits").split(asks_for_trouble)

    for trial in shaped:
        wanted = int(trial.evidence[0])
        assert trial.ranking == (str(wanted + 1), str(wanted))
        assert trial.scores == (0.5, 0.25)


def test_a_hit_made_from_memories_finds_the_evidence_among_them(put: Put) -> None:
    outcome = put("MergedHits")

    merged, others = outcome.split(asks_for_trouble)
    for trial in merged:
        assert trial.status == "answered"
        assert trial.ranking == ("fact 1", "fact 2", "fact 3")
        assert trial.sources["fact 2"] == trial.evidence
        assert trial.unknown == 1
    assert outcome.metrics["by_category"]["odd"]["mrr@3"]["mean"] == pytest.approx(
        (4 * 1 / 3 + 2 * 1) / 6  # "fact 1" takes two places
    )
    assert_answered_well(others)


def test_loosely_typed_hits_are_recorded_so_that_they_can_be_read_back(put: Put) -> None:
    outcome = put("LooselyTypedHits")

    assert_answered_well(outcome.trials)
    loose, _ = outcome.split(asks_for_trouble)
    for trial in loose:
        assert trial.ranking == (trial.evidence[0], "fact")
        assert trial.scores == (0.5, None)
        assert trial.sources == {"fact": (str(int(trial.evidence[0]) + 1),)}


def test_hits_beyond_k_are_kept_but_measured_at_no_greater_depth(put: Put) -> None:
    outcome = put("MoreThanAsked")

    assert all(len(trial.ranking) == 6 for trial in outcome.trials)
    assert outcome.metrics["depth"] == 3
    measured = outcome.metrics["overall"]
    assert {name.partition("@")[2] for name in measured} == {"1", "3", ""}
    assert measured["hit@3"] == put("Plain").metrics["overall"]["hit@3"]


@pytest.mark.parametrize(
    ("system", "error"),
    [
        ("RaisesInRemember", "ValueError: too much"),
        ("LeavesInRemember", "SystemExit: 3"),
        ("ExitsInRemember", "while remembering: the process exited with code 3"),
        ("RaisesInReady", "ValueError: never ready"),
        ("RaisesInReset", "ValueError: no new space"),
        ("WronglyTypedReceipt", "remember returned a receipt that cannot be read"),
        ("ExitsInStats", "while remembering: the process exited with code 3"),
    ],
)
def test_questions_about_memories_that_were_not_ingested_are_not_indexed(
    system: str, error: str, put: Put
) -> None:
    assert_scenario_1_is_not_indexed(put(system), error)


@pytest.mark.parametrize(
    ("system", "seconds"),
    [("HangsInRemember", 2), ("HangsInStats", 300)],  # the first one by the real clock
)
def test_ingestion_has_its_own_time_limit(system: str, seconds: int, put: Put) -> None:
    outcome = put(system, Limits(remember=seconds))

    call = system.removeprefix("HangsIn").lower()
    cause = f"while remembering: {call} took longer than {seconds} s"
    assert_scenario_1_is_not_indexed(outcome, cause)


def assert_scenario_1_is_not_indexed(outcome: Outcome, error: str) -> None:
    lost, others = outcome.split(is_in_scenario_1)
    assert [trial.status for trial in lost] == ["not-indexed"] * 6
    assert all(error in trial.error for trial in lost)
    assert_answered_well(others)
    assert [(line.scenario, error in line.error) for line in outcome.ingestions] == [
        ("s0", False),
        ("s1", True),
    ]
    assert outcome.metrics["ingestion"]["scenarios_failed"] == 1
    assert outcome.metrics["questions"]["coverage"] == 0.5
    assert outcome.metrics["overall"]["hit@1"]["bounds"] == [0.5, 1.0]
    assert outcome.run.manifest().state == "complete"


def test_recorded_answers_stay_if_ingestion_fails_after_a_crash(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DIED", str(logs(tmp_path) / "died"))

    outcome = put("ExitsAndThenForgets", Limits(restarts=0))

    lost, others = outcome.split(is_in_scenario_1)
    assert [trial.status for trial in lost] == ["answered", "error"] + ["not-indexed"] * 4
    assert_answered_well(others)


def test_rejected_and_truncated_memories_are_ingestion_loss(put: Put) -> None:
    ingestion = put("Rejects").metrics["ingestion"]

    assert ingestion == {
        "memories": 12,
        "rejected": 2,
        "merged": 0,
        "truncated": 2,
        "scenarios_failed": 0,
        "evidence_reached": pytest.approx((4 * 1 + 0.5 + 0) / 6),
        "evidence_unreachable": 0,
    }


@pytest.mark.parametrize(
    "system",
    [
        "Async",
        "Retriever",
        "bare_function",
        "async_function",
        "LeavesDuringWarmUp",
        "LeavesInStats",
        "WrongStats",
        "NotForTheShell",
    ],
)
def test_this_kind_of_system_answers_every_question(system: str, put: Put) -> None:
    assert_answered_well(put(system).trials)


def test_a_system_without_reset_that_cannot_close_is_still_asked(put: Put) -> None:
    assert_answered_well(put("RaisesInClose", workers=1).trials)


def test_a_retriever_s_index_size_is_reported(put: Put) -> None:
    timing = put("Retriever").run.read_json("timing.json")

    assert timing["index_bytes"] == 2 * 1234


def test_what_a_system_prints_is_not_in_our_output(
    put: Put, capfd: pytest.CaptureFixture[str]
) -> None:
    assert_answered_well(put("Talks").trials)

    said = capfd.readouterr()
    assert "TALK" not in said.out
    assert "TALK by print" in said.err
    assert "TALK by write" in said.err


def test_a_system_that_runs_out_of_disk_stops_the_run_and_is_asked_again_later(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    full = tmp_path / "full"
    full.touch()
    monkeypatch.setenv("DISK_FULL", str(full))

    with pytest.raises(MnemoscopeError, match="cannot page in"):
        put("OutOfSpace")
    full.unlink()

    assert_answered_well(put("OutOfSpace").trials)


def test_an_edited_system_is_another_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "edited_system.py"
    monkeypatch.syspath_prepend(tmp_path)
    spec = Spec("edited_system:recall")
    module.write_text("def recall(query, k): return ['0']\n")
    run(Made(), [plan(spec)], tmp_path / "out")

    module.write_text("def recall(query, k): return ['1']\n")

    with pytest.raises(RunConflict, match=r"differences: system\.source_sha256"):
        run(Made(), [plan(spec)], tmp_path / "out")


def test_a_class_without_recall_is_refused_before_anything_runs() -> None:
    with pytest.raises(UsageError, match=r"HasNoRecall has no recall\(query, k\)"):
        described("hostile_systems:HasNoRecall")


def test_a_system_that_is_described_before_a_run_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONNECTIONS", str(logs(tmp_path) / "doors"))

    plans = [plan(Spec("hostile_systems:HoldsAConnection"))]

    with pytest.raises(UsageError, match=r"has no answer\(query\)"):
        run(Made(), plans, tmp_path / "out", pipeline=Pipeline(system_answers=True))

    assert (logs(tmp_path) / "doors").read_text().split() == ["opened", "closed"]
    assert not (tmp_path / "out").exists()


def test_a_question_id_or_scenario_id_that_occurs_twice_is_refused(tmp_path: Path) -> None:
    plans = [plan(Spec("hostile_systems:Plain"))]

    with pytest.raises(DataError, match="duplicate"):
        run(Made((scenario(0), scenario(0))), plans, tmp_path / "questions")
    with pytest.raises(DataError, match="duplicate"):
        again = Scenario("s0", scenario(1).memories, scenario(1).questions)
        run(Made((scenario(0), again)), plans, tmp_path / "scenarios")


def test_a_worker_that_dies_after_a_question_is_replaced_and_nothing_is_asked_again(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    stop = InFlight.stop

    def stop_and_die(beat: InFlight) -> None:
        stop(beat)
        if beat.position == 2:
            os._exit(3)

    monkeypatch.setattr(InFlight, "stop", stop_and_die)

    outcome = put("Plain")

    assert_answered_well(outcome.trials)
    assert len(outcome.trials) == 12


def test_a_worker_that_closes_its_pipe_but_runs_on_is_killed_and_replaced(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALIVE", str(tmp_path / "alive"))
    monkeypatch.setattr(scheduler, "_FAREWELL", 0.05)

    outcome = put("ClosesThePipe", workers=1)

    failed, others = outcome.split(asks_for_trouble)
    assert {(trial.status, trial.error) for trial in failed} == {
        ("error", "the process died of SIGKILL")
    }
    assert_answered_well(others)
    assert is_gone(int((tmp_path / "alive").read_text()))


def test_progress_moves_while_memories_are_ingested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, seen = tmp_path / "gate", []
    monkeypatch.setenv("GATE", str(gate))

    def watch(units: float) -> None:
        seen.append(units)
        if len(set(seen)) > 3:
            gate.touch()

    plans = [plan(Spec("hostile_systems:IngestsUntilTold"))]
    run(Made((scenario(0),)), plans, tmp_path / "out", progress=watch)

    assert seen[0] > 0 or seen[1] > 0
    assert seen == sorted(seen)
    assert seen[3] < 1


def test_a_worker_that_dies_without_progress_stops_the_run(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "work", lambda *unit, **settings: os._exit(3))

    with pytest.raises(MnemoscopeError, match="died between questions: the process exited with"):
        put("Plain")


def test_a_scenario_that_had_to_be_indexed_again_is_timed_once(put: Put) -> None:
    timing = put("Exits").run.read_json("timing.json")

    assert timing["scenarios_indexed"] == 2
    assert timing["recall_ms"]["n"] == 8


def test_a_question_finished_just_before_the_kill_is_not_a_timeout(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks = 0

    def overdue_at_first_look(worker: Worker, limits: Limits) -> float | None:
        nonlocal looks
        looks += 1
        return 1.0 if looks == 1 else None

    monkeypatch.setattr(Worker, "overdue", overdue_at_first_look)

    outcome = put("Unhurried", workers=1)

    assert looks > 1
    assert_answered_well(outcome.trials)


class ChangingSlot:
    """A slot in which the worker ends one thing, and may begin another, after the first read."""

    position, phase = 0, RECALLING

    def __init__(self, since: float, then: float) -> None:
        self._reads = [then, since]

    @property
    def since(self) -> float:
        return self._reads.pop() if len(self._reads) > 1 else self._reads[0]


@pytest.mark.parametrize(
    ("age", "then", "is_overdue"),
    [
        pytest.param(1.0, 0.0, False, id="ends in time"),
        pytest.param(300.0, 0.0, False, id="ends a long ingestion"),
        pytest.param(300.0, 1e9, False, id="begins the next question"),
        pytest.param(300.0, None, True, id="goes on"),
    ],
)
def test_only_what_is_still_in_flight_can_be_overdue(
    age: float, then: float | None, is_overdue: bool
) -> None:
    since = time.monotonic() - age
    worker = Worker.__new__(Worker)
    worker._reader_asks_model = False
    worker.group, worker._active_at = SHARED, time.monotonic()
    slot: Any = ChangingSlot(since, since if then is None else then)
    worker.heartbeat = Heartbeat([slot], Signals())
    assert (worker.overdue(Limits(recall=120.0)) is not None) == is_overdue
