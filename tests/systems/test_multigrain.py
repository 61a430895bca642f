"""The multigrain system: its legs, phrases, neighbours, and the days a query means."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemoscope.models.embedders import embed_query, load_embedder
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.dense import Dense
from mnemoscope.systems.builtin.multigrain import Multigrain, mean_of_best
from mnemoscope.text.tokenize import chunks
from mnemoscope.types import Memory, Query, Selector

LONG = "Anna fed Rex the dog.\n" + "The weather was cold and windy again.\n" * 30
TEXTS = (
    LONG + "Dmitri hid the silver key under the violin.",
    "Bob plays chess.",
    "Carla bought a piano from her uncle.",
    "",
)
QUESTION = Query("Where is the silver key of Dmitri?")


def memories(*texts: str, **fields: Any) -> list[Memory]:
    return [Memory(f"m{n}", text, **fields) for n, text in enumerate(texts)]


def holding(given: list[Memory], **options: Any) -> Multigrain:
    system = Multigrain(cache=False, **options)
    system.reset("scope")
    system.remember(given)
    system.ready()
    return system


def scaled(scores: Any) -> Any:
    return (scores - scores.min()) / (scores.max() - scores.min())


def best_pieces(kind: type[Bm25] | type[Dense], size: int, count: int = 1) -> Any:
    """The mean of the best scores of each text's pieces, each piece as a memory of its own."""
    pieces = [chunks(text, size) for text in TEXTS]
    retriever = kind(cache=False)
    retriever.reset("scope")
    retriever.remember(memories(*(piece for own in pieces for piece in own)))
    retriever.ready()
    scores = np.split(retriever.scores(QUESTION), np.cumsum([len(own) for own in pieces])[:-1])
    return scaled(np.array([np.sort(own)[-count:].mean() for own in scores]))


def test_the_score_is_the_mean_of_words_and_vectors_at_three_grains() -> None:
    system = holding(memories(*TEXTS), chunk=20, passage=8, best=3)
    embedder = load_embedder("wordllama")
    sums = [embedder.embed(chunks(text, 20)).sum(axis=0) for text in TEXTS]
    means = np.array([one / (np.linalg.norm(one) or 1) for one in sums])
    expected = {
        "words of the whole": best_pieces(Bm25, 10**6),
        "words of a chunk": best_pieces(Bm25, 20),
        "words of a passage": best_pieces(Bm25, 8),
        "vectors of the whole": scaled(means @ embed_query(embedder, QUESTION.text)),
        "vectors of chunks": best_pieces(Dense, 20),
        "vectors of passages": best_pieces(Dense, 8),
        "vectors of several passages": best_pieces(Dense, 8, 3),
    }
    legs = system.legs(QUESTION)
    assert legs.keys() == expected.keys()
    for name, own in expected.items():
        assert legs[name] == pytest.approx(own, abs=2e-3), name
    mean = np.mean(list(legs.values()), axis=0)
    assert system.scores(QUESTION) == pytest.approx(mean, abs=1e-6)


def test_with_one_best_passage_there_is_no_leg_of_several() -> None:
    known = holding(memories(*TEXTS), passage=8, best=3)
    assert len(known.legs(QUESTION)) == 7
    single = holding(memories(*TEXTS), passage=8)
    assert single.legs(QUESTION).keys() == known.legs(QUESTION).keys() - {
        "vectors of several passages"
    }


def test_words_side_by_side_count_more_than_the_same_words_apart() -> None:
    together = "Dmitri hid the silver key. A violin was there too."
    apart = "Dmitri hid the key. A silver violin was there too."
    given = memories(apart, together)
    off = holding(given).legs(Query("silver key"))
    on = holding(given, phrases=True).legs(Query("silver key"))
    for name in ("words of the whole", "words of a chunk", "words of a passage"):
        assert off[name].tolist() == [0, 0]
        assert on[name].tolist() == [0, 1]


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_the_mean_of_the_best_is_that_of_each_group(count: int) -> None:
    rng = np.random.default_rng(5)
    sizes = [1, 4, 2, 7, 3]
    scores = rng.integers(0, 4, sum(sizes)).astype(np.float32)  # with many equal scores
    starts = np.cumsum([0, *sizes])[:-1]
    groups = np.split(scores, starts[1:])
    expected = [np.sort(own)[-count:].mean() for own in groups]
    assert mean_of_best(scores, starts, count) == pytest.approx(expected, abs=1e-6)


