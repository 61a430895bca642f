"""The executive assistant's real 180 days: counts, quirks, order and plain BM25.

Facts: ../shared/spec/recall-bench.md §2.4 (order) and §2.9 (counts, defects, BM25).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.spec import Spec
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.persona_folder import problems
from mnemoscope.datasets.personas import Personas
from mnemoscope.runner.run import run
from mnemoscope.systems.loader import plan
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]
Figures = dict[str, dict[str, Any]]
DST_BEGINS = 67
"""2026-03-08; from then to the last day, 180, there are 114 days."""


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One that no test has opened in this process: SQLite does not survive a fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("recall-bench-cache")))
        yield


@pytest.fixture(scope="module")
def assistant(shared_data: Shared) -> Personas:
    return Personas(shared_data("recall-bench"), ranges="6-180/6", sample=50)


@pytest.fixture(scope="module")
def life(assistant: Personas) -> Scenario:
    [scenario] = assistant.scenarios()
    return scenario


def test_days_questions_and_categories_are_as_many_as_the_facts_say(
    assistant: Personas, life: Scenario
) -> None:
    counts = assistant.counts()
    assert counts["days"] == len(life.memories) == 180
    assert counts["questions"] == len(life.questions) == 316
    facts = {
        "factual-recall": 144,
        "negative-recall": 52,
        "decision-tracking": 32,
        "synthesis": 32,
        "contradiction-resolution": 19,
        "cross-reference": 17,
        "recency-bias-resistance": 10,
        "temporal-reasoning": 6,
        "information-boundary": 4,
        "easy": 202,
        "medium": 105,
        "hard": 9,
        "questions that expire": 14,
    }
    assert {name: counts[name] for name in facts} == facts
    assert "group-session-attribution" not in counts
    assert assistant.findings.examples["category without a question"] == [
        "executive-assistant: group-session-attribution"
    ]


def test_unquoted_dates_in_answers_stay_text(life: Scenario) -> None:
    by_id = {question.id: question.reference for question in life.questions}
    assert by_id["executive-assistant-q181"] == "2026-04-30"
    assert by_id["executive-assistant-q265"] == "2026-06-19"


def test_boundary_questions_expect_a_refusal(life: Scenario) -> None:
    boundary = [q for q in life.questions if q.category == "information-boundary"]
    assert {question.expects for question in boundary} == {"refuse"}
    assert all(question.forbidden for question in boundary)


def test_the_logs_lose_a_day_while_daylight_saving_time_is_on(
    assistant: Personas, life: Scenario
) -> None:
    """108 of 114 days, as the facts say. The six others also name their own date, as the day of
    something due (67 names nothing else). One day before that, 13, counts as late: it names its
    own date nowhere, but twice tomorrow's appointment."""
    counts = assistant.findings.counts
    assert counts["date in the text is a day early"] == 108
    assert counts["date in the text is a day late"] == 1
    early = assistant.findings.examples["date in the text is a day early"]
    assert all(int(place[24:28]) >= DST_BEGINS for place in early)
    assert early[0] == "executive-assistant/day-0068, which is 2026-03-09"
    late = assistant.findings.examples["date in the text is a day late"]
    assert late == ["executive-assistant/day-0013, which is 2026-01-13"]


def test_half_of_the_questions_name_a_whole_week_as_evidence(
    assistant: Personas, life: Scenario
) -> None:
    """159, as the facts say, name seven days in a row and no others. Four more, which the facts
    do not count, name 17 to 20 days: the boundary questions, asked over a month."""
    counts = assistant.findings.counts
    assert counts["evidence is a whole week of consecutive days"] == 159
    assert counts["evidence is more than a week of consecutive days"] == 4


def test_questions_phrased_in_day_numbers_are_found(assistant: Personas, life: Scenario) -> None:
    assert assistant.findings.counts["question names day numbers"] == 21


def test_every_evidence_day_is_there_and_nothing_leaks(assistant: Personas, life: Scenario) -> None:
    assert assistant.findings.counts["relevant day without a log"] == 0
    assert all(question.evidence for question in life.questions)
    assert check(assistant).problems == []
    assert problems(assistant.folders[0].arcs.parent) == []
    assert not assistant.has_ledger


@pytest.mark.parametrize(("granularity", "memories"), [("session", 834), ("section", 2_980)])
def test_days_fall_into_as_many_sessions_and_sections(
    shared_data: Shared, granularity: str, memories: int
) -> None:
    dataset = open_dataset("personas", shared_data("recall-bench"), {"granularity": granularity})
    [scenario] = dataset.scenarios()
    assert len(scenario.memories) == memories
    assert len({memory.part_of for memory in scenario.memories}) == 180


def test_the_first_published_checkpoint_asks_in_the_published_order(life: Scenario) -> None:
    """The 180-day profile: every 6 days, seed 42, a sample of 50."""
    assert len(life.checkpoints) == 30
    first = life.checkpoints[0]
    asked = [id.removeprefix("executive-assistant-") for id in first.questions]
    assert first.label == "6d"
    assert asked == ["q002", "q001", "q005", "q006", "q003", "q004"]


def test_no_later_checkpoint_asks_more_than_fifty_again(life: Scenario) -> None:
    for checkpoint in life.checkpoints:
        again = len(checkpoint.questions) - checkpoint.new
        assert again == min(50, checkpoint.historical)
    assert life.checkpoints[-1].historical > 200


@pytest.fixture(scope="module")
def figures(shared_data: Shared, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figures]:
    """All 316 questions over all 180 days, a day being the unit."""
    dataset = open_dataset("personas", shared_data("recall-bench"), {"ranges": "none"})
    plans = [plan(Spec.parse(spec)) for spec in ("bm25,tokens=plain", "bm25")]
    runs = run(dataset, plans, tmp_path_factory.mktemp("recall-bench"))
    return {
        one.label: json.loads((one.path / "metrics.json").read_text())["overall"] for one in runs
    }


def test_plain_bm25_gives_the_published_figures(figures: dict[str, Figures]) -> None:
    """Published 0.519 and 0.315; the published mean reciprocal rank knows no cut at 50."""
    plain = figures["bm25,tokens=plain"]
    assert plain["hit@10"]["n"] == 316
    assert plain["hit@10"]["mean"] == pytest.approx(0.519, abs=0.005)
    assert plain["mrr@50"]["mean"] == pytest.approx(0.315, abs=0.005)
    assert round(plain["hit@10"]["mean"], 4) == 0.5190
    assert round(plain["mrr@50"]["mean"], 4) == 0.3126


def test_our_default_bm25_finds_less_on_these_long_days(figures: dict[str, Figures]) -> None:
    """Measured beside it: stems without stop words lose 15 of 164 hits and gain some rank."""
    stems = figures["bm25"]
    assert stems["hit@10"]["n"] == 316
    assert round(stems["hit@10"]["mean"], 4) == 0.4715
    assert round(stems["mrr@50"]["mean"], 4) == 0.3149
