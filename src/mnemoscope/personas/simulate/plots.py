"""Plots: which arcs a life has, about what, from when to when, and in which sessions.

Never more than four run at once, and no two are about the same subject.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from mnemoscope.personas.simulate.calendar import LifeCalendar
from mnemoscope.personas.simulate.rng import Deck, Rng
from mnemoscope.personas.simulate.story import (
    ARC_TYPES,
    ArcType,
    Story,
    StoryArc,
    StorySession,
    StorySubject,
)

AT_ONCE = 4
_PAUSE = (5, 17)
"""Days from one beginning to the next, at least and at most."""
_WITHHELD = 2
"""So many subjects of each kind are kept out of the life; questions ask for them in vain."""
_EARLY = 0.4
"""The share of a life that counts as long ago."""
_LASTS = 0.75
"""How often an arc is talked about after its end."""
_CLOSED = 0.16
"""No more than this share of the arcs unfolds behind closed doors."""
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()


@dataclass(frozen=True)
class Plot:
    """One arc of one life."""

    id: str
    type: ArcType
    arc: StoryArc
    subject: StorySubject
    start: int
    end: int
    session: StorySession
    echoes: tuple[str, ...]
    """Other sessions in which it comes up, without anything becoming known there."""
    lasting: bool
    """Whether it is talked about after its end."""
    workdays: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def isolated(self) -> bool:
        return self.session.isolated


class Subjects:
    """The subjects of each kind in random order, and those that never come up."""

    def __init__(self, story: Story, chance: Rng) -> None:
        self._pools: dict[ArcType, list[StorySubject]] = {}
        self.withheld: dict[ArcType, list[StorySubject]] = {}
        for type in ARC_TYPES:
            subjects = list(story.arcs[type].subjects)
            chance.stream("subjects", type).shuffle(subjects)
            self.withheld[type] = subjects[:_WITHHELD]
            self._pools[type] = subjects[_WITHHELD:]
        self._used = dict.fromkeys(ARC_TYPES, 0)

    def next(self, type: ArcType) -> StorySubject:
        pool = self._pools[type]
        round, place = divmod(self._used[type], len(pool))
        self._used[type] += 1
        subject = pool[place]
        if round == 0:
            return subject
        ordinal = _ORDINALS[round + 1] if round < 10 else f"{round + 1}th"
        name = f"{subject.name} {round + 1}"
        return StorySubject(
            name,
            f"the {ordinal} round of {subject.about}",
            f"the {ordinal} round of {subject.also}",
            subject.options,
            subject.objections,
            subject.reasons,
        )

    def scarcest(self, started: dict[ArcType, int]) -> list[ArcType]:
        """Kinds of arcs, the one that is most behind its share first."""
        total = sum(len(pool) for pool in self._pools.values())
        so_far = sum(started.values()) + 1

        def behind(type: ArcType) -> float:
            return len(self._pools[type]) / total * so_far - started[type]

        return sorted(ARC_TYPES, key=behind, reverse=True)


def plan_plots(story: Story, calendar: LifeCalendar, subjects: Subjects, chance: Rng) -> list[Plot]:
    """All arcs of the life, in order of their beginning."""
    random = chance.stream("plots")
    sessions = {session.id: session for session in story.persona.sessions}
    rooms = {
        type: Deck(story.arcs[type].sessions, chance.stream("rooms", type)) for type in ARC_TYPES
    }
    isolated = {id for id, session in sessions.items() if session.isolated}
    squeeze = _squeeze(story)
    openers: list[ArcType] = ["correction", "project", "decision", "incident"]
    random.shuffle(openers)
    started = dict.fromkeys(ARC_TYPES, 0)
    plots: list[Plot] = []
    running: list[Plot] = []
    closed = 0
    due = 1
    for day in calendar.working_days(1, calendar.days):
        running = [plot for plot in running if plot.end >= day]
        if day < due or len(running) >= AT_ONCE:
            continue
        order = openers[len(plots) : len(plots) + 1] or subjects.scarcest(started)
        for type in order:
            arc = story.arcs[type]
            low, high = arc.days
            length = random.randint(low, max(low, round(low + (high - low) * squeeze)))
            end = _end(calendar, day, length)
            workdays = tuple(calendar.working_days(day, end))
            if len(workdays) >= 4:
                break
        else:
            continue
        subject = subjects.next(type)
        enough = closed + 1 > _CLOSED * (len(plots) + 1)
        room = sessions[rooms[type].deal(isolated if enough else ())]
        closed += room.isolated
        plot = Plot(
            f"{type}-{_slug(subject.name)}",
            type,
            arc,
            subject,
            day,
            end,
            room,
            tuple(_echoes(story, room, chance, subject.name)),
            lasting=False,
            workdays=workdays,
        )
        started[type] += 1
        plots.append(plot)
        running.append(plot)
        due = day + (random.randint(1, 3) if len(plots) < 3 else random.randint(*_PAUSE))
    return list(_lasting(plots, calendar, chance))


def _squeeze(story: Story) -> float:
    """What part of the range of lengths may be used, so that arcs do not queue up."""
    weights = [len(story.arcs[type].subjects) for type in ARC_TYPES]

    def mean(end: int) -> float:
        lengths = [story.arcs[type].days[end] for type in ARC_TYPES]
        return sum(w * n for w, n in zip(weights, lengths, strict=True)) / sum(weights)

    low, high = mean(0), mean(1)
    room = 2 * (AT_ONCE * 0.75 * sum(_PAUSE) / 2 - low) / max(high - low, 1)
    return min(1.0, max(0.0, room))


def _end(calendar: LifeCalendar, start: int, length: int) -> int:
    """The last day of an arc; a break in its midst makes it longer."""
    end = start + length - 1
    for away in calendar.breaks:
        if start <= away.first <= end:
            end += away.last - away.first + 1
    return min(end, calendar.days)


def _echoes(story: Story, room: StorySession, chance: Rng, name: str) -> Iterator[str]:
    if room.isolated:
        return
    others = [s.id for s in story.persona.sessions if s.id != room.id and not s.isolated]
    if "principal" in others:
        yield "principal"
        others.remove("principal")
    random = chance.stream("echoes", name)
    if others and random.random() < 0.5:
        yield random.choice(others)


def _lasting(plots: Sequence[Plot], calendar: LifeCalendar, chance: Rng) -> Iterator[Plot]:
    """Decide which arcs are talked about for ever; of those long ago only every third is."""
    early = 0
    for plot in plots:
        if plot.isolated:
            yield plot
        elif plot.end <= _EARLY * calendar.days:
            early += plot.type != "decision"
            yield replace(plot, lasting=early % 3 == 0)
        else:
            yield replace(plot, lasting=chance.stream("lasting", plot.id).random() < _LASTS)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
