"""The features of each sentence as an answer to a question.

They are generic: words and similar words, headings, names, form. The weights are in the reader.
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
    "topic",  # how much of the question the sentence or its section covers, weighted by rarity
    "own",  # how much of it the sentence itself covers
    "names",  # how many of the names in the question its section covers
    "meaning",  # cosine of the question and the sentence
    "rest",  # similarity to those words of the question that its section does not cover
    "fits",  # it contains the kind of answer that is asked for, such as a number or a date
    "specific",  # it contains a number, a full name or a date
    "new",  # how many of its words are not in the question
    "rare",  # how rare the rarest of these words is
    "quote",  # it is a quote with a speaker
    "open",  # it states that something is undecided
)

_NEAR, _NEAR_WORTH = 0.35, 0.7
"""Cosine above which two words are similar, and the maximum value of a similar word."""
_ENOUGH_NEW = 6
_SHARED = 0.8
"""The share of the coverage of other sections with the same heading that a section gets."""


class Reading(NamedTuple):
    """All sentences in relation to one question."""

    features: Floats
    """A row per sentence, a column per feature."""
    own: Floats
    """How much each sentence covers each content word of the question, 0 to 1."""
    covered: Floats
    """The same for the sentence with its section and heading."""
    weights: Floats
    """The weights of these words; the sum is 1."""
    vectors: Floats


def consider(question: str, asked: Cues, digests: Sequence[Digest], library: Library) -> Reading:
    """Every passage must have a sentence, and the question a content word."""
    vocabulary = library.vocabulary
    rows = np.array(sorted(set(vocabulary.rows(question)[1:])), np.intp)
    names = [row for word in asked.named for row in vocabulary.rows(word)[1:]]
    words = np.concatenate([digest.words for digest in digests])
    headings = np.concatenate([digest.headings for digest in digests])
    first = starts(np.concatenate([digest.lengths for digest in digests]))
    sections = np.concatenate([digest.section_lengths for digest in digests])
    above = starts(np.concatenate([digest.heading_lengths for digest in digests]))

    # Compute once per distinct word, then look up.
    met, places = np.unique(np.concatenate([words, headings]), return_inverse=True)
    in_text, in_headings = places[: len(words)], places[len(words) :]
    stems = vocabulary.stems()[met]
    same = stems[:, None] == vocabulary.stems()[rows]
    vectors = vocabulary.vectors()
    likeness = np.where(same, np.float32(1), np.clip(vectors[met] @ vectors[rows].T, 0, 1))

    closest = np.maximum.reduceat(likeness[in_text], first, axis=0)
    own = _coverage(closest)
    around = np.maximum.reduceat(own, starts(sections), axis=0)
    overhead = _coverage(np.maximum.reduceat(likeness[in_headings], above, axis=0))
    of_section = np.maximum(around, overhead)
    # Sections with the same heading on different days are about the same thing.
    numbers: dict[str, int] = {}
    titles = chain.from_iterable(digest.titles for digest in digests)
    group = [numbers.setdefault(title, len(numbers)) for title in titles]
    of_group = np.zeros((len(numbers), len(rows)), np.float32)
    np.maximum.at(of_group, group, of_section)
    covered = np.repeat(np.maximum(of_section, _SHARED * of_group[group]), sections, axis=0)

    count = len(own)
    frequency = (own == 1).sum(axis=0)
    rarity = np.log1p((count - frequency + 0.5) / (frequency + 0.5))
    weights = _shares(rarity)
    named = np.isin(rows, names)
    names_covered = covered[:, named] @ _shares(rarity[named]) if named.any() else np.ones(count)

    uncovered = weights * (covered < _SHARED)
    rest = (closest * uncovered).sum(axis=1) / np.maximum(uncovered.sum(axis=1), 1e-6)

    fresh = ~same.any(axis=1) & (met != 0)
    new = np.add.reduceat(fresh[in_text], first, dtype=np.int64)
    times = np.bincount(stems[in_text], minlength=int(stems.max()) + 1)[stems]
    rareness = np.log1p(count / (1 + times)) * fresh
    rare = np.maximum.reduceat(rareness[in_text], first) / np.log1p(count / 2)

    of_sentences = np.concatenate([digest.vectors for digest in digests])
    looks = np.concatenate([digest.looks for digest in digests])
    topic = covered @ weights
    nearest = topic / max(float(topic.max()), 1e-6)
    columns = (
        topic,
        own @ weights,
        names_covered,
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
    return Reading(features, own, covered, weights, of_sentences)


def _coverage(likeness: Floats) -> Floats:
    """1 for the word itself, less for a similar one, 0 for others."""
    near = _NEAR_WORTH * np.clip((likeness - _NEAR) / (1 - _NEAR), 0, 1)
    coverage: Floats = np.where(likeness == 1, 1, near).astype(np.float32)
    return coverage


def _shares(values: NDArray[np.floating]) -> Floats:
    shares: Floats = (values / values.sum()).astype(np.float32)
    return shares
