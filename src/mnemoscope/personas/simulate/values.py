"""Values: what a fact turns out to be, and the other ways to write it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from datetime import timedelta
from random import Random

from mnemoscope.personas.simulate.calendar import LifeCalendar, plain_date
from mnemoscope.personas.simulate.cast import colleagues
from mnemoscope.personas.simulate.rng import Deck, Rng
from mnemoscope.personas.simulate.story import Story, StoryFact
from mnemoscope.text.fact_ledger import date_wordings

_UNITS = {
    "ms": "milliseconds",
    "min": "minutes",
    "h": "hours",
    "km": "kilometres",
    "kg": "kilograms",
    "mg": "milligrams",
    "MB": "megabytes",
    "GB": "gigabytes",
}


class ValuePool:
    """Deals values, so that no two subjects share one as long as there are others."""

    def __init__(self, story: Story, calendar: LifeCalendar, chance: Rng) -> None:
        self._people = colleagues(story)
        self._almanac = calendar
        self._chance = chance
        self._decks: dict[str, Deck[str]] = {}
        self._dates: dict[str, set[str]] = {}

    def draw(self, attribute: str, fact: StoryFact, day: int, avoid: Collection[str]) -> str:
        """A value that becomes known on this day and is none of those to avoid."""
        if fact.values.date:
            return self._date(attribute, fact.values.date, day, avoid)
        if attribute not in self._decks:
            random = self._chance.stream("values", attribute)
            self._decks[attribute] = Deck(self._cards(fact), random)
        return self._decks[attribute].deal(avoid)

    def _cards(self, fact: StoryFact) -> list[str]:
        if fact.values.number:
            low, high, step = fact.values.number
            numbers = range(low, high + 1, step)
            return [fact.values.form.replace("{n}", str(n)) for n in numbers]
        return self._people if fact.values.person else list(fact.values.pick)

    def _date(
        self, attribute: str, ahead: tuple[int, int], day: int, avoid: Collection[str]
    ) -> str:
        random = self._chance.stream("dates", f"{attribute} {day} {sorted(avoid)}")
        taken = self._dates.setdefault(attribute, set())
        value = ""
        for _ in range(60):
            value = self._some_date(day, ahead, random)
            if value not in taken and value not in avoid:
                break
        taken.add(value)
        return value

    def _some_date(self, day: int, ahead: tuple[int, int], random: Random) -> str:
        when = self._almanac.date(day + random.randint(*ahead))
        if when.weekday() >= 5:
            when += timedelta(days=7 - when.weekday())
        return plain_date(when)


def aliases(
    value: str, fact: StoryFact | None, calendar: LifeCalendar, day: int
) -> tuple[str, ...]:
    """Other wordings that say the same."""
    if fact is None or fact.values.person:
        return ()
    if fact.values.date:
        return _other_dates(value, calendar, day)
    return tuple(dict.fromkeys(word for word in _rewordings(value) if word != value))


def _other_dates(value: str, calendar: LifeCalendar, day: int) -> tuple[str, ...]:
    for ahead in range(2000):
        wordings = date_wordings(calendar.date(day + ahead))
        if value in wordings:
            return tuple(word for word in wordings if word != value)
    return ()


def _rewordings(value: str) -> Iterator[str]:
    if found := re.search(r"([$€£])(\d+)k\b", value):
        full = f"{found[1]}{int(found[2]) * 1000:,}"
        yield value.replace(found[0], full)
    if found := re.search(r"([$€£])(\d+)m\b", value, re.IGNORECASE):
        yield value.replace(found[0], f"{found[1]}{found[2]} million")
    if found := re.search(r"\b(\d{1,2}):(\d\d) ?([AaPp])\.?[Mm]\.?", value):
        hour = int(found[1]) % 12 + (12 if found[3] in "Pp" else 0)
        yield value.replace(found[0], f"{hour:02}:{found[2]}")
        yield value.replace(found[0], f"{found[1]}:{found[2]} {found[3].lower()}m")
    if found := re.search(r"(?<![-\w.,])(?<!extension )\d{4,}(?![-\w.,])", value):
        yield value.replace(found[0], f"{int(found[0]):,}")
    if found := re.search(r"\d%", value):
        yield value.replace("%", " percent")
    for short, long in _UNITS.items():
        if re.search(rf"\d {short}\b", value):
            yield re.sub(rf"(\d) {short}\b", rf"\1 {long}", value)
