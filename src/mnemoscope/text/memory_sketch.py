"""Sketches of memories: enough to find a memory again in other words, without keeping its text.

A sketch has keyed hashes of the stems of a memory, with their rarity, and says which of them are
numbers, names and months. A text carries the memory if all of these come back, most of the other
words do, and nothing is denied. No model is used. The thresholds were chosen on labelled data
(docs/decisions/0033). A sketch hides the wording, not the words: a list of words finds them out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import islice
from math import fsum, log
from typing import NamedTuple

from msgspec import Struct

from mnemoscope.text.carrying import Said, is_number, said, windows
from mnemoscope.text.english import STOP_WORDS, stem_words

LEAST_SHARE = 0.7
"""The share of a memory's words that must come back, by rarity."""
SHORT_SHARE = 0.75
"""The same for a memory of few words, which occur together by chance."""
_SHORT = 8
"""Content words; a memory with fewer is short."""
PART_SHARE = 0.8
"""The same for a memory that is spread over several new ones: its words are then mostly kept."""
OWN_SHARE = 0.6
"""The share of a part's own words that must come from the memory it is a part of."""
DENIED_SHARE = 0.33
"""A text denies a memory if so much of the shared words is negated in one of them only."""
_NEAR_SHARE = 0.9
"""The share of words, in both directions, that near-duplicates have in common."""
_WINDOW_WORDS = 24
"""A longer text is compared window by window, so that a list of words says nothing."""
_WINDOW_FACTOR = 2
_MOST_READ = 20_000
"""Texts of a large store from which rarity and names are known."""
_MONTHS = frozenset(
    "january february march april may june july august september october november december".split()
)
_WEEKDAYS = frozenset("monday tuesday wednesday thursday friday saturday sunday".split())
_CAPITALISED = re.compile(r"(?<![\w'’])[A-ZÀ-ÖØ-Þ][^\W\d_]+")
_STARTS = re.compile(r"(?:^|[.!?:;]\s+|\n\s*|[-*•]\s+)[\"'“‘(\[]*[A-ZÀ-ÖØ-Þ][^\W\d_]*")
_BEGINNING_NAMES = re.compile(
    r"(?:^|[.!?:;]\s+|\n\s*|[-*•]\s+)[\"'“‘(\[]*([A-ZÀ-ÖØ-Þ][^\W\d_]+)"
    r"(?=,\s+(?:who|which|the|our|my)\b|['’]s\b|\s+(?:and|of|at|from)\s+[A-ZÀ-ÖØ-Þ]"
    r"|\s+(?:is|was|has|had|will|can|said)\b|\s+[a-z]+s\b)"
)
"""Words that begin a sentence as names do: `Ann, who`, `Ann's`, `Ann and Bob`, `Ann likes`."""
_LOWER = re.compile(r"\b[a-zß-ÿ]+\b")
_ONE = re.compile(r"(?<![\d.])1(?![\d.])")
_MAY = re.compile(r"\d May\b|\bMay \d|\b(?:by|during|from|in|of|since|to|until) May\b|-05-")
_AFFIRMED, _NEGATED = 1, 2


class MemorySketch(Struct, frozen=True, omit_defaults=True):
    """What is kept of a memory."""

    words: int
    stems: dict[str, float] = {}
    """The hash of each stem, and its rarity in the store."""
    polarity: dict[str, int] = {}
    """1 if the word is affirmed, 2 if it is negated, 3 if both."""
    required: list[str] = []
    """The stems that are numbers, names and months: without them a text does not carry it."""
    weekdays: list[str] = []
    """Required as well, unless a text has a date instead."""


class HashedText(NamedTuple):
    """What a part of a new text says, in the hashes of the sketches."""

    polarity: Mapping[str, int]
    has_date: bool


class CarriedShare(NamedTuple):
    """How much of a memory a text has."""

    share: float
    problem: str
    """Why it does not carry the memory; empty if it does."""


class SketchKey:
    """Hashes words and texts with the key of one run."""

    def __init__(self, key: str) -> None:
        self._key = key.encode()[:64]
        self._words: dict[str, str] = {}

    def of_text(self, text: str) -> str:
        """The hash of a memory's stripped text: equal for equal texts."""
        stripped = text.strip().encode("utf-8", "surrogatepass")
        return blake2b(stripped, key=self._key, digest_size=16).hexdigest()

    def of_word(self, word: str) -> str:
        if (known := self._words.get(word)) is None:
            known = blake2b(
                word.encode("utf-8", "surrogatepass"), key=self._key, digest_size=6
            ).hexdigest()
            self._words[word] = known
        return known

    def _hashed(self, told: Said) -> HashedText:
        polarity = {self.of_word(stem): _signs(signs) for stem, signs in told.polarity.items()}
        for name in stem_words(told.names):
            polarity.setdefault(self.of_word(name), _AFFIRMED)
        return HashedText(polarity, bool(told.days))

    def whole(self, text: str) -> HashedText:
        return self._hashed(said(text))

    def parts(self, text: str, words: int) -> list[HashedText]:
        """Overlapping parts of a text, in which a memory of so many words is looked for."""
        size = max(_WINDOW_WORDS, _WINDOW_FACTOR * words)
        return [self._hashed(told) for told in windows(text, size)]


