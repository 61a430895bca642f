"""MemoryAgentBench Conflict_Resolution: counts of datasets-more.md §6, evidence that is derived."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import DataError
from mnemoscope.datasets.dataset_check import check
from mnemoscope.datasets.memoryagentbench import FactList, MemoryAgentBench
from mnemoscope.types import Scenario

Shared = Callable[[str], Path]
FACTS = {"6k": 455, "32k": 2_310, "64k": 4_580, "262k": 18_332}


@pytest.fixture(scope="module")
def stores(shared_data: Shared) -> tuple[MemoryAgentBench, list[Scenario]]:
    dataset = MemoryAgentBench(shared_data("memoryagentbench"))
    return dataset, list(dataset.scenarios())


def test_four_stores_serve_eight_rows(stores: tuple[MemoryAgentBench, list[Scenario]]) -> None:
    dataset, scenarios = stores
    assert {one.id: len(one.memories) for one in scenarios} == FACTS
    assert dataset.counts() == {
        "stores": 4,
        "facts": 25_677,
        "memories": 25_677,
        "questions": 800,
        "single-hop": 400,
        "multi-hop": 400,
        "multi-hop, not measured": 400,
        "evidence derived": 400,
        "questions with a conflict": 282,
    }
    [file] = dataset.files()
    assert file.matches_pin is True


def test_seven_labels_are_in_doubt(stores: tuple[MemoryAgentBench, list[Scenario]]) -> None:
    """The seven of the facts file: a later fact with the same beginning ends otherwise."""
    dataset, _ = stores
    assert dataset.findings.counts == {"label in doubt: a later fact ends otherwise": 7}
    [doubts] = dataset.findings.examples.values()
    assert "262k/sh-080 'Riyadh Region'" in doubts


def test_the_derived_fact_ends_with_the_answer_and_names_what_is_asked(
    stores: tuple[MemoryAgentBench, list[Scenario]],
) -> None:
    for scenario in stores[1]:
        texts = {memory.id: memory.text for memory in scenario.memories}
        for question in scenario.questions:
            if question.category == "multi-hop":
                assert not question.evidence
                continue
            [fact] = question.evidence
            assert texts[fact].rstrip(".").endswith(question.reference.rstrip("."))


def row(hops: str, questions: list[str], answers: list[list[str]], **more: Any) -> dict[str, Any]:
    context = (
        "Here is a list of facts:\n0. Ann works in the city of Oslo.\n"
        "1. Bob works in the city of Oslo.\n2. Ann works in the city of Rome.\n"
        "3. The company that produced Lisa is Apple Inc..\n"
    )
    source = {"source": f"factconsolidation_{hops}_6k", "qa_pair_ids": None}
    return {
        "context": context,
        "questions": questions,
        "answers": answers,
        "metadata": source,
    } | more


@pytest.fixture
def write(tmp_path: Path) -> Callable[[list[dict[str, Any]]], Path]:
    def write_rows(rows: list[dict[str, Any]]) -> Path:
        (tmp_path / "Conflict_Resolution.json").write_text(json.dumps(rows))
        return tmp_path

    return write_rows


def test_evidence_follows_the_answer_not_the_last_fact(write: Any) -> None:
    asked = ["In which city does Ann work?", "Which city does Bob work in?"]
    asked.append("What is the company that produced Lisa?")
    data = write([row("sh", asked, [["Oslo"], ["Oslo"], ["Apple Inc."]])])
    dataset = MemoryAgentBench(data)
    [scenario] = dataset.scenarios()
    assert [one.evidence for one in scenario.questions] == [
        ("6k/f00000",),
        ("6k/f00001",),
        ("6k/f00003",),
    ]
    assert dataset.conflicts == {"6k/sh-000": ("6k/f00002",)}
    assert dataset.findings.counts == {"label in doubt: a later fact ends otherwise": 1}
    assert not check(dataset, subset=True).leaked


def test_a_fact_about_something_else_is_no_evidence() -> None:
    """The trap of the rule: the right ending alone, after another subject."""
    facts = FactList(["The maker of iPod is Boeing.", "The maker of iPad is Apple."])
    assert facts.derived("Who is the maker of AppleWorks?", "Boeing") is None
    found = facts.derived("Who is the maker of iPod?", "Boeing")
    assert found is not None and found.place == 0


def test_an_answer_without_a_fact_is_asked_and_not_measured(write: Any) -> None:
    dataset = MemoryAgentBench(write([row("sh", ["Where does Eve work?"], [["Bonn"]])]))
    [scenario] = dataset.scenarios()
    assert scenario.questions[0].evidence == ()
    assert dataset.findings.counts == {"no fact answers the question, not measured": 1}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        ([row("sh", ["?"], [])], "a question without an answer"),
        ([row("sh", ["?"], [["a"]]), row("sh", ["?"], [["a"]])], "duplicate row"),
        ([row("sh", ["?"], [["a"]]), row("mh", ["?"], [["a"]], context="0. x")], "different"),
        ([row("sh", ["?"], [["a"]], context="1. x is a.")], "fact 1 where 0 is expected"),
        ([row("sh", ["?"], [["a"]], metadata={"source": "eventqa"})], "unknown source 'eventqa'"),
    ],
)
def test_other_files_are_refused(write: Any, rows: list[dict[str, Any]], problem: str) -> None:
    with pytest.raises(DataError, match=problem):
        list(MemoryAgentBench(write(rows)).scenarios())
