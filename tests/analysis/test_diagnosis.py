"""Failed answers: each gets the class of the first step that lost the evidence."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.analysis.diagnosis import (
    BOUNDARY,
    CLASSES,
    CONFABULATED,
    CUT,
    DOUBTFUL,
    NO_EVIDENCE,
    NOT_INGESTED,
    NOT_RECALLED,
    PARTLY_RECALLED,
    UNSEEN,
    WRONG,
    classify,
    diagnose,
    in_hand,
    receipts_of,
)
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.types import (
    Answer,
    Expectation,
    Grade,
    Ingestion,
    Question,
    Receipt,
    Score,
    Status,
    Trial,
    Verdict,
)


def failure(
    ranking: tuple[str, ...] = ("m1", "m2", "m3"),
    *,
    id: str = "q",
    evidence: tuple[str, ...] = ("m1", "m2"),
    reachable: int | None = None,
    sources: dict[str, tuple[str, ...]] | None = None,
    shown: int | None = None,
    grade: Grade | Score | None = Grade(0.0),
    primary: Grade | None = None,
    text: str = "the wrong thing",
    reference: str = "a red bicycle",
    expects: Expectation = "answer",
    status: Status = "answered",
    category: str = "",
) -> QuestionRecord:
    question = Question(
        id, "What?", reference=reference, evidence=evidence, expects=expects, category=category
    )
    about = ("s", id)
    trial = Trial(
        *about,
        "answered",
        evidence=evidence,
        reachable=len(evidence) if reachable is None else reachable,
        ranking=ranking,
        sources=sources or {},
    )
    verdict = Verdict(
        *about,
        score=grade if isinstance(grade, Score) else None,
        grade=grade if isinstance(grade, Grade) else None,
        primary_grade=primary,
    )
    return QuestionRecord(
        question, trial, Answer(*about, status, text, shown=shown), verdict, about[0]
    )


def test_passed_and_unjudged_answers_are_not_failures() -> None:
    assert classify(failure(grade=Grade(1.0))) is None
    assert classify(failure(grade=None)) is None
    assert classify(failure(status="error")) is None


def test_evidence_that_the_system_rejected_was_not_ingested() -> None:
    assert classify(failure(), Receipt(rejected={"m2": "too long"})) == NOT_INGESTED
    assert classify(failure(), Receipt(rejected={"m9": "too long"})) == WRONG


def test_evidence_that_exists_nowhere_was_not_ingested_unless_some_was_recalled() -> None:
    assert classify(failure(("m8", "m9"), reachable=1)) == NOT_INGESTED
    assert classify(failure(("m1", "m9"), reachable=1)) == PARTLY_RECALLED


def test_evidence_was_not_ingested_where_all_of_it_was_truncated() -> None:
    assert classify(failure(), Receipt(truncated={"m1": 0.5, "m2": 0.9})) == NOT_INGESTED
    assert classify(failure(), Receipt(truncated={"m1": 0.5})) == WRONG


def test_evidence_not_in_the_ranking_was_not_recalled() -> None:
    assert classify(failure(("m8", "m9"))) == NOT_RECALLED
    assert classify(failure(())) == NOT_RECALLED
    assert classify(failure(("m2",))) == PARTLY_RECALLED


def test_a_hit_made_from_the_evidence_has_recalled_it() -> None:
    assert classify(failure(("x",), sources={"x": ("m1", "m2")})) == WRONG
    assert classify(failure(("x",), sources={"x": ("m1",)})) == PARTLY_RECALLED


def test_evidence_beyond_what_the_reader_was_shown_was_cut() -> None:
    assert classify(failure(("m1", "m9", "m2"), shown=2)) == CUT
    assert classify(failure(("m1", "m9", "m2"), shown=3)) == WRONG
    assert classify(failure(("m1", "m9", "m9", "m2"), shown=3)) == WRONG


def test_a_judge_of_the_panel_who_passes_the_answer_makes_the_verdict_doubtful() -> None:
    split = Grade(0.0, votes={"a": 1.0, "b": 0.0, "c": 0.0})
    assert classify(failure(grade=split)) == DOUBTFUL
    assert classify(failure(grade=Grade(0.0, votes={"a": 0.0, "b": 0.0}))) == WRONG
    assert classify(failure(grade=Score(1, 1, 1, votes={"a": 2 / 6, "b": 4 / 6}))) == DOUBTFUL
    assert classify(failure(grade=Score(1, 1, 1, votes={"a": 2 / 6, "b": 3 / 6}))) == WRONG


def test_an_appeal_that_changed_the_mark_makes_the_verdict_doubtful() -> None:
    assert classify(failure(grade=Grade(0.4), primary=Grade(0.0))) == DOUBTFUL
    assert classify(failure(grade=Grade(0.0), primary=Grade(0.0, "so"))) == WRONG


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("She bought the red bicycles.", "A red bicycle", DOUBTFUL),
        ("She bought a blue bicycle.", "A red bicycle", WRONG),
        ("It was 240 of them", "24", WRONG),
        ("No, never", "no", DOUBTFUL),
        ("anything", "", WRONG),
    ],
)
def test_a_failed_answer_with_every_word_of_the_reference_is_doubtful(
    text: str, reference: str, expected: str
) -> None:
    assert classify(failure(text=text, reference=reference)) == expected


def test_lost_evidence_comes_before_a_doubtful_verdict() -> None:
    assert classify(failure(("m9",), text="a red bicycle")) == NOT_RECALLED


def test_failures_without_evidence_or_without_an_answer_have_separate_classes() -> None:
    assert classify(failure(evidence=())) == NO_EVIDENCE
    assert classify(failure(expects="abstain")) == CONFABULATED
    assert classify(failure(expects="refuse")) == BOUNDARY


def test_a_correct_abstention_that_was_failed_is_a_doubtful_verdict() -> None:
    assert classify(failure(expects="abstain", status="abstained")) == DOUBTFUL


def test_a_system_that_answers_by_itself_does_not_count_as_having_the_evidence() -> None:
    alone = failure()._replace(trial=None)
    assert classify(alone) == UNSEEN
    assert not in_hand(alone)
    assert classify(alone, Receipt(rejected={"m1": "no"})) == NOT_INGESTED
    cited = Answer("s", "q", "answered", "wrong", sources=("m2", "m1"))
    assert classify(alone._replace(answer=cited)) == WRONG


def test_counts_examples_and_the_share_that_had_the_evidence_in_hand() -> None:
    rows = [
        *(failure(id=f"w{n}", category="1") for n in range(7)),
        failure(("m9",), id="lost", category="2"),
        failure(id="right", grade=Grade(1.0), category="2"),
        failure(id="made up", expects="abstain", evidence=(), category="5"),
    ]
    result = diagnose(rows, {"s": Receipt()})
    assert (result["judged"], result["failures"]) == (10, 9)
    assert result["classes"][WRONG]["count"] == 7
    assert result["classes"][WRONG]["examples"] == ["w0", "w1", "w2", "w3", "w4"]
    assert result["by_category"] == {
        "1": {WRONG: 7},
        "2": {NOT_RECALLED: 1},
        "5": {CONFABULATED: 1},
    }
    assert (result["in_hand"]["count"], result["in_hand"]["n"]) == (7, 8)
    assert list(result["classes"]) == list(CLASSES)


def test_a_scenarios_last_receipt_is_the_one_that_counts() -> None:
    receipts = receipts_of(
        [Ingestion("s", 1), Ingestion("s", 2, Receipt(rejected={"m1": "full"}), checkpoint="x")]
    )
    assert diagnose([failure()], receipts)["classes"][NOT_INGESTED]["count"] == 1


IDS = st.lists(st.sampled_from(["m1", "m2", "m3", "m4"]), max_size=4, unique=True).map(tuple)


@st.composite
def many(draw: st.DrawFn) -> list[QuestionRecord]:
    expected: list[Expectation] = ["answer", "answer", "abstain", "refuse"]
    return [
        failure(
            draw(IDS),
            id=f"q{number:02}",
            evidence=draw(IDS),
            shown=draw(st.one_of(st.none(), st.integers(0, 4))),
            grade=Grade(draw(st.sampled_from([0.0, 0.4, 1.0]))),
            expects=draw(st.sampled_from(expected)),
            category=draw(st.sampled_from(["1", "2"])),
        )
        for number in range(draw(st.integers(0, 10)))
    ]


@settings(max_examples=80, deadline=None)
@given(many(), st.dictionaries(st.sampled_from(["m1", "m2"]), st.just("no")), st.integers())
def test_class_counts_sum_to_the_failures_in_whatever_order(
    rows: list[QuestionRecord], rejected: dict[str, str], seed: int
) -> None:
    receipts = {"s": Receipt(rejected=rejected)}
    result = diagnose(rows, receipts)
    failures = sum(row.final is not None and row.final.fails for row in rows)
    assert result["failures"] == failures
    assert sum(own["count"] for own in result["classes"].values()) == failures
    crossed = sum(sum(own.values()) for own in result["by_category"].values())
    assert crossed == failures
    assert result["in_hand"]["count"] <= failures
    assert diagnose(random.Random(seed).sample(rows, len(rows)), receipts) == result
