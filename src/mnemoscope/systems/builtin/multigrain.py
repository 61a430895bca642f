"""Lexical and semantic search at three grains at once, with the dates that a query means.

A memory is scored as a whole, by its best chunk and by its best short passage, each by words and by
vectors. The min–max scores of these six legs have equal weights. A short memory also gets a share
of the scores of the memories beside it in its session, and a memory of a day that the query means
gets a bonus. The choice was made on BEAM, which our reports do not use (docs/decisions/0042). Two
options are better on BEAM and worse on LoCoMo's sessions, so they are off: phrases, and a leg of
the best few passages (docs/decisions/0044).
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.dense import Dense
from mnemoscope.systems.builtin.growing_array import GrowingArray
from mnemoscope.systems.builtin.scored import FloatArray, Scored
from mnemoscope.text.dates import find_dates
from mnemoscope.text.tokenize import CHUNK_WORDS, chunks
from mnemoscope.types import Memory, Query

PASSAGE_WORDS = 40
"""The shortest grain: two or three sentences."""
_NO_DAY = _NO_SESSION = 0
_EQUAL = 1e-5
_FACT = np.dtype([("session", np.int64), ("words", np.int64), ("day", np.int64)])


class Multigrain(Scored):
    """bm25 and dense over whole memories, chunks and passages, fused with equal weights."""

    floor = -np.inf

    def __init__(
        self,
        model: str = "wordllama",
        chunk: int = CHUNK_WORDS,
        passage: int = PASSAGE_WORDS,
        phrases: bool = False,
        best: int = 1,
        neighbours: float = 0.1,
        dates: float = 0.5,
        cache: bool = True,
    ) -> None:
        if passage < 1:
            raise UsageError(f"passage={passage}: a passage must have at least one word")
        if best < 1:
            raise UsageError(f"best={best}: must be the number of passages, or 1 for no such leg")
        if not neighbours >= 0:
            raise UsageError(f"neighbours={neighbours}: their share must be 0 (off) or more")
        if not dates >= 0:
            raise UsageError(f"dates={dates}: the weight of dates must be 0 (off) or more")
        self.chunk = chunk
        self.best = best
        self.neighbours = neighbours
        self.dates = dates
        self.retrievers: dict[str, Scored] = {
            "words of the whole": GrainBm25(None, phrases, cache),
            "words of a chunk": GrainBm25(chunk, phrases, cache),
            "words of a passage": GrainBm25(passage, phrases, cache),
            "vectors of chunks": GrainDense(model=model, chunk=chunk, cache=cache),
            "vectors of passages": PassageDense(model=model, chunk=passage, cache=cache),
        }

    def identity(self) -> dict[str, Any]:
        dense = self.retrievers["vectors of chunks"]
        assert isinstance(dense, GrainDense)
        return dense.identity()

    def clear(self) -> None:
        for retriever in self.retrievers.values():
            retriever.clear()
        self._facts = GrowingArray(_FACT)

    def add(self, memories: Sequence[Memory]) -> None:
        for retriever in self.retrievers.values():
            retriever.add(memories)
            retriever.index_operations += len(memories)
        self._facts.append(np.array([_facts_of(memory) for memory in memories], _FACT))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        for retriever in self.retrievers.values():
            retriever.keep(kept)
        self._facts.keep(kept)

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin.retrievers = {name: one.fork_index() for name, one in self.retrievers.items()}
        twin._facts = self._facts.fork()
        return twin

    def scores(self, query: Query) -> FloatArray:
        legs = self.legs(query)
        facts = MemoryFacts.of(self._facts.values)
        scores = fused(list(legs.values()), facts, self.neighbours, self.neighbours, self.chunk)
        if self.dates:
            scores += np.float32(self.dates / len(legs)) * self.of_meant_days(query)
        return scores

    def legs(self, query: Query) -> dict[str, FloatArray]:
        """The scores of the legs, from 0 for the worst memory to 1 for the best."""
        found: dict[str, FloatArray] = {}
        for name, retriever in self.retrievers.items():
            if isinstance(retriever, GrainDense):
                found[name], found["vectors of the whole"] = retriever.best_and_mean(query)
            elif isinstance(retriever, PassageDense) and self.best > 1:
                found[name], several = retriever.best_and_mean_of_best(query, self.best)
                found["vectors of several passages"] = several
            else:
                found[name] = retriever.scores(query)
        return {name: _min_max(own) for name, own in found.items()}

    def of_meant_days(self, query: Query) -> FloatArray:
        """1 for each memory of a day that the query means, seen from its own day; else 0."""
        days = self._facts.values["day"]
        meant = np.zeros(len(days), dtype=bool)
        for date in find_dates(query.text, query.now.date() if query.now else None):
            meant |= (days >= date.first.toordinal()) & (days <= date.last.toordinal())
        return meant.astype(np.float32)

    def stats(self) -> dict[str, int]:
        merged = {"index_bytes": self._facts.values.nbytes}
        for retriever in self.retrievers.values():
            for key, value in retriever.stats().items():
                merged[key] = merged.get(key, 0) + value
        return merged


class MemoryFacts(NamedTuple):
    """What fusion needs to know about memories, in their order."""

    words: NDArray[np.int64]
    is_followed: NDArray[np.bool_]
    """Whether the next memory is of the same session; one shorter than `words`."""

    @classmethod
    def of(cls, facts: NDArray[Any]) -> MemoryFacts:
        session = facts["session"]
        return cls(facts["words"], (session[:-1] == session[1:]) & (session[1:] != _NO_SESSION))


def _facts_of(memory: Memory) -> tuple[int, int, int]:
    """A number that stands for its session, how many words it has, and its day.

    A hash, because the name of a session must not stay in the index when its memories are gone.
    """
    digest = blake2b(memory.session.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    session = int.from_bytes(digest, "big", signed=True) if memory.session else _NO_SESSION
    day = _NO_DAY if memory.at is None else memory.at.toordinal()
    return session, len(memory.text.split()), day


def fused(
    legs: Sequence[FloatArray], facts: MemoryFacts, preceding: float, following: float, short: int
) -> FloatArray:
    """The mean of the legs; a memory below `short` words gets shares of those beside it."""
    mean: FloatArray = np.mean(legs, axis=0, dtype=np.float32)
    scores = mean.copy()
    is_short = facts.words < short
    scores[:-1] += np.float32(following) * mean[1:] * (facts.is_followed & is_short[:-1])
    scores[1:] += np.float32(preceding) * mean[:-1] * (facts.is_followed & is_short[1:])
    return scores


def _min_max(scores: FloatArray) -> FloatArray:
    low, high = scores.min(), scores.max()
    # Equal vectors can differ in the last bits of their products, which must not decide a leg.
    if high - low <= _EQUAL * max(1, abs(high)):
        return np.zeros_like(scores)
    scaled: FloatArray = (scores - low) / (high - low)
    return scaled


def with_phrases(stems: list[str]) -> list[str]:
    """The stems, and each two of them that are side by side, whatever stop words stood between."""
    return stems + [f"{first} {second}" for first, second in pairwise(stems)]


class GrainBm25(Bm25):
    """BM25 over whole memories or over chunks; a memory scores as its best chunk."""

    def __init__(self, chunk: int | None, phrases: bool, cache: bool) -> None:
        super().__init__(cache=cache)
        self._chunk = chunk
        self._phrases = phrases

    def clear(self) -> None:
        super().clear()
        self._sizes = GrowingArray(np.int64)

    def add(self, memories: Sequence[Memory]) -> None:
        pieces = [self._pieces(memory.text) for memory in memories]
        self._sizes.append(np.array([len(own) for own in pieces], np.int64))
        stems = self._tokens.of([piece for own in pieces for piece in own])
        self._index.add(list(map(self._terms, stems)))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        self._index.keep(np.repeat(kept, self._sizes.values))
        self._sizes.keep(kept)

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin._sizes = self._sizes.fork()
        return twin

    def scores(self, query: Query) -> FloatArray:
        sizes = self._sizes.values
        scores = self._index.scores(self._terms(self._tokenise(query.text)))
        best: FloatArray = np.maximum.reduceat(scores, np.cumsum(sizes) - sizes)
        return best

    def _pieces(self, text: str) -> list[str]:
        return [text] if self._chunk is None else chunks(text, self._chunk)

    def _terms(self, stems: list[str]) -> list[str]:
        return with_phrases(stems) if self._phrases else stems


class PassageDense(Dense):
    """Cosine similarity by the best passage, and by the mean of the best few."""

    def best_and_mean_of_best(self, query: Query, count: int) -> tuple[FloatArray, FloatArray]:
        similar, starts = self.similar(query), self._starts.values
        return np.maximum.reduceat(similar, starts), mean_of_best(similar, starts, count)


def mean_of_best(scores: FloatArray, starts: NDArray[np.int64], count: int) -> FloatArray:
    """The mean of the highest `count` scores of each group, or of all in a smaller group."""
    sizes = np.diff(starts, append=len(scores))
    owners = np.repeat(np.arange(len(starts)), sizes)
    left, total = scores.copy(), np.zeros(len(starts), np.float32)
    for rank in range(min(count, int(sizes.max()))):
        best = np.maximum.reduceat(left, starts)
        total += np.where(sizes > rank, best, 0)
        places = np.flatnonzero(left == best[owners])
        # Of equal scores in a group only the first is used up.
        left[places[np.diff(owners[places], prepend=-1) > 0]] = -np.inf
    total /= np.minimum(sizes, count)
    return total


class GrainDense(Dense):
    """Cosine similarity by the best chunk, and by the mean of all chunks of a memory."""

    def clear(self) -> None:
        super().clear()
        self._lengths = GrowingArray(np.float32)

    def add(self, memories: Sequence[Memory]) -> None:
        known = len(self._starts.values)
        super().add(memories)
        assert self._vectors is not None
        starts = self._starts.values[known:]
        sums = np.add.reduceat(self._vectors.values[starts[0] :], starts - starts[0])
        self._lengths.append(np.linalg.norm(sums, axis=1))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        super().keep(kept)
        self._lengths.keep(kept)

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin._lengths = self._lengths.fork()
        return twin

    def best_and_mean(self, query: Query) -> tuple[FloatArray, FloatArray]:
        similar, starts, lengths = self.similar(query), self._starts.values, self._lengths.values
        total = np.add.reduceat(similar, starts)
        mean = np.divide(total, lengths, out=np.zeros_like(total), where=lengths > 0)
        return np.maximum.reduceat(similar, starts), mean