def sketches(
    texts: Mapping[str, str], wanted: Iterable[str], key: SketchKey
) -> dict[str, MemorySketch]:
    """The sketches of the wanted memories of a store; rarity and names come from all of it."""
    frequency: Counter[str] = Counter()
    ordinary: set[str] = set()
    named: set[str] = set()
    step = 1 + len(texts) // _MOST_READ
    read = list(islice(texts.values(), 0, None, step))
    for text in read:
        frequency.update(said(text).stems)
        ordinary.update(_LOWER.findall(text))
        named.update(_names_in(text))
    names = named - ordinary

    def rarity(stem: str) -> float:
        return round(log(1 + len(read) / (frequency[stem] or 0.5)), 4)

    return {id: _sketch(texts[id], names, rarity, key) for id in wanted if id in texts}


def _sketch(
    text: str, names: set[str], rarity: Callable[[str], float], key: SketchKey
) -> MemorySketch:
    told = said(text)
    required = {stem for stem in told.stems if is_number(stem) or stem in _month_stems()}
    if not _ONE.search(text):  # "one" is seldom a number
        required.discard("1")
    if not _MAY.search(text):  # a verb
        required.discard("may")
    plain = {word.casefold() for word in _CAPITALISED.findall(text)}
    required.update(stem_words(sorted((plain & names) - _WEEKDAYS - _MONTHS - STOP_WORDS)))
    weekdays = set(stem_words(_WEEKDAYS)) & told.stems
    # In the order of their hashes: that of the text would give its wording away.
    stems = {key.of_word(stem): rarity(stem) for stem in told.stems}
    polarity = {key.of_word(stem): _signs(signs) for stem, signs in told.polarity.items()}
    return MemorySketch(
        len(text.split()),
        dict(sorted(stems.items())),
        dict(sorted(polarity.items())),
        sorted(map(key.of_word, required)),
        sorted(map(key.of_word, weekdays)),
    )


def carried_by(sketch: MemorySketch, parts: Iterable[HashedText]) -> CarriedShare:
    """How much of the memory one of these parts of a text carries; the best part counts."""
    least = SHORT_SHARE if _is_short(sketch) else LEAST_SHARE
    found = [_carried(sketch, part, least) for part in parts]
    return max(found, key=lambda one: (not one.problem, one.share), default=_NOTHING)


def carried_together(sketch: MemorySketch, texts: Sequence[HashedText]) -> CarriedShare:
    """How much of the memory these texts carry together."""
    polarity: dict[str, int] = {}
    for text in texts:
        for stem, signs in text.polarity.items():
            polarity[stem] = polarity.get(stem, 0) | signs
    together = HashedText(polarity, any(text.has_date for text in texts))
    return _carried(sketch, together, PART_SHARE)


def is_part(sketch: MemorySketch, text: HashedText) -> bool:
    """Whether most of what a text says is in the memory, so that it may be a part of it."""
    shared = sum(stem in sketch.stems for stem in text.polarity)
    return shared > 0 and shared >= OWN_SHARE * len(text.polarity)


def is_near_duplicate(sketch: MemorySketch, text: HashedText) -> bool:
    """Whether a text says the same as the memory and hardly anything else."""
    shared = sum(stem in sketch.stems for stem in text.polarity)
    return not _carried(sketch, text, _NEAR_SHARE).problem and shared >= _NEAR_SHARE * len(
        text.polarity
    )


def share_of(sketch: MemorySketch, here: Mapping[str, int]) -> float:
    """The share of the memory's words that are here, by rarity.

    Of a short memory also by number, if that is less: one rare word does not make it.
    """
    weights = [weight for stem, weight in sketch.stems.items() if stem in here]
    total = fsum(sketch.stems.values())
    share = fsum(weights) / total if total else 0.0
    return min(share, len(weights) / len(sketch.stems)) if _is_short(sketch) else share


def _is_short(sketch: MemorySketch) -> bool:
    return 0 < len(sketch.stems) < _SHORT


def _carried(sketch: MemorySketch, text: HashedText, least: float) -> CarriedShare:
    here = text.polarity
    share = share_of(sketch, here)
    problem = ""
    if any(stem not in here for stem in sketch.required):
        problem = "a number, a name or a month of it is missing"
    elif not text.has_date and any(stem not in here for stem in sketch.weekdays):
        problem = "its weekday is missing"
    elif _denies(sketch, here):
        problem = "what it says is denied"
    elif not sketch.stems or share < least:
        problem = f"{share:.0%} of its words are there, {least:.0%} are needed"
    return CarriedShare(share, problem)


def _denies(sketch: MemorySketch, here: Mapping[str, int]) -> bool:
    shared = [stem for stem in sketch.stems if stem in here]
    against = [stem for stem in shared if not here[stem] & sketch.polarity.get(stem, _AFFIRMED)]
    total = fsum(sketch.stems[stem] for stem in shared)
    return bool(against) and fsum(sketch.stems[stem] for stem in against) >= DENIED_SHARE * total


def _signs(signs: set[bool]) -> int:
    return (_AFFIRMED if False in signs else 0) | (_NEGATED if True in signs else 0)


def _names_in(text: str) -> set[str]:
    """Capitalised words that do not begin a sentence, or begin it as names do."""
    starts = {match.end() for match in _STARTS.finditer(text)}
    inner = {m[0].casefold() for m in _CAPITALISED.finditer(text) if m.end() not in starts}
    return inner | {match[1].casefold() for match in _BEGINNING_NAMES.finditer(text)}


@lru_cache(maxsize=1)
def _month_stems() -> frozenset[str]:
    return frozenset(stem_words(sorted(_MONTHS)))


_NOTHING = CarriedShare(0.0, "nothing in the store resembles it")
