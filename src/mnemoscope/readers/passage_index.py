"""The index of the passages that the reader has read: sentences, words, vectors, forms.

It is kept per process and has a maximum size. Its content depends only on the passages and the
model, so passages that were read earlier never change a score.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.embedders import Embedder, load_embedder
from mnemoscope.readers.answer_cues import KINDS, looks
from mnemoscope.readers.citable_sentences import Cited, cut
from mnemoscope.text import english
from mnemoscope.text.english import stem_words

_MOST_PASSAGES = 4096
_MOST_WORDS = 200_000
_OPEN = re.compile(
    r"\b(?:still no|no word|no news|no answer|no decision|not (?:yet|been|decided|settled|clear|"
    r"known|certain|final|agreed|fixed)|nothing (?:new|yet|on|about|definite|final)|nobody|"
    r"pending|await\w*|waiting|tbd|to be (?:decided|confirmed|agreed|settled)|undecided|unclear|"
    r"unresolved|unsettled|open question|whether|wonder\w*|want(?:s|ed)? to know|"
    r"ask(?:s|ed|ing)?(?: \w+){0,2} (?:what|when|where|who|which|how|why)|chas(?:e|ed|ing)|"
    r"remind\w*|"
    r"need(?:s|ed)? to (?:know|decide|agree|confirm|settle|ask|find)|have yet to|has yet to)\b",
    re.IGNORECASE,
).search

_LABELLED_OPEN = re.compile(
    r"(?:outstanding|open(?: loops?| items?| points?| questions?)?|to-?do|next(?: steps?)?|pending|"
    r"follow-?ups?)\s*:",
    re.IGNORECASE,
).match
_QUOTE = re.compile(r"[^\W\d][\w .'’@-]{0,40}: [\"“]").match


_WORD = re.compile(r"[^\W_]+")
STOP_WORDS = english.STOP_WORDS | {"ever", "let", "said", "say", "tell", "us", "whose"}
"""The usual stop words, and words that questions are made of."""


class Vocabulary:
    """Every content word seen so far as a row: its vector and the number of its stem."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder = embedder
        # Row 0 stands for "no word", so that a sentence without content words has a row too.
        self._rows: dict[str, int] = {"": 0}
        self._stem_ids: dict[str, int] = {}
        self._vectors: NDArray[np.float32] = np.zeros((0, 0), np.float32)
        self._stems: NDArray[np.int32] = np.zeros(0, np.int32)
        self._waiting: list[str] = [""]

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, text: str) -> list[int]:
        """Row 0 and the rows of the content words of a text, in order."""
        found = [0]
        for word in _WORD.findall(text.lower()):
            if word in STOP_WORDS:
                continue
            row = self._rows.get(word)
            if row is None:
                row = self._rows[word] = len(self._rows)
                self._waiting.append(word)
            found.append(row)
        return found

    def vectors(self) -> NDArray[np.float32]:
        self._embed_waiting()
        return self._vectors

    def stems(self) -> NDArray[np.int32]:
        self._embed_waiting()
        return self._stems

    def _embed_waiting(self) -> None:
        """Embed and stem all words that were added since the last call."""
        if not self._waiting:
            return
        known = len(self._rows) - len(self._waiting)
        fresh = self._embedder.embed(self._waiting)
        if len(self._rows) > len(self._vectors):
            # Double the capacity, so that growing word by word stays cheap.
            vectors = np.zeros((2 * len(self._rows), fresh.shape[1]), np.float32)
            stems = np.zeros(len(vectors), np.int32)
            if known:
                vectors[:known] = self._vectors[:known]
                stems[:known] = self._stems[:known]
            self._vectors, self._stems = vectors, stems
        self._vectors[known : len(self._rows)] = fresh
        ids = self._stem_ids
        for row, stem in enumerate(stem_words(self._waiting), start=known):
            self._stems[row] = ids.setdefault(stem, len(ids))
        self._waiting = []


class Digest(NamedTuple):
    """One passage, analysed."""

    cited: list[Cited]
    words: NDArray[np.intp]
    """Vocabulary rows of all sentences, concatenated."""
    lengths: NDArray[np.intp]
    """The number of rows of each sentence."""
    headings: NDArray[np.intp]
    """Vocabulary rows of the headings and sessions of the sections."""
    heading_lengths: NDArray[np.intp]
    titles: list[str]
    """The headings of the sections; a unique text for a section without one."""
    section_lengths: NDArray[np.intp]
    """The number of sentences of each section."""
    vectors: NDArray[np.float32]
    looks: NDArray[np.bool_]
    """For each sentence, whether it may contain each of KINDS of answers."""
    quotes: NDArray[np.bool_]
    open: NDArray[np.bool_]
    """Whether a sentence states that something is undecided."""


class Library:
    """All passages that were read with one embedding model in this process."""

    def __init__(self, model: str) -> None:
        self.embedder = load_embedder(model)
        self.vocabulary = Vocabulary(self.embedder)
        self._digests: dict[tuple[str, str], Digest] = {}

    def digests(self, passages: Sequence[tuple[str, str]]) -> list[Digest]:
        """The digests of (text, session) pairs."""
        if len(self._digests) > _MOST_PASSAGES or len(self.vocabulary) > _MOST_WORDS:
            self._digests.clear()
            self.vocabulary = Vocabulary(self.embedder)
        return [self._digests.get(passage) or self._read(*passage) for passage in passages]

    def question(self, text: str) -> NDArray[np.float32]:
        """The vector of the question."""
        found: NDArray[np.float32] = self.embedder.embed([text])[0]
        return found

    def _read(self, text: str, session: str) -> Digest:
        cited = cut(text, session)
        texts = [sentence.text for sentence in cited]
        words = [self.vocabulary.rows(sentence.text) for sentence in cited]
        firsts = [
            place
            for place, sentence in enumerate(cited)
            if place == 0 or sentence.section != cited[place - 1].section
        ]
        headings = [
            self.vocabulary.rows(f"{cited[place].session} {cited[place].heading}")
            for place in firsts
        ]
        digest = self._digests[text, session] = Digest(
            cited,
            np.fromiter(chain.from_iterable(words), np.intp),
            np.array(list(map(len, words)), np.intp),
            np.fromiter(chain.from_iterable(headings), np.intp),
            np.array(list(map(len, headings)), np.intp),
            [cited[place].heading.lower() or f"{text[:80]} {place}" for place in firsts],
            np.array([end - start for start, end in pairwise([*firsts, len(cited)])], np.intp),
            self.embedder.embed(texts),
            np.array([looks(text) for text in texts], np.bool_).reshape(-1, len(KINDS)),
            np.array([_QUOTE(text) is not None for text in texts], np.bool_),
            np.array([bool(_LABELLED_OPEN(text) or _OPEN(text)) for text in texts], np.bool_),
        )
        return digest


def starts(lengths: NDArray[np.intp]) -> NDArray[np.intp]:
    """The start of each of several consecutive runs."""
    return np.cumsum(lengths) - lengths


@cache
def library(model: str) -> Library:
    return Library(model)
