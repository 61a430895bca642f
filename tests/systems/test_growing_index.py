"""Indexes that grow: however the memories arrive, every score has the bits of a fresh index."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope._store.spec import Spec
from mnemoscope.systems.builtin.bm25_index import Bm25Index
from mnemoscope.systems.builtin.growing_array import GrowingArray
from mnemoscope.systems.builtin.growing_list import GrowingList
from mnemoscope.systems.builtin.scored import _SORT_ALL, Scored, best_places
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query, Selector

WORDS = ("anna", "rex", "piano", "oslo", "train", "key", "garden", "violin", "egg", "umbrella")
SYSTEMS = (
    "bm25",
    "bm25,k1=0.9,b=0.4",
    "dense",
    "hybrid",
    "hybrid,fusion=rrf",
    "multigrain,chunk=5,passage=2",
    "graph",
)
documents = st.lists(st.sampled_from(WORDS), max_size=8)


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("growing-cache")))
        yield


def by_bm25s(corpus: Sequence[list[str]], query: list[str], k1: float, b: float) -> Any:
    if not any(corpus):
        return np.zeros(len(corpus), dtype=np.float32)
    import bm25s

    index = bm25s.BM25(k1=k1, b=b)
    index.index(list(corpus), show_progress=False)
    return index.get_scores_from_ids(index.get_tokens_ids(query))


@given(
    batches=st.lists(st.lists(documents, max_size=6), max_size=6),
    query=documents,
    k1=st.sampled_from((0.0, 0.9, 1.5, 2)),
    b=st.sampled_from((0, 0.4, 0.75, 1.0)),
    forgets=st.lists(st.integers(0, 35), max_size=6),
    steps=st.lists(st.booleans(), min_size=6, max_size=6),
)
@settings(deadline=None, max_examples=150)
def test_any_batches_and_removals_give_the_bits_of_bm25s(
    batches: list[list[list[str]]],
    query: list[str],
    k1: float,
    b: float,
    forgets: list[int],
    steps: list[bool],
) -> None:
    index, corpus = Bm25Index(k1, b), []
    for batch, removes in zip(batches, steps, strict=False):
        index.add(batch)
        corpus += batch
        if forgets and removes:
            kept = np.array([place not in forgets for place in range(len(corpus))], dtype=bool)
            index.keep(kept)
            corpus = [own for own, stays in zip(corpus, kept, strict=True) if stays]
        expected = by_bm25s(corpus, query, k1, b)
        assert index.scores(query).tobytes() == expected.tobytes()


def test_a_large_vocabulary_in_many_batches_gives_the_bits_of_bm25s() -> None:
    import bm25s

    draw = np.random.default_rng(7)
    corpus = [[f"w{n}" for n in draw.zipf(1.3, draw.integers(0, 60)) % 4000] for _ in range(1500)]
    index = Bm25Index(1.5, 0.75)
    for start in range(0, len(corpus), 7):
        index.add(corpus[start : start + 7])
    whole = bm25s.BM25(k1=1.5, b=0.75)
    whole.index(corpus, show_progress=False)
    for query in corpus[:60]:
        if query:
            expected = whole.get_scores_from_ids(whole.get_tokens_ids(query))
            assert index.scores(query).tobytes() == expected.tobytes()
    # Merges keep the segments few: each is at least twice as long as the next.
    sizes = [len(segment.keys) for segment in index._segments]
    assert all(one >= 2 * other for one, other in itertools.pairwise(sizes))


@pytest.mark.parametrize("size", [40, 1000, 1001])
def test_many_queries_of_one_batch_give_the_bits_of_bm25s(size: int) -> None:
    """After some words all are scored at once, and few documents have a score each."""
    import bm25s

    draw = np.random.default_rng(3)
    corpus = [[f"w{n}" for n in draw.zipf(1.3, draw.integers(1, 60)) % 900] for _ in range(size)]
    index = Bm25Index(1.5, 0.75)
    index.add(corpus)
    whole = bm25s.BM25(k1=1.5, b=0.75)
    whole.index(corpus, show_progress=False)
    for query in corpus[:40]:
        expected = whole.get_scores_from_ids(whole.get_tokens_ids(query))
        assert index.scores(query).tobytes() == expected.tobytes()
    assert index._all is not None
    twin = index.fork()
    twin.add([["w1", "new"]])
    assert index.scores(["new"]).tobytes() == bytes(4 * size)
    assert twin.scores(["new"])[-1] > 0


@cache
def shared(spec: str) -> Scored:
    system = plan(Spec.parse(spec)).build()
    assert isinstance(system, Scored)
    return system


def scores_of(system: Scored, queries: Sequence[str]) -> list[bytes]:
    system.ready()
    return [system.scores(Query(text)).tobytes() for text in queries] if system.memories else []


@pytest.mark.parametrize("spec", SYSTEMS)
@given(
    steps=st.lists(st.integers(1, 5) | st.sets(st.integers(0, 20), max_size=4), max_size=7),
    forked=st.booleans(),
)
@settings(deadline=None, max_examples=12)
def test_any_steps_of_a_system_give_the_bits_of_one_batch(
    spec: str, steps: list[int | set[int]], forked: bool
) -> None:
    texts = [" ".join(WORDS[(n * step) % 10] for step in range(1, n % 7 + 2)) for n in range(40)]
    texts[5] = "Anna met Rex. " * 150  # several chunks
    system, held, given_ = shared(spec), list[Memory](), 0
    queries = ("the dog Rex of Anna", "piano in Oslo", "violin violin umbrella")
    system.reset("scope")
    for step in steps:
        before = system
        was = scores_of(before, queries)
        if forked:
            system = system.fork()
        if isinstance(step, int):
            numbers = range(given_, given_ + step)
            new = [Memory(f"m{n}", texts[n], session=f"s{n // 4}") for n in numbers]
            system.remember(new)
            held, given_ = [*held, *new], given_ + step
        else:
            gone = Selector(tuple(memory for n, memory in enumerate(held) if n in step))
            system.forget(gone)
            held = [memory for memory in held if memory.id not in gone.ids]
        grown = scores_of(system, queries)
        if forked:
            assert scores_of(before, queries) == was
    grown = scores_of(system, queries)
    hits = [system.recall(Query(text), 10) for text in queries]

    system.reset("scope")
    system.remember(held)
    assert scores_of(system, queries) == grown
    assert [system.recall(Query(text), 10) for text in queries] == hits


@pytest.mark.parametrize("spec", ["bm25", "dense", "hybrid", "multigrain", "graph"])
def test_each_memory_is_indexed_once_however_often_the_system_is_asked(spec: str) -> None:
    system = plan(Spec.parse(f"{spec},cache=false")).build()
    system.reset("scope")
    for number in range(30):
        system.remember([Memory(f"m{number}", f"memory number {number} of Anna")])
        system.fork().recall(Query("Anna"), 5)
    counters = system.stats()
    indexes = {"hybrid": 2, "multigrain": 5}.get(spec, 1)
    assert counters["index_operations"] == 30 * indexes
    read = ("texts_tokenised", "tokens_reused", "texts_embedded", "vectors_reused")
    assert sum(counters.get(name, 0) for name in read) == 30 * indexes


@given(
    values=st.lists(st.sampled_from((0.0, 0.25, 0.5, -np.inf, -1.0)), min_size=1, max_size=40),
    k=st.integers(0, 50),
    floor=st.sampled_from((0.0, -np.inf)),
)
@settings(deadline=None, max_examples=60)
def test_the_best_of_many_are_those_of_a_stable_sort(
    values: list[float], k: int, floor: float
) -> None:
    scores = np.resize(np.array(values, dtype=np.float32), _SORT_ALL + 37)
    order = np.argsort(-scores, kind="stable")[:k]
    expected = order[scores[order] > floor]
    assert best_places(scores, k, floor).tolist() == expected.tolist()


def test_forks_of_a_growing_sequence_do_not_see_each_other() -> None:
    array, items = GrowingArray(np.int32), GrowingList("ab")
    array.append(np.arange(3))
    array.reserve(10)
    other, its = array.fork(), items.fork()
    array.append(np.array([7]))
    other.append(np.array([8, 9]))
    items.extend("c")
    its.extend("de")
    third = its.fork()
    its.extend("f")
    assert (array.values.tolist(), other.values.tolist()) == ([0, 1, 2, 7], [0, 1, 2, 8, 9])
    assert (list(items), list(its), list(third)) == (list("abc"), list("abdef"), list("abde"))
    array.keep(array.values > 1)
    assert (array.values.tolist(), other.values.tolist()) == ([2, 7], [0, 1, 2, 8, 9])


@pytest.mark.parametrize("size", [40, 1001])
def test_threads_that_ask_at_once_get_the_scores_of_one_thread(size: int) -> None:
    draw = np.random.default_rng(5)
    corpus = [[f"w{n}" for n in draw.zipf(1.3, draw.integers(1, 60)) % 900] for _ in range(size)]
    queries = [corpus[place % size][:8] for place in range(60)]
    alone = Bm25Index(1.5, 0.75)
    alone.add(corpus)
    expected = [alone.scores(query) for query in queries]
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(8) as pool:
            for _ in range(15):
                index = Bm25Index(1.5, 0.75)
                index.add(corpus)
                for own, found in zip(expected, pool.map(index.scores, queries), strict=True):
                    np.testing.assert_array_equal(own, found)
    finally:
        sys.setswitchinterval(usual)


@pytest.mark.parametrize("documents", [1, 2, 30])
def test_a_fork_does_not_know_the_words_that_are_added_to_the_other(documents: int) -> None:
    index = Bm25Index(1.5, 0.75)
    index.add([[f"w{n % 7}", f"v{n}"] for n in range(documents)])
    fork = index.fork()
    before = [fork.scores([word]).tolist() for word in ("w0", "v0", "w1")]

    index.add([["new", "w0"]])
    index.scores(["new", "w0", "v0"])

    # All words of the fork are scored by now.
    assert fork.scores(["new"]).tolist() == [0.0] * documents
    assert [fork.scores(["new", word]).tolist() for word in ("w0", "v0", "w1")] == before
