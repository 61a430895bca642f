"""Atoms: the checkable facts of a text, and the memories that contain them.

An atom is a number with its unit, a sum of money, a date, a time, a code or a full name. An atom
of an answer that is neither in the ingested memories nor in the question is invented.
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
"""Words that start sentences, and so can be capitalised in front of names."""
_DURATIONS = frozenset(stems("days weeks months years hours"))


class Found(NamedTuple):
    """The atoms of one text."""

    exact: list[str]
    """Atoms that must match exactly."""
    numbers: list[tuple[str, tuple[str, ...]]]
    """Numbers with the stems of up to two following words, one of which may be the unit."""
    names: list[tuple[tuple[str, ...], bool]]
    """Runs of capitalised words, and whether the run starts a sentence."""


def atoms(text: str) -> Found:
    """All atoms of a text."""
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
        (
            tuple(_POSSESSIVE.sub("", match.group()).split(" ")),
            _starts_sentence(text, match.start()),
        )
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
    """The date with its year, if it has one, and the date without the year."""
    yearless = f"date {month:02}-{day:02}"
    return (f"date {year}-{month:02}-{day:02}", yearless) if year else (yearless,)


@lru_cache(maxsize=1 << 14)
def _classified(word: str) -> tuple[str, str, str]:
    """("exact", atom, ""), ("number", number, attached unit) or ("none", "", "")."""
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
    """The stems of the following words, up to the next punctuation mark."""
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


def _starts_sentence(text: str, start: int) -> bool:
    before = text[max(0, start - 8) : start].rstrip(" \t\"'“‘*_(>[-")
    return not before or before[-1] in ".!?:;\n]"


class AtomIndex:
    """Every atom of a list of memories, with the positions of the memories that contain it."""

    def __init__(self, memories: Sequence[Memory]) -> None:
        self._units: set[str] = set()
        self._ordinary: set[str] = set(_OPENERS)
        self._places: dict[str, list[int]] = {}
        for place, memory in enumerate(memories):
            found = _atom_forms(f"{memory.speaker}\n{memory.text}", self._units)
            if (day := memory.at) is not None:
                dated = date_atoms(str(day.year), day.month, day.day)
                found |= dict.fromkeys((*dated, f"number {day.year}"))
            for atom in found:
                self._places.setdefault(atom, []).append(place)
            self._ordinary.update(_LOWER.findall(memory.text))

    def invented(
        self, answer: str, seen: int, allowed: Iterable[str], *, small: int = _SMALL
    ) -> list[str]:
        """The atoms of an answer that are neither in the first `seen` memories nor allowed.

        Integers up to `small` are accepted, because answers count things: "the 3 decisions".
        """

        def known(atom: str) -> bool:
            return atom in self._places and self._places[atom][0] < seen

        return self._unknown_atoms(answer, allowed, known, small)

    def absent(self, answer: str, places: Set[int], allowed: Iterable[str]) -> list[str]:
        """The atoms of an answer that are neither in the memories at these places nor allowed."""

        def known(atom: str) -> bool:
            return not places.isdisjoint(self._places.get(atom, ()))

        return self._unknown_atoms(answer, allowed, known, _SMALL)

    def _unknown_atoms(
        self, answer: str, allowed: Iterable[str], known: Callable[[str], bool], small: int
    ) -> list[str]:
        """The atoms of an answer that are neither known nor in an allowed text."""
        own: dict[str, None] = {}
        for text in allowed:
            own |= _atom_forms(text, set())

        def is_known(atom: str) -> bool:
            return atom in own or known(atom)

        found = atoms(answer)
        unknown = [atom.removeprefix("date ") for atom in found.exact if not is_known(atom)]
        dates = sum(atom.startswith("date ") for atom in found.exact)
        for number, units in found.numbers:
            if "." not in number and abs(int(number)) <= small:
                continue
            if dates > 1 and units and units[0] in _DURATIONS:
                continue  # a duration between two dates in the answer
            real = [unit for unit in units if unit in self._units]
            atoms_of = [f"number {number} {unit}" for unit in real] or [f"number {number}"]
            if not any(map(is_known, atoms_of)):
                unknown.append(" ".join([number, *real[:1]]))
        unknown += (
            name
            for words, starts in found.names
            for name in self._unknown_names(words, starts, is_known)
        )
        return list(dict.fromkeys(unknown))

    def _unknown_names(
        self, words: Sequence[str], starts: bool, known: Callable[[str], bool]
    ) -> Iterable[str]:
        """Pairs of capitalised words that are not known names."""
        if starts and words[0].lower() in self._ordinary:
            words = words[1:]
        for pair in pairwise(words):
            ordinary = all(word.lower() in self._ordinary for word in pair)
            if not ordinary and not _CALENDAR & set(pair) and not known(_named(pair)):
                yield " ".join(pair)


def _atom_forms(text: str, counted: set[str]) -> dict[str, None]:
    """The atoms of a text in every form that an answer may use.

    The units of its numbers are added to `counted`.
    """
    found, forms = atoms(text), dict[str, None]()
    for atom in found.exact:
        forms[atom] = None
        if atom.startswith("date ") and atom.count("-") == 2:
            forms[f"date {atom[-5:]}"] = None
        elif atom[0] in "$€£" or atom[-1] == "%":
            forms[f"number {atom.strip('$€£%')}"] = None
    for number, units in found.numbers:
        counted.update(units[:1])
        forms |= dict.fromkeys([f"number {number}", *(f"number {number} {unit}" for unit in units)])
    for words, _ in found.names:
        forms |= dict.fromkeys(map(_named, pairwise(words)))
    return forms


def _named(pair: Sequence[str]) -> str:
    return f"name {' '.join(pair)}".casefold()
