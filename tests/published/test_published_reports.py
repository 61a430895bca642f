"""A run is compared with its cohort only; each other number has a reason why not."""

from __future__ import annotations

import json
from typing import Any

from mnemoscope.published import load
from mnemoscope.reports.nexus_baselines import baseline_tables, baselines
from mnemoscope.reports.published_comparison import Conditions, RunFigure, page
from mnemoscope.reports.render_markdown import render

OVERALL = RunFigure("mine", 0.61, 1540, (0.58, 0.64))
MINI = Conditions("locomo", "openai:gpt-4o-mini", "gpt-4o-mini-2024-07-18", "accuracy_llm_judge")


def beside(figure: RunFigure, conditions: Conditions = MINI) -> dict[str, Any]:
    """The JSON of one figure."""
    (content,) = page([(figure, conditions)]).json["figures"]
    found: dict[str, Any] = content
    return found


def document(figure: RunFigure, most: int = 25) -> str:
    return render(page([(figure, MINI)], most=most).blocks)


def test_a_run_is_compared_with_the_numbers_of_its_cohort_only() -> None:
    figure = beside(OVERALL)
    assert len(figure["comparable"]) == 28
    assert {row["answer_model"] for row in figure["comparable"]} == {"gpt-4o-mini"}
    head, _, rest = document(OVERALL).partition("Not comparable")
    assert "| **mine** | **0.6100** | [0.5800, 0.6400] | this run |" in head
    assert "OmniMemEval run" not in head
    assert "answering model: gpt-4.1-mini" in rest


def test_every_number_that_is_not_comparable_has_a_reason() -> None:
    figure = beside(OVERALL, MINI._replace(benchmark="LoCoMo"))
    overalls = [row for row in load() if row.benchmark == "LoCoMo" and row.category is None]
    assert len(figure["comparable"]) + len(figure["not_comparable"]) == len(overalls)
    assert all(row["because"] for row in figure["not_comparable"])
    reasons = " ".join(row["because"] for row in figure["not_comparable"])
    for reason in ("judge: unstated", "metric: token F1", "questions: session"):
        assert reason in reasons


def test_a_category_is_compared_with_that_category() -> None:
    content = beside(RunFigure("mine", 0.5, 96, None, category=3))
    assert content["cohort"]["description"].startswith("LoCoMo · category 3 open-domain")
    assert len(content["comparable"]) == 17
    assert {row["n"] for row in content["comparable"]} == {96}


def test_a_part_of_the_questions_is_not_comparable() -> None:
    few = RunFigure("mine", 0.61, 10, (0.58, 0.64))
    assert beside(few)["comparable"] == []
    assert "The registry contains no published number of this cohort" in document(few)


def test_retrieval_is_compared_by_granularity_haystack_and_kind_of_recall() -> None:
    variant = "session level, per conversation (n=1977)"
    conditions = Conditions("LoCoMo", "none", "none", "recall_any@10", variant)
    content = beside(RunFigure("mine", 0.95, 1977, None), conditions)
    assert [row["system"] for row in content["comparable"]] == ["BM25 floor (computed here)"]


def test_the_page_is_short_and_the_json_complete() -> None:
    others = beside(OVERALL)["not_comparable"]
    alike = [row for row in others if "metric: " not in row["because"]]
    assert f"published.json has {len(alike) - 3:,} more." in document(OVERALL, most=3)
    assert len(json.loads(json.dumps(others))) > 100


def test_a_retracted_number_is_marked() -> None:
    line = next(line for line in document(OVERALL).splitlines() if "0.8461" in line)
    assert "(retracted)" in line


def test_the_seven_groups_have_the_keys_of_the_nexus_report() -> None:
    tables = baseline_tables()
    assert {key: len(rows) for key, rows in tables.items()} == {
        "baselines": 15,
        "consolidation_baselines": 5,
        "knowledge_graph_baselines": 16,
        "reflective_memory_baselines": 11,
        "graphrag_bench_baselines": 5,
        "cognee_baselines": 4,
        "rlm_baselines": 5,
    }
    numbers = sum(len(row.metrics) for rows in tables.values() for row in rows)
    assert numbers == 131


def test_a_column_of_one_cohort_has_no_marks_and_a_mixed_one_marks_every_number() -> None:
    core, *_, rlm = render(baselines()).split("### ")[1:]
    accuracy = [line.split("|")[2].strip() for line in core.splitlines() if line.startswith("| ")]
    numbers = [cell for cell in accuracy[2:] if cell != "--"]
    assert len(numbers) == 8
    assert all(cell.endswith("]") for cell in numbers)
    graphrag = render(baselines()).split("### GraphRAG-Bench")[1].split("###")[0]
    assert "[" not in graphrag
    assert "0.620 [1]" in rlm and "0.9133 [2]" in rlm
