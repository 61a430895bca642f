"""`check`: reads all, and fails on a wrong hash, on repeated ids and on leaked labels."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.base import DataFile, DatasetInfo, Findings
from mnemoscope.datasets.dataset_check import check
from mnemoscope.types import Memory, Question, Scalar, Scenario

Shared = Callable[[str], Path]


class Made:
    """A dataset made of given scenarios."""

    name = "made"
    info = DatasetInfo(name="made")
    pool_known = True
    expected_scenarios: int | None = None

    def __init__(self, *scenarios: Scenario, file: DataFile | None = None) -> None:
        self.findings = Findings()
        self.category_names: Mapping[str, str] = {}
        self.original_ids: Mapping[tuple[str, str], str] = {}
        self.options: dict[str, Scalar] = {}
        self._scenarios = scenarios
        self._files = [file] if file else []

    def files(self) -> list[DataFile]:
        return self._files

    def scenarios(self) -> Iterator[Scenario]:
        return iter(self._scenarios)

    def counts(self) -> Mapping[str, int]:
        return {"scenarios": len(self._scenarios)}


def scenario(id: str, *ids: str, text: str = "x") -> Scenario:
    memories = tuple(Memory(id, text) for id in ids)
    return Scenario(id, memories, (Question(f"{id}/q", "who?", evidence=ids[:1]),))


def test_sound_data_has_no_problems_and_is_counted() -> None:
    checked = check(Made(scenario("a", "a/1", "a/2"), scenario("b", "b/1"), scenario("c")))
    assert checked.problems == []
    assert checked.counts == {"scenarios": 3, "questions with evidence": 2}


def test_an_id_that_stands_for_two_memories_is_a_problem() -> None:
    [problem] = check(Made(scenario("a", "a/1", "a/1"))).problems
    assert problem == "memory id 'a/1' is used by 2 memories"


def test_ids_must_be_unique_across_scenarios_too() -> None:
    [problem] = check(Made(scenario("a", "m1"), scenario("b", "m1"))).problems
    assert problem == "memory id 'm1' is used by 2 memories"


def test_a_leak_is_a_problem() -> None:
    checked = check(Made(scenario("a", "a/1"), scenario("b", "b/1", text="[GOLD] yes")))
    assert checked.problems == checked.leaked
    assert "gold marker" in checked.problems[0]


def test_thousands_of_leaks_are_counted_and_ten_are_told() -> None:
    many = [f"a/{number}" for number in range(2_000)]
    checked = check(Made(scenario("a", *many, text="[GOLD] yes")))
    assert len(checked.leaked) == 2_000
    assert len(checked.problems) == 10


@pytest.mark.parametrize("subset", [False, True])
def test_a_file_as_pinned_passes(subset: bool) -> None:
    file = DataFile(Path("data.json"), "aa", pinned="aa")
    assert check(Made(scenario("a", "a/1"), file=file), subset=subset).problems == []


@pytest.mark.parametrize("subset", [False, True])
def test_a_file_without_a_pin_passes(subset: bool) -> None:
    file = DataFile(Path("data.json"), "aa")
    assert check(Made(scenario("a", "a/1"), file=file), subset=subset).problems == []


def test_another_hash_than_the_pinned_fails_unless_it_is_meant_as_a_subset() -> None:
    dataset = Made(scenario("a", "a/1"), file=DataFile(Path("x/data.json"), "bb", pinned="aa"))
    [problem] = check(dataset).problems
    assert problem.startswith("data.json: sha256 bb is not the pinned aa")
    assert "--subset" in problem
    assert check(dataset, subset=True).problems == []


def test_a_subset_may_not_leak_either() -> None:
    file = DataFile(Path("data.json"), "bb", pinned="aa")
    dataset = Made(scenario("a", "a/1", text="[GOLD] yes"), file=file)
    assert len(check(dataset, subset=True).problems) == 1


def test_locomo_passes(shared_data: Shared) -> None:
    folder = shared_data("locomo")
    checked = check(open_dataset("locomo", folder))
    assert checked.problems == []
    assert checked.counts["questions with evidence"] == 1_982
    checked = check(open_dataset("locomo", folder, {"granularity": "turn", "audit": True}))
    assert checked.problems == []
    assert [file.matches_pin for file in checked.files] == [True, True]


def test_longmemeval_oracle_passes(shared_data: Shared) -> None:
    checked = check(open_dataset("longmemeval", shared_data("longmemeval"), {"variant": "oracle"}))
    assert checked.problems == []
    assert checked.counts["questions with evidence"] == 470


def test_a_part_of_locomo_fails_and_passes_as_a_subset(shared_data: Shared, tmp_path: Path) -> None:
    samples = json.loads((shared_data("locomo") / "locomo10.json").read_text(encoding="utf-8"))
    part = tmp_path / "locomo10.json"
    part.write_text(json.dumps(samples[:2]))
    [problem] = check(open_dataset("locomo", part)).problems
    assert "is not the pinned 79fa87e90f04" in problem
    assert check(open_dataset("locomo", part), subset=True).problems == []
