"""Check repairs of a history against its logs: dates by what logs call themselves, evidence by what
each day states.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, timedelta
from functools import cache
from itertools import product
from typing import NamedTuple

from mnemoscope._store.errors import DataError
from mnemoscope.datasets.checkpoint_plan import morning
from mnemoscope.datasets.day_logs import day_files, mentions, read_day
from mnemoscope.datasets.persona_folder import (
    PersonaFolder,
    QuestionEntry,
    read_epoch,
    read_questions,
)
from mnemoscope.datasets.persona_repairs import (
    Repair,
    RepairedQuestions,
    RepairList,
    StatedFacts,
    apply_repairs,
    repairs_for,
)

WEEK = 7
_NEAR = 6
"""Days: questions were written about one week at a time."""
_MONTHS = "January February March April May June July".split()
_DATED = re.compile(rf"(\d{{4}})-(\d\d)-(\d\d)|\b({'|'.join(_MONTHS)}) (\d{{1,2}})\b")
_WEEKDAY_DATED = re.compile(rf"\b(\w+day),? ((?:{_DATED.pattern}))")
_PLAIN = str.maketrans({**dict.fromkeys("–—‑", "-"), "’": "'", "‘": "'", "“": '"', "”": '"'})
_NUMBERED = re.compile(r"\bdays (\d+)(?:[–-]| through )(\d+)")
_MARKUP = re.compile(r"[*`]")


class CheckedRepairs(NamedTuple):
    """What the logs say about a list of repairs that they confirm."""

    repairs: int
    confirmed: int
    """Questions that keep their evidence, because each of its days states the answer."""
    whole_weeks: int
    """Those of them whose evidence is seven days."""
    undetermined: dict[str, int]
    """Questions without a date to the number of other days that state their answer."""


def check_repairs(folder: PersonaFolder) -> CheckedRepairs:
    """Check the repairs of a history; raises if they belong to another, or the logs object."""
    listed = repairs_for(folder)
    entries = read_questions(folder.questions)
    _, check = repair(listed, folder, entries, read_epoch(folder))
    days = {entry.id: len(entry.relevant_days) for entry in entries}
    weeks = sum(days[one.id] == WEEK for one in listed.confirmed)
    open_ones = check.undetermined(listed)
    return CheckedRepairs(len(listed.repairs), len(listed.confirmed), weeks, open_ones)


def repair(
    listed: RepairList, folder: PersonaFolder, entries: list[QuestionEntry], epoch: date
) -> tuple[RepairedQuestions, RepairCheck]:
    """Apply the repairs; DataError if the logs do not confirm one of them."""
    logs = {day: read_day(path) for day, path in day_files(folder.memories).items()}
    dates = {day: morning(epoch, day).date() for day in logs}
    named = {f"{folder.id}/day-{day:04}": (day, on) for day, on in dates.items()}
    repaired = apply_repairs(listed, entries, named)
    check = RepairCheck(logs, dates, repaired)
    for problem in check.unjustified(listed):
        raise DataError(f"the logs do not confirm a repair: {problem}", file=listed.name)
    return repaired, check


class RepairCheck:
    """Checks repairs against the logs of the history, by what the logs say."""

    def __init__(
        self, logs: Mapping[int, str], dates: Mapping[int, date], repaired: RepairedQuestions
    ) -> None:
        self._logs = logs
        self._old = dates
        self.dates = {**dates, **repaired.dates}
        self._entries = {entry.id: entry for entry in repaired.entries}
        self._plain = {day: _plain(text) for day, text in logs.items()}
        self._lines = {day: text.split("\n") for day, text in self._plain.items()}
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
            if max(days) > max(old):
                yield f"the question is asked from day {max(old)}, before day {max(days)}"
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
        entry = self._entries[one.id]
        said = _plain(f"{entry.question}\n{entry.answer}")
        if not one.facts:
            yield "names no facts"
        for fact in one.facts:
            # Otherwise a word that stands in every log would confirm any evidence.
            if not any(term in said for term in re.split(r" & |\|", fact)):
                yield f"{fact} is neither in the question nor in the answer"
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
        if numbers := _NUMBERED.search(str(repair.old)):
            meant = {self.dates[int(number)] for number in numbers.groups()}
            if not meant <= _dates(str(repair.new), year):
                yield f"{numbers[0]} are {' and '.join(map(str, sorted(meant)))}"
        for found in _WEEKDAY_DATED.finditer(str(repair.new)):
            [on] = _dates(found[2], year)
            if f"{on:%A}" != found[1]:
                yield f"{on} is not a {found[1]}"

    def _states(self, day: int, fact: str) -> bool:
        text = self._plain[day]
        for way in product(*(part.split("|") for part in fact.split(" & "))):
            # The whole text first: most days lack a term, and a line need not be looked for.
            if all(term in text for term in way) and (
                len(way) == 1 or any(all(t in line for t in way) for line in self._lines[day])
            ):
                return True
        return False


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
