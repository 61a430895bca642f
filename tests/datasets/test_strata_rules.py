"""The rules of the strata: computed from the texts, whatever the files say about themselves."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from mnemoscope.datasets.strata import Strata
from mnemoscope.datasets.strata_rules import (
    ANSWERED,
    FEWER,
    HAS_GOLD,
    NO_RARE,
    NOT_EARLIER,
    NOT_JOINED,
    NOTHING_EARLIER,
    OTHER_SUBJECT,
    OVERLAP,
    SAME_TEXT,
    SEVERAL,
    TOP,
    BrokenRule,
    StrataRules,
    StratumQuestion,
    withheld_strata,
)
from mnemoscope.systems.builtin.fts5 import Fts5
from mnemoscope.types import Memory, Query

EXAMPLE = Path(__file__).parents[2] / "examples" / "strata"
FERRY = "The ferry to Lindholm leaves at nine, and Marta keeps the tickets in the red folder."
LONG = (
    "On Sunday we drove to the quarry with two cars. The gate was locked, so Petra walked around "
    "the fence and found a gap near the pump house. Inside, the water was green and very cold. "
    "We ate bread and cheese on the stones, and Jonas drew the old crane in his notebook. Later a "
    "guard came, wrote down our names and told us never to climb over there again."
)
MEMORIES = [
    Memory("m1", FERRY, at=datetime(2024, 3, 1, tzinfo=UTC)),
    Memory("m2", LONG, at=datetime(2024, 3, 2, tzinfo=UTC)),
    Memory(
        "m3", "Our van has a broken clutch and stands at the garage in Lindholm.", speaker="Marta"
    ),
    Memory("m4", "The van got a new clutch and is ready.", at=datetime(2024, 3, 2, tzinfo=UTC)),
    Memory("m5", f"{FERRY}!"),
    Memory("m6", "Rain all day."),
    Memory("m7", "Bread, milk, eggs."),
]


@pytest.fixture(scope="module")
def rules() -> StrataRules:
    return StrataRules(MEMORIES)


def broken(
    rules: StrataRules,
    stratum: str,
    text: str,
    *gold: str,
    superseded: tuple[str, ...] = (),
) -> list[str]:
    question = StratumQuestion("q", text, stratum, gold, superseded)
    return [one.rule for one in rules.broken(question)]


def test_an_exact_question_needs_the_top_hit_and_a_rare_word(rules: StrataRules) -> None:
    assert broken(rules, "exact", "Who keeps the ferry tickets?", "m1") == []
    assert broken(rules, "exact", "Where is the crane?", "m1") == [TOP, NO_RARE]


def test_a_twin_may_be_the_top_hit_and_a_stranger_may_not_be_gold(rules: StrataRules) -> None:
    assert broken(rules, "exact", "ferry tickets", "m5", "m1") == []
    assert broken(rules, "exact", "ferry tickets", "m1", "m2") == [SEVERAL]


def test_the_top_hit_is_that_of_the_built_in_full_text_search() -> None:
    [scenario] = (dataset := Strata(EXAMPLE)).scenarios()
    system, rules = Fts5(), StrataRules(scenario.memories)
    system.reset("strata")
    system.remember(scenario.memories)
    for question in scenario.questions:
        [hit] = system.recall(Query(question.text), 1)
        assert rules._search.top(question.text) == hit.id
    assert not dataset.broken
    assert not dataset.withheld


@pytest.mark.parametrize(
    ("text", "gold"),
    [
        pytest.param(FERRY, "m1", id="verbatim"),
        pytest.param("\u200b".join(FERRY), "m1", id="zero-width spaces"),
        pytest.param(FERRY.replace("e", "e\u00ad"), "m1", id="soft hyphens"),
        pytest.param(FERRY.replace("e", "\u0435").replace("a", "\u0430"), "m1", id="Cyrillic"),
        pytest.param(FERRY.replace("e", "e\u0323"), "m1", id="combining marks"),
        pytest.param(
            "Green water is cold inside; old crane, bread, cheese, stones?", "m2", id="shuffled"
        ),
        pytest.param(
            "Is it a fact that the gate was locked so Petra yodelled gladly beneath umbrellas, "
            "typewriters, lanterns, volcanoes, saxophones, parliaments, glaciers, and bicycles?",
            "m2",
            id="a quotation with padding",
        ),
    ],
)
def test_a_copy_is_no_paraphrase(rules: StrataRules, text: str, gold: str) -> None:
    assert broken(rules, "paraphrase", text, gold) == [OVERLAP]


def test_a_paraphrase_has_other_words(rules: StrataRules) -> None:
    assert broken(rules, "paraphrase", "When does the boat depart?", "m1") == []
    assert rules.overlap("When does the boat depart?", "m1") == 0.0


def test_the_keywords_of_a_memory_count_as_its_words() -> None:
    memory = Memory("k", "The van is ready.", metadata={"expanded_keywords": "boat depart"})
    rules = StrataRules([memory, *MEMORIES])
    assert broken(rules, "paraphrase", "When does the boat depart?", "k") == [OVERLAP]


def test_several_hops_need_distinct_memories_that_something_joins(rules: StrataRules) -> None:
    ask = "Why does Marta not drive to the island?"
    assert broken(rules, "multihop", ask, "m1", "m3") == []  # Lindholm
    assert broken(rules, "multihop", ask, "m2", "m4") == []  # one day
    assert broken(rules, "multihop", ask, "m1", "m5") == [FEWER]  # twins
    assert broken(rules, "multihop", ask, "m1") == [FEWER]
    assert broken(rules, "multihop", ask, "m1", "m7") == [NOT_JOINED]


def test_an_update_supersedes_something_earlier_about_the_same(rules: StrataRules) -> None:
    ask = "How is the van?"
    assert broken(rules, "update", ask, "m4", superseded=("m3",)) == []
    assert broken(rules, "update", ask, "m4") == [NOTHING_EARLIER]
    assert broken(rules, "update", ask, "m3", superseded=("m4",)) == [NOT_EARLIER]
    assert broken(rules, "update", ask, "m4", superseded=("m1",)) == [OTHER_SUBJECT]
    assert broken(rules, "update", ask, "m5", superseded=("m1",)) == [SAME_TEXT]


def test_what_a_memory_answers_is_not_absent(rules: StrataRules) -> None:
    assert broken(rules, "absent", "What did Marta say about the submarine?") == []
    assert broken(rules, "absent", "Who keeps the ferry tickets?") == [ANSWERED]
    assert broken(rules, "absent", "What did Marta say about the clutch?") == [ANSWERED]
    assert broken(rules, "absent", "What was that?") == [ANSWERED]
    assert broken(rules, "absent", "What about the submarine?", "m1") == [HAS_GOLD]


def test_the_reason_counts_each_question_once() -> None:
    asked = [StratumQuestion(f"q{n}", "", "paraphrase", ("m1",)) for n in range(3)]
    found = [BrokenRule(id, "paraphrase", OVERLAP, "") for id in ("q0", "q0", "q2")]
    assert withheld_strata(asked, found) == {
        "paraphrase": "2 of 3 questions of paraphrase share too many words with their memory"
    }


def test_a_question_of_many_words_can_be_checked(rules: StrataRules) -> None:
    text = " ".join(f"word{number}" for number in range(5_000)) + ' ferry "tickets" \0 Lindholm'
    assert broken(rules, "exact", text, "m1") == []


def test_a_recorded_overlap_is_not_believed(tmp_path: Path) -> None:
    corpus = [{"id": memory.id, "content": memory.text} for memory in MEMORIES]
    query = {"query_id": "p", "text": FERRY, "stratum": "paraphrase", "_jaccard": 0.02}
    qrels = {"query_id": "p", "relevant_ids": ["m1"]}
    for name, rows in (("corpus", corpus), ("queries", [query]), ("qrels", [qrels])):
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    dataset = Strata(tmp_path)
    assert [len(scenario.questions) for scenario in dataset.scenarios()] == [1]
    assert [one.question for one in dataset.broken] == ["p"]
    assert list(dataset.withheld) == ["paraphrase"]
