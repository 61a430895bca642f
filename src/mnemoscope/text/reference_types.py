"""What type a reference is (date, number, list, yes or no, other text), and its parts."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache
from random import Random
from typing import Literal, NamedTuple

from mnemoscope.text.overlap import answer_tokens
from mnemoscope.types import Question

Length = Literal["plain", "sentence", "long"]
LENGTHS: tuple[Length, ...] = ("plain", "sentence", "long")
"""An answer beside its reference: about as long, a sentence around it, or far longer."""
Shared = Literal["same", "all", "most", "half", "few", "none"]
SHARED: tuple[Shared, ...] = ("same", "all", "most", "half", "few", "none")
"""How many of the reference's words an answer has; `same` has no others."""
Beside = Literal["few", "some", "many", "most"]
BESIDE: tuple[Beside, ...] = ("few", "some", "many", "most")
"""How many other words an answer has: at most half as many as the reference has words, as many,
twice as many, or more."""
NO_ANSWER = "no answer"
"""The stratum of questions that must not be answered."""
ReferenceType = Literal["date", "number", "list", "yes-no", "text"]
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
_ONES = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen nineteen"
).split()
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_MONTH = "|".join(f"{m}|{m[:3]}" for m in MONTHS)
_DATES = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"(?P<year>(?:19|20)\d\d)-(?P<number>\d\d)-(?P<day>\d\d)",
        rf"(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\s*(?:of\s+)?(?P<month>{_MONTH})\b[.,]?\s*(?P<year>(?:19|20)\d\d)?",
        rf"\b(?P<month>{_MONTH})\b\.?\s*(?P<day>\d{{1,2}})(?:st|nd|rd|th)?\b(?!\d)(?:,?\s*(?P<year>(?:19|20)\d\d))?",
        rf"\b(?P<month>{_MONTH})\b[.,]?\s*(?:of\s+)?(?P<year>(?:19|20)\d\d)",
        r"\b(?P<year>(?:19|20)\d\d)\b",
    )
)
_NUMBER = re.compile(r"(?<![\w.$–-])\d{1,4}(?![\w.,–-]*\d)(?!\w)")
_NUMBER_WORD = re.compile(rf"\b(?:{'|'.join([*_ONES[1:], *_TENS])})\b", re.IGNORECASE)
_YES_NO = re.compile(r"(?:likely |presumably )?(?:yes|no|not)\b", re.IGNORECASE)
_SEPARATOR = re.compile(r"\s*(?:,\s*and\s|,|;|\s+and\s|\n)\s*")
_ITEM_WORDS = 7


class FoundDate(NamedTuple):
    """A date in a text; day and month are None where the text does not say them."""

    text: str
    day: int | None
    month: int | None
    year: int | None
    whole: str
    """The text around it."""

    def replaced(self, other: str) -> str:
        return self.whole.replace(self.text, other, 1)

    def same_as(self, other: FoundDate) -> bool:
        return (self.day, self.month, self.year) == (other.day, other.month, other.year)

    @property
    def parts(self) -> tuple[bool, bool, bool]:
        """Which of day, month and year it has."""
        return self.day is not None, self.month is not None, self.year is not None

    def forms(self) -> list[str]:
        """The same date as others write it."""
        assert self.month is not None
        month, year = MONTHS[self.month - 1], self.year
        if self.day is None:
            return [f"{month} {year}", f"{month} of {year}", f"{month[:3]} {year}"] if year else []
        of_year = f", {year}" if year else ""
        forms = [f"{month} {self.day}{of_year}", f"{self.day} {month}{of_year.replace(',', '')}"]
        forms.append(f"the {_ordinal(self.day)} of {month}{of_year}")
        if year:
            forms.append(f"{year}-{self.month:02d}-{self.day:02d}")
        return forms

    def moved(self, rng: Random) -> FoundDate:
        """Another date with the same parts: half of them near, half anywhere."""
        day, month, year = self.day, self.month, self.year
        near = rng.random() < 0.5
        if day is not None and near:
            day = _other(rng, day, 1, 28)
        elif month is not None:
            month = _other(rng, month, 1, 12)
            day = None if day is None else rng.randint(1, 28)
        elif year is not None:
            year = year + rng.choice([-3, -2, -1, 1, 2])
        if not near and year is not None and self.month is not None and rng.random() < 0.3:
            year = year + rng.choice([-1, 1])
        return self._replace(day=day, month=month, year=year)

    def as_written(self, like: FoundDate) -> str:
        """This date in the form of another one's text."""
        if self.month is None:
            return str(self.year)
        month = MONTHS[self.month - 1]
        if like.text[:1].isdigit() and self.day is not None:
            return f"{self.day} {month}" + (f" {self.year}" if self.year else "")
        day = "" if self.day is None else f" {self.day}" + ("," if self.year else "")
        return f"{month}{day}" + (f" {self.year}" if self.year else "")


