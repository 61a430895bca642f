"""The schedule of a written history: on which days which session writes, and how much.

It depends on the persona, the arcs and the date of day 1 only, not on what was written: a gap is
an entry of the schedule that is not on disk. Days count from 1, weeks begin on Mondays.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import cached_property
from typing import Literal, NamedTuple

from mnemoscope.datasets.day_logs import PRINCIPAL
from mnemoscope.personas.simulate.calendar import Density, date_of_day, is_weekend
from mnemoscope.personas.write.persona_files import Arc, Arcs, Persona, PersonaFiles

Phase = Literal["early", "mid", "late", "concluding"]

ACTIVE_DAYS_A_WEEK = 5
"""A week with fewer active days gets filler days."""
ECHO_EVERY = 14
"""Days between two mentions of an arc in the sessions that reference it."""


def phase(arc: Arc, day: int) -> Phase:
    """The phase of the arc on one of its days."""
    position = (day - arc.start + 1) / (arc.end - arc.start + 1)
    if position < 0.15:
        return "early"
    if position <= 0.75:
        return "mid"
    return "late" if position <= 0.9 else "concluding"


def turning_days(arc: Arc) -> set[int]:
    """The days on which it begins, ends, goes wrong, is corrected or has a directive."""
    days = {arc.start, arc.end, arc.wrong_day, arc.corrected_day}
    days |= {directive.day for directive in arc.directives}
    return {day for day in days if day is not None and arc.is_active(day)}


def echo_days(arc: Arc) -> set[int]:
    """The days on which the sessions that reference it mention it."""
    return turning_days(arc) | set(range(arc.start, arc.end + 1, ECHO_EVERY))


def active_days(arc: Arc, epoch: date) -> set[int]:
    """The days on which its own session writes about it.

    These are its echo days, and every second weekday of an arc under 15 days, every third of one
    under 100 days, every fifth of a longer one.
    """
    length = arc.end - arc.start + 1
    every = 2 if length < 15 else 3 if length < 100 else 5
    weekdays = [
        day for day in range(arc.start, arc.end + 1) if not is_weekend(date_of_day(epoch, day))
    ]
    return echo_days(arc) | set(weekdays[::every])


def echoes(arc: Arc, persona: Persona) -> list[str]:
    """The other sessions that may mention it; an isolated session's arc has none."""
    if persona.is_isolated(arc.primary_session):
        return []
    kept_out = {arc.primary_session, *arc.forbidden_sessions}
    return [id for id in dict.fromkeys(arc.referenced_sessions) if id not in kept_out]


def density(arcs: Sequence[Arc], day: int, *, weekend: bool) -> Density:
    """How much happens in these arcs on a day."""
    incident = any(arc.type == "incident" for arc in arcs)
    directed = sum(len(list(arc.directed(day))) for arc in arcs)
    if weekend and not incident:
        return "quiet"
    if any(day in (arc.wrong_day, arc.corrected_day) for arc in arcs):
        return "dense"
    if directed >= 2 and len(arcs) >= 3:
        return "dense"
    turning = any(day == arc.start or phase(arc, day) == "concluding" for arc in arcs)
    if incident or directed or turning or len(arcs) >= 3:
        return "busy"
    return "normal" if arcs else "quiet"


class Agenda(NamedTuple):
    """The arcs that a session writes about on a day."""

    own: tuple[Arc, ...]
    """Arcs of this session that are active today."""
    echoed: tuple[Arc, ...]
    """Arcs of other sessions that it mentions today."""
    density: Density

    @property
    def is_filler(self) -> bool:
        return not (self.own or self.echoed)


class SessionSchedule:
    """All days of a written history."""

    def __init__(self, persona: Persona, arcs: Arcs, days: int, epoch: date) -> None:
        self.days = days
        self.epoch = epoch
        self._arcs = arcs.arcs
        self._sessions = {one.id: one for one in persona.sessions}
        declared = [id for id in self._sessions if id != PRINCIPAL]
        self.order = [PRINCIPAL, *declared]
        """The order of a day's sessions."""
        self._active = {arc.id: active_days(arc, epoch) for arc in self._arcs}
        self._echo = {arc.id: echo_days(arc) for arc in self._arcs}
        self._echoes = {arc.id: echoes(arc, persona) for arc in self._arcs}

    @classmethod
    def of(cls, files: PersonaFiles) -> SessionSchedule:
        return cls(files.persona, files.arcs, files.days, files.epoch)

    def sessions(self, day: int) -> list[str]:
        """The sessions that write on a day, principal first."""
        return self._driven(day) or ([PRINCIPAL] if day in self.filler_days else [])

    def agenda(self, day: int, session: str) -> Agenda:
        own = tuple(
            arc
            for arc in self._arcs
            if arc.primary_session == session and day in self._active[arc.id]
        )
        echoed = tuple(
            arc
            for arc in self._arcs
            if session in self._echoes[arc.id] and day in self._echo[arc.id]
        )
        return Agenda(own, echoed, density([*own, *echoed], day, weekend=self._is_weekend(day)))

    @cached_property
    def filler_days(self) -> frozenset[int]:
        """Weekdays that bring a week to five active days, or to all its weekdays."""
        return frozenset(day for week in self._weeks() for day in self._filled(week))

    def _weeks(self) -> Iterator[range]:
        first = 1
        while first <= self.days:
            last = first + 6 - date_of_day(self.epoch, first).weekday()
            yield range(first, min(last, self.days) + 1)
            first = last + 1

    def _filled(self, week: range) -> list[int]:
        active = {day for day in week if self._driven(day)}
        free = [day for day in week if day not in active and not self._is_weekend(day)]
        can_write = [day for day in free if self._is_open(PRINCIPAL, day)]
        return can_write[: max(0, ACTIVE_DAYS_A_WEEK - len(active))]

    def _driven(self, day: int) -> list[str]:
        """Sessions with an arc to write about."""
        if not 1 <= day <= self.days:
            return []
        return [
            id for id in self.order if self._is_open(id, day) and not self.agenda(day, id).is_filler
        ]

    def _is_weekend(self, day: int) -> bool:
        return is_weekend(date_of_day(self.epoch, day))

    def _is_open(self, session: str, day: int) -> bool:
        known = self._sessions.get(session)
        return known.is_open(day) if known is not None else session == PRINCIPAL
