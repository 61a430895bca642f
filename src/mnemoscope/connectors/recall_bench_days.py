"""The days that Recall Bench's protocol has: memories are converted to days, and back."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from mnemoscope.types import Memory, Scalar

_ARCS = "active_arcs"
_SEPARATOR = "\n\n"


class Day(NamedTuple):
    """A day's log with its metadata."""

    number: int
    content: str
    date: str = ""
    persona: str = ""
    arcs: tuple[str, ...] = ()


class DayIndex:
    """Assign memories to days of the history.

    The day is the memory's `day` if the dataset counts days; else its date, counted from the first
    one. Without dates each memory is a day.
    """

    def __init__(self) -> None:
        self._first: date | None = None
        self._last = 0

    def days(self, scope: str, memories: Sequence[Memory]) -> list[Day]:
        """Join the memories of each day, in their order."""
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


def day_memory(day: Day) -> Memory:
    """Convert a day that another harness sends to one memory."""
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
    """The first moment of the date, in UTC; None if it cannot be read."""
    try:
        return datetime.combine(date.fromisoformat(text[:10]), datetime.min.time(), UTC)
    except ValueError:
        return None
