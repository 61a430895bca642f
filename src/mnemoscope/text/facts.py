"""Atoms: what of a text can be checked one by one, and where a life first mentions it.

An atom is a number with its unit, a sum of money, a date, a time, a code or a full name. An atom
that neither the memories seen so far nor the question holds was invented.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence, Set
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from mnemoscope.text.matching import normalise, stems
from mnemoscope.types import Memory

_MONTHS = {
    name: number
    for number, full in enumerate(
        "January February March April May June July August September October November "
        "December".split(),
        start=1,
    )
    for name in (full, full[:3], full[:4])
}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = re.compile(
    r"\b(\d{4})-(\d\d)-(\d\d)\b"
    rf"|\b(\d{{1,2}})(?:st|nd|rd|th)?(?: of)? ({_MONTH})\b\.?(?:,? (\d{{4}}))?"
    rf"|\b({_MONTH})\b\.? (\d{{1,2}})(?:st|nd|rd|th)?\b(?:,? (\d{{4}})\b)?"
)
_CAPITAL = "A-ZÀ-ÖØ-Þ"
_NAME = re.compile(
    rf"(?:[{_CAPITAL}][^\W\d_]+(?:['’-][^\W\d_]+)*)(?: [{_CAPITAL}][^\W\d_]+(?:['’-][^\W\d_]+)*)+"
)
_POSSESSIVE = re.compile(r"['’]s?\b")
_LOWER = re.compile(r"\b[a-z]+\b")
_CALENDAR = frozenset(
    "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
) | frozenset(_MONTHS)
_DIGIT = re.compile(r"\d").search
_TRIM = "\"'“”‘’()[]{}<>,;:!?*_.#|"
_NUMBER = re.compile(r"([$€£]?)(-?\d+(?:\.\d+)?)(%|[a-zµ°][a-zµ°/]*)?")
_TIME = re.compile(r"(\d{1,2}):(\d\d)(?::\d\d)?(?:am|pm)?")
_ORDINALS = ("st", "nd", "rd", "th")
_SMALL = 10
_NOT_UNITS = frozenset(
    "a an and as at but by for from in is it of on or so than that the then this to was we were "
    "which with i no not".split()
)
_OPENERS = frozenset(
    "according after all also although and as at because before both but by each earlier even "
    "finally first for from he here his however if in it its later my no now on once "
    "only our she since so some still that the their then there these they this those today until "
    "we when where while with yes yesterday you".split()
)
"""Words that begin sentences, and so stand capitalised before names."""
_DURATIONS = frozenset(stems("days weeks months years hours"))


class Found(NamedTuple):
    """The atoms of one text."""

    exact: list[str]
    """Those that are known or not as they stand."""
    numbers: list[tuple[str, tuple[str, ...]]]
    """Numbers and the stems of the up to two words after them, one of which may be the unit."""
    names: list[tuple[tuple[str, ...], bool]]
    """Runs of capitalised words, and whether a sentence begins with the run."""


def atoms(text: str) -> Found:
    """All there is to check in a text."""
    exact: list[str] = []

    def dated(match: re.Match[str]) -> str:
        exact.extend(_date_atoms(match))
        return " ; "

    text = _DATE.sub(dated, text)
    numbers: list[tuple[str, tuple[str, ...]]] = []
    words = text.split()
    for place, word in enumerate(words):
        if word.isalpha() or not _DIGIT(word):
            continue
        kind, value, unit = _classified(word)
        if kind == "exact":
            exact.append(value)
        elif kind == "number":
            after = (unit,) if unit else _units(words[place : place + 3])
            numbers.append((value, after))
    names = [
        (tuple(_POSSESSIVE.sub("", match.group()).split(" ")), _opens(text, match.start()))
        for match in _NAME.finditer(text)
    ]
    return Found(exact, numbers, names)


def _date_atoms(match: re.Match[str]) -> Iterable[str]:
    iso_year, iso_month, iso_day, day, month, year, month2, day2, year2 = match.groups()
    if iso_year:
        return date_atoms(iso_year, int(iso_month), int(iso_day))[:1]
    number = _MONTHS[month or month2]
    return date_atoms(year or year2 or "", number, int(day or day2))[:1]


def date_atoms(year: str, month: int, day: int) -> tuple[str, ...]:
    """A date with its year where it has one, and the date without the year."""
    yearless = f"date {month:02}-{day:02}"
    return (f"date {year}-{month:02}-{day:02}", yearless) if year else (yearless,)


@lru_cache(maxsize=1 << 14)
def _classified(word: str) -> tuple[str, str, str]:
    """("exact", atom, ""), ("number", number, unit that sticks to it) or ("none", "", "")."""
    plain = normalise(word.strip(_TRIM))
    if time := _TIME.fullmatch(plain.replace(" ", "")):
        return "exact", f"time {int(time[1]) % 12}:{time[2]}", ""
    if number := _NUMBER.fullmatch(plain):
        sign, value, unit = number.groups()
        if unit in _ORDINALS or not value:
            return "none", "", ""
        if sign or unit == "%":
            return "exact", f"{sign}{_shortest(value)}{unit or ''}", ""
        return "number", _shortest(value), stems(unit)[0] if unit and unit.isalpha() else ""
    if any(map(str.isalpha, plain)) and _DIGIT(plain):
        return "exact", f"code {plain}", ""
    return "none", "", ""


def _shortest(number: str) -> str:
    return number.rstrip("0").rstrip(".") if "." in number else number.lstrip("0") or "0"


def _units(words: Sequence[str]) -> tuple[str, ...]:
    """The stems of the words that follow, as far as no punctuation separates them."""
    own: list[str] = []
    for before, word in pairwise(words):
        if before[-1] in ",;:.!?)":
            break
        own.append(word.strip(_TRIM).casefold())
    return _unit_stems(tuple(own))


@lru_cache(maxsize=1 << 14)
def _unit_stems(words: tuple[str, ...]) -> tuple[str, ...]:
    if not words or words[0] in _NOT_UNITS:
        return ()
    return tuple(stems(" ".join(word for word in words if word.isalpha())))


def _opens(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip(" \t\"'“‘*_(>[-")
    return not before or before[-1] in ".!?:;\n]"


class AtomIndex:
    """Every atom of a life, with the places of the memories that hold it."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._units: set[str] = set()
        self._ordinary: set[str] = set(_OPENERS)
        self._places: dict[str, list[int]] = {}
        for place, memory in enumerate(memories):
            found = _noted(f"{memory.speaker}\n{memory.text}", self._units)
            if (day := memory.at) is not None:
                dated = date_atoms(str(day.year), day.month, day.day)
                found |= dict.fromkeys((*dated, f"number {day.year}"))
            for atom in found:
                self._places.setdefault(atom, []).append(place)
            self._ordinary.update(_LOWER.findall(memory.text))

    def invented(
        self, answer: str, seen: int, allowed: Iterable[str], *, small: int = _SMALL
    ) -> list[str]:
        """What the answer holds that no memory before place `seen` and no allowed text holds.

        Whole numbers up to `small` pass: people count what they report, "the 3 decisions".
        """

        def known(atom: str) -> bool:
            return atom in self._places and self._places[atom][0] < seen

        return self._strange(answer, allowed, known, small)

    def absent(self, answer: str, places: Set[int], allowed: Iterable[str]) -> list[str]:
        """What the answer holds that no memory at these places and no allowed text holds."""

        def known(atom: str) -> bool:
            return not places.isdisjoint(self._places.get(atom, ()))

        return self._strange(answer, allowed, known, _SMALL)

    def _strange(
        self, answer: str, allowed: Iterable[str], known: Callable[[str], bool], small: int
    ) -> list[str]:
        """The answer's atoms that are neither known nor in an allowed text."""
        own: dict[str, None] = {}
        for text in allowed:
            own |= _noted(text, set())

        def familiar(atom: str) -> bool:
            return atom in own or known(atom)

        found = atoms(answer)
        strange = [atom.removeprefix("date ") for atom in found.exact if not familiar(atom)]
        dates = sum(atom.startswith("date ") for atom in found.exact)
        for number, units in found.numbers:
            if "." not in number and abs(int(number)) <= small:
                continue
            if dates > 1 and units and units[0] in _DURATIONS:
                continue  # so many days between two dates that are named
            real = [unit for unit in units if unit in self._units]
            atoms_of = [f"number {number} {unit}" for unit in real] or [f"number {number}"]
            if not any(map(familiar, atoms_of)):
                strange.append(" ".join([number, *real[:1]]))
        strange += (
            name for words, opens in found.names for name in self._strangers(words, opens, familiar)
        )
        return list(dict.fromkeys(strange))

    def _strangers(
        self, words: Sequence[str], opens: bool, known: Callable[[str], bool]
    ) -> Iterable[str]:
        """Pairs of capitalised words that nobody is called by."""
        if opens and words[0].lower() in self._ordinary:
            words = words[1:]
        for pair in pairwise(words):
            ordinary = all(word.lower() in self._ordinary for word in pair)
            if not ordinary and not _CALENDAR & set(pair) and not known(_named(pair)):
                yield " ".join(pair)


def _noted(text: str, counted: set[str]) -> dict[str, None]:
    """The atoms of a text in every form that an answer may know them by.

    What things are counted in is added to `counted`.
    """
    found, noted = atoms(text), dict[str, None]()
    for atom in found.exact:
        noted[atom] = None
        if atom.startswith("date ") and atom.count("-") == 2:
            noted[f"date {atom[-5:]}"] = None
        elif atom[0] in "$€£" or atom[-1] == "%":
            noted[f"number {atom.strip('$€£%')}"] = None
    for number, units in found.numbers:
        counted.update(units[:1])
        noted |= dict.fromkeys([f"number {number}", *(f"number {number} {unit}" for unit in units)])
    for words, _ in found.names:
        noted |= dict.fromkeys(map(_named, pairwise(words)))
    return noted


def _named(pair: Sequence[str]) -> str:
    return f"name {' '.join(pair)}".casefold()
