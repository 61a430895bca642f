"""The benchmark `change` is derived from files by program, and every question has its answer."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import msgspec
import pytest
from tests.change_history import write_change_history

from mnemoscope._store.errors import MissingData
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.change import ChangeBenchmark
from mnemoscope.datasets.change_questions import CHANGE_CATEGORIES
from mnemoscope.datasets.fact_chains import ValueSearch
from mnemoscope.text.matching import any_says, sentences
from mnemoscope.types import Memory, Question, Scenario


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_change_history(tmp_path_factory.mktemp("change"))


@pytest.fixture(scope="module")
def mini(folder: Path) -> Scenario:
    return only(ChangeBenchmark(folder))


def only(dataset: ChangeBenchmark) -> Scenario:
    [scenario] = dataset.scenarios()
    return scenario


def texts_of(scenario: Scenario) -> dict[str, str]:
    return {memory.id: memory.text for memory in scenario.memories}


def asked(scenario: Scenario, *categories: str) -> list[Question]:
    return [one for one in scenario.questions if one.category in categories]


def test_the_counts_of_a_history_written_by_hand(folder: Path) -> None:
    dataset = open_dataset("change", folder)
    [scenario] = dataset.scenarios()
    counts = Counter(question.category for question in scenario.questions)
    # Ten chains of three values, ten of two (every third comes back), forty facts in four roles.
    assert counts["twice-corrected"] == 10 + 3
    assert counts["update"] == 7
    assert counts["as-of"] == 2 * 10 + 10
    assert counts["expired-plan"] + counts["cancelled-plan"] == 10
    assert counts["known"] == counts["forgotten"] == 10
    assert counts["kept"] == counts["duplicate"] == counts["contradiction"] == 10
    assert set(counts) == set(CHANGE_CATEGORIES)
    assert dataset.counts()["memories to be forgotten"] == 10
    assert dataset.findings.counts == {}


def test_evidence_states_the_right_value_and_rivals_do_not(mini: Scenario) -> None:
    texts = texts_of(mini)
    for question in mini.questions:
        assert question.key is not None
        for right in question.key.required:
            assert any(any_says(sentences(texts[id]), right) for id in question.evidence)
        if question.category in ("duplicate", "forgotten"):
            continue
        wanted = [wording for item in question.key.required for wording in item]
        assert not any(any_says(sentences(texts[id]), wanted) for id in question.rivals)
        outdated = question.key.outdated
        assert all(any_says(sentences(texts[id]), outdated) for id in question.rivals)


def test_an_as_of_question_asks_for_a_day_on_which_the_value_was_valid(mini: Scenario) -> None:
    texts, days = texts_of(mini), {one.id: int(one.metadata["day"]) for one in mini.memories}
    fees = [one for one in asked(mini, "as-of") if "euros" in one.reference]
    assert len(fees) == 20
    for question in fees:
        [evidence] = question.evidence
        day, month = question.text.removeprefix("What did we believe on ").split(" ")[:2]
        asked_day = int(day) + (31 if month == "February" else 0)
        later = [days[id] for id in question.rivals if days[id] > days[evidence]]
        assert days[evidence] < asked_day < min(later), (question.text, texts[evidence])


def test_a_forgotten_value_stands_in_no_memory_that_stays(mini: Scenario) -> None:
    gone = set(mini.checkpoints[-1].forget)
    staying = ValueSearch(one for one in mini.memories if one.id not in gone)
    for question in asked(mini, "forgotten"):
        assert question.key is not None
        assert set(question.rivals) <= gone
        assert staying.ids(question.key.secret) == set()
        assert question.expects == "abstain"
    others = [one for one in mini.questions if one.category not in ("known", "forgotten")]
    assert all(gone.isdisjoint((*one.evidence, *one.rivals)) for one in others)


def test_requests_are_told_after_the_first_questions(mini: Scenario) -> None:
    before, after = mini.checkpoints
    requests = [place for place, one in enumerate(mini.memories) if "Please forget" in one.text]
    assert len(requests) == 10
    assert min(requests) >= before.memories
    assert before.forget == ()
    categories = {one.id: one.category for one in mini.questions}
    assert {categories[id] for id in before.questions} == {"known", "kept"}
    assert "known" not in {categories[id] for id in after.questions}
    values = [wording for one in asked(mini, "forgotten") if one.key for wording in one.key.secret]
    assert not any(any_says(sentences(mini.memories[place].text), values) for place in requests)


def test_a_request_can_be_told_without_a_call(folder: Path) -> None:
    told = only(ChangeBenchmark(folder, forgetting="told"))
    assert told.checkpoints[-1].forget == ()
    assert told.memories == only(ChangeBenchmark(folder)).memories


def test_of_two_plans_neither_the_newer_note_nor_the_older_one_is_always_right(
    mini: Scenario,
) -> None:
    place = {one.id: number for number, one in enumerate(mini.memories)}
    plans = asked(mini, "expired-plan", "cancelled-plan")
    newer = [place[one.evidence[0]] > place[one.rivals[0]] for one in plans]
    assert {True, False} == set(newer)
    texts = texts_of(mini)
    for plan in asked(mini, "cancelled-plan"):
        assert plan.key is not None
        off = [
            text for text in texts.values() if "is off." in text and plan.key.outdated[1] in text
        ]
        assert len(off) == 1


def test_ids_and_the_order_of_questions_say_nothing_about_their_kind(mini: Scenario) -> None:
    assert [one.id for one in mini.questions] == [
        f"mini-c{number:04}" for number in range(1, len(mini.questions) + 1)
    ]
    kinds = [one.category for one in mini.questions]
    assert kinds != sorted(kinds)
    # Notes are sections of a day like all others.
    notes = [one.id for one in mini.memories if "Put in the diary" in one.text]
    assert all("/principal/" in id for id in notes)


def test_questions_take_the_words_of_the_history(mini: Scenario) -> None:
    fees = [one.text for one in asked(mini, "twice-corrected") if "euros" in one.reference]
    assert "How much does one pay for Alder?" in fees
    assert "How much does one pay for Birch?" in fees  # the same question about another thing
    assert any(one.text == "What is the desk of Elm?" for one in mini.questions)


@pytest.mark.parametrize("granularity", ["session", "day"])
def test_larger_memories_have_fewer_questions_and_no_wrong_ones(
    folder: Path, granularity: str
) -> None:
    scenario = only(ChangeBenchmark(folder, granularity=granularity))  # type: ignore[arg-type]
    ids = {memory.id for memory in scenario.memories}
    gone = set(scenario.checkpoints[-1].forget)
    for question in scenario.questions:
        assert ids.issuperset((*question.evidence, *question.rivals))
        if question.category not in ("known", "forgotten"):
            assert gone.isdisjoint(question.evidence)


def test_reading_twice_gives_the_same_and_another_seed_other_roles(folder: Path) -> None:
    assert only(ChangeBenchmark(folder)) == only(ChangeBenchmark(folder))
    assert (
        only(ChangeBenchmark(folder, seed=7)).questions != only(ChangeBenchmark(folder)).questions
    )


def test_a_value_that_no_memory_states_alone_is_left_out_and_counted(tmp_path: Path) -> None:
    folder = write_change_history(tmp_path)
    log = folder / "mini" / "memories" / "day-0003.md"
    log.write_text(log.read_text().replace("100 euros", "a hundred"), encoding="utf-8")
    dataset = ChangeBenchmark(folder)
    scenario = only(dataset)
    assert dataset.findings.counts == {"not asked: no single memory of its day states the value": 1}
    assert not any("Alder" in one.text and "euros" in one.reference for one in scenario.questions)


def test_a_history_without_a_ledger_is_refused(tmp_path: Path) -> None:
    folder = write_change_history(tmp_path, entities=1)
    (folder / "mini" / "qa" / "ledger.jsonl").unlink()
    with pytest.raises(MissingData, match="needs histories with a ledger"):
        ChangeBenchmark(folder)


def test_a_value_search_finds_whole_words_in_the_right_memory() -> None:
    search = ValueSearch([Memory("a", "It costs 40 euros."), Memory("b", "140 euros; 1,400")])
    assert search.ids(["40 euros"]) == {"a"}
    assert search.ids(["1400"]) == {"b"}
    assert search.ids(["no such value"]) == set()


def test_labels_do_not_reach_the_memories(mini: Scenario) -> None:
    told = msgspec.json.encode(mini.memories).decode()
    for word in ("rival", "forgotten", "outdated", "as-of", "superseded"):
        assert word not in told
