"""The built-in systems, through the Driver as the engine drives them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.described import described

from mnemoscope._store.errors import UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.systems import BASELINES, BUILT_IN
from mnemoscope.systems.builtin.fts5 import Fts5
from mnemoscope.systems.loader import Driver, plan
from mnemoscope.text.tokenize import chunks
from mnemoscope.types import Hit, Memory, Query, Question, Receipt, Selector

FTS5 = ("fts5", "fts5,variant=product")
SCORED = (
    "bm25",
    "dense",
    "hybrid",
    "hybrid,fusion=rrf",
    "hybrid,graph=0.5",
    "hybrid,weight=0",
    "multigrain",
    "graph",
    "scoped",
    "scoped,retriever=hybrid",
)
SEARCHING = (*FTS5, *SCORED)
ALL = ("none", "random", "recency", "oracle", "full-context", *SEARCHING)

TOWN = (
    "Anna adopted a dog called Rex last spring.",
    "Rex swallowed a silver key on Tuesday.",
    "Bob plays chess in the park every Sunday.",
    "The weather in Oslo is cold and windy.",
    "Carla bought a second-hand piano from her uncle.",
    "Train tickets to Rome cost forty euros.",
    "The recipe needs three eggs and some flour.",
    "Dmitri teaches violin at the music school.",
    "The garden wall was painted green again.",
    "Eve lost her umbrella at the station.",
)


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One that no forked worker of other tests will use: SQLite does not survive a fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("systems-cache")))
        yield


def memories(*texts: str, prefix: str = "m") -> list[Memory]:
    return [Memory(f"{prefix}{number}", text) for number, text in enumerate(texts)]


def built(spec: str) -> Driver:
    return Driver(plan(Spec.parse(spec)).build)


shared = cache(built)
"""A model takes a while to load; a new scope is a fresh start, or other tests fail."""


def driven(spec: str, given: Sequence[Memory], build: Callable[[str], Driver] = shared) -> Driver:
    driver = build(spec)
    driver.begin("scope")
    driver.remember(given)
    return driver


def ask(driver: Driver, text: str, k: int = 50, evidence: tuple[str, ...] = ()) -> list[Hit]:
    return driver.recall(Question("q", text, evidence=evidence), k)


def recalled(
    spec: str, given: Sequence[Memory], text: str, k: int = 50, evidence: tuple[str, ...] = ()
) -> list[str]:
    driver = driven(spec, given)
    return [hit.id for hit in ask(driver, text, k, evidence)]


def test_every_built_in_system_is_tested_here() -> None:
    assert {Spec.parse(spec).name for spec in ALL} == set(BUILT_IN)
    assert set(BASELINES) <= set(BUILT_IN)


@pytest.mark.parametrize("spec", ALL)
def test_a_new_scope_is_empty(spec: str) -> None:
    driver = driven(spec, memories(*TOWN))
    ask(driver, "Who adopted the dog Rex?", evidence=("m0",))
    driver.begin("other")
    driver.remember(memories("Rex is a dog too.", "A cat sleeps.", prefix="n"))
    hits = ask(driver, "Who adopted the dog Rex?", evidence=("m0", "n0"))
    assert {hit.id for hit in hits} <= {"n0", "n1"}
    driver.begin("third")
    driver.remember([])
    assert ask(driver, "Who adopted the dog Rex?", evidence=("m0",)) == []


@pytest.mark.parametrize("spec", ALL)
def test_the_same_question_gets_the_same_answer(spec: str) -> None:
    def answers() -> list[list[Hit]]:
        driver = driven(spec, memories(*TOWN), built)
        return [ask(driver, text, evidence=("m3",)) for text in TOWN]

    first = answers()
    assert answers() == first
    driver = driven(spec, memories("something", "else entirely"))
    ask(driver, "else?")
    driver.begin("scope")
    driver.remember(memories(*TOWN))
    assert [ask(driver, text, evidence=("m3",)) for text in TOWN] == first


RANKINGS = """
import json, sys
from mnemoscope.types import Memory, Question
from mnemoscope._store.spec import Spec
from mnemoscope.systems.loader import Driver, plan
specs, texts = json.loads(sys.stdin.read())
out = {}
for spec in specs:
    driver = Driver(plan(Spec.parse(spec)).build)
    driver.begin("scope")
    driver.remember([Memory(f"m{n}", text) for n, text in enumerate(texts)])
    out[spec] = [[(h.id, h.score) for h in driver.recall(Question("q", t), 50)] for t in texts]
