"""Spans of sentences as short answers to a question, each with features.

The candidates are runs of up to twelve words of the best sentences. Features say how near a span is
to the words of the question, and which kinds of words stand in, before and after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.readers.question_kinds import Asked
from mnemoscope.readers.sentence_fit import Floats, Places
from mnemoscope.readers.spoken_sentences import CLASSES, SentenceIndex, SpokenSentence

LONGEST = 12
"""Words of the longest span."""
MOST_SENTENCES = 12
_CLASS = {name: number for number, name in enumerate(CLASSES)}
_BREAKS = np.isin(np.arange(len(CLASSES)), [_CLASS["edge"]])
_NO_FIRST = np.isin(
    np.arange(len(CLASSES)),
    [_CLASS[name] for name in ("edge", "comma", "quote", "and", "but", "of")],
)
_NO_LAST = np.isin(
    np.arange(len(CLASSES)),
    [
        _CLASS[name]
        for name in (
            "edge comma quote the a my i and but to for in at from with of by because like is will"
        ).split()
    ],
)
_LENGTHS = (1, 2, 3, 4, 6, 8, LONGEST)
_SPAN_NUMBERS = (
    "asked",
    "near",
    "focus",
    "focus-most",
    "left",
    "right",
    "none",
    "content",
    "capitals",
    "digits",
    "commas",
    "ands",
    "i",
    "opens",
    "closes",
    "quoted",
    "near-before",
    "near-after",
    "whole",
)
SPAN_FEATURES = (
    *(f"length-{length}" for length in _LENGTHS),
    *_SPAN_NUMBERS,
    *(f"before-{name}" for name in CLASSES),
    *(f"first-{name}" for name in CLASSES),
    *(f"last-{name}" for name in CLASSES),
    *(f"after-{name}" for name in CLASSES),
)


class Candidates(NamedTuple):
    """The sentences that were considered, and the spans in them."""

    sentences: list[tuple[int, SpokenSentence]]
    """The number of the passage and the sentence, best first."""
    sentence_features: Floats
    of: Places
    """For each span, the number of its sentence."""
    first: Places
    last: Places
    features: Floats
    """A row per span: SPAN_FEATURES."""

    def text(self, span: int) -> str:
        sentence = self.sentences[int(self.of[span])][1]
        start = sentence.starts[int(self.first[span])]
        return sentence.text[start : sentence.ends[int(self.last[span])]]


def candidates(
    question: str,
    asked: Asked,
    sentences: list[tuple[int, SpokenSentence]],
    features: Floats,
    index: SentenceIndex,
) -> Candidates:
    """All spans of the given sentences."""
    lengths = np.array([len(one.tokens) for _, one in sentences])
    # An edge before and after each sentence, so that every span has neighbours.
    edge, none = np.array([_CLASS["edge"]], np.intp), np.zeros(1, np.intp)
    classes = np.concatenate(
        [part for _, one in sentences for part in (edge, one.classes)] + [edge]
    )
    rows = np.concatenate([part for _, one in sentences for part in (none, one.rows)] + [none])
    owner = np.append(np.repeat(np.arange(len(sentences)), lengths + 1), len(sentences) - 1)
    begin = np.cumsum(lengths + 1) - lengths
    first, last = _runs(classes)
    called = np.isin(index.vocabulary.stems()[rows], _names(asked, sentences, index))
    sums = np.concatenate([[0], np.cumsum((rows != 0) & ~called)])
    # A name by which speakers address each other is no answer.
    told = (sums[last + 1] > sums[first]) | (
        (classes[first] != _CLASS["name"]) & (rows[first] == 0)
    )
    first, last = first[told], last[told]
    table = _span_features(first, last, classes, rows, *_nearness(question, asked, rows, index))
    of = owner[first]
    return Candidates(sentences, features, of, first - begin[of], last - begin[of], table)


def _runs(classes: Places) -> tuple[Places, Places]:
    """The first and last word of every run that may be an answer."""
    breaks = np.cumsum(_BREAKS[classes])
    good = np.flatnonzero(~_NO_FIRST[classes])
    starts, ends = [], []
    for length in range(1, LONGEST + 1):
        start = good[good + length <= len(classes)]
        stop = start + length - 1
        keep = (breaks[start] == breaks[stop]) & ~_NO_LAST[classes[stop]]
        starts.append(start[keep])
        ends.append(stop[keep])
    return np.concatenate(starts), np.concatenate(ends)


def _nearness(
    question: str, asked: Asked, rows: Places, index: SentenceIndex
) -> tuple[NDArray[np.bool_], Floats, Floats]:
    """For each word: whether it is in the question, how near to it, and how near to the focus."""
    focus = [row for word in asked.focus for row in index.vocabulary.rows(word)[1:]]
    wanted = np.array(sorted(set(index.vocabulary.rows(question)[1:])), np.intp)
    stems, vectors = index.vocabulary.stems(), index.vocabulary.vectors()
    same = np.zeros(len(rows), np.bool_)
    near, to_focus = np.zeros(len(rows), np.float32), np.zeros(len(rows), np.float32)
    if len(wanted):
        same = (stems[rows][:, None] == stems[wanted]).any(axis=1) & (rows != 0)
        cosine = np.clip(vectors[rows] @ vectors[wanted].T, 0, 1).max(axis=1)
        near = np.where(rows == 0, 0, np.where(same, 1, cosine)).astype(np.float32)
    if focus:
        cosine = np.clip(vectors[rows] @ vectors[focus].T, -1, 1).max(axis=1)
        to_focus = np.where(same | (rows == 0), 0, cosine).astype(np.float32)
    return same, near, to_focus


def _names(
    asked: Asked, sentences: list[tuple[int, SpokenSentence]], index: SentenceIndex
) -> list[int]:
    """Stems of the names in the question and, unless a person is asked for, of the speakers."""
    names = set(asked.names)
    if asked.kind != "person":
        names |= {word for _, one in sentences for word in one.speaker.split()}
    rows = [row for name in sorted(names) for row in index.vocabulary.rows(name)[1:]]
    return [int(stem) for stem in index.vocabulary.stems()[rows]] if rows else []


def _span_features(
    first: Places,
    last: Places,
    classes: Places,
    rows: Places,
    same: NDArray[np.bool_],
    near: Floats,
    to_focus: Floats,
) -> Floats:
    length = last - first + 1

    def total(values: NDArray[np.generic]) -> Floats:
        sums = np.concatenate([[0], np.cumsum(values, dtype=np.float64)])
        found: Floats = (sums[last + 1] - sums[first]).astype(np.float32)
        return found

    content = total(rows != 0)
    some = np.maximum(content, 1)
    matching = same | (near > 0.7)
    index = np.arange(len(classes))
    edges = classes == _CLASS["edge"]
    before = np.maximum.accumulate(np.where(matching | edges, index, -1))
    after = np.minimum.accumulate(np.where(matching | edges, index, 10**9)[::-1])[::-1]
    left, right = before[first - 1], after[last + 1]
    left_at = np.where(edges[left], 0, np.exp(-(first - left) / 2))
    right_at = np.where(edges[right], 0, np.exp(-(right - last) / 2))
    bounds = np.searchsorted(_LENGTHS, length)
    parts = [np.eye(len(_LENGTHS), dtype=np.float32)[bounds]]
    quote = classes == _CLASS["quote"]
    focus_most = np.maximum.reduceat(
        np.append(to_focus, 0), np.stack([first, last + 1], 1).ravel()
    )[::2]
    numbers = (
        total(same) / length,
        total(near * (rows != 0)) / some,
        total(to_focus) / some,
        focus_most,
        left_at,
        right_at,
        edges[left] & edges[right],
        content / length,
        total(classes == _CLASS["name"]) / length,
        total(classes == _CLASS["number"]) > 0,
        total(classes == _CLASS["comma"]) > 0,
        total(classes == _CLASS["and"]) > 0,
        total((classes == _CLASS["i"]) | (classes == _CLASS["you"]) | (classes == _CLASS["it"]))
        > 0,
        edges[first - 1],
        edges[last + 1],
        quote[first - 1] & quote[last + 1],
        near[first - 1],
        near[last + 1],
        edges[first - 1] & edges[last + 1],
    )
    parts.append(np.stack(numbers, axis=1).astype(np.float32))
    one_hot = np.eye(len(CLASSES), dtype=np.float32)
    parts += [one_hot[classes[at]] for at in (first - 1, first, last, last + 1)]
    return np.concatenate(parts, axis=1)
