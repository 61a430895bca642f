"""Memories as the days of a life, which is all that Recall Bench's wire knows, and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from mnemoscope.types import Memory, Scalar

_ARCS = "active_arcs"
_SEPARATOR = "\n\n"


class Day(NamedTuple):
    """A day's log with what is known about the day."""

    number: int
    content: str
    date: str = ""
    persona: str = ""
    arcs: tuple[str, ...] = ()


class DayIndex:
    """Which day of the life a memory belongs to.

    Its own `day` where the dataset counts days; else its date, counted from the first one; without
    any date, a day for each memory.
    """

    def __init__(self) -> None:
        self._first: date | None = None
        self._last = 0

    def days(self, scope: str, memories: Sequence[Memory]) -> list[Day]:
        """The memories of each day joined, in their order."""
        by_day: dict[int, list[Memory]] = {}
        for memory in memories:
            by_day.setdefault(self._number(memory), []).append(memory)
        return [_joined(number, scope, held) for number, held in by_day.items()]

    def _number(self, memory: Memory) -> int:
        counted = memory.metadata.get("day")
        if isinstance(counted, int) and not isinstance(counted, bool):
            self._last = counted
        elif memory.at is not None:
            self._first = self._first or memory.at.date()
            self._last = (memory.at.date() - self._first).days + 1
        elif self._first is None:
            self._last += 1
        return self._last


def _joined(number: int, scope: str, memories: Sequence[Memory]) -> Day:
    first = memories[0]
    arcs = str(first.metadata.get(_ARCS, ""))
    return Day(
        number,
        _SEPARATOR.join(memory.text for memory in memories),
        first.at.date().isoformat() if first.at else "",
        scope,
        tuple(filter(None, arcs.split(","))),
    )


def memory_of(day: Day) -> Memory:
    """A day that somebody else's harness tells as one memory."""
    about: dict[str, Scalar] = {
        "day": day.number,
        "persona": day.persona,
        _ARCS: ",".join(day.arcs),
    }
    return Memory(
        f"day-{day.number:04}",
        day.content,
        _morning(day.date),
        metadata={key: value for key, value in about.items() if value != ""},
    )


def _morning(text: str) -> datetime | None:
    """The first moment of the date, in UTC. What cannot be read was not told."""
    try:
        return datetime.combine(date.fromisoformat(text[:10]), datetime.min.time(), UTC)
    except ValueError:
        return None
