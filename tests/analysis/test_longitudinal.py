"""longitudinal.json: pooled means, intervals, and failures left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.analysis import longitudinal as module
from mnemoscope.analysis.longitudinal import columns, status_of
from mnemoscope.analysis.question_records import Plan, QuestionRecord
from mnemoscope.types import (
    CORE_CATEGORIES,
    GROUP_CATEGORIES,
    Answer,
    Checkpoint,
    Expectation,
    Question,
    Score,
    Status,
    Trial,
    Verdict,
)

LABELS = ("30d", "90d")


def longitudinal(*arguments: Any, **options: Any) -> dict[str, Any]:
    """Return the figures as plain data, as in longitudinal.json."""
    found: Any = module.longitudinal(*arguments, **options)
    return dict(found)


Marks = tuple[int, int, int] | None


def asked(
    persona: str,
    label: str,
    number: int,
    marks: Marks,
    category: str = CORE_CATEGORIES[0],
    *,
    cluster: str = "",
    expects: Expectation = "answer",
) -> QuestionRecord:
    question = Question(
        f"q{number}",
        "What?",
        category=category,
        cluster=cluster,
        difficulty="easy",
        expects=expects,
        evidence=("m0",),
    )
    trial = Trial(persona, question.id, "answered", evidence=("m0",), ranking=("m1", "m0"))
    answer = Answer(persona, question.id, "answered", "That.")
    verdict = Verdict(persona, question.id, Score(*marks) if marks else None)
    return QuestionRecord(question, trial, answer, verdict, persona, label)


def plan_for(*personas: str, labels: tuple[str, ...] = LABELS) -> Plan:
    return {
        persona: [
            Checkpoint(label, int(label[:-1]), 0, (), eligible={CORE_CATEGORIES[0]: 7})
            for label in labels
        ]
        for persona in personas
    }


MARKS = st.none() | st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1))
LIVES = st.lists(
    st.tuples(
        st.sampled_from(("a", "b")),
        st.sampled_from(LABELS),
        st.sampled_from((CORE_CATEGORIES[0], CORE_CATEGORIES[1], GROUP_CATEGORIES[0])),
        MARKS,
    ),
    max_size=25,
)


def live(rows: list[tuple[str, str, str, Marks]]) -> list[QuestionRecord]:
    return [
        asked(persona, label, number, marks, category, cluster=f"c{number % 5}")
        for number, (persona, label, category, marks) in enumerate(rows)
    ]


@settings(max_examples=40)
@given(LIVES)
def test_a_cell_over_all_personas_is_their_mean_weighted_by_count(rows: Any) -> None:
    figures = longitudinal(live(rows), plan_for("a", "b"))
    for index, point in enumerate(figures["checkpoints"]):
        for name, cell in point["categories"].items():
            parts = [own[index]["categories"][name] for own in figures["personas"].values()]
            assert cell["n"] == sum(part["n"] for part in parts)
            assert cell["eligible"] == sum(part["eligible"] for part in parts)
            if cell["n"]:
                weighted = sum(part["n"] * (part["mean"] or 0) for part in parts) / cell["n"]
                assert cell["mean"] == pytest.approx(weighted)


@settings(max_examples=40)
@given(LIVES)
def test_every_mean_lies_in_its_interval_its_bounds_and_its_scale(rows: Any) -> None:
    for point in longitudinal(live(rows), plan_for("a", "b"))["checkpoints"]:
        scales = [(point["overall"], 6), (point["recall_quality"], 5)]
        scales += [(cell, 6) for cell in point["categories"].values()]
        for figure, best in scales:
            assert (figure["mean"] is None) == (figure["n"] == 0) == (figure["ci95"] is None)
            if figure["n"]:
                low, high = figure["ci95"]
                assert 0 <= low <= figure["mean"] <= high <= best
                assert low < high
        rate = point["hallucination"]
        if rate["n"]:
            assert rate["ci95"][0] <= rate["rate"] <= rate["ci95"][1]
        if point["failed"] and rate["n"]:
            assert rate["bounds"][0] <= rate["rate"] <= rate["bounds"][1]
            assert point["overall"]["bounds"][0] <= point["overall"]["mean"]
            assert point["overall"]["bounds"][1] == point["overall"]["mean"]
        assert point["judged"] + point["failed"] == point["asked"]
        assert sum(point["statuses"].values()) == point["asked"]


@given(LIVES)
def test_composite_is_recall_quality_plus_no_hallucination(rows: Any) -> None:
    for point in longitudinal(live(rows), plan_for("a", "b"))["checkpoints"]:
        if point["judged"]:
            grounded = 1 - point["hallucination"]["rate"]
            parts = point["recall_quality"]["mean"] + grounded
            assert point["overall"]["mean"] == pytest.approx(parts)


def test_figures_by_hand() -> None:
    records = [
        asked("a", "30d", 1, (3, 2, 1)),
        asked("a", "30d", 2, (1, 0, 0)),
        asked("a", "30d", 3, (0, 0, 1), CORE_CATEGORIES[7]),
    ]
    first, second = longitudinal(records, plan_for("a"))["checkpoints"]
    assert first["overall"]["mean"] == pytest.approx(8 / 3)
    assert first["recall_quality"]["mean"] == 2
    assert first["hallucination"]["rate"] == pytest.approx(1 / 3)
    assert first["categories"][CORE_CATEGORIES[0]]["mean"] == 3.5
    assert first["categories"][CORE_CATEGORIES[7]]["mean"] == 1
    assert first["difficulties"]["easy"]["n"] == 3
    assert first["retrieval"]["hit@10"]["mean"] == 1
    assert first["ingested_days"] == 30
    assert second["overall"] == {"mean": None, "n": 0, "ci95": None}
    assert "bounds" not in first["overall"]


def test_a_failed_question_is_left_out_and_bounds_give_its_effect() -> None:
    timeout = asked("a", "30d", 9, None)._replace(
        trial=Trial("a", "q9", "timeout"), answer=None, verdict=None
    )
    records = [asked("a", "30d", 1, (3, 2, 1)), asked("a", "30d", 2, (2, 1, 0)), timeout]
    point = longitudinal(records, plan_for("a"))["checkpoints"][0]
    assert point["overall"]["mean"] == 4.5
    assert point["overall"]["bounds"] == [3.0, 4.5]
    assert point["hallucination"]["bounds"] == pytest.approx([1 / 3, 2 / 3])
    assert point["statuses"] == {"answered": 2, "timeout": 1}
    assert (point["asked"], point["judged"], point["failed"]) == (3, 2, 1)


@pytest.mark.parametrize("status", ["error", "timeout", "not-indexed"])
def test_no_score_counts_where_the_answer_failed(status: Status) -> None:
    record = asked("a", "30d", 1, (0, 0, 0))._replace(answer=Answer("a", "q1", status))
    assert record.score is None
    assert status_of(record) == status


def test_an_answer_that_stands_in_for_a_timeout_is_judged_as_text() -> None:
    record = asked("a", "30d", 1, (0, 0, 1))._replace(trial=Trial("a", "q1", "timeout"))
    assert record.score == Score(0, 0, 1)


def test_an_answer_without_a_score_is_unjudged() -> None:
    assert status_of(asked("a", "30d", 1, None)) == "unjudged"


def test_an_answer_without_a_judge_has_not_failed() -> None:
    record = asked("a", "30d", 1, (1, 1, 1))._replace(verdict=None)
    assert status_of(record) == "answered"
    point = longitudinal([record], plan_for("a"))["checkpoints"][0]
    assert (point["judged"], point["failed"]) == (0, 0)


def test_equal_scores_still_give_an_interval() -> None:
    records = [asked("a", "30d", number, (3, 2, 1)) for number in range(4)]
    low, high = longitudinal(records, plan_for("a"))["checkpoints"][0]["overall"]["ci95"]
    assert low < 4
    assert high == 6


def test_questions_that_share_a_history_widen_the_interval() -> None:
    marks: list[Marks] = [(3, 2, 1) if number < 20 else (0, 0, 0) for number in range(40)]
    alone = [asked("a", "30d", n, m, cluster=f"c{n}") for n, m in enumerate(marks)]
    together = [asked("a", "30d", n, m, cluster=f"c{n // 5}") for n, m in enumerate(marks)]
    wide = [
        end["ci95"][1] - end["ci95"][0]
        for records in (alone, together)
        for end in [longitudinal(records, plan_for("a"))["checkpoints"][0]["overall"]]
    ]
    assert wide[1] > 1.5 * wide[0]


def test_group_categories_appear_only_if_they_were_asked() -> None:
    without = longitudinal([asked("a", "30d", 1, (3, 2, 1))], plan_for("a"))
    asking = longitudinal([asked("a", "30d", 1, (3, 2, 1), GROUP_CATEGORIES[1])], plan_for("a"))
    assert without["categories"] == list(CORE_CATEGORIES)
    assert asking["categories"] == [*CORE_CATEGORIES, GROUP_CATEGORIES[1]]


def test_disclosure_counts_answers_and_pairs_of_boundary_questions_alone() -> None:
    records = [
        asked("a", "30d", 1, (3, 2, 1), GROUP_CATEGORIES[1], expects="refuse"),
        asked("a", "90d", 1, (0, 0, 0), GROUP_CATEGORIES[1], expects="refuse"),
        asked("a", "90d", 2, None, GROUP_CATEGORIES[1], expects="partial"),
        asked("a", "90d", 3, (3, 2, 1), CORE_CATEGORIES[0]),
    ]
    result = longitudinal(records, plan_for("a"))["disclosure"]
    assert list(result) == ["refuse", "partial"]
    assert result["refuse"]["evaluations"] == 2
    assert result["refuse"]["unique_pairs"] == 1
    assert result["refuse"]["score"]["mean"] == 3
    assert result["refuse"]["hallucination"]["rate"] == 0.5
    assert result["partial"]["evaluations"] == 0


def test_repeating_a_question_does_not_narrow_the_interval() -> None:
    once = [
        asked("a", "30d", n, (3, 2, n % 2), GROUP_CATEGORIES[1], expects="refuse") for n in range(8)
    ]
    twice = once + [record._replace(checkpoint="90d") for record in once]
    intervals = [
        longitudinal(records, plan_for("a"))["disclosure"]["refuse"]["hallucination"]["ci95"]
        for records in (once, twice)
    ]
    assert intervals[0] == intervals[1]


def test_checkpoints_of_all_personas_stand_in_the_order_of_their_days() -> None:
    plan = {**plan_for("a", labels=("30d", "400d")), **plan_for("b", labels=("30d", "90d"))}
    found = columns(plan)
    assert [column.label for column in found] == ["30d", "90d", "400d"]
    assert found[0].eligible[CORE_CATEGORIES[0]] == 14


def test_a_record_outside_the_planned_checkpoints_is_an_error() -> None:
    with pytest.raises(ValueError, match="q1 is recorded at checkpoint '5d' of a"):
        longitudinal([asked("a", "5d", 1, (3, 2, 1))], plan_for("a"))


def test_the_same_records_give_the_same_figures() -> None:
    records = [asked("a", "30d", n, (n % 4, n % 3, n % 2), cluster=f"c{n}") for n in range(30)]
    assert longitudinal(records, plan_for("a")) == longitudinal(records, plan_for("a"))


def test_hit_at_ten_is_bounded_if_fewer_hits_were_asked_for() -> None:
    found = Trial("a", "q1", "answered", evidence=("x",), reachable=1, pool=9, ranking=("x", "y"))
    missed = Trial("a", "q2", "answered", evidence=("z",), reachable=1, pool=9, ranking=("x", "y"))
    ended = Trial("a", "q3", "answered", evidence=("z",), reachable=1, pool=9, ranking=("x",))
    records = [
        QuestionRecord(Question(one.question, "?"), one, scenario="a", checkpoint="30d")
        for one in (found, missed, ended)
    ]

    def hits(depth: int) -> Any:
        figures = longitudinal(records, plan_for("a"), depth=depth)
        return figures["checkpoints"][0]["retrieval"]["hit@10"]

    assert hits(2)["mean"] is None
    assert hits(2)["bounds"] == [pytest.approx(1 / 3), pytest.approx(2 / 3)]
    assert hits(10)["mean"] == pytest.approx(1 / 3)
