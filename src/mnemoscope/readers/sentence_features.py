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

from mnemoscope.readers.answer_cues import Cues
from mnemoscope.readers.passage_index import Digest, Library, starts

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
)

_NEAR, _NEAR_WORTH = 0.35, 0.7
"""Cosine from which on two words are of the same kind, and what a near word is worth at most."""
_ENOUGH_NEW = 6
_SHARED = 0.8
"""What a section is credited with of what others under the same heading say."""


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
    first = starts(np.concatenate([digest.lengths for digest in digests]))
    sections = np.concatenate([digest.section_lengths for digest in digests])
    above = starts(np.concatenate([digest.heading_lengths for digest in digests]))

    # Everything about words is worked out once for each that occurs, then looked up.
    met, places = np.unique(np.concatenate([words, headings]), return_inverse=True)
    in_text, in_headings = places[: len(words)], places[len(words) :]
    stems = vocabulary.stems()[met]
    same = stems[:, None] == vocabulary.stems()[rows]
    vectors = vocabulary.vectors()
    likeness = np.where(same, np.float32(1), np.clip(vectors[met] @ vectors[rows].T, 0, 1))

    closest = np.maximum.reduceat(likeness[in_text], first, axis=0)
    own = _said(closest)
    around = np.maximum.reduceat(own, starts(sections), axis=0)
    overhead = _said(np.maximum.reduceat(likeness[in_headings], above, axis=0))
    of_section = np.maximum(around, overhead)
    # What stands under one heading on two days is about the same thing on both of them.
    numbers: dict[str, int] = {}
    titles = chain.from_iterable(digest.titles for digest in digests)
    group = [numbers.setdefault(title, len(numbers)) for title in titles]
    of_group = np.zeros((len(numbers), len(rows)), np.float32)
    np.maximum.at(of_group, group, of_section)
    told = np.repeat(np.maximum(of_section, _SHARED * of_group[group]), sections, axis=0)

    count = len(own)
    frequency = (own == 1).sum(axis=0)
    rarity = np.log1p((count - frequency + 0.5) / (frequency + 0.5))
    weights = _shares(rarity)
    named = np.isin(rows, names)
    names_told = told[:, named] @ _shares(rarity[named]) if named.any() else np.ones(count)

    unsaid = weights * (told < _SHARED)
    rest = (closest * unsaid).sum(axis=1) / np.maximum(unsaid.sum(axis=1), 1e-6)

    fresh = ~same.any(axis=1) & (met != 0)
    new = np.add.reduceat(fresh[in_text], first, dtype=np.int64)
    times = np.bincount(stems[in_text], minlength=int(stems.max()) + 1)[stems]
    rareness = np.log1p(count / (1 + times)) * fresh
    rare = np.maximum.reduceat(rareness[in_text], first) / np.log1p(count / 2)

    of_sentences = np.concatenate([digest.vectors for digest in digests])
    looks = np.concatenate([digest.looks for digest in digests])
    topic = told @ weights
    nearest = topic / max(float(topic.max()), 1e-6)
    columns = (
        topic,
        own @ weights,
        names_told,
        of_sentences @ library.question(question),
        rest,
        nearest * (looks & np.array(asked.kinds)).any(axis=1),
        nearest * looks[:, :3].any(axis=1),
        nearest * np.minimum(new, _ENOUGH_NEW) / _ENOUGH_NEW,
        nearest * rare,
        nearest * np.concatenate([digest.quotes for digest in digests]),
        np.concatenate([digest.open for digest in digests]),
    )
    features = np.stack(columns, axis=1).astype(np.float32)
    return Reading(features, own, told, weights, of_sentences)


def _said(likeness: Floats) -> Floats:
    """1 for the word itself, less for a near one, nothing for others."""
    near = _NEAR_WORTH * np.clip((likeness - _NEAR) / (1 - _NEAR), 0, 1)
    said: Floats = np.where(likeness == 1, 1, near).astype(np.float32)
    return said


def _shares(values: NDArray[np.floating]) -> Floats:
    shares: Floats = (values / values.sum()).astype(np.float32)
    return shares