def test_a_short_memory_gets_shares_of_those_beside_it_in_its_session() -> None:
    texts = ("Bob asked.", "The silver key of Dmitri is here.", "Rain.", LONG, "The silver key.")
    given = memories(*texts, session="one")
    alone = holding(given, neighbours=0).scores(QUESTION)
    shared = holding(given, neighbours=0.5).scores(QUESTION) - alone
    a, b, c, d, _ = 0.5 * alone
    assert shared == pytest.approx([b, a + c, b + d, 0, d], abs=1e-6)  # the fourth is long


@pytest.mark.parametrize("sessions", [("a", "b"), ("", "")])
def test_nothing_is_shared_across_sessions_or_without_one(sessions: tuple[str, str]) -> None:
    texts = ("Bob asked.", "The silver key of Dmitri is here.")
    given = [
        Memory(f"m{n}", text, session=session)
        for n, (text, session) in enumerate(zip(texts, sessions, strict=True))
    ]
    plain = holding(given, neighbours=0).scores(QUESTION)
    assert holding(given, neighbours=1).scores(QUESTION).tobytes() == plain.tobytes()


def test_forgetting_a_memory_makes_its_neighbours_adjacent() -> None:
    texts = ("Bob asked.", "Rain.", "The silver key of Dmitri is here.", "Snow.")
    given = memories(*texts, session="one")
    system = holding(given)
    system.forget(Selector((given[1],)))
    fresh = holding([given[0], *given[2:]])
    assert system.scores(QUESTION).tobytes() == fresh.scores(QUESTION).tobytes()


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("What did Anna do last May?", {"m1"}),
        ("What did Anna do in May 2023?", {"m1"}),
        ("What did Anna do in May 2022?", {"m0"}),
        ("What did Anna do yesterday?", {"m3"}),
        ("What did Anna do in 2023?", {"m1", "m2"}),
        ("What did Anna do?", set()),
    ],
)
def test_a_query_means_days_seen_from_its_own(text: str, meant: set[str]) -> None:
    days = ((2022, 5, 9), (2023, 5, 9), (2023, 8, 1), (2024, 3, 2))
    given = [
        Memory(f"m{n}", "Anna went out.", datetime(*day, 20, tzinfo=UTC))
        for n, day in enumerate(days)
    ]
    given.append(Memory("m4", "Anna went out."))
    query = Query(text, datetime(2024, 3, 3, 9, tzinfo=UTC))
    hits = holding(given).recall(query, 5)
    scores = {hit.id: hit.score or 0 for hit in hits}
    top = {id for id, own in scores.items() if own > min(scores.values())}
    assert top == meant
    assert [hit.id for hit in holding(given, dates=0).recall(query, 5)] == [m.id for m in given]


class TwoRoles:
    """A query's vector is the reverse of a passage's."""

    name = "two-roles"

    def identity(self) -> dict[str, str | int]:
        return {"model": "two roles"}

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return np.array([[1, 0] if "key" in text else [0, 1] for text in texts], np.float32)

    def embed_queries(self, texts: list[str]) -> NDArray[np.float32]:
        return self.embed(texts)[:, ::-1]


def test_a_query_is_embedded_in_its_own_role() -> None:
    dense = Dense(model=f"{__name__}:TwoRoles", cache=False)
    dense.reset("scope")
    dense.remember(memories("a key", "a song"))
    dense.ready()
    assert dense.scores(Query("key")).tolist() == [0, 1]
    legs = holding(memories("a key", "a song"), model=f"{__name__}:TwoRoles").legs(Query("key"))
    assert all(legs[name].tolist() == [0, 1] for name in legs if name.startswith("vectors"))
