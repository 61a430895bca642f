"""An inverted index that grows, with the scores of bm25s to the last bit.

The score of a word in a document depends on all documents: on how many there are, how many contain
the word and how long they are on average. So the index keeps counts, and a word is scored when a
query first needs it. Adding documents costs what the new documents cost, plus merges whose cost
grows as n log n.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import chain, count, islice
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope.systems.builtin.growing_array import GrowingArray

_DOCUMENT_BITS = 32
_DOCUMENT = (1 << _DOCUMENT_BITS) - 1
_FEW_WORDS = 64
"""After so many words that queries needed, all words of the index are scored."""
_FEW_POSTINGS = 20_000
"""Up to so many, scoring all words costs less than scoring those of a few queries."""
_DENSE = 1000
"""Up to so many documents, adding the scores of all is faster than adding those of some."""
_FEW_CELLS = 1 << 19
"""Up to so many words times documents, the scores of all words are kept in one matrix."""
_MANY = 300
"""From about this many documents on, `np.add.at` is faster than an indexed sum; both are exact."""


class _Segment(NamedTuple):
    """The postings of consecutive documents; never changed, so that forks can share it."""

    keys: NDArray[np.int64]
    """Word in the upper half, document in the lower half, ascending."""
    counts: NDArray[np.int32]
    """How often the document contains the word."""


class _Scores(NamedTuple):
    """The scores of some words: what each document that contains one gets if a query has it."""

    ends: list[int]
    """Where the postings of each word end; those of the first word begin at 0."""
    documents: NDArray[np.int64]
    scores: NDArray[np.float32]

    def of(self, place: int) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        start = self.ends[place - 1] if place else 0
        own = slice(start, self.ends[place])
        return self.documents[own], self.scores[own]


class Bm25Index:
    """BM25 with Lucene's idf over lists of words: the default method of bm25s."""

    def __init__(self, k1: float, b: float) -> None:
        self.k1, self.b = k1, b
        self._vocabulary = _numbered(())
        self._owns_vocabulary = True
        self._words = 0
        """How many words of the vocabulary are in this index; a fork may have more."""
        self._lengths = GrowingArray(np.int32)
        self._total_length = 0
        self._segments: tuple[_Segment, ...] = ()
        self._additions = 0
        self._forget_scores()

    def __len__(self) -> int:
        return len(self._lengths.values)

    @property
    def nbytes(self) -> int:
        """The bytes of the postings and of the documents' lengths."""
        postings = sum(part.nbytes for segment in self._segments for part in segment)
        return postings + self._lengths.values.nbytes

    def add(self, documents: Sequence[Sequence[str]]) -> None:
        """Index further documents, given as lists of words."""
        if not self._owns_vocabulary:
            self._vocabulary = _numbered(islice(self._vocabulary.items(), self._words))
            self._owns_vocabulary = True
        first, number = len(self), len(documents)
        lengths = np.fromiter(map(len, documents), np.int32, number)
        total = int(lengths.sum(dtype=np.int64))
        words = map(self._vocabulary.__getitem__, chain.from_iterable(documents))
        keys = np.fromiter(words, np.int64, total)
        keys <<= _DOCUMENT_BITS
        keys |= np.repeat(np.arange(first, first + number), lengths)
        keys.sort()
        self._words = len(self._vocabulary)
        self._lengths.append(lengths)
        self._total_length += total
        self._additions += 1
        self._forget_scores()
        if total:
            self._segments = _with(self._segments, _counted(keys))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Remove the other documents, and the words that only they contain."""
        self._lengths.keep(kept)
        self._total_length = int(self._lengths.values.sum(dtype=np.int64))
        place = np.cumsum(kept) - 1
        number = np.zeros(self._words, dtype=np.int64)
        for segment in self._segments:
            number[segment.keys[kept[segment.keys & _DOCUMENT]] >> _DOCUMENT_BITS] = 1
        is_left = number.astype(bool)
        number = np.cumsum(number) - 1
        words = islice(self._vocabulary, self._words)
        left = (word for word, stays in zip(words, is_left.tolist(), strict=True) if stays)
        self._vocabulary = _numbered((word, place) for place, word in enumerate(left))
        self._owns_vocabulary, self._words = True, len(self._vocabulary)
        segments: tuple[_Segment, ...] = ()
        for keys, counts in self._segments:
            stays = kept[keys & _DOCUMENT]
            keys, counts = keys[stays], counts[stays]
            renumbered = (number[keys >> _DOCUMENT_BITS] << _DOCUMENT_BITS) | place[
                keys & _DOCUMENT
            ]
            if len(keys):
                segments = _with(segments, _Segment(renumbered, counts))
        self._segments = segments
        self._forget_scores()

    def fork(self) -> Self:
        twin = type(self).__new__(type(self))
        vars(twin).update(vars(self))
        twin._lengths, twin._owns_vocabulary = self._lengths.fork(), False
        return twin

    def scores(self, words: Sequence[str]) -> NDArray[np.float32]:
        """The score of each document for a query; a word counts as often as the query has it."""
        found = np.zeros(len(self), dtype=np.float32)
        if not self._segments:
            return found
        number_of, last = self._vocabulary.get, self._words
        known = [number for word in words if (number := number_of(word, last)) < last]
        scored = self._scored
        if self._matrix is None and not all(map(scored.__contains__, known)):
            self._score([number for number in dict.fromkeys(known) if number not in scored])
        if self._matrix is not None and known:
            # Row after row, in the order of the words, as below.
            np.add.reduce(self._matrix.take(known, axis=0), axis=0, out=found)
            return found
        if len(found) <= _DENSE:
            for number in known:
                found += scored[number]
            return found
        for number in known:
            documents, own = scored[number]
            if len(documents) < _MANY:
                found[documents] += own
            else:
                np.add.at(found, documents, own)
        return found

    def _forget_scores(self) -> None:
        self._scored: dict[int, Any] = {}
        """By word: the score of every document if there are few, else documents and scores."""
        self._all: _Scores | None = None
        self._matrix: NDArray[np.float32] | None = None
        """The score of every document for every word, once all are scored and if they are few."""
        self._scored_singly = 0
        """How many words were scored when a query needed them."""

    def _score(self, words: Sequence[int]) -> None:
        """Score these words: one by one if there are few queries, all words if there are many.

        Threads may ask at once: a score is stored when it is whole, and `_all` is read once.
        """
        if not words:  # another thread has scored them meanwhile
            return
        whole = self._all
        if whole is None and self._may_score_all:
            [(keys, counts)] = self._segments
            containing = np.bincount(keys >> _DOCUMENT_BITS, minlength=self._words)
            whole = self._all = self._scores_of(keys & _DOCUMENT, counts, containing)
            if len(self) > 1 and len(self) * self._words <= _FEW_CELLS:
                matrix = np.zeros((self._words, len(self)), dtype=np.float32)
                matrix[keys >> _DOCUMENT_BITS, whole.documents] = whole.scores
                self._matrix = matrix
                return
        self._scored_singly += len(words)
        own, number = whole or self._scores_of(*self._postings(words)), len(self)
        for place, word in enumerate(words):
            documents, scores = own.of(place if whole is None else word)
            if number <= _DENSE:
                every = np.zeros(number, dtype=np.float32)
                every[documents] = scores
                self._scored[word] = every
            else:
                self._scored[word] = documents, scores

    @property
    def _may_score_all(self) -> bool:
        if len(self._segments) != 1:
            return False
        # An index that grows asks for few words before its scores change again.
        is_small = self._additions == 1 and len(self._segments[0].keys) <= _FEW_POSTINGS
        return self._scored_singly > (0 if is_small else _FEW_WORDS)

    def _postings(
        self, words: Sequence[int]
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
        """Documents and counts of these words, one word after the other, and how many each has."""
        bounds = np.array([(word, word + 1) for word in words]).ravel() << _DOCUMENT_BITS
        places = [segment.keys.searchsorted(bounds).tolist() for segment in self._segments]
        parts = [
            (segment.keys[low:high], segment.counts[low:high])
            for at in range(0, len(bounds), 2)
            for segment, found in zip(self._segments, places, strict=True)
            for low, high in (found[at : at + 2],)
        ]
        documents = np.concatenate([keys for keys, _ in parts]) & _DOCUMENT
        counts = np.concatenate([counts for _, counts in parts])
        containing = [
            sum(found[at + 1] - found[at] for found in places) for at in range(0, len(bounds), 2)
        ]
        return documents, counts, np.array(containing)

    def _scores_of(
        self,
        documents: NDArray[np.int64],
        counts: NDArray[np.int32],
        containing: NDArray[np.int64],
    ) -> _Scores:
        """The scores of postings, each operation in the precision and order of bm25s."""
        number = len(self)
        idf = _idf(number, containing)
        times = counts.astype(np.float64)
        lengths = self._lengths.values[documents].astype(np.float64)
        average = np.float64(self._total_length) / number
        norms = self.k1 * ((1 - self.b) + self.b * lengths / average)
        scores = (np.repeat(idf, containing) * (times / (norms + times))).astype(np.float32)
        return _Scores(np.cumsum(containing).tolist(), documents, scores)


def _idf(number: int, containing: NDArray[np.int64]) -> NDArray[np.float32]:
    """Lucene's idf of words that so many of a number of documents contain."""
    distinct, place = np.unique(containing, return_inverse=True)
    idf = [math.log(1 + (number - n + 0.5) / (n + 0.5)) for n in distinct.tolist()]
    found: NDArray[np.float32] = np.array(idf, dtype=np.float32)[place]
    return found


