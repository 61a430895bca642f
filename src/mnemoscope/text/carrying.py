"""Whether a text that a system wrote itself carries a memory: whether it says what the memory says.

The test is made for a question: of the memory, the words that answer the question must come back,
and enough of the others to show that the text is about the same fact. Words are stems, weighted by
their rarity in the pool; numbers and dates must be the same. A text about another person, or one
that denies what the memory says, does not carry it. No model is used. The thresholds were chosen on
held-back data (docs/decisions/0013).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence, Set
from datetime import date, timedelta
from functools import cached_property, lru_cache
from math import fsum, log
from typing import NamedTuple

from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.text.matching import normalise
from mnemoscope.types import Memory

ANSWER_SHARE = 0.6
"""The share of the answering words that must come back, by weight; numbers must all come back."""
CONTEXT_SHARE = 0.3
"""The share of the memory's words that must come back if the answering words are known."""
BESIDE_SHARE = 0.15
"""The same without the answering words, with those of the question weighing less: the question and
a list of possible answers do not say what the memory says."""
WHOLE_SHARE = 0.5
"""The share of the memory's words that must come back if they are not known."""
ASKED_WEIGHT = 0.3
"""The weight of a word that the question contains, where the answering words are not known."""
DENIED_SHARE = 0.4
"""A text denies the memory if so much of the shared words is negated in one of them only."""
LEAST_DENSITY = 0.1
"""The share of a window's words that must be the memory's: a list of words has fewer."""
_LONG = 80
"""Words; of a longer memory only the passage that the question asks for is compared."""
_SENTENCE_STEMS = 4
"""A sentence of a long memory with fewer content words does not show where a text comes from."""
_WINDOW_WORDS = 40
"""A longer text is compared window by window, so that a list of words says nothing."""
_WINDOW_FACTOR = 2
_MEMO_TEXTS = 1 << 11
_MOST_WINDOWS = 500
"""Of a longer text the rest is only searched for whole memories."""

_NUMBERS = {
    word: str(value)
    for value, word in enumerate(
        "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen "
        "fifteen sixteen seventeen eighteen nineteen twenty".split()
    )
}
_NUMBERS |= {
    word: str(10 * value)
    for value, word in enumerate("thirty forty fifty sixty seventy eighty ninety".split(), 3)
}
_NUMBERS |= {
    word: str(value)
    for value, word in enumerate(
        "first second third fourth fifth sixth seventh eighth ninth tenth".split(), 1
    )
}
_MONTHS = (
    "january february march april may june july august september october november december".split()
)
_UNITS = {
    "km": "kilometre", "kg": "kilogram", "min": "minute", "mins": "minute", "hr": "hour",
    "hrs": "hour", "mum": "mother", "mom": "mother", "dad": "father", "grandpa": "grandfather",
    "grandma": "grandmother", "kids": "children", "kid": "child", "pics": "pictures",
}  # fmt: skip
"""Abbreviations and short forms that change no meaning."""
_SAME = {**_NUMBERS, **_UNITS, **{month[:3]: month for month in _MONTHS if month != "may"}}
_ISO = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
_CLOCK = re.compile(r"\b(\d{1,2})(?:[:.](\d\d))? ?([ap])\.?m\b")
_DAY = re.compile(
    rf"\b(?:(\d{{1,2}}) ({'|'.join(_MONTHS)})|({'|'.join(_MONTHS)}) (\d{{1,2}}))(?: (\d{{4}}))?\b"
)
_TOKEN = re.compile(r"\d+(?:[.:]\d+)*|[^\W\d_]+(?:-?\d+)?")
_CLAUSE = re.compile(
    r"[;:!?]+|[.,]+(?=\s|$)|\s[-–—]\s|\b(?:but|and|because|since|although|while)\b"
)
_NEGATION = re.compile(
    r"\b(?:not|never|no|none|nothing|nobody|neither|nor|without|cannot|against|withdrew|refuse[sd]?"
    r"|den(?:y|ies|ied)|\w+n't)\b"
)
_LIMIT = re.compile(r"\b(?:no|not) (?:more|later|less|fewer|longer|earlier) than\b|\bnot only\b")
_NAME = re.compile(r"(?<![\w'’])[A-ZÀ-ÖØ-Þ][^\W\d_]+")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|\n+")
_RELATIVE = {"yesterday": -1, "today": 0, "tomorrow": 1, "tonight": 0}
_FILLER = frozenset(
    "also already get got really quite yes yeah wow hey hi thanks thank okay ok oh well let like "
    "thing things lot much many one us yesterday today tomorrow tonight ago last next week month "
    "year day am pm et al".split()
)
"""Words without content, beside the stop words; relative dates are resolved instead."""


