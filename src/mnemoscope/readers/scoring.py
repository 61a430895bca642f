"""What can be told of each sentence as an answer to a question, as numbers side by side.

Generic evidence only: words and their neighbours in meaning, headings, names, looks. The weights
stand with the reader.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.readers.cues import Cues
from mnemoscope.readers.digest import Digest, Library, starts

Floats = NDArray[np.float32]

FEATURES = (
    "topic",  # how much of the question the sentence or its section says, by the words' rarity
    "own",  # how much of it the sentence itself says
    "names",  # how much of the names in the question its section says
    "meaning",  # cosine of the question and the sentence
    "rest",  # how near it comes to those words of the question that its section does not say
    "fits",  # it holds a number, a name or a date, and that is what is asked for
    "specific",  # it holds a number or a full name at all
    "new",  # how much it says that the question does not
    "rare",  # how seldom the rarest of that is
    "quote",  # somebody is quoted with it
    "open",  # it leaves the matter open
    "place",  # one divided by the rank of its passage
)

_NEAR, _NEAR_WORTH = 0.35, 0.7
"""Cosine from which on two words are of the same kind, and what a near word is worth at most."""
_ENOUGH_NEW = 6


class Reading(NamedTuple):
    """All sentences seen with one question in mind."""

    features: Floats
    """A row for each sentence, a column for each of FEATURES."""
    own: Floats
    """How much each sentence says of each content word of the question, 0 to 1."""
    told: Floats
    """The same of the sentence with its section and heading."""
    weights: Floats
    """What each of these words is worth; they add up to 1."""
    vectors: Floats


def consider(question: str, asked: Cues, digests: Sequence[Digest], library: Library) -> Reading:
    """The sentences of passages that have some; the question must have a content word."""
    vocabulary = library.vocabulary
    rows = np.unique(vocabulary.rows(question)[1:])
    names = [row for word in asked.named for row in vocabulary.rows(word)[1:]]
    words = np.concatenate([digest.words for digest in digests])
    headings = np.concatenate([digest.headings for digest in digests])
    lengths = list(chain.from_iterable(digest.lengths for digest in digests))
    sections = list(chain.from_iterable(digest.section_lengths for digest in digests))
    above = list(chain.from_iterable(digest.heading_lengths for digest in digests))
    first = starts(lengths)

    met, places = np.unique(np.concatenate([words, headings]), return_inverse=True)
    vectors, stems = vocabulary.vectors(), vocabulary.stems()
    same = stems[met][:, None] == stems[rows]
    likeness = np.where(same, np.float32(1), np.clip(vectors[met] @ vectors[rows].T, 0, 1))
    near = _NEAR_WORTH * np.clip((likeness - _NEAR) / (1 - _NEAR), 0, 1)
    shares = np.where(same, np.float32(1), near).astype(np.float32)[places]
    own = np.maximum.reduceat(shares[: len(words)], first, axis=0)
    around = np.maximum.reduceat(own, starts(sections), axis=0)
    titles = np.maximum.reduceat(shares[len(words) :], starts(above), axis=0)
    told = np.repeat(np.maximum(around, titles), sections, axis=0)

    count = len(own)
    frequency = (own == 1).sum(axis=0)
    rarity = np.log1p((count - frequency + 0.5) / (frequency + 0.5))
    weights = (rarity / rarity.sum()).astype(np.float32)
    named = np.isin(rows, names)
    names_told = told[:, named] @ _shares(rarity[named]) if named.any() else np.ones(count)

    unsaid = weights * (told < 1)
    closest = np.maximum.reduceat(likeness[places[: len(words)]], first, axis=0)
    rest = (closest * unsaid).sum(axis=1) / np.maximum(unsaid.sum(axis=1), 1e-6)

    fresh = ~np.isin(stems[words], stems[rows]) & (words != 0)
    new = np.minimum(np.add.reduceat(fresh, first, dtype=np.int64), _ENOUGH_NEW) / _ENOUGH_NEW
    _, kinds, times = np.unique(stems[words], return_inverse=True, return_counts=True)
    rareness = np.log1p(count / (1 + times[kinds])) * fresh
    rare = np.maximum.reduceat(rareness, first) / np.log1p(count / 2)

    of_sentences = np.concatenate([digest.vectors for digest in digests])
    number, name, date, quote, left_open = np.concatenate([digest.looks for digest in digests]).T
    per_passage = [len(digest.cited) for digest in digests]
    columns = (
        told @ weights,
        own @ weights,
        names_told,
        of_sentences @ library.question(question),
        rest,
        (asked.number & number) | (asked.person & name) | (asked.date & date),
        number | name,
        new,
        rare,
        quote,
        left_open,
        np.repeat(1 / np.arange(1, len(digests) + 1), per_passage),
    )
    features = np.stack(columns, axis=1).astype(np.float32)
    return Reading(features, own, told, weights, of_sentences)


def _shares(values: NDArray[np.floating]) -> Floats:
    return (values / values.sum()).astype(np.float32)