def _numbered(words: Iterable[tuple[str, int]]) -> defaultdict[str, int]:
    """A vocabulary that gives each new word the next number."""
    known = dict(words)
    return defaultdict(count(len(known)).__next__, known)


def _counted(keys: NDArray[np.int64]) -> _Segment:
    """The distinct keys of a sorted array with one key for each word of each document."""
    is_first = np.empty(len(keys), dtype=bool)
    is_first[0] = True
    np.not_equal(keys[1:], keys[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    return _Segment(keys[starts], np.diff(starts, append=len(keys)).astype(np.int32))


def _with(segments: tuple[_Segment, ...], last: _Segment) -> tuple[_Segment, ...]:
    """Append a segment. Each stays at least twice as long as the next, so that there are few."""
    while segments and len(segments[-1].keys) < 2 * len(last.keys):
        last = _merged(segments[-1], last)
        segments = segments[:-1]
    return (*segments, last)


def _merged(one: _Segment, other: _Segment) -> _Segment:
    places = one.keys.searchsorted(other.keys)
    places += np.arange(len(places))
    is_from_one = np.ones(len(one.keys) + len(other.keys), dtype=bool)
    is_from_one[places] = False

    def both(mine: NDArray[Any], its: NDArray[Any]) -> NDArray[Any]:
        joined = np.empty(len(is_from_one), dtype=mine.dtype)
        joined[places] = its
        joined[is_from_one] = mine
        return joined

    return _Segment(both(one.keys, other.keys), both(one.counts, other.counts))
