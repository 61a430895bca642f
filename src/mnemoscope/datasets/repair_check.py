"""Check repairs of a history against its logs: dates by what logs call themselves, evidence by what
each day states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from itertools import product

from mnemoscope.datasets.day_logs import mentions
from mnemoscope.datasets.persona_repairs import Repair, RepairedQuestions, RepairList, StatedFacts

_NEAR = 6
"""Days: questions were written about one week at a time."""
_MONTHS = "January February March April May June July".split()
_DATED = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)|\b({'|'.join(_MONTHS)}) (\d{{1,2}})\b")
_WEEKDAY_DATED = re.compile(rf"\b(\w+day),? ((?:{_DATED.pattern}))")
_PLAIN = str.maketrans({**dict.fromkeys("–—‑", "-"), "’": "'", "‘": "'", "“": '"', "”": '"'})
_MARKUP = re.compile(r"[*`]")


class RepairCheck:
    """Checks repairs against the logs of the history, by what the logs say."""

    def __init__(
        self, logs: Mapping[int, str], dates: Mapping[int, date], repaired: RepairedQuestions
    ) -> None:
        self._logs = logs
        self._old = dates
        self.dates = {**dates, **repaired.dates}
        self._entries = {entry.id: entry for entry in repaired.entries}
        self._lines = {day: _plain(text).split("\n") for day, text in logs.items()}
        self.states = cache(self._states)

    def unjustified(self, listed: RepairList) -> Iterator[str]:
        """What the logs do not confirm, each with the repair's id."""
        for repair in listed.repairs:
            yield from (f"{repair.id}: {problem}" for problem in self._problems(repair))
        for one in listed.confirmed:
            entry = self._entries.get(one.id)
            if entry is None:
                yield f"{one.id}: the history has no such id"
                continue
            days = entry.relevant_days
            yield from (f"{one.id}: {problem}" for problem in self._unstated(one, days))

    def undetermined(self, listed: RepairList) -> dict[str, int]:
        """Questions that name no time, and how many days besides their evidence state the answer.

        They stay as they are: only their author knows which days they mean.
        """
        found: dict[str, int] = {}
        checked: list[StatedFacts | Repair] = [*listed.confirmed]
        checked += [repair for repair in listed.repairs if repair.field == "evidence"]
        for one in checked:
            entry = self._entries[one.id]
            if _DATED.search(entry.question):
                continue
            others = set(self._logs) - set(entry.relevant_days)
            if n := sum(all(self.states(day, fact) for fact in one.facts) for day in others):
                found[one.id] = n
        return found

    def _problems(self, repair: Repair) -> Iterator[str]:
        if repair.field == "date":
            yield from self._wrong_log_date(repair)
        elif repair.field == "evidence":
            days, old = tuple(map(int, repair.new)), tuple(map(int, repair.old))
            facts = StatedFacts(repair.id, repair.facts, repair.hold)
            yield from self._unstated(facts, days)
            for day in set(old) - set(days):
                if not self._is_needless(repair, day):
                    yield f"day {day} states the answer, too"
        elif repair.field in ("question", "answer"):
            yield from self._wrong_dates(repair)

    def _wrong_log_date(self, repair: Repair) -> Iterator[str]:
        """A log names its own date, and that or its weekday more often than the other one."""
        day = int(repair.id[-4:])
        text, old, new = self._logs[day], self._old[day], self.dates[day]
        named = mentions(text, new) > mentions(text, old)
        weekday = text.count(f"{new:%A}") > text.count(f"{old:%A}")
        if not mentions(text, new) or not (named or weekday):
            yield f"its log does not name {new} as its date"
        if abs(new - old) != timedelta(days=1):
            yield f"{new} is not a day from {old}"

    def _unstated(self, one: StatedFacts, days: Iterable[int]) -> Iterator[str]:
        days = tuple(days)
        needed = all if one.hold == "all" else any
        for day in days:
            if not needed(self.states(day, fact) for fact in one.facts):
                yield f"day {day} does not state {' and '.join(one.facts)}"
        for fact in one.facts:
            if not any(self.states(day, fact) for day in days):
                yield f"no day of the evidence states {fact}"

    def _is_needless(self, repair: Repair, day: int) -> bool:
        """Whether the day lacks a fact, or is outside the dates that the question names."""
        needed = all if repair.hold == "all" else any
        if not needed(self.states(day, fact) for fact in repair.facts):
            return True
        named = _dates(self._entries[repair.id].question, self.dates[day].year)
        return bool(named) and not min(named) <= self.dates[day] <= max(named)

    def _wrong_dates(self, repair: Repair) -> Iterator[str]:
        """A date that a repair brings in is that of a log near the question's days."""
        days = self._entries[repair.id].relevant_days
        near = {
            self.dates[day] for day in self._logs if all(abs(day - one) <= _NEAR for one in days)
        }
        year = self.dates[days[0]].year
        for new in _dates(str(repair.new), year) - _dates(str(repair.old), year):
            if new not in near:
                yield f"{new} is the date of no log near days {days[0]} to {days[-1]}"
        for found in _WEEKDAY_DATED.finditer(str(repair.new)):
            [on] = _dates(found[2], year)
            if f"{on:%A}" != found[1]:
                yield f"{on} is not a {found[1]}"

    def _states(self, day: int, fact: str) -> bool:
        ways = product(*(part.split("|") for part in fact.split(" & ")))
        return any(all(term in line for term in way) for way in ways for line in self._lines[day])


def _dates(text: str, year: int) -> set[date]:
    found: set[date] = set()
    for written_year, month, day, name, number in _DATED.findall(text):
        if name:
            found.add(date(year, _MONTHS.index(name) + 1, int(number)))
        else:
            found.add(date(int(written_year), int(month), int(day)))
    return found


def _plain(text: str) -> str:
    return _MARKUP.sub("", text.casefold().translate(_PLAIN))