print(json.dumps(out))
"""


def test_rankings_do_not_depend_on_the_process_or_its_hash_seed(tmp_path: Path) -> None:
    specs = ["random", *FTS5, "bm25", "graph", "hybrid,graph=0.5"]

    def elsewhere(seed: str) -> object:
        environment = {**os.environ, "PYTHONHASHSEED": seed, "MNEMOSCOPE_CACHE": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "-c", RANKINGS],
            input=json.dumps([specs, TOWN]),
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(done.stdout)

    assert elsewhere("1") == elsewhere("2")


@pytest.mark.parametrize("k", [1, 3, 50])
@pytest.mark.parametrize("spec", [spec for spec in ALL if spec != "full-context"])
def test_at_most_k_hits_each_once(spec: str, k: int) -> None:
    driver = driven(spec, memories(*TOWN))
    deep = [hit.id for hit in ask(driver, " ".join(TOWN), 50, ("m0", "m1", "m2", "m3"))]
    top = [hit.id for hit in ask(driver, " ".join(TOWN), k, ("m0", "m1", "m2", "m3"))]
    assert top == deep[:k] or spec == "random"
    assert len(top) == min(k, len(deep))
    assert len(set(top)) == len(top)


def test_full_context_gives_all_memories_in_time_order_for_any_k() -> None:
    assert recalled("full-context", memories(*TOWN), "anything", k=1) == [
        f"m{number}" for number in range(len(TOWN))
    ]


def test_none_recalls_nothing() -> None:
    assert recalled("none", memories(*TOWN), TOWN[0]) == []


def test_recency_gives_the_latest_first() -> None:
    assert recalled("recency", memories(*TOWN), "anything", k=3) == ["m9", "m8", "m7"]


def test_random_depends_on_its_seed_and_on_the_question() -> None:
    orders = {
        tuple(recalled(f"random,seed={seed}", memories(*TOWN), text))
        for seed in (1, 2)
        for text in ("one?", "two?")
    }
    assert len(orders) == 4
    assert {frozenset(order) for order in orders} == {frozenset(f"m{n}" for n in range(10))}


def test_the_oracle_recalls_the_evidence_that_exists_best_grade_first() -> None:
    driver = driven("oracle", memories(*TOWN))
    question = Question("q", "?", evidence=("m3", "gone", "m1"), grades={"m3": 1, "m1": 2})
    assert [hit.id for hit in driver.recall(question, 10)] == ["m1", "m3"]


@pytest.mark.parametrize("spec", [spec for spec in SEARCHING if spec != "graph"])
def test_equal_memories_keep_their_order(spec: str) -> None:
    # Taking turns with another: an unstable sort may well keep a plain row of equals in order.
    given = memories(*["The dog Rex sleeps.", "Tea is in the kitchen."] * 20)
    found = recalled(spec, given, "Where is the dog Rex?")
    assert found[:20] == [f"m{number}" for number in range(0, 40, 2)]


def test_equal_memories_keep_their_order_in_the_graph_too() -> None:
    """Apart from the others, because a name that every memory has leads nowhere in a graph."""
    given = memories(*["The dog Rex sleeps."] * 3, *TOWN[2:])
    assert recalled("graph", given, "Where is the dog Rex?") == ["m0", "m1", "m2"]


@pytest.mark.parametrize("spec", ALL)
def test_an_empty_corpus_recalls_nothing(spec: str) -> None:
    assert recalled(spec, [], "Who adopted the dog?", evidence=("m0",)) == []


@pytest.mark.parametrize("spec", [spec for spec in SEARCHING if spec != "graph"])
def test_the_only_memory_is_found(spec: str) -> None:
    assert recalled(spec, memories(TOWN[0]), "Who adopted the dog Rex?") == ["m0"]


@pytest.mark.parametrize("spec", SEARCHING)
def test_empty_texts_are_accepted(spec: str) -> None:
    given = memories("", TOWN[0], "   ", TOWN[2], "\n")
    assert recalled(spec, given, "Who adopted the dog Rex?")[0] == "m1"
    recalled(spec, memories("", " "), "Who?")


@pytest.mark.parametrize("spec", SEARCHING)
@pytest.mark.parametrize("text", ["", "   ", "?!…", "--", "\n\t"])
def test_a_question_without_words_is_accepted(spec: str, text: str) -> None:
    assert len(recalled(spec, memories(*TOWN), text, k=3)) <= 3


@pytest.mark.parametrize("spec", SEARCHING)
@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("東京 で 寿司 を 食べた", "寿司"),
        ("Он живёт в Москве", "Москве"),
        ("Le café était fermé", "café"),
        ("party 🎉 tonight", "party 🎉"),
    ],
)
def test_other_scripts_are_found(spec: str, text: str, question: str) -> None:
    assert recalled(spec, memories(*TOWN, text), question)[0] == "m10"


HOSTILE = (
    '"',
    '""',
    'dog" OR "cat',
    "dog AND",
    "AND",
    "NOT dog",
    "NEAR(dog cat, 5)",
    "dog*",
    "^dog",
    "content:dog",
    "content : dog -cat",
    "(dog",
    "dog)",
    "{content tags} : dog",
    "-dog",
    "+",
    "'; DROP TABLE memories; --",
    "dog\0cat",
    "\0",
    "\0\0\0",
    "100%_\\",
    "dog " * 5_000,
    "x" * 100_000,
    " ".join(f"word{number}" for number in range(20_000)),
)


@pytest.mark.parametrize("spec", SEARCHING)
@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: repr(text[:20]))
def test_no_question_breaks_a_search(spec: str, text: str) -> None:
    driver = driven(spec, memories("a dog and a cat", "nothing", "another dog"))
    assert len(ask(driver, text, 2)) <= 2
    found = [hit.id for hit in ask(driver, "cat", 2)]
    assert found[:1] == ["m0"]  # nothing was dropped or left locked


@pytest.mark.parametrize("spec", FTS5)
@given(text=st.text(max_size=60) | st.text('dog "*^:()-+{}\0ANDORT', max_size=40))
@settings(deadline=None, max_examples=150)
def test_fts5_accepts_any_text(spec: str, text: str) -> None:
    driver = driven(spec, memories("a dog and a cat", "nothing"))
    ask(driver, text)


def important(*rows: tuple[str, float | str | None], **metadata: str) -> list[Memory]:
    return [
        Memory(
            f"m{number}",
            text,
            metadata={**metadata, **({} if value is None else {"importance": value})},
        )
        for number, (text, value) in enumerate(rows)
    ]


LONG = "dog and then a good many other words that make this text a long one"


def test_fts5_or_ranks_by_bm25_and_lets_importance_decide_only_between_equals() -> None:
    given = important((LONG, 1.0), ("dog", 0.1), ("dog", 0.9), ("cat", 1.0), *[("fish", 1.0)] * 9)
    assert recalled("fts5", given, "dog") == ["m2", "m1", "m0"]


def test_fts5_or_takes_any_word() -> None:
    given = important(("dog", 0.5), ("cat", 0.5), ("fish", 0.5), *[("bird", 0.5)] * 9)
    assert set(recalled("fts5", given, "Dog? Cat!")) == {"m0", "m1"}


def test_fts5_product_takes_all_words_and_any_word_only_if_no_memory_has_all() -> None:
    given = important(("dog cat", 0.1), ("dog", 0.9), ("cat", 0.9))
    assert recalled("fts5,variant=product", given, "dog cat") == ["m0"]
    assert set(recalled("fts5,variant=product", given, "dog horse")) == {"m0", "m1"}


def test_fts5_product_orders_by_seven_tenths_relevance_and_three_tenths_importance() -> None:
    rng = np.random.default_rng(5)
    rows: list[tuple[str, float | str | None]] = [
        ("dog " * int(rng.integers(1, 6)) + "word " * int(rng.integers(0, 30)), rng.random())
        for _ in range(12)
    ]
    given = important(*rows, *[("something else", 0.5)] * 400)
    driver = driven("fts5,variant=product", given)
    hits = ask(driver, "dog", 50)
    assert len(hits) == 12

    def combined(hit: Hit) -> float:
        assert hit.score is not None
        return 0.7 * hit.score + 0.3 * float(given[int(hit.id[1:])].metadata["importance"])

    assert [hit.id for hit in hits] == [hit.id for hit in sorted(hits, key=combined, reverse=True)]
    by_relevance = sorted(hits, key=lambda hit: -(hit.score or 0))
    assert [hit.id for hit in hits] != [hit.id for hit in by_relevance]
    driver = driven("fts5", given)
    assert [hit.id for hit in ask(driver, "dog", 50)] == [hit.id for hit in by_relevance]


@pytest.mark.parametrize("spec", FTS5)
def test_fts5_falls_back_to_the_bare_text_by_importance(spec: str) -> None:
    given = important(("C++ is hard", 0.1), ("C++ is fun", 0.8), ("50% off", 1.0), ("a_b", 1.0))
    assert recalled(spec, given, "++") == ["m1", "m0"]
    assert recalled(spec, given, "%") == ["m2"]  # no wildcard


@pytest.mark.parametrize("spec", FTS5)
def test_fts5_without_importance_counts_a_half(spec: str) -> None:
    rows: list[tuple[str, float | str | None]] = [("dog", 0.4), ("dog", None), ("dog", "")]
    given = important(*rows, ("dog", 0.6))
    assert recalled(spec, given, "dog") == ["m3", "m1", "m2", "m0"]


@pytest.mark.parametrize("spec", FTS5)
@pytest.mark.parametrize("field", ["category", "tags", "expanded_keywords"])
def test_fts5_searches_category_and_tags(spec: str, field: str) -> None:
    given = [Memory("m0", "Rex sleeps", metadata={field: "pets animals"}), Memory("m1", "tea")]
    assert recalled(spec, given, "animals") == ["m0"]


@given(
    text=st.text(max_size=400)
    | st.lists(st.sampled_from(["word", "\n", "Ann: ", "x y z ", "\r\n", "\x0b", "\u2028"])).map(
        "".join
    ),
    size=st.integers(1, 30),
)
@settings(deadline=None, max_examples=300)
def test_every_word_is_in_exactly_one_chunk_in_order(text: str, size: int) -> None:
    pieces = chunks(text, size)
    assert [word for piece in pieces for word in piece.split()] == text.split()
    assert all(len(piece.split()) <= 1.5 * size for piece in pieces)
    assert pieces  # an empty text is one empty chunk, so that every memory has a vector
    assert all(piece.strip() for piece in pieces) or not text.split()


def test_chunks_begin_with_a_speakers_turn_where_one_is_near() -> None:
    turns = [f"Ann: {'word ' * 24}".strip(), f"Bob: {'other ' * 24}".strip()]
    assert chunks("\n".join(turns), 40) == turns


@pytest.mark.parametrize("spec", ["dense", "hybrid"])
def test_a_fact_deep_in_a_long_memory_is_found(spec: str) -> None:
    noise = "We talked about the weather and about nothing in particular. " * 60
    given = memories(noise, f"{noise}\nMy sister adopted a puppy.\n{noise}", noise)
    assert recalled(spec, given, "adopted puppy")[0] == "m1"


def test_truncation_is_reported_as_the_share_that_was_kept() -> None:
    given = memories("one two three four five six seven eight", "one two", "one two three four")
    driver = shared("dense,truncate=2")
    driver.begin("scope")
    assert driver.remember(given) == Receipt(truncated={"m0": 0.25, "m2": 0.5})


def test_what_was_cut_off_is_not_searched() -> None:
    driver = driven("dense,truncate=2", memories("dog cat piano", "dog cat violin"))
    scores = {hit.score for hit in ask(driver, "piano")}
    assert len(scores) == 1


def test_without_truncation_everything_is_stored_whole() -> None:
    driver = shared("dense")
    driver.begin("scope")
    assert driver.remember(memories("word " * 5_000)) == Receipt()


def leg_scores(spec: str, question: str) -> list[float | None]:
    """Each memory's score by one system alone; None where it did not find it."""
    driver = driven(spec, memories(*TOWN))
    found = {hit.id: hit.score for hit in ask(driver, question)}
    return [found.get(f"m{number}") for number in range(len(TOWN))]


