"""A run stands beside its own cohort; everything else says why it may not."""

from __future__ import annotations

import json

from mnemoscope.published import load
from mnemoscope.reports.nexus_baselines import baseline_markdown, baseline_tables
from mnemoscope.reports.published_comparison import beside

OVERALL = {"system": "mine", "value": 0.61, "n": 1540, "ci95": (0.58, 0.64)}
MINI = ("openai:gpt-4o-mini", "gpt-4o-mini-2024-07-18", "accuracy_llm_judge")


def test_a_run_stands_among_the_numbers_of_its_cohort_only() -> None:
    page = beside([OVERALL], "locomo", *MINI)
    (figure,) = page.json["figures"]
    assert len(figure["comparable"]) == 28
    assert {row["answer_model"] for row in figure["comparable"]} == {"gpt-4o-mini"}
    head, _, rest = page.markdown.partition("Not comparable")
    assert "| **mine** | **0.6100** | [0.5800, 0.6400] | this run |" in head
    assert "OmniMemEval run" not in head
    assert "answering model: gpt-4.1-mini" in rest


def test_every_number_that_may_not_be_compared_says_why() -> None:
    (figure,) = beside([OVERALL], "LoCoMo", *MINI).json["figures"]
    overalls = [row for row in load() if row.benchmark == "LoCoMo" and row.category is None]
    assert len(figure["comparable"]) + len(figure["not_comparable"]) == len(overalls)
    assert all(row["because"] for row in figure["not_comparable"])
    reasons = " ".join(row["because"] for row in figure["not_comparable"])
    for reason in ("judge: unstated", "metric: token F1", "questions: session"):
        assert reason in reasons


def test_a_category_is_set_beside_that_category() -> None:
    figure = {"system": "mine", "value": 0.5, "n": 96, "category": 3}
    (content,) = beside([figure], "LoCoMo", *MINI).json["figures"]
    assert content["cohort"]["description"].startswith("LoCoMo · category 3 open-domain")
    assert len(content["comparable"]) == 17
    assert {row["n"] for row in content["comparable"]} == {96}


def test_a_part_of_the_questions_is_comparable_with_nobody() -> None:
    page = beside([{**OVERALL, "n": 10}], "LoCoMo", *MINI)
    assert page.json["figures"][0]["comparable"] == []
    assert "Nobody published a number of this cohort" in page.markdown


def test_retrieval_is_compared_by_granularity_haystack_and_kind_of_recall() -> None:
    variant = "session level, per conversation (n=1977)"
    figure = {"system": "mine", "value": 0.95, "n": 1977}
    args = ("LoCoMo", "none", "none", "recall_any@10")
    (content,) = beside([figure], *args, variant=variant).json["figures"]
    assert [row["system"] for row in content["comparable"]] == ["BM25 floor (computed here)"]


def test_the_page_is_short_and_its_json_whole() -> None:
    page = beside([OVERALL], "LoCoMo", *MINI, most=3)
    others = page.json["figures"][0]["not_comparable"]
    assert f"{len(others) - 3:,} more are in the JSON." in page.markdown
    assert len(json.loads(json.dumps(page.json))["figures"][0]["not_comparable"]) > 100


def test_a_retracted_number_is_marked() -> None:
    line = next(
        line
        for line in beside([OVERALL], "LoCoMo", *MINI).markdown.splitlines()
        if "0.8461" in line
    )
    assert "(retracted)" in line


def test_the_seven_groups_stand_under_the_keys_of_the_seeds_report() -> None:
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
    numbers = sum(len(row["metrics"]) for rows in tables.values() for row in rows)
    assert numbers == 131


def test_a_column_of_one_cohort_has_no_marks_and_a_mixed_one_marks_every_number() -> None:
    core, *_, rlm = baseline_markdown().split("### ")[1:]
    accuracy = [line.split("|")[2].strip() for line in core.splitlines() if line.startswith("| ")]
    numbers = [cell for cell in accuracy[2:] if cell != "--"]
    assert len(numbers) == 8
    assert all(cell.endswith("]") for cell in numbers)
    graphrag = baseline_markdown().split("### GraphRAG-Bench")[1].split("###")[0]
    assert "[" not in graphrag
    assert "0.620 [1]" in rlm and "0.9133 [2]" in rlm
