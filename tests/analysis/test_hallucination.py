"""Hallucination: trends, canaries, and the correlation with recall."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.analysis.hallucination import (
    RateAtCheckpoint,
    against_recall,
    canaries,
    read,
    trend,
    views,
)
from mnemoscope.analysis.longitudinal import longitudinal
from mnemoscope.analysis.question_records import Plan, QuestionRecord
from mnemoscope.types import CORE_CATEGORIES, Checkpoint, Question, Score, Verdict

DAYS = (100, 200, 300, 400, 500)

FACTS, NEGATIVE = CORE_CATEGORIES[0], CORE_CATEGORIES[7]


def asked(
    number: int,
    invents: bool,
    days: int = 100,
    category: str = CORE_CATEGORIES[0],
    quality: int = 3,
) -> QuestionRecord:
    question = Question(f"q{number:03}", "What?", category=category)
    score = Score(quality, 0, 0 if invents else 1)
    verdict = Verdict("a", question.id, score)
    return QuestionRecord(question, verdict=verdict, scenario="a", checkpoint=f"{days}d")


def rate_at(days: int, rate: float | None) -> RateAtCheckpoint:
    return {"label": f"{days}d", "ingested_days": days, "rate": rate, "n": 10, "ci95": None}


def planned(*days: int) -> Plan:
    return {"a": [Checkpoint(f"{d}d", d, 0, (), ingested_days=d) for d in days]}


def seen(records: list[QuestionRecord], *days: int) -> dict[str, Any]:
    plan = planned(*days)
    return dict(views(records, plan, longitudinal(records, plan)))


def rising() -> list[QuestionRecord]:
    """One more of ten questions is hallucinated at each checkpoint, and recall falls."""
    return [
        asked(number, number <= step, days, quality=3 - min(3, step))
        for step, days in enumerate(DAYS)
        for number in range(10)
    ]


def test_a_steady_rise_is_found_with_its_start_and_slope() -> None:
    line = seen(rising(), *DAYS)["trend"]
    assert line["slope_per_day"] == pytest.approx(0.001)
    assert line["intercept"] == pytest.approx(0.0, abs=1e-9)
    assert line["slope_per_day_ci95"][0] > 0
    assert line["n"] == 5


def test_two_checkpoints_give_a_line_without_an_interval_and_one_gives_none() -> None:
    row = [rate_at(1, 0.1), rate_at(2, 0.2)]
    assert trend(row)["slope_per_day"] == pytest.approx(0.1)
    assert trend(row)["slope_per_day_ci95"] is None
    assert trend(row[:1])["slope_per_day"] is None


def test_checkpoints_without_judged_answers_do_not_change_the_trend() -> None:
    row = [rate_at(days, days / 100) for days in (10, 20, 30)]
    gap = [*row, rate_at(40, None)]
    assert trend(gap) == trend(row)


def test_categories_show_hallucinations_that_the_overall_rate_hides() -> None:
    records = [asked(number, False) for number in range(38)]
    records += [
        asked(100 + number, number < 4, category=CORE_CATEGORIES[7]) for number in range(10)
    ]
    found = seen(records, 100)
    assert found["by_checkpoint"][0]["rate"] == pytest.approx(4 / 48)
    assert found["by_category"][CORE_CATEGORIES[7]]["overall"]["rate"] == pytest.approx(0.4)
    assert found["by_category"][CORE_CATEGORIES[7]]["checkpoints"][0]["rate"] == pytest.approx(0.4)
    assert found["by_category"][CORE_CATEGORIES[0]]["overall"]["rate"] == 0
    assert found["by_persona"]["a"]["overall"]["n"] == 48


def test_more_hallucination_as_recall_falls_is_healthy_and_less_is_pathological() -> None:
    healthy = seen(rising(), *DAYS)["against_recall"]
    turned = [
        asked(number, number <= 4 - step, days, quality=3 - min(3, step))
        for step, days in enumerate(DAYS)
        for number in range(10)
    ]
    pathological = seen(turned, *DAYS)["against_recall"]
    assert healthy["reading"] == "healthy"
    assert healthy["correlation"] == pytest.approx(-pathological["correlation"])
    assert pathological["reading"] == "pathological"
    assert [point["ingested_days"] for point in healthy["points"]] == list(DAYS)


def test_few_or_unchanging_points_cannot_tell() -> None:
    still = [asked(number, False, days) for days in DAYS for number in range(3)]
    assert seen(still, *DAYS)["against_recall"]["correlation"] is None
    three = seen(rising()[:30], *DAYS[:3])["against_recall"]
    assert three["correlation"] < 0
    assert three["correlation_ci95"] is None
    assert three["reading"] == "cannot tell"
    assert against_recall([])["reading"] == "cannot tell"


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_an_interval_that_contains_zero_cannot_tell(low: float, high: float) -> None:
    low, high = sorted((low, high))
    expected = "healthy" if high < 0 else "pathological" if low > 0 else "cannot tell"
    assert read([low, high]) == expected


def test_canaries_of_a_run_are_hallucinated_at_every_checkpoint() -> None:
    records = [
        asked(1, True, 100),
        asked(1, True, 200),
        asked(2, True, 100),
        asked(2, False, 200),
        asked(3, True, 200),
    ]
    found = seen(records, 100, 200)["canaries"]
    assert [(c["question"], c["invented"], c["judged"]) for c in found] == [("q001", 2, 2)]


def test_canaries_across_runs() -> None:
    old = [asked(1, True), asked(2, False), asked(3, True), asked(4, False), asked(5, True)]
    middle = [asked(1, True), asked(2, False), asked(3, True), asked(4, False), asked(6, True)]
    new = [asked(1, True), asked(2, True), asked(3, False), asked(4, False), asked(6, False)]
    found = canaries({"old": old, "middle": middle, "new": new})

    assert [one["question"] for one in found["always"]] == ["q001"]
    assert [one["question"] for one in found["newly"]] == ["q002"]
    assert [one["question"] for one in found["no_longer"]] == ["q003", "q006"]
    assert found["counts"]["never"] == 1
    assert found["not_compared"] == 1, "q005 was not judged in the last run"
    assert found["always"][0]["runs"] == {"old": [1, 1], "middle": [1, 1], "new": [1, 1]}


RUNS = st.lists(st.dictionaries(st.integers(0, 6), st.booleans()), min_size=1, max_size=4)


@settings(max_examples=60)
@given(RUNS)
def test_every_question_across_runs_is_counted_once(runs: Any) -> None:
    lives = {
        f"run{index}": [asked(number, invents) for number, invents in run.items()]
        for index, run in enumerate(runs)
    }
    found = canaries(lives)
    questions = {number for run in runs for number in run}
    assert sum(found["counts"].values()) + found["not_compared"] == len(questions)
