"""The leakage scan: every way in which a label can reach a system is found, clean data is clean."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from mnemoscope.datasets.leakage import TEXT_MARKERS, leaks
from mnemoscope.datasets.locomo import Locomo
from mnemoscope.datasets.longmemeval import LongMemEval
from mnemoscope.datasets.strata import Strata
from mnemoscope.types import Memory, Question, Scenario

Shared = Callable[[str], Path]


def scenario(*memories: Memory, evidence: tuple[str, ...] = ()) -> Scenario:
    return Scenario("s1", memories, (Question("q", "who?", evidence=evidence),))


def found(*memories: Memory, evidence: tuple[str, ...] = ()) -> list[str]:
    return list(leaks(scenario(*memories, evidence=evidence)))


@pytest.mark.parametrize("marker", TEXT_MARKERS)
def test_a_gold_marker_in_a_text_is_a_leak(marker: str) -> None:
    [leak] = found(Memory("m1", "nothing"), Memory("m2", f"Ann said {marker} yes"))
    assert leak == f"memory m2: its text contains the gold marker {marker!r}"


def test_a_gold_marker_in_a_speakers_name_is_a_leak() -> None:
    [leak] = found(Memory("m1", "x", speaker="Ann [gold]"), Memory("m2", "x", speaker="Gold"))
    assert leak == "memory m1: its speaker contains the gold marker '[gold]'"


@pytest.mark.parametrize(
    "id",
    # The last one has an s that is equal to ours without its case only.
    ["answer_280352e9", "c/gold/1", "evidence", "relevant-7", "gold3", "c/GOLD", "An\u017fwer-1"],
)
def test_an_id_that_names_a_label_is_a_leak(id: str) -> None:
    [leak] = found(Memory("m1", "x"), Memory(id, "x"))
    assert leak == f"memory {id}: its id {id!r} names a label"


def test_a_session_that_names_a_label_is_a_leak() -> None:
    [leak] = found(Memory("m1", "x", session="answer_280352e9"))
    assert leak == "memory m1: its session 'answer_280352e9' names a label"


@pytest.mark.parametrize(
    "field", ["has_answer", "answer_session_ids", "is_evidence", "gold", "Relevant", "qrels"]
)
def test_a_metadata_field_that_names_a_label_is_a_leak(field: str) -> None:
    [leak] = found(Memory("m1", "x", metadata={"tags": "answer", field: False}))
    assert leak == f"memory m1: its metadata field {field!r} names a label"


def test_an_id_pattern_that_only_evidence_has_is_a_leak() -> None:
    hay = [Memory(f"haystack_{number}", "x") for number in range(9)]
    needles = [Memory(f"needle_{number}", "x") for number in range(5)]
    [leak] = found(*hay, *needles, evidence=tuple(memory.id for memory in needles))
    assert leak == "scenario s1: all evidence ids, and only they, contain 'needle'"


def test_an_id_pattern_is_looked_for_behind_the_scenarios_name() -> None:
    ids = ["talk/noise1", "talk/noise2", *(f"talk/truth{number}" for number in range(5))]
    [leak] = found(*(Memory(id, "x") for id in ids), evidence=tuple(ids[2:]))
    assert "'truth'" in leak


def test_a_pattern_in_a_few_ids_may_be_chance() -> None:
    """Four memories of one's own may well be the only ones that begin with the same word."""
    ids = ["hay1", "hay2", "needle1", "needle2", "needle3", "needle4"]
    assert found(*(Memory(id, "x") for id in ids), evidence=tuple(ids[2:])) == []


@pytest.mark.parametrize(
    ("ids", "evidence"),
    [
        (("s000", "s001", "s002"), ("s001",)),
        (("conv-1/D1", "conv-1/D2"), ("conv-1/D2",)),
        (("note_1", "note_2", "mail_1"), ("note_2",)),  # other notes are no evidence
        (("note_1", "mail_1", "page_1"), ("note_1", "mail_1")),  # evidence of two kinds
        (("note_1", "note_2"), ("note_1", "note_2")),  # all is evidence
        (("note_1", "mail_1"), ()),
        (("goldfish-1", "answering_machine", "irrelevant"), ()),
    ],
)
def test_neutral_ids_are_clean(ids: tuple[str, ...], evidence: tuple[str, ...]) -> None:
    assert found(*(Memory(id, "x") for id in ids), evidence=evidence) == []


def test_numbers_as_evidence_beside_worded_ids_have_no_word_that_could_tell() -> None:
    ids = [*(f"note_{number}" for number in range(4)), *map(str, range(6))]
    assert found(*(Memory(id, "x") for id in ids), evidence=tuple(ids[4:])) == []


def test_ordinary_text_is_not_a_leak() -> None:
    text = "My answer is: the evidence was gold, relevant -> and it has an answer."
    assert found(Memory("m1", text, speaker="Ann", metadata={"importance": 1, "tags": "x"})) == []


def test_every_leak_of_a_scenario_is_found() -> None:
    memories = [Memory("gold_1", "[EVIDENCE] x", session="gold_1", metadata={"gold": True})]
    assert len(found(*memories)) == 4


@pytest.mark.parametrize(
    "options", [{}, {"granularity": "turn"}, {"dates": True, "captions": True, "scope": "dataset"}]
)
def test_locomo_is_clean(shared_data: Shared, options: dict[str, Any]) -> None:
    dataset = Locomo(shared_data("locomo"), **options)
    assert [leak for one in dataset.scenarios() for leak in leaks(one)] == []


@pytest.mark.parametrize("granularity", ["session", "round", "turn"])
def test_longmemeval_oracle_is_clean(shared_data: Shared, granularity: Any) -> None:
    dataset = LongMemEval(shared_data("longmemeval"), variant="oracle", granularity=granularity)
    assert [leak for one in dataset.scenarios() for leak in leaks(one)] == []


def test_the_example_corpus_is_clean() -> None:
    folder = Path(__file__).parents[2] / "examples" / "strata"
    assert [leak for one in Strata(folder).scenarios() for leak in leaks(one)] == []


def test_the_files_own_session_ids_would_be_found(shared_data: Shared) -> None:
    """The scan is not blind: with LongMemEval's own ids, every question is refused."""
    dataset = LongMemEval(shared_data("longmemeval"), variant="oracle")
    for one in islice(dataset.scenarios(), 20):
        own = {ours: theirs for (name, theirs), ours in dataset.original_ids.items()}
        named = [Memory(own[memory.id], memory.text) for memory in one.memories]
        assert len(found(*named)) >= len(named)
