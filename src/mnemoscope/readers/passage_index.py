"""What the reader keeps of each passage it has read once: sentences, words, vectors, looks.

Kept per process and bounded; everything in it follows from the passage's text and the model.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from itertools import chain, pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.embedders import load_embedder
from mnemoscope.readers.answer_cues import KINDS, looks
from mnemoscope.readers.citable_sentences import Cited, cut
from mnemoscope.readers.vocabulary import Vocabulary

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


class Digest(NamedTuple):
    """One passage, taken apart."""

    cited: list[Cited]
    words: NDArray[np.intp]
    """Vocabulary rows of all sentences, one after the other."""
    lengths: NDArray[np.intp]
    """How many words of these are each sentence's."""
    headings: NDArray[np.intp]
    """Vocabulary rows of the sections' headings and sessions."""
    heading_lengths: NDArray[np.intp]
    titles: list[str]
    """The sections' headings; of a section without one, something that no other one has."""
    section_lengths: NDArray[np.intp]
    """How many sentences each section has."""
    vectors: NDArray[np.float32]
    looks: NDArray[np.bool_]
    """For each sentence, whether it may hold each of KINDS of answers."""
    quotes: NDArray[np.bool_]
    open: NDArray[np.bool_]
    """Whether a sentence says that something is not settled."""


class Library:
    """All passages that one model has read in this process."""

    def __init__(self, model: str) -> None:
        self.embedder = load_embedder(model)
        self.vocabulary = Vocabulary(self.embedder)
        self._digests: dict[tuple[str, str], Digest] = {}

    def digests(self, passages: Sequence[tuple[str, str]]) -> list[Digest]:
        """Of each text, with the session it is from."""
        if len(self._digests) > _MOST_PASSAGES or len(self.vocabulary) > _MOST_WORDS:
            self._digests.clear()
            self.vocabulary = Vocabulary(self.embedder)
        return [self._digests.get(passage) or self._read(*passage) for passage in passages]

    def question(self, text: str) -> NDArray[np.float32]:
        """The question's vector."""
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
            np.array([_leaves_open(text) for text in texts], np.bool_),
        )
        return digest


def _leaves_open(text: str) -> bool:
    return bool(_LABELLED_OPEN(text) or _OPEN(text))


def starts(lengths: NDArray[np.intp]) -> NDArray[np.intp]:
    """Where each of consecutive runs begins."""
    return np.cumsum(lengths) - lengths


@cache
def library(model: str) -> Library:
    return Library(model)
