"""The sentences of passages with speaker, day, words and word classes, kept per process.

A word class is found by closed lists and endings; it stands in for a tagger.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.embedders import load_embedder
from mnemoscope.readers import Passage
from mnemoscope.readers.passage_index import Vocabulary
from mnemoscope.text.dates import count_of

_MOST_PASSAGES = 8192
_MOST_WORDS = 200_000
_MOST_TOKENS = 60
"""Longer sentences are cut into pieces."""

CLASSES = (
    "edge",
    "comma",
    "quote",
    "the",
    "a",
    "my",
    "i",
    "you",
    "it",
    "this",
    "and",
    "but",
    "to",
    "for",
    "in",
    "at",
    "from",
    "with",
    "of",
    "by",
    "about",
    "because",
    "like",
    "is",
    "will",
    "not",
    "do",
    "wh",
    "ly",
    "so",
    "number",
    "name",
    "ing",
    "ed",
    "s",
    "interjection",
    "word",
)
"""Word classes by the word that stands for each."""
_NUMBER_OF = {name: number for number, name in enumerate(CLASSES)}
_LISTED = {
    "the": "the those these",
    "a": "a an another some any every each",
    "my": "my our his her their your its",
    "i": "i we i'm i've i'd i'll we're we've we'll we'd he she they he's she's they're they've",
    "you": "you you're you've you'll me us him them myself ourselves herself himself themselves",
    "it": "it it's it'll there there's that's here's here",
    "this": "this that one",
    "and": "and or & plus nor",
    "but": "but although though while whereas yet however then if when before after until",
    "to": "to",
    "for": "for",
    "in": "in into inside within through across near around over under along beside",
    "at": "at",
    "from": "from since",
    "with": "with without",
    "of": "of",
    "by": "by via",
    "about": "about on off up out down away back",
    "because": "because cause 'cause cuz so",
    "like": "like as than called named such including",
    "is": "is are was were be been being am 's 're",
    "will": "will would can could should might may must shall can't couldn't wanna gonna won't",
    "not": "not no never none don't didn't doesn't isn't wasn't haven't hasn't nothing",
    "do": "do does did have has had having got get getting doing done gets",
    "wh": "what which who whom whose where why how",
    "ly": "very really just too also even still already always so quite pretty super only again "
    "recently ever now soon more most well much lately first last",
    "interjection": "yeah yes yep yup hey hi hello wow oh thanks thank haha aww awesome great cool "
    "sure ok okay definitely absolutely glad congrats bye nope hmm",
}
_CLASS_OF = {word: _NUMBER_OF[name] for name, words in _LISTED.items() for word in words.split()}
_TOKEN = re.compile(r"[$€£]?[^\W_]+(?:['’.,&/:-](?=[^\W_])[^\W_]+)*(?:%|(?<=[A-Z])\+)?|[^\w\s]")
_SPEAKER = re.compile(r"\s*([^\W\d][\w .'’-]{0,30}?):\s+")
_STOP = re.compile(
    r"(?<!\bDr\.)(?<!\bMr\.)(?<!\bMs\.)(?<!\bMrs\.)(?<!\bSt\.)(?<!\be\.g\.)(?<!\bi\.e\.)"
    r"(?:(?<=[.!?…])|(?<=[.!?…][\"'”’)\]]))\s+"
)
_LISTING = re.compile(r"^(?:[-*+•#>]+|\d{1,3}[.)])\s+")
_QUOTES = "\"“”'‘’`*"


class SpokenSentence(NamedTuple):
    """One sentence."""

    text: str
    speaker: str
    """In lower case; empty if the line names none."""
    tokens: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    classes: NDArray[np.intp]
    rows: NDArray[np.intp]
    """Rows of the vocabulary, 0 for words without content."""
    place: int
    """The number of the sentence in its passage."""


class PassageSentences(NamedTuple):
    """One passage in sentences."""

    sentences: tuple[SpokenSentence, ...]
    vectors: NDArray[np.float32]
    stems: frozenset[int]


class SentenceIndex:
    """All passages that were read with one embedding model in this process."""

    def __init__(self, model: str) -> None:
        self.embedder = load_embedder(model)
        self.vocabulary = Vocabulary(self.embedder)
        self._known: dict[str, PassageSentences] = {}

    def sentences_of(self, texts: Sequence[str]) -> list[PassageSentences]:
        if len(self._known) > _MOST_PASSAGES or len(self.vocabulary) > _MOST_WORDS:
            self._known.clear()
            self.vocabulary = Vocabulary(self.embedder)
        return [self._known.get(text) or self._read(text) for text in texts]

    def _read(self, text: str) -> PassageSentences:
        sentences: list[SpokenSentence] = []
        speaker = ""
        for line in text.splitlines():
            if match := _SPEAKER.match(line):
                speaker, line = match[1].lower(), line[match.end() :]
            for part in _STOP.split(_LISTING.sub("", line.strip())):
                sentences += self._pieces(part, speaker, len(sentences))
        vectors = self.embedder.embed([one.text for one in sentences])
        rows = {int(row) for one in sentences for row in one.rows if row}
        stems = self.vocabulary.stems()
        made = self._known[text] = PassageSentences(
            tuple(sentences), vectors, frozenset(int(stems[row]) for row in rows)
        )
        return made

    def _pieces(self, text: str, speaker: str, place: int) -> list[SpokenSentence]:
        found = list(_TOKEN.finditer(text))
        if not any(match[0][-1].isalnum() for match in found):
            return []
        made: list[SpokenSentence] = []
        for first in range(0, len(found), _MOST_TOKENS):
            part = found[first : first + _MOST_TOKENS]
            words = tuple(match[0] for match in part)
            begin = part[0].start()
            made.append(
                SpokenSentence(
                    text[begin : part[-1].end()],
                    speaker,
                    words,
                    tuple(match.start() - begin for match in part),
                    tuple(match.end() - begin for match in part),
                    np.array([word_class(w, n == 0) for n, w in enumerate(words)], np.intp),
                    np.array([self._row(word) for word in words], np.intp),
                    place + len(made),
                )
            )
        return made

    def _row(self, word: str) -> int:
        return self.vocabulary.rows(word)[-1]


def word_class(word: str, opens: bool) -> int:
    """The number of the class of a word; `opens` if a capital says nothing about it."""
    plain = word.lower().replace("’", "'")
    listed = _CLASS_OF.get(plain)
    if listed is not None:
        return listed
    if not word[-1].isalnum() and not word[0].isalnum():
        name = "comma" if word == "," else "quote" if word in _QUOTES else "edge"
    elif any(character.isdigit() for character in word) or count_of(plain) is not None:
        name = "number"
    elif word[0].isupper() and not opens:
        name = "name"
    elif plain.endswith("ing") and len(plain) > 4:
        name = "ing"
    elif plain.endswith("ed") and len(plain) > 3:
        name = "ed"
    elif plain.endswith("ly") and len(plain) > 4:
        name = "ly"
    elif plain.endswith("s") and not plain.endswith("ss"):
        name = "s"
    else:
        name = "word"
    return _NUMBER_OF[name]


def day_of(passage: Passage) -> date | None:
    return None if passage.at is None else passage.at.date()


@cache
def sentence_index(model: str) -> SentenceIndex:
    return SentenceIndex(model)