QUESTION = "Where does Rex, the dog that Anna adopted, hide the piano key?"


def fused(spec: str) -> dict[str, float]:
    driver = driven(spec, memories(*TOWN))
    hits = ask(driver, QUESTION)
    scores = [hit.score or 0 for hit in hits]
    assert scores == sorted(scores, reverse=True)
    return {hit.id: hit.score or 0 for hit in hits}


@pytest.mark.parametrize("weight", [0.3, 0.5])
def test_hybrid_adds_min_max_scores(weight: float) -> None:
    def scaled(scores: list[float | None]) -> list[float]:
        filled = [score or 0.0 for score in scores]
        low, high = min(filled), max(filled)
        return [(score - low) / (high - low) for score in filled]

    lexical, semantic = (scaled(leg_scores(leg, QUESTION)) for leg in ("bm25", "dense"))
    expected = {
        f"m{number}": (1 - weight) * a + weight * b
        for number, (a, b) in enumerate(zip(lexical, semantic, strict=True))
    }
    assert fused(f"hybrid,weight={weight}") == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("rrf_k", [60, 1])
def test_hybrid_adds_reciprocal_ranks_of_found_memories_only(rrf_k: int) -> None:
    expected = dict.fromkeys((f"m{number}" for number in range(len(TOWN))), 0.0)
    missed = 0
    for leg in ("bm25", "dense"):
        scores = leg_scores(leg, QUESTION)
        found = [n for n, score in enumerate(scores) if score is not None]
        missed += len(scores) - len(found)
        found.sort(key=lambda n: -(scores[n] or 0))
        for rank, number in enumerate(found, 1):
            expected[f"m{number}"] += 0.5 / (rrf_k + rank)
    assert missed > 3  # bm25 misses most, or this would prove nothing
    assert fused(f"hybrid,fusion=rrf,rrf_k={rrf_k}") == pytest.approx(expected, abs=1e-5)