class Said(NamedTuple):
    """What a text says: its content words, names and dates."""

    names: frozenset[str]
    days: frozenset[tuple[int, int]]
    """Month and day of each date that the text names."""

    polarity: dict[str, set[bool]]
    """Each content word, and whether it is negated, affirmed or both."""

    @property
    def stems(self) -> Set[str]:
        return self.polarity.keys()


@lru_cache(maxsize=1 << 13)
def said(text: str) -> Said:
    """Return what a text says."""
    plain = _dates_and_times(normalise(text))
    polarity: dict[str, set[bool]] = {}
    for clause in _CLAUSE.split(plain):
        clause = _LIMIT.sub(" ", clause)
        negated = _NEGATION.search(clause) is not None
        for stem in content(clause):
            polarity.setdefault(stem, set()).add(negated)
    return Said(_names(text), _days(plain), polarity)


def content(plain: str) -> Iterable[str]:
    """Yield the stems of the content words of a normalised text; number words become digits."""
    words = (_SAME.get(word, word) for word in _TOKEN.findall(plain))
    return stem_words(word for word in words if word not in STOP_WORDS and word not in _FILLER)


@lru_cache(maxsize=1 << 11)
def _content_of(text: str) -> tuple[str, ...]:
    return tuple(content(_dates_and_times(normalise(text))))


def _dates_and_times(plain: str) -> str:
    def day(match: re.Match[str]) -> str:
        month = min(max(int(match[2]), 1), 12)
        return f"{int(match[3])} {_MONTHS[month - 1]} {match[1]}"

    def clock(match: re.Match[str]) -> str:
        hour = int(match[1]) % 12 + (12 if match[3] == "p" else 0)
        return f"{hour}:{match[2] or '00'}"

    return _CLOCK.sub(clock, _ISO.sub(day, plain))


def _days(plain: str) -> frozenset[tuple[int, int]]:
    words = " ".join(_SAME.get(word, word) for word in _TOKEN.findall(plain))
    return frozenset(
        (_MONTHS.index(match[2] or match[3]) + 1, int(match[1] or match[4]))
        for match in _DAY.finditer(words)
    )


def _names(text: str) -> frozenset[str]:
    return frozenset(
        name
        for match in _NAME.finditer(text)
        if (name := match.group().casefold()) not in _NO_NAMES
    )


_NO_NAMES = STOP_WORDS | _FILLER | set(_MONTHS) | _NUMBERS.keys()


