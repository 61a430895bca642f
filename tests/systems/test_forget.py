"""Forgetting: what is gone is gone, and the rest is ranked as if it had never been there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from mnemoscope._store.spec import Spec
from mnemoscope.systems import BUILT_IN
from mnemoscope.systems.builtin.fts5 import Fts5
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.types import Hit, Memory, Question, Selector

SPECS = (
    "none",
    "random",
    "recency",
    "oracle",
    "full-context",
    "fts5",
    "fts5,variant=product",
    "bm25",
    "dense",
    "hybrid",
    "hybrid,fusion=rrf",
    "hybrid,graph=0.5",
    "scoped",
    "multigrain",
    "multigrain,chunk=3,passage=2",
    "graph",
)
TEXTS = (
    "Anna adopted a dog called Rex last spring.",
    "Rex the dog swallowed a silver key on Tuesday.",
    "Bob plays chess in the park every Sunday.",
    "The weather in Oslo is cold and windy.",
    "Carla bought a second-hand piano from her uncle Bob.",
    "Train tickets to Rome cost forty euros.",
    "The recipe needs three eggs and some flour.",
    "Dmitri teaches violin and piano at the music school.",
    "The garden wall was painted green again by Anna.",
    "Eve lost her umbrella at the station in Oslo.",
)
MEMORIES = tuple(Memory(f"m{number}", text) for number, text in enumerate(TEXTS))
GONE = Selector((MEMORIES[1], MEMORIES[4], MEMORIES[9]))
REST = tuple(memory for memory in MEMORIES if memory.id not in GONE.ids)
EVERYTHING = Selector(MEMORIES)

Rankings = list[list[Hit]]


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("forget-cache")))
        yield


@cache
def shared(spec: str) -> Driver:
    """A model takes a while to load; a new scope is a fresh start, which other tests show."""
    return Driver(plan(Spec.parse(spec)).build)


def knowing(spec: str, memories: Sequence[Memory]) -> Driver:
    driver = shared(spec)
    driver.begin("scope")
    driver.remember(memories)
    return driver


def rankings(driver: Driver) -> Rankings:
    """The hits for the words of each memory; the oracle gets the memory as evidence."""
    asked = [Question("q", memory.text, evidence=(memory.id,)) for memory in MEMORIES]
    return [driver.recall(question, 50) for question in asked]


def ids(found: Rankings) -> set[str]:
    return {hit.id for hits in found for hit in hits}


def test_every_built_in_system_is_tested_here_for_forgetting() -> None:
    assert {Spec.parse(spec).name for spec in SPECS} == set(BUILT_IN)


@pytest.mark.parametrize("spec", SPECS)
def test_forgotten_memories_are_not_recalled_and_do_not_affect_the_rest(
    spec: str,
) -> None:
    never = rankings(knowing(spec, REST))
    driver = knowing(spec, MEMORIES)
    before = rankings(driver)
    assert driver.can("forget")

    driver.forget(GONE)

    after = rankings(driver)
    assert after == never
    assert not ids(after) & GONE.ids
    assert spec == "none" or ids(before) >= GONE.ids


@pytest.mark.parametrize("spec", SPECS)
def test_a_copy_forgets_without_the_original_and_the_original_without_the_copy(spec: str) -> None:
    never = rankings(knowing(spec, REST))
    original = knowing(spec, MEMORIES)
    whole = rankings(original)

    forgetful, faithful = original.fork(), original.fork()
    forgetful.forget(GONE)
    assert rankings(original) == whole
    assert rankings(forgetful) == never

    original.forget(GONE)
    assert rankings(faithful) == whole
    assert rankings(original) == never


@pytest.mark.parametrize("spec", SPECS)
def test_what_is_remembered_after_forgetting_is_ranked_with_the_rest(spec: str) -> None:
    new = (Memory("n0", "Rex the dog was found in Oslo."), Memory("n1", "A piano stands in Rome."))
    never = knowing(spec, REST)
    never.remember(new)
    expected = rankings(never)
    driver = knowing(spec, MEMORIES)

    driver.forget(GONE)
    driver.remember(new)

    assert rankings(driver) == expected


@pytest.mark.parametrize("spec", SPECS)
def test_a_system_can_forget_everything_and_remember_again(spec: str) -> None:
    expected = rankings(knowing(spec, REST))
    driver = knowing(spec, MEMORIES)

    driver.forget(EVERYTHING)
    assert ids(rankings(driver)) == set()
    driver.counted()

    driver.remember(REST)
    assert rankings(driver) == expected


@pytest.mark.parametrize("spec", SPECS)
def test_forgetting_an_unknown_memory_changes_nothing(spec: str) -> None:
    driver = knowing(spec, MEMORIES)
    before = rankings(driver)

    driver.forget(Selector((Memory("stranger", TEXTS[0]),)))

    assert rankings(driver) == before


def test_fts5_leaves_no_forgotten_word_in_the_database() -> None:
    system = Fts5()
    system.reset("scope")
    system.remember(MEMORIES)
    assert b"umbrella" in system._db.serialize()

    system.forget(GONE)

    left = system._db.serialize()
    assert b"umbrella" not in left
    assert b"swallow" not in left
    assert b"violin" in left


def test_scored_systems_keep_no_forgotten_memory_or_word() -> None:
    words = {"swallow", "umbrella"}
    for spec in ("bm25", "dense", "graph", "hybrid,graph=0.5", "multigrain"):
        driver = knowing(spec, MEMORIES)
        before = _held(driver._system)
        assert before >= GONE.ids
        assert spec == "dense" or before >= words

        driver.forget(GONE)
        assert not _held(driver._system) & (GONE.ids | words), spec

        driver.forget(EVERYTHING)
        assert not _held(driver._system) & {memory.id for memory in MEMORIES}, spec
        assert "piano" not in _held(driver._system), spec


def _held(system: object) -> set[str]:
    """All ids and words in the system, without the caches of tokens and vectors by content."""
    found: set[str] = set()
    queue: list[Any] = [system]
    seen: set[int] = set()
    while queue:
        value = queue.pop()
        if id(value) in seen or isinstance(value, np.ndarray | type):
            continue
        seen.add(id(value))
        if isinstance(value, str):
            found.add(value)
        elif isinstance(value, Memory):
            found.add(value.id)
        elif isinstance(value, dict):
            queue += [*value.keys(), *value.values()]
        elif isinstance(value, list | tuple | set):
            queue += value
        elif type(value).__module__.startswith(("mnemoscope.systems", "bm25s")):
            queue += [own for name, own in vars(value).items() if name not in ("_tokens", "_cache")]
    return found


class Forgetful:
    """Forgets only when it is ready, as an index that is rebuilt in the background does."""

    def __init__(self) -> None:
        self.kept: list[str] = []
        self.dropped: frozenset[str] = frozenset()

    def remember(self, memories: Sequence[Memory]) -> None:
        self.kept += [memory.id for memory in memories]

    async def forget(self, selector: Selector) -> None:
        self.dropped = selector.ids

    def ready(self) -> None:
        self.kept = [id for id in self.kept if id not in self.dropped]

    def recall(self, query: object, k: int) -> list[str]:
        return self.kept[:k]


class Stubborn:
    def recall(self, query: object, k: int) -> list[str]:
        return []


def test_the_driver_awaits_forgetting_and_waits_until_the_system_is_ready() -> None:
    driver = Driver(Forgetful)
    driver.begin("scope")
    driver.remember(MEMORIES)

    driver.forget(GONE)

    assert [hit.id for hit in driver.recall(Question("q", "?"), 50)] == [m.id for m in REST]


def test_the_driver_recognises_a_system_without_forget() -> None:
    driver = Driver(Stubborn)
    driver.begin("scope")
    assert not driver.can("forget")
