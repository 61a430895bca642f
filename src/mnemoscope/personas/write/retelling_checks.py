"""Whether a session that was told in other words still says exactly what the ledger says.

Pure functions on texts. What is checked is what scoring leans on: values beside what they belong
to, who said them, dates, and that nothing came in that was not there.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from mnemoscope.text.fact_ledger import LedgerFact
from mnemoscope.text.facts import AtomIndex, atoms
from mnemoscope.text.matching import normal_wording, normalise, sentences, spans
from mnemoscope.types import Memory

_HEADING = re.compile(r"^### .*$", re.MULTILINE)
_TITLE = re.compile(r"^#{1,2} ", re.MULTILINE)
_WEEKDAY = re.compile(r"\b(?:Mon|Tues|Wednes|Thurs|Fri|Satur|Sun)day\b")
_LISTED = 3


class Notes(NamedTuple):
    """A session as the simulator told it, and what the ledger has of it."""

    day: int
    session: str
    text: str
    facts: tuple[LedgerFact, ...]
    """Those that were said here."""


def wordings(fact: LedgerFact) -> tuple[str, ...]:
    return (fact.value, *fact.aliases)


def broken(notes: Notes, told: str, ledger: Sequence[LedgerFact]) -> list[str]:
    """What is wrong with the retold text, each as a sentence to its writer; nothing: faithful.

    `ledger` is the whole life's: values of other days and sessions may not turn up here.
    """
    if not told.strip():
        return ["The text is empty."]
    return [
        *_shape(notes.text, told),
        *_values(notes, told),
        *_dates(notes.text, told),
        *_strangers(notes, told, ledger),
    ]


def _shape(original: str, told: str) -> Iterator[str]:
    if _TITLE.search(told):
        yield "There is a line that begins with # or ##."
    wanted, there = _HEADING.findall(original), _HEADING.findall(told)
    if wanted != there:
        yield f"The ### lines are to be exactly these, in this order: {' / '.join(wanted)}."


def _values(notes: Notes, told: str) -> Iterator[str]:
    """Every value where it was, in company of what it belongs to, in the order of the notes."""
    before, now = _sections(notes.text), _sections(told)
    for fact in notes.facts:
        for place, section in enumerate(before):
            said = [one for one in section if _says(one, wordings(fact))]
            if not said:
                continue
            here = now[place] if place < len(now) else []
            company = _company(said, fact)
            retold = [one for one in here if _says(one, wordings(fact))]
            # Where several sentences could be meant, all must stay: nobody knows which tells it.
            times = _together(said, company)
            if not retold:
                yield f"“{fact.value}” is missing{_under(place)}."
            elif _together(retold, company) < times:
                beside = f" together with {' and '.join(company)}" if company else ""
                yield f"“{fact.value}” belongs into {times} sentence(s){_under(place)}{beside}."
    for place, (old, new) in enumerate(zip(before, now, strict=False)):
        wanted, there = _order(old, notes.facts), _order(new, notes.facts)
        if set(wanted) == set(there) and wanted != there:
            yield f"The values are to keep their order{_under(place)}: {', '.join(wanted)}."


def _company(said: Sequence[str], fact: LedgerFact) -> list[str]:
    """What of entity and speaker stands with the value in the notes."""
    names = [name for name in (fact.entity, fact.speaker) if name and name != fact.value]
    best = max(said, key=lambda one: sum(_says(one, [name]) for name in names))
    return [name for name in names if _says(best, [name])]


def _together(sentences: Sequence[str], names: Sequence[str]) -> int:
    """How many sentences hold all the names."""
    return sum(all(_says(one, [name]) for name in names) for one in sentences)


def _order(section: Sequence[str], facts: Sequence[LedgerFact]) -> list[str]:
    """The values in the order in which the section first names them."""
    whole = " \n ".join(section)
    places = {
        fact.value: min(found)
        for fact in facts
        if (found := [s[0] for w in wordings(fact) for s in spans(whole, normal_wording(w))])
    }
    return sorted(places, key=lambda value: (places[value], value))


def _dates(original: str, told: str) -> Iterator[str]:
    wanted, there = _date_counts(original), _date_counts(told)
    if lost := list((wanted - there).elements()):
        yield f"A date of the notes is missing or named too seldom: {_listed(lost)}."
    if new := list((there - wanted).elements()):
        yield f"A date is named that the notes do not name, or too often: {_listed(new)}."
    if days := sorted(set(_WEEKDAY.findall(told)) - set(_WEEKDAY.findall(original))):
        yield f"The notes do not name {_listed(days)}."


def _date_counts(text: str) -> Counter[str]:
    return Counter(
        atom.removeprefix("date ") for atom in atoms(text).exact if atom.startswith("date ")
    )


def _strangers(notes: Notes, told: str, ledger: Sequence[LedgerFact]) -> Iterator[str]:
    index = AtomIndex([Memory("notes", notes.text)])
    if new := index.invented(told, 1, [notes.session], small=-1):
        yield f"The notes do not hold {_listed(new)}."
    old, text = normalise(notes.text), normalise(told)
    own = {fact.id for fact in notes.facts}
    foreign = [
        wording
        for fact in ledger
        if fact.id not in own
        for wording in wordings(fact)
        if normal_wording(wording) in text
        and spans(text, normal_wording(wording))
        and not spans(old, normal_wording(wording))
    ]
    if foreign := list(dict.fromkeys(foreign)):
        yield f"Of another day or session, and not in these notes: {_listed(foreign)}."


def _sections(text: str) -> list[list[str]]:
    """The normalised sentences under each ### line, what stands before the first one first.

    A quotation is one sentence: who says it stands at its beginning.
    """
    found: list[list[str]] = []
    for part in _HEADING.split(text):
        said: list[str] = []
        for line in filter(None, map(str.strip, part.splitlines())):
            if line.startswith(">"):
                said.append(normalise(line))
            else:
                said += (one.text for one in sentences(line))
        found.append(said)
    return found


def _says(sentence: str, of: Sequence[str]) -> bool:
    return any(spans(sentence, normal_wording(wording)) for wording in of)


def _under(place: int) -> str:
    return f" under ### line {place}" if place else ""


def _listed(values: Sequence[str]) -> str:
    more = f" and {len(values) - _LISTED} more" if len(values) > _LISTED else ""
    return ", ".join(f"“{value}”" for value in values[:_LISTED]) + more