@lru_cache(maxsize=1 << 10)
def windows(text: str, size: int) -> tuple[Said, ...]:
    """Return what overlapping parts of a long text say, of `size` words each."""
    words = text.split()
    if len(words) <= size:
        return (said(text),)
    starts = range(0, len(words) - size // 2, size // 2)[:_MOST_WINDOWS]
    return tuple(said(" ".join(words[at : at + size])) for at in starts)


def is_number(stem: str) -> bool:
    return stem[0].isdigit()


class CarryingTest:
    """The carrying test for the memories of one pool."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._memories = memories
        self._weights: dict[str, float] = {}
        self._matches: dict[str, dict[int, float]] = {}
        self._long: dict[int, Sequence[frozenset[str]]] = {}

    @cached_property
    def _by_id(self) -> dict[str, Memory]:
        """Memories by their id; wholes, whose parts are memories, with the text of all parts."""
        found = {memory.id: memory for memory in self._memories}
        parts: dict[str, list[Memory]] = {}
        for memory in self._memories:
            if memory.part_of and memory.part_of not in found:
                parts.setdefault(memory.part_of, []).append(memory)
        for whole, own in parts.items():
            found[whole] = Memory(whole, "\n".join(one.text for one in own), own[0].at)
        return found

    @cached_property
    def _frequency(self) -> Counter[str]:
        """In how many memories each stem occurs."""
        found: Counter[str] = Counter()
        for memory in self._memories:
            found.update(said(memory.text).stems)
        return found

    @cached_property
    def _ordinary(self) -> frozenset[str]:
        """Words that the pool writes in lower case: they are not names."""
        return frozenset(
            word for memory in self._memories for word in re.findall(r"\b[a-zß-ÿ]+\b", memory.text)
        )

    def weight(self, stem: str) -> float:
        """The rarity of a stem in the pool; a stem that the pool lacks is the rarest."""
        if (known := self._weights.get(stem)) is None:
            known = log(1 + len(self._memories) / (self._frequency[stem] or 0.5))
            self._weights[stem] = known
        return known

    def is_verbatim(self, text: str, id: str) -> bool:
        """Whether the text contains the memory's own text."""
        memory = self._by_id.get(id)
        return memory is not None and _squeezed(memory.text) in _squeezed(text)

    def carries(self, text: str, id: str, question: str, reference: str = "") -> bool:
        """Whether the text says what the memory says in reply to the question."""
        memory = self._by_id.get(id)
        if memory is None:
            return False
        if self.is_verbatim(text, id):
            return True
        asked, answer = said(question), said(reference)
        if said(text).stems <= asked.stems:
            return False  # nothing but the question
        passage = self._passage(memory.text, asked, answer)
        size = max(_WINDOW_WORDS, _WINDOW_FACTOR * len(passage.split()))
        own = said(passage)
        return any(
            self._says(part, own, memory, asked, answer)
            for part in windows(text, size)
            if len(own.stems & part.stems) > LEAST_DENSITY * len(part.stems)
        )

    def _passage(self, text: str, asked: Said, answer: Said) -> str:
        """The memory's text, or of a long one the sentences around the best match."""
        if len(text.split()) <= _LONG:
            return text
        units = [unit for unit in _SENTENCE.split(text) if unit.strip()]
        wanted = {*asked.stems, *answer.stems}

        def overlap(at: int) -> float:
            return sum(self.weight(stem) for stem in wanted.intersection(said(units[at]).stems))

        best = max(range(len(units)), key=overlap)
        return " ".join(units[max(0, best - 1) : best + 2])

    def _says(self, told: Said, own: Said, memory: Memory, asked: Said, answer: Said) -> bool:
        here, mine, question = told.stems, own.stems, asked.stems
        answering = (answer.stems & mine) - question
        if answering or (answer.stems and answer.stems <= here):
            numbers = {stem for stem in answering if is_number(stem)}
            enough = (
                numbers <= here
                and self._share(answering, here) >= ANSWER_SHARE
                and self._share(mine, here) >= CONTEXT_SHARE
                and self._share(mine - answering, here, question) >= BESIDE_SHARE
            )
        else:
            numbers = {stem for stem in mine if is_number(stem)}
            enough = numbers <= here and self._share(mine, here, question) >= WHOLE_SHARE
        return (
            enough
            and not self._other_person(told, own, memory, asked)
            and not self._denies(told, own)
            and not _other_day(told, own, memory)
        )

    def _share(self, wanted: Set[str], here: Set[str], asked: Set[str] = frozenset()) -> float:
        """The share of the wanted stems that are here, by weight."""
        weights = {
            stem: self.weight(stem) * (ASKED_WEIGHT if stem in asked else 1.0) for stem in wanted
        }
        # fsum gives the same sum in every order; the order of a set differs between processes.
        total = fsum(weights.values())
        found = fsum(weight for stem, weight in weights.items() if stem in here)
        return found / total if total else 1.0

    def _other_person(self, told: Said, own: Said, memory: Memory, asked: Said) -> bool:
        """Whether the text leaves out whom the question is about and names others instead."""
        speaker = _names(memory.speaker.title())
        about = (asked.names | speaker) & (own.names | speaker) - self._ordinary
        strangers = told.names - own.names - asked.names - speaker - self._ordinary
        return bool(about and strangers and not about & told.names)

    def _denies(self, told: Said, own: Said) -> bool:
        """Whether words that both share are negated in one of them only."""
        ours, theirs = own.polarity, told.polarity
        shared = ours.keys() & theirs.keys()
        against = {stem for stem in shared if ours[stem].isdisjoint(theirs[stem])}
        return bool(against) and self._share(shared, against) >= DENIED_SHARE

    def made_of(self, text: str, evidence: Iterable[str]) -> tuple[str, ...]:
        """Return the memories of the pool that explain the words of a text which names no sources.

        The text takes a place for each. The memory that explains most comes first and uses its
        words up; the next one needs words that are left. A memory counts from `WHOLE_SHARE` on, or
        from the share of the least covered `evidence` that the text carries, so that a text with
        a little of everything takes as many places. Of a long memory one sentence is enough, as it
        is for carrying: else a digest of many would take a place for few. The question plays no
        part.
        """
        matched = self._matched(text)
        wanted = frozenset(evidence)
        shares = [share for place, share in matched.items() if self._memories[place].id in wanted]
        least = min([WHOLE_SHARE, *shares])
        left = Counter(_content_of(text))
        found = []
        for place, share in matched.items():
            sentences = self._sentences(place)
            if share < least and not sentences:
                continue
            memory = self._memories[place]
            own = [stem for stem in said(memory.text).stems if left[stem] > 0]
            if fsum(map(self.weight, own)) >= least * self._totals[place] or any(
                self._share(stems, set(own)) >= WHOLE_SHARE for stems in sentences
            ):
                found.append(memory.id)
                # A long memory repeats its words, and so does a text that contains it.
                left.subtract(_content_of(memory.text) if sentences else own)
        return tuple(found)

    def _sentences(self, place: int) -> Sequence[frozenset[str]]:
        """The stems of each sentence of a long memory; short sentences are in many memories."""
        if place not in self._long:
            text = self._memories[place].text
            units = _SENTENCE.split(text) if len(text.split()) > _LONG else ()
            stems = (frozenset(said(unit).stems) for unit in units)
            self._long[place] = [own for own in stems if len(own) >= _SENTENCE_STEMS]
        return self._long[place]

    def _matched(self, text: str) -> dict[int, float]:
        """The share of each memory's words that are in the text, those with most weight first."""
        if (known := self._matches.get(text)) is None:
            weights: dict[int, float] = {}
            for stem in dict.fromkeys(_content_of(text)):
                for place in self._places.get(stem, ()):
                    weights[place] = weights.get(place, 0.0) + self.weight(stem)
            best = sorted(weights, key=lambda place: (-weights[place], place))
            known = {place: weights[place] / self._totals[place] for place in best}
            if len(self._matches) >= _MEMO_TEXTS:
                self._matches.clear()
            self._matches[text] = known
        return known

    @cached_property
    def _places(self) -> dict[str, list[int]]:
        """The places of the memories that contain each stem."""
        found: dict[str, list[int]] = {}
        for place, memory in enumerate(self._memories):
            for stem in said(memory.text).stems:
                found.setdefault(stem, []).append(place)
        return found

    @cached_property
    def _totals(self) -> list[float]:
        return [sum(map(self.weight, said(m.text).stems)) for m in self._memories]


def _other_day(told: Said, own: Said, memory: Memory) -> bool:
    """Whether the text gives another date than the memory, which says `yesterday` or a date."""
    if not told.days:
        return False
    days = set(own.days)
    if memory.at is not None:
        day: date = memory.at.date()
        spoken = set(re.findall(r"[a-z]+", memory.text.lower()))
        for word, shift in _RELATIVE.items():
            if word in spoken:
                then = day + timedelta(days=shift)
                days |= {(then.month, then.day), (day.month, day.day)}
    return bool(days) and told.days.isdisjoint(days)


def _squeezed(text: str) -> str:
    return " ".join(text.split())
