"""Ageing: planted effects are recovered, parts add up, and a cohort cannot be flattered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.analysis.ageing_systems import write_history

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.ageing import ageing
from mnemoscope.analysis.question_records import Plan, QuestionRecord
from mnemoscope.datasets.personas import Personas
from mnemoscope.reports.ageing_tables import ageing_overview, ageing_sections
from mnemoscope.reports.render_markdown import render
from mnemoscope.reports.run_view import RunView
from mnemoscope.results.run_results import RunResult
from mnemoscope.runner.pipeline import Pipeline, plan_judge, plan_reader
from mnemoscope.runner.run import Settings, run
from mnemoscope.systems.loader import plan
from mnemoscope.types import (
    Answer,
    Checkpoint,
    Question,
    Score,
    Status,
    Trial,
    Verdict,
)

PARTS = ("interference", "supersession", "composition")
SYSTEMS = ("Exact", "Stale", "Crowded", "KnowsNoFreshThings", "AllAtOnce", "OnlyNewDays")
Aged = Mapping[str, dict[str, Any]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, RunDirectory]:
    """Each scripted system on the hand-made history."""
    folder = tmp_path_factory.mktemp("ageing")
    dataset = Personas(write_history(folder / "data"), ranges="10d,28d")
    names = [f"ageing_systems:{name}" for name in SYSTEMS]
    parts = Pipeline(
        reader=plan_reader(Spec.parse("extractive,form=sentences")),
        judge=plan_judge(Spec.parse("ledger")),
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        patch.setenv("MNEMOSCOPE_CACHE", str(folder / "cache"))
        plans = [plan(Spec.parse(one)) for one in (*names, "oracle")]
        made = run(dataset, plans, folder / "runs", Settings(workers=1), pipeline=parts)
    return dict(zip((*SYSTEMS, "oracle"), made, strict=True))


@pytest.fixture(scope="module")
def aged(runs: dict[str, RunDirectory]) -> Aged:
    return {name: own.read_json("longitudinal.json")["ageing"] for name, own in runs.items()}


def parts_of(figures: dict[str, Any]) -> tuple[float, ...]:
    [change] = figures["changes"]
    return tuple(change[name]["change"] for name in ("total", *PARTS))


PLANTED = {
    # total, interference, supersession, composition of hit@10. At 10d 8 stable and 8 moving things
    # are asked, at 28d 8 stable, 8 moving and 8 fresh ones.
    "Exact": (0, 0, 0, 0),
    "oracle": (0, 0, 0, 0),
    "Stale": (-1 / 3, 0, -1 / 3, 0),
    "KnowsNoFreshThings": (-1 / 3, 0, 0, -1 / 3),
    # What it keeps of moving and fresh things lifts the mean above that of the same questions.
    "Crowded": (-1 / 6, -1 / 2, 1 / 6, 1 / 6),
    "AllAtOnce": (-5 / 6, -1 / 2, -1 / 6, -1 / 6),
    "OnlyNewDays": (-1 / 3, -1, 1 / 3, 1 / 3),
}


@pytest.mark.parametrize("system", PLANTED)
def test_planted_effects_are_recovered(system: str, aged: Aged) -> None:
    figures = aged[system]["hit@10"]
    assert parts_of(figures) == pytest.approx(PLANTED[system], abs=1e-9)
    [change] = figures["changes"]
    counts = {name: (change[name]["first"], change[name]["last"]) for name in PARTS}
    assert counts == {"interference": (8, 8), "supersession": (8, 8), "composition": (0, 8)}
    for name, planted in zip(("total", *PARTS), PLANTED[system], strict=True):
        low, high = change[name]["ci95"]
        assert low <= planted <= high


@pytest.mark.parametrize("system", PLANTED)
def test_composites_tell_the_same_story_and_add_up(system: str, aged: Aged) -> None:
    total, *parts = parts_of(aged[system]["composite"])
    assert sum(parts) == pytest.approx(total, abs=1e-9)
    signs = [round(part / 6, 1) for part in parts]
    for part, planted in zip(signs, PLANTED[system][1:], strict=True):
        assert part * planted > 0 if planted else part == 0


@pytest.mark.parametrize("system", ["Exact", "oracle"])
def test_no_part_of_a_composite_changes_if_every_answer_is_right(system: str, aged: Aged) -> None:
    assert parts_of(aged[system]["composite"]) == (0, 0, 0, 0)


def test_the_curve_of_the_oracle_is_flat_and_that_of_a_forgetful_system_is_not(aged: Aged) -> None:
    for name in ("composite", "hit@10"):
        flat = aged["oracle"][name]["cohort"]
        assert (flat["start"], flat["questions"], flat["judged"]) == ("10d", 8, 8)
        assert len({point["score"]["mean"] for point in flat["points"]}) == 1
        assert flat["points"][-1]["change"]["mean"] == 0
    falling = aged["OnlyNewDays"]["hit@10"]["cohort"]["points"]
    assert [point["score"]["mean"] for point in falling] == [1, 0]
    assert falling[-1]["change"]["ci95"][1] < 0


def test_reports_and_frames_show_the_cohort_and_the_parts(runs: dict[str, RunDirectory]) -> None:
    views = [RunView.of(runs[name]) for name in ("AllAtOnce", "oracle")]
    told = render(ageing_overview(views))
    assert "8 questions are asked at every checkpoint from 10d to 28d" in told
    [row] = [line for line in told.splitlines() if line.startswith("| oracle")]
    assert row.split(" | ")[1] == "6.00 → 6.00"
    assert row.split(" | ")[3].startswith("0.00 [")  # interference
    page = render(ageing_sections(views[0].longitudinal))  # type: ignore[arg-type]
    assert "| supersession |" in page
    frame = RunResult(runs["AllAtOnce"].path).figures()
    found = {one.metric: (one.checkpoint, one.mean) for one in frame if "_hit@10" in one.metric}
    assert found == {
        "cohort_hit@10": ("28d", 0.5),
        "total_hit@10": ("28d", pytest.approx(-5 / 6)),
        "interference_hit@10": ("28d", -0.5),
        "supersession_hit@10": ("28d", pytest.approx(-1 / 6)),
        "composition_hit@10": ("28d", pytest.approx(-1 / 6)),
    }


# Records by hand.

LABELS = ("10d", "20d", "30d")
DAYS = {"10d": 10, "20d": 20, "30d": 30}


def asked(
    label: str,
    number: int,
    composite: int | None,
    *,
    expires: int | None = None,
    replaces: tuple[str, ...] = (),
    status: Status = "answered",
) -> QuestionRecord:
    question = Question(
        f"q{number}",
        "What?",
        cluster=f"c{number % 7}",
        expires_after=None if expires is None else at(expires),
        replaces=replaces,
    )
    marks = None
    if composite is not None:
        correctness = min(3, composite)
        completeness = min(2, composite - correctness)
        marks = Score(correctness, completeness, composite - correctness - completeness)
    return QuestionRecord(
        question,
        Trial("a", question.id, status),
        Answer("a", question.id, status, "That."),
        Verdict("a", question.id, marks),
        "a",
        label,
    )


def at(day: int) -> datetime:
    return datetime(2026, 1, min(day, 31), tzinfo=UTC)


def plan_of(cohort: tuple[str, ...] = ()) -> Plan:
    points = [Checkpoint(one, DAYS[one], 0, (), now=at(DAYS[one]), cohort=cohort) for one in LABELS]
    return {"a": points}


def composites(records: list[QuestionRecord], plan: Plan | None = None) -> dict[str, Any]:
    found: Any = ageing(records, plan or plan_of(), DAYS, depth=10)
    return dict(found["composite"])


RECORDS = st.dictionaries(
    st.tuples(st.sampled_from(LABELS), st.integers(0, 9)),
    st.tuples(st.none() | st.integers(0, 6), st.none() | st.integers(1, 30), st.integers(0, 9)),
    max_size=24,
).map(
    lambda rows: [
        asked(label, number, composite, expires=expires, replaces=(f"q{earlier}",))
        for (label, number), (composite, expires, earlier) in rows.items()
    ]
)


@settings(max_examples=120)
@given(RECORDS)
def test_parts_always_add_up_and_the_total_is_the_change_of_the_overall_score(
    records: list[QuestionRecord],
) -> None:
    found: Any = ageing(records, plan_of(), DAYS, depth=10)
    for change in found["composite"]["changes"] if "composite" in found else ():
        means = [
            [one.score.composite for one in records if one.checkpoint == label and one.score]
            for label in (change["first"], change["last"])
        ]
        total, parts = change["total"]["change"], [change[name]["change"] for name in PARTS]
        if not all(means):
            assert total is None
            continue
        first, last = (sum(own) / len(own) for own in means)
        assert total == pytest.approx(last - first, abs=1e-9)
        if change["interference"]["last"]:
            assert sum(parts) == pytest.approx(total, abs=1e-9)
        else:
            assert parts == [None] * 3
        for end, own in zip(("first", "last"), means, strict=True):
            assert sum(change[name][end] for name in PARTS) == len(own)


def test_a_system_that_answers_only_new_questions_cannot_hide_behind_them() -> None:
    # The overall score rises from 1 to 4.8, because 80 of 100 questions are new at the end.
    records = [asked(label, n, 1) for label in LABELS[:1] for n in range(20)]
    records += [asked(label, n, 0) for label in LABELS[1:] for n in range(20)]
    records += [asked("30d", n, 6) for n in range(20, 100)]
    found = composites(records)
    [change] = found["changes"]
    assert change["total"]["change"] == pytest.approx(3.8)
    assert change["interference"]["change"] == -1
    assert change["composition"]["change"] == pytest.approx(4.8)
    assert [point["score"]["mean"] for point in found["cohort"]["points"]] == [1, 0, 0]


def test_a_system_that_fails_on_old_questions_cannot_flatten_its_curve() -> None:
    # Its failures are left out as everywhere, and the bounds say what they may hide.
    records = [asked(label, n, 6) for label in LABELS for n in range(10)]
    records += [asked("10d", n, 6) for n in range(10, 20)]
    lost = [(label, n) for label in LABELS[1:] for n in range(10, 20)]
    records += [asked(label, n, None, status="timeout") for label, n in lost]
    found = composites(records)
    cohort = found["cohort"]
    assert (cohort["questions"], cohort["judged"]) == (20, 10)
    last = cohort["points"][-1]["score"]
    assert (last["mean"], last["missing"], last["bounds"]) == (6, 10, [3, 6])
    [change] = found["changes"]
    assert change["interference"]["change"] == 0
    assert change["interference"]["bounds"] == [-3, 0]
    assert change["total"]["bounds"] == [-3, 0]


def test_a_recall_that_failed_without_evidence_stays_in_the_cohort() -> None:
    def recalled(label: str, status: Status, evidence: tuple[str, ...]) -> QuestionRecord:
        trial = Trial("a", "q1", status, evidence=evidence, ranking=evidence)
        return QuestionRecord(Question("q1", "What?"), trial, scenario="a", checkpoint=label)

    records = [recalled(label, "answered", ("m0",)) for label in LABELS[:2]]
    found: Any = ageing([*records, recalled("30d", "timeout", ())], plan_of(), DAYS, depth=10)
    cohort = found["hit@10"]["cohort"]
    assert (cohort["questions"], cohort["judged"]) == (1, 0)
    assert cohort["points"][-1]["score"]["bounds"] == [0, 1]


def test_the_cohort_does_not_depend_on_what_a_system_answers() -> None:
    def cohort(value: Callable[[int], int | None]) -> tuple[str, int]:
        shown = range(40)
        records = [asked(label, n, value(n)) for label in LABELS for n in shown]
        found = composites([*records, asked("10d", 99, 6), asked("30d", 99, 6)])["cohort"]
        return found["start"], found["questions"]

    assert cohort(lambda n: 6) == cohort(lambda n: None if n % 2 else 0) == ("10d", 40)


def test_a_cohort_of_one_question_claims_almost_nothing() -> None:
    records = [asked(label, 1, marks) for label, marks in zip(LABELS, (6, 6, 3), strict=True)]
    found = composites(records)
    assert found["cohort"]["questions"] == 1
    [change] = found["changes"]
    assert change["interference"]["change"] == -3
    assert change["interference"]["ci95"] == [-6, 6]
    low, high = found["cohort"]["points"][-1]["score"]["ci95"]
    assert high - low > 3


def test_a_later_start_is_taken_where_the_first_checkpoint_asks_too_few() -> None:
    records = [asked(label, n, 6) for label in LABELS for n in range(3)]
    records += [asked(label, n, 6) for label in LABELS[1:] for n in range(3, 60)]
    found = composites(records)
    assert (found["cohort"]["start"], found["cohort"]["questions"]) == ("20d", 60)
    assert [(one["first"], one["last"]) for one in found["changes"]] == [
        ("10d", "30d"),
        ("20d", "30d"),
    ]


def test_a_planned_cohort_is_the_one_that_is_followed() -> None:
    records = [asked(label, n, 6) for label in LABELS for n in range(40)]
    found = composites(records, plan_of(("q1", "q2", "q3")))
    assert found["cohort"]["questions"] == 3


def test_without_a_question_at_several_checkpoints_there_is_no_cohort_and_no_split() -> None:
    found = composites([asked("10d", 1, 6), asked("20d", 2, 4), asked("30d", 3, 2)])
    assert found["cohort"] is None
    [change] = found["changes"]
    assert change["total"]["change"] == -4
    assert {change[name]["change"] for name in PARTS} == {None}


def test_one_checkpoint_does_not_age() -> None:
    assert ageing([asked("10d", 1, 6)], plan_of(), DAYS, depth=10) == {}


def test_a_question_that_recall_bench_drops_early_has_not_been_superseded() -> None:
    # `full` drops all questions that expire, even those that expire after the last day.
    records = [asked(label, 1, 6) for label in LABELS]
    records += [asked("10d", 2, 0, expires=31), asked("10d", 3, 0, expires=25)]
    [change] = composites(records)["changes"]
    assert (change["supersession"]["first"], change["composition"]["first"]) == (1, 1)


def test_a_successor_counts_only_beside_the_question_that_it_replaces() -> None:
    kept = [asked(label, 1, 6) for label in LABELS]
    successor = asked("30d", 5, 2, replaces=("q4",))
    [alone] = composites([*kept, successor])["changes"]
    assert (alone["supersession"]["last"], alone["composition"]["last"]) == (0, 1)
    [both] = composites([*kept, asked("10d", 4, 6, expires=15), successor])["changes"]
    assert (both["supersession"]["last"], both["composition"]["last"]) == (1, 0)
    assert both["supersession"]["change"] == -2
