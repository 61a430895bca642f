"""The files in Recall Bench's format, and the sections of report.md on checkpoints."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from mnemoscope.analysis.recall_bench_format import (
    Header,
    failure_line,
    progress_checkpoint,
    progress_header,
    progress_summary,
    question_line,
    result,
)
from mnemoscope.reports.longitudinal_report import sections
from mnemoscope.reports.render_markdown import render
from mnemoscope.types import CORE_CATEGORIES, GROUP_CATEGORIES, Score, Verdict

NOW = "2026-01-02T03:04:05Z"
HEADER = Header("bm25", judge_model="ledger", sample=50)


def test_result_has_the_shape_of_the_reference(make_history: Callable[..., Any]) -> None:
    history = make_history(
        3, personas=("ada", "bob"), categories=(*CORE_CATEGORIES, *GROUP_CATEGORIES)
    )
    content = result(
        history.records,
        history.plan,
        HEADER,
        timestamp=NOW,
        duration_ms=9,
        ingest_ms={"ada": 4.0},
    )
    assert list(content) == [
        "timestamp", "adapterName", "ranges", "personas", "heatmap", "metadata",
        "disclosureBreakdown",
    ]  # fmt: skip
    assert content["ranges"][0] == {"label": "7d", "days": 7}
    ada = content["personas"][0]
    assert ada["personaId"] == "ada"
    assert ada["totalIngestionMs"] == 4.0
    assert ada["totalQueryMs"] == 10.0 * 3 * 20
    assert ada["totalEvalsRun"] == 60
    assert ada["uniqueQAPairCount"] == 20
    first = ada["rangeResults"][0]
    assert first["range"] == {"label": "7d", "days": 7}
    assert [cell["category"] for cell in first["categoryScores"]] == [
        *CORE_CATEGORIES,
        *GROUP_CATEGORIES,
    ]
    assert len(first["categoryScores"][0]["scores"]) == 2
    assert set(first["questionResults"][0]) == {
        "checkpoint", "status", "qa", "systemAnswer", "score", "compositeScore", "latencyMs",
    }  # fmt: skip
    assert content["metadata"]["judgeModel"] == "ledger"
    assert "embeddingModel" not in content["metadata"]
    assert content["metadata"]["totalEvalsRun"] == 120
    assert content["disclosureBreakdown"]["refuse"]["evaluations"] == 12
    assert json.loads(msgspec.json.encode(content)) == json.loads(json.dumps(content))


def test_result_and_metrics_have_the_same_figures(make_history: Callable[..., Any]) -> None:
    history = make_history(
        3, personas=("ada", "bob"), unasked=frozenset({(0, 3)}), failed=frozenset({(1, 2)})
    )
    content = result(history.records, history.plan, HEADER, timestamp=NOW, duration_ms=0)
    figures = history.figures
    cells = {(cell["range"], cell["category"]): cell for cell in content["heatmap"]}
    for point in figures["checkpoints"]:
        for name, figure in point["categories"].items():
            cell = cells[point["label"], name]
            assert cell["questionCount"] == figure["n"]
            assert cell["eligibleCount"] == figure["eligible"]
            assert cell["score"] == (None if figure["n"] == 0 else pytest.approx(figure["mean"]))
    for persona in content["personas"]:
        for own, point in zip(
            persona["rangeResults"], figures["personas"][persona["personaId"]], strict=True
        ):
            assert own["overallScore"] == pytest.approx(point["overall"]["mean"])
            assert own["hallucinationRate"] == pytest.approx(100 * point["hallucination"]["rate"])
            assert own["questionsEvaluated"] == point["judged"]
            assert own["questionsFailed"] == point["failed"]


def test_progress_lines(make_history: Callable[..., Any]) -> None:
    history = make_history(3)
    head = progress_header(HEADER, history.plan, timestamp=NOW)
    assert (head["type"], head["timestamp"], head["sample"]) == ("header", NOW, 50)
    line = progress_checkpoint(
        history.records, history.plan["ada"], 1, "ada", timestamp=NOW, ingest_ms=3.0
    )
    assert (line["checkpointIndex"], line["totalCheckpoints"]) == (2, 3)
    assert (line["daysIngested"], line["newDaysIngested"]) == (14, 7)
    assert (line["newQuestionCount"], line["historicalEvaluated"]) == (4, 12)
    assert line["difficultyScores"]["easy"]["count"] == 16
    assert line["difficultyScores"]["hard"] == {"mean": None, "count": 0}
    assert "scores" not in line["categoryScores"][0]
    summary = progress_summary(history.records, timestamp=NOW, duration_ms=7.0)
    assert summary == {
        "type": "summary",
        "timestamp": NOW,
        "durationMs": 7.0,
        "totalEvalsRun": 48,
        "uniqueQAPairCount": 16,
        "appellateInvocations": 0,
    }


def test_a_question_line_has_the_checkpoint_and_the_status(
    make_history: Callable[..., Any],
) -> None:
    history = make_history(1, failed=frozenset({(0, 1)}))
    answered = question_line(history.records[0], timestamp=NOW)
    assert (answered["checkpoint"], answered["status"]) == ("7d", "answered")
    assert answered["qa"]["relevantDays"] == [1]
    assert answered["retrieval"] == {"ids": ["m1", "m0"], "firstEvidenceRank": 2}
    assert answered["composite"] == sum(answered["score"].values())
    assert answered["usedAppellate"] is False
    timeout = question_line(history.records[2], timestamp=NOW)
    assert (timeout["status"], timeout["score"], timeout["composite"]) == ("timeout", None, None)
    assert timeout["systemAnswer"] == ""


def test_boundary_questions_say_what_was_expected(make_history: Callable[..., Any]) -> None:
    history = make_history(1, categories=(GROUP_CATEGORIES[1],))
    qa = question_line(history.records[0], timestamp=NOW)["qa"]
    assert qa["expectedDisclosure"] == "refuse"
    assert qa["querySession"] == "main"
    assert qa["forbiddenSessions"] == ["board"]


@pytest.mark.parametrize(
    ("final", "fails"),
    [
        (Score(3, 2, 1), False),
        (Score(2, 1, 1), False),
        (Score(1, 1, 1), True),
        (Score(3, 2, 0), True),
        (Score(0, 2, 1), True),
    ],
)
def test_a_failure_is_what_still_fails_after_the_appeal(
    make_history: Callable[..., Any], final: Score, fails: bool
) -> None:
    record = make_history(1).records[0]
    primary = Score(0, 0, 0, "wrong")
    appealed = record._replace(verdict=Verdict("ada", "q00", final, primary=primary))
    line = failure_line(appealed, timestamp=NOW)
    assert (line is not None) == fails
    if line:
        assert line["primaryScore"]["reasoning"] == "wrong"
        assert line["appellateScore"]["correctness"] == final.correctness
    assert question_line(appealed, timestamp=NOW)["usedAppellate"] is True


def test_a_question_that_could_not_be_asked_is_not_a_failed_answer(
    make_history: Callable[..., Any],
) -> None:
    assert (
        failure_line(make_history(1, failed=frozenset({(0, 0)})).records[0], timestamp=NOW) is None
    )


def test_the_page_has_every_cell_and_every_section(make_history: Callable[..., Any]) -> None:
    history = make_history(
        4,
        personas=("ada", "bob"),
        unasked=frozenset({(0, 3)}),
        failed=frozenset({(1, 2)}),
        categories=(*CORE_CATEGORIES, *GROUP_CATEGORIES),
    )
    figures = history.figures
    page = render(sections(figures, pictures=[("the heatmap", "heatmap.png")]))
    assert "![the heatmap](heatmap.png)" in page
    for name in figures["categories"]:
        line = next(line for line in page.splitlines() if line.startswith(f"| {name} |"))
        means = [point["categories"][name]["mean"] for point in figures["checkpoints"]]
        shown = ["--" if mean is None else f"{mean:.1f}" for mean in means]
        assert line == f"| {name} | " + " | ".join(shown) + " |"
    for title in (
        "Intervals", "At the last checkpoint, 28d", "By persona", "Hallucination",
        "Disclosure in boundary questions", "How to read the tables",
    ):  # fmt: skip
        assert f"### {title}" in page
    assert "4 (4 timeout)" in page
    assert "Recall against hallucination: correlation" in page


def test_a_long_sweep_is_elided_in_the_page(make_history: Callable[..., Any]) -> None:
    page = render(sections(make_history(40).figures))
    assert "29 of 40 checkpoints are left out here." in page
    head = next(line for line in page.splitlines() if line.startswith("| category |"))
    assert head.count("d |") == 11
    assert "| … |" in head


def test_one_checkpoint_has_no_trend_and_no_correlation(make_history: Callable[..., Any]) -> None:
    page = render(sections(make_history(1).figures))
    assert "No trend of the rate" in page
    assert "no correlation" in page
    assert "nan" not in page
