"""The calendar of a simulated history: real dates, weekends, and breaks of ten days and more."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Literal, NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.personas.simulate.story import Story

Density = Literal["quiet", "normal", "busy", "dense"]
"""How much happens on a day, and so how long its log is."""
_SEASON = 180
"""Days; each season has one break or two."""


class Break(NamedTuple):
    first: int
    last: int
    reason: str


class WorkCalendar:
    """Days count from 1; day 1 is the epoch."""

    def __init__(self, epoch: date, days: int, breaks: tuple[Break, ...] = ()) -> None:
        self.epoch = epoch
        self.days = days
        self.breaks = breaks
        self._away = {day for away in breaks for day in range(away.first, away.last + 1)}

    def date(self, day: int) -> date:
        return date_of_day(self.epoch, day)

    def away(self, day: int) -> bool:
        return day in self._away

    def works(self, day: int) -> bool:
        return not is_weekend(self.date(day)) and not self.away(day)

    def working_days(self, first: int, last: int) -> list[int]:
        return [day for day in range(first, min(last, self.days) + 1) if self.works(day)]

    def starting(self, day: int) -> Break | None:
        return next((away for away in self.breaks if away.first == day), None)


def date_of_day(epoch: date, day: int) -> date:
    return epoch + timedelta(days=day - 1)


def is_weekend(day: date) -> bool:
    return day.weekday() >= 5


def plain_date(day: date) -> str:
    """3 March 2026"""
    return f"{day.day} {day:%B} {day.year}"


def long_date(day: date) -> str:
    """Tuesday, 3 March 2026"""
    return f"{day:%A}, {plain_date(day)}"


def make_calendar(story: Story, days: int, random: Random) -> WorkCalendar:
    try:
        epoch = date.fromisoformat(story.epoch)
    except ValueError:
        raise UsageError(f"epoch {story.epoch!r} of the story is not a date YYYY-MM-DD") from None
    breaks: list[Break] = []
    for season in range(0, days, _SEASON):
        starts = [season + random.randint(48, 88)]
        if random.random() < 0.4:
            starts.append(season + random.randint(122, 150))
        for start in starts:
            last = start + random.randint(10, 15) - 1
            reason = random.choice(story.breaks)
            if last < days:
                breaks.append(Break(start, last, reason))
    return WorkCalendar(epoch, days, tuple(breaks))
