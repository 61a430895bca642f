"""The calendar of a life: real dates, weekends, and breaks of ten days and more."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.personas.simulate.story import Story

_SEASON = 180
"""So many days hold one break or two."""


class Break(NamedTuple):
    first: int
    last: int
    reason: str


class LifeCalendar:
    """Days are counted from 1, which is the epoch."""

    def __init__(self, epoch: date, days: int, breaks: tuple[Break, ...] = ()) -> None:
        self.epoch = epoch
        self.days = days
        self.breaks = breaks
        self._away = {day for away in breaks for day in range(away.first, away.last + 1)}

    def date(self, day: int) -> date:
        return self.epoch + timedelta(days=day - 1)

    def worded(self, day: int) -> str:
        """As it stands in the log: Tuesday, 3 March 2026."""
        return f"{self.date(day):%A}, {plain_date(self.date(day))}"

    def weekend(self, day: int) -> bool:
        return self.date(day).weekday() >= 5

    def away(self, day: int) -> bool:
        return day in self._away

    def works(self, day: int) -> bool:
        return not self.weekend(day) and not self.away(day)

    def working_days(self, first: int, last: int) -> list[int]:
        return [day for day in range(first, min(last, self.days) + 1) if self.works(day)]

    def starting(self, day: int) -> Break | None:
        return next((away for away in self.breaks if away.first == day), None)


def plain_date(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"


def make_calendar(story: Story, days: int, random: Random) -> LifeCalendar:
    try:
        epoch = date.fromisoformat(story.epoch)
    except ValueError:
        raise UsageError(f"epoch {story.epoch!r} of the story is no date YYYY-MM-DD") from None
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
    return LifeCalendar(epoch, days, tuple(breaks))