def test_a_retriever_without_weight_finds_nothing() -> None:
    lexical = recalled("bm25", memories(*TOWN), QUESTION)
    assert recalled("hybrid,weight=0", memories(*TOWN), QUESTION) == lexical
    assert recalled("hybrid,weight=0,fusion=rrf", memories(*TOWN), QUESTION) == lexical
    semantic = recalled("dense", memories(*TOWN), QUESTION)
    assert recalled("hybrid,weight=1", memories(*TOWN), QUESTION) == semantic


@pytest.mark.parametrize("fusion", ["minmax", "rrf"])
def test_hybrid_ranks_every_memory_even_the_least_likely(fusion: str) -> None:
    assert len(recalled(f"hybrid,fusion={fusion}", memories(*TOWN), QUESTION)) == len(TOWN)


@pytest.mark.parametrize("fusion", ["minmax", "rrf"])
def test_the_graph_retriever_changes_a_hybrids_scores(fusion: str) -> None:
    spec = f"hybrid,fusion={fusion}"
    assert fused(f"{spec},graph=1.0") != fused(spec)


def test_the_graph_finds_through_a_shared_name_what_bm25_cannot() -> None:
    question = "What happened to the animal that Anna adopted?"
    assert "m1" not in recalled("bm25", memories(*TOWN), question)
    assert recalled("graph", memories(*TOWN), question)[:2] == ["m0", "m1"]
    assert "m1" in recalled("hybrid,weight=0,graph=0.5", memories(*TOWN), question)