def find_date(text: str) -> FoundDate | None:
    """The first date of a text that is little else than a date."""
    for pattern in _DATES:
        if found := pattern.search(text):
            parts = found.groupdict()
            number = parts.get("number")
            name = parts.get("month")
            month = int(number) if number else _month(name) if name else None
            day = int(parts["day"]) if parts.get("day") else None
            if day is not None and not 1 <= day <= 31:
                continue
            if month is not None and not 1 <= month <= 12:
                continue
            if re.match(r"\s*[-–]\s*\d", text[found.end() :]):
                return None  # a range
            around = len((text[: found.start()] + " " + text[found.end() :]).split())
            if around > 6:
                return None
            year = int(parts["year"]) if parts.get("year") else None
            return FoundDate(found[0].strip().rstrip(",."), day, month, year, text.strip())
    return None


def find_number(text: str) -> tuple[str, int] | None:
    """A whole number of a short text, as written and as a value."""
    if len(text.split()) > 8:
        return None
    if found := _NUMBER.search(text):
        return found[0], int(found[0])
    if found := _NUMBER_WORD.search(text):
        word = found[0].lower()
        value = _ONES.index(word) if word in _ONES else (_TENS.index(word) + 2) * 10
        return found[0], value
    return None


def number_words(value: int) -> str | None:
    if 0 <= value < len(_ONES):
        return _ONES[value]
    if 20 <= value < 100:
        ones = f"-{_ONES[value % 10]}" if value % 10 else ""
        return _TENS[value // 10 - 2] + ones
    return None


def list_items(text: str) -> list[str]:
    """The items of an enumeration; empty if the text is none."""
    if '"' in text or "“" in text:  # titles contain commas and "and"
        return []
    items = [item.strip(" .") for item in _SEPARATOR.split(text.strip().rstrip("."))]
    items = [item for item in items if item]
    if len(items) < 2 or any(len(item.split()) > _ITEM_WORDS for item in items):
        return []
    return items


@lru_cache(1 << 14)
def type_of(question: str, reference: str) -> ReferenceType:
    if _YES_NO.match(reference.strip()):
        return "yes-no"
    if find_date(reference) is not None:
        return "date"
    asked = question.lower()
    if find_number(reference) is not None and (
        len(reference.split()) <= 2 or "how many" in asked or "how long" in asked or "how " in asked
    ):
        return "number"
    return "list" if list_items(reference) else "text"


def length_of(answer: str, reference: str) -> Length:
    """The length of an answer beside its reference."""
    words, own = len(answer.split()), len(reference.split())
    if words <= 1.5 * own + 2:
        return "plain"
    return "sentence" if words <= 3 * own + 8 else "long"


def shared_words(answer: str, reference: str) -> Shared:
    """How many of the reference's stemmed words are in the answer."""
    wanted, own = Counter(answer_tokens(reference)), Counter(answer_tokens(answer))
    if wanted == own:
        return "same"
    share = (wanted & own).total() / wanted.total() if wanted else 1.0
    if share == 1:
        return "all"
    return "most" if share >= 0.6 else "half" if share >= 0.4 else "few" if share else "none"


def words_beside(answer: str, reference: str) -> Beside:
    """How many stemmed words the answer has that are not in the reference."""
    wanted, own = Counter(answer_tokens(reference)), Counter(answer_tokens(answer))
    share = (own - wanted).total() / max(1, wanted.total())
    return "few" if share <= 0.5 else "some" if share <= 1 else "many" if share <= 2 else "most"


def stratum_of(question: Question, answer: str) -> str:
    """The stratum of an answer: the type of the reference, and the answer's length beside it.

    A judge's errors differ between strata, so rates of an exam are weighted by those of a run.
    """
    if question.expects != "answer":
        return NO_ANSWER
    return f"{type_of(question.text, question.reference)}, {length_of(answer, question.reference)}"


def _month(name: str) -> int:
    return next(i for i, m in enumerate(MONTHS, 1) if m.lower().startswith(name.lower()[:3]))


def _ordinal(day: int) -> str:
    ending = "th" if 10 <= day % 100 <= 20 else {1: "st", 2: "nd", 3: "rd"}.get(day % 10, "th")
    return f"{day}{ending}"


def _other(rng: Random, value: int, low: int, high: int) -> int:
    found = rng.randint(low, high - 1)
    return found + 1 if found >= value else found
