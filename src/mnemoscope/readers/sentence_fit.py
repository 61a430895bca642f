"""How well each sentence of the passages fits a question: words, meaning, speaker, day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from mnemoscope.readers import Passage
from mnemoscope.readers.question_kinds import Asked
from mnemoscope.readers.spoken_sentences import (
    PassageSentences,
    SentenceIndex,
    SpokenSentence,
    day_of,
)
from mnemoscope.text.dates import find_dates

Floats = NDArray[np.float32]
Places = NDArray[np.intp]

SENTENCE_FEATURES = (
    "covered",  # how much of the question the sentence covers, weighted by rarity
    "passage",  # how much of it the passage covers
    "meaning",  # cosine of question and sentence
    "speaker",  # its speaker is a person that the question names
    "other",  # the question names people, and the speaker is none of them
    "named",  # it contains the name of such a person
    "asks",  # it is a question
    "rank",  # 1 for the first passage, 1/2 for the second
    "first",  # it is the first sentence of its passage
    "day",  # the question names a day, and the passage is of that day
    "off",  # the question names a day, and the passage is of another
    "long",  # its length
)
_NEAR, _NEAR_WORTH = 0.35, 0.7


def sentence_features(
    question: str,
    asked: Asked,
    passages: Sequence[Passage],
    read: Sequence[PassageSentences],
    index: SentenceIndex,
) -> tuple[list[tuple[int, SpokenSentence]], Floats]:
    """All sentences, and SENTENCE_FEATURES of each."""
    sentences = [(n, one) for n, each in enumerate(read) for one in each.sentences]
    table = np.zeros((len(sentences), len(SENTENCE_FEATURES)), np.float32)
    if not sentences:
        return sentences, table
    rows = sorted(set(index.vocabulary.rows(question)[1:]))
    called = [row for name in asked.names for row in index.vocabulary.rows(name)[1:]]
    stems = index.vocabulary.stems()
    named = {int(stems[row]) for row in called}
    wanted = np.array([row for row in rows if int(stems[row]) not in named], np.intp)
    if len(wanted):
        table[:, 0], table[:, 1] = _coverage(sentences, len(read), wanted, index)
    vectors = np.concatenate([each.vectors for each in read if each.sentences])
    table[:, 2] = vectors @ index.embedder.embed([question])[0]
    speakers = [set(one.speaker.split()) for _, one in sentences]
    known = frozenset().union(*speakers)
    people = known & ({"user"} if asked.mine else asked.names)
    days = _days_named(question)
    told = [day_of(passage) for passage in passages]
    on_days = [day is not None and any(a <= day <= b for a, b in days) for day in told]
    for row, ((n, one), speaker) in enumerate(zip(sentences, speakers, strict=True)):
        table[row, 3:] = (
            bool(people & speaker),
            bool(people) and not people & speaker,
            bool(named) and not named.isdisjoint(stems[one.rows[one.rows > 0]].tolist()),
            one.tokens[-1] == "?",
            1 / (1 + n),
            one.place == 0,
            on_days[n],
            bool(days) and not on_days[n],
            min(len(one.tokens), 30) / 30,
        )
    return sentences, table


def _coverage(
    sentences: list[tuple[int, SpokenSentence]], count: int, wanted: Places, index: SentenceIndex
) -> tuple[Floats, Floats]:
    """How much each sentence, and its passage, covers the words, weighted by rarity."""
    stems, vectors = index.vocabulary.stems(), index.vocabulary.vectors()
    lengths = np.array([len(one.rows) for _, one in sentences])
    words = np.concatenate([one.rows for _, one in sentences])
    met, at = np.unique(words, return_inverse=True)
    same = (stems[met][:, None] == stems[wanted]) & (met != 0)[:, None]
    cosine = np.clip(vectors[met] @ vectors[wanted].T, 0, 1)
    near = _NEAR_WORTH * np.clip((cosine - _NEAR) / (1 - _NEAR), 0, 1)
    likeness = np.where(same, 1, near).astype(np.float32)
    own = np.maximum.reduceat(likeness[at], np.cumsum(lengths) - lengths, axis=0)
    often = (own == 1).sum(axis=0)
    rarity = np.log1p((len(own) - often + 0.5) / (often + 0.5))
    weights = rarity / rarity.sum()
    passage = np.array([n for n, _ in sentences])
    of_passage = np.zeros((count, len(wanted)), np.float32)
    np.maximum.at(of_passage, passage, own)
    return own @ weights, of_passage[passage] @ weights


def _days_named(question: str) -> list[tuple[date, date]]:
    return [(found.first, found.last) for found in find_dates(question)]