@pytest.mark.parametrize("spec", SCORED)
def test_memories_given_in_parts_are_all_searched(spec: str) -> None:
    driver = shared(spec)
    driver.begin("scope")
    given = memories(*TOWN)
    driver.remember(given[:5])
    ask(driver, "Who plays chess?")
    driver.remember(given[5:])
    assert [hit.id for hit in ask(driver, QUESTION)] == recalled(spec, given, QUESTION)


@pytest.mark.parametrize("spec", ["bm25", "dense", "hybrid", "multigrain", "graph"])
def test_without_the_cache_the_results_are_the_same(spec: str) -> None:
    assert recalled(f"{spec},cache=off", memories(*TOWN), QUESTION) == recalled(
        spec, memories(*TOWN), QUESTION
    )


@pytest.mark.parametrize(
    ("spec", "counter"),
    [("bm25", "texts_tokenised"), ("graph", "texts_tokenised"), ("dense", "texts_embedded")],
)
def test_each_distinct_text_is_computed_once_and_counted(
    spec: str, counter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path))
    driver = driven(spec, memories("a dog", "a cat", "a dog"), built)
    first = driver.counted()
    assert first.counters[counter] == 2
    assert first.index_bytes is not None and first.index_bytes > 0
    driver.begin("other")
    driver.remember(memories("a dog", "a bird"))
    assert driver.counted().counters[counter] == 1


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("bm52", r"unknown system 'bm52': did you mean 'bm25'\?"),
        ("bm25,k=1", r"'bm25' has no option 'k': did you mean 'k1'\? it has k1, b, cache"),
        ("none,seed=1", r"'none' has no option 'seed': it has none"),
        ("bm25,k1=much", r"'bm25': k1=much is not a number"),
        ("bm25,k1=-1", r"k1=-1\.0: must be 0 or more"),
        ("bm25,b=2", r"b=2\.0: must be between 0 and 1"),
        ("bm25,b=nan", r"b=nan: must be between 0 and 1"),
        ("bm25,cache=maybe", r"cache=maybe is unknown, choose from true, false, on, off, yes, no"),
        ("random,seed=1.5", r"'random': seed=1\.5 is not an integer"),
        ("fts5,variant=and", r"'fts5': variant=and is unknown, choose from or, product"),
        ("dense,chunk=0", r"chunk=0: a chunk must have at least one word"),
        ("dense,truncate=-1", r"truncate=-1: must be the number of words to keep, or 0"),
        ("dense,model=wordlama", r"unknown embedding model 'wordlama': did you mean 'wordllama'\?"),
        ("dense,model=onnx", r"embedder 'onnx' is incomplete; write onnx@FOLDER"),
        ("hybrid,fusion=sum", r"'hybrid': fusion=sum is unknown, choose from minmax, rrf"),
        ("hybrid,weight=1.5", r"weight=1\.5: the dense retriever's share must be between 0 and 1"),
        ("hybrid,graph=-1", r"graph=-1\.0: the graph retriever's weight must be 0 \(off\) or more"),
        ("hybrid,rrf_k=-1", r"rrf_k=-1: must be 0 or more"),
        ("hybrid,chunk=0", r"chunk=0: a chunk must have at least one word"),
        ("multigrain,passage=0", r"passage=0: a passage must have at least one word"),
        ("multigrain,best=0", r"best=0: must be the number of passages, or 1 for no such leg"),
        ("multigrain,neighbours=-1", r"neighbours=-1\.0: their share must be 0 \(off\) or more"),
        ("multigrain,dates=nan", r"dates=nan: the weight of dates must be 0 \(off\) or more"),
        (
            "graph,restart=2",
            r"restart=2\.0: the walk's restart probability must be between 0 and 1",
        ),
        (
            "graph,rare=-1",
            r"rare=-1\.0: the share of memories with a rare word must be between 0 and 1",
        ),
    ],
)
def test_wrong_names_and_options_are_explained_before_anything_runs(spec: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        described(spec)


class Unbuildable:
    def __init__(self) -> None:
        raise ConnectionError("no server at localhost:1")


def test_a_system_that_cannot_be_built_is_one_error() -> None:
    said = re.escape("cannot build test_builtin_systems:Unbuildable: ConnectionError: no server")
    with pytest.raises(UsageError, match=said):
        described("test_builtin_systems:Unbuildable")


@pytest.mark.parametrize("variant", ["or", "product"])
def test_fts5_finds_the_same_in_one_batch_and_in_many(variant: Any) -> None:
    memories = [Memory(f"m{n}", f"piano {'lantern ' * (n % 3)}garden{n % 4}") for n in range(30)]
    queries = ["lantern piano", "garden2", "piano garden1 lantern", "nothing"]
    whole, grown = Fts5(variant), Fts5(variant)
    for system in (whole, grown):
        system.reset("s")
    whole.remember(memories)
    for start in range(0, 30, 7):
        grown.remember(memories[start : start + 7])

    for query in queries:
        assert grown.recall(Query(query), 20) == whole.recall(Query(query), 20)
    grown.forget(Selector(tuple(memories[:29])))
    grown.remember([Memory("last", "a lantern again")])
    assert [hit.id for hit in grown.recall(Query("lantern"), 5)] == ["m29", "last"]
