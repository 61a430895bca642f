"""The plan of arcs: the subject, the first and last day and the session of each.

At most four arcs run at once, and each has its own subject.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import msgspec

from mnemoscope.personas.simulate.calendar import WorkCalendar
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
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
"""Fewest and most days from the start of one arc to the start of the next."""
_WITHHELD = 2
"""Subjects of each type that never come up; questions about them have no answer."""
_EARLY = 0.4
"""Arcs that end within this share of the history count as early."""
_LASTS = 0.75
"""The probability that a later arc is mentioned after its end."""
_ISOLATED = 0.16
"""The largest share of arcs that take place in isolated sessions."""
_ORDINALS = "zeroth first second third fourth fifth sixth seventh eighth ninth tenth".split()


@dataclass(frozen=True)
class PlannedArc:
    """One arc of a simulated history."""

    id: str
    type: ArcType
    template: StoryArc
    subject: StorySubject
    start: int
    end: int
    session: StorySession
    echoes: tuple[str, ...]
    """Other sessions that mention it without stating a fact."""
    lasting: bool
    """Whether it is mentioned after its end."""
    workdays: tuple[int, ...]

    @property
    def name(self) -> str:
        return self.subject.name

    @property
    def isolated(self) -> bool:
        return self.session.isolated


class SubjectPool:
    """The subjects of each type in random order, and those that are withheld."""

    def __init__(self, story: Story, rng: Rng) -> None:
        self._pools: dict[ArcType, list[StorySubject]] = {}
        self.withheld: dict[ArcType, list[StorySubject]] = {}
        for type in ARC_TYPES:
            subjects = list(story.arcs[type].subjects)
            rng.stream("subjects", type).shuffle(subjects)
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
        return msgspec.structs.replace(
            subject,
            name=f"{subject.name} {round + 1}",
            about=f"the {ordinal} round of {subject.about}",
            also=f"the {ordinal} round of {subject.also}",
        )

    def scarcest(self, started: Counter[ArcType]) -> list[ArcType]:
        """Arc types, the one furthest below its share first."""
        total = sum(len(pool) for pool in self._pools.values())
        so_far = sum(started.values()) + 1

        def behind(type: ArcType) -> float:
            return len(self._pools[type]) / total * so_far - started[type]

        return sorted(ARC_TYPES, key=behind, reverse=True)


def plan_arcs(
    story: Story, calendar: WorkCalendar, subjects: SubjectPool, rng: Rng
) -> list[PlannedArc]:
    """All arcs of the history, in the order of their first days."""
    random = rng.stream("plots")
    sessions = {session.id: session for session in story.persona.sessions}
    isolated = {id for id, session in sessions.items() if session.isolated}
    session_ids = {
        type: ShuffledCycle(story.arcs[type].sessions, rng.stream("rooms", type))
        for type in ARC_TYPES
    }
    squeeze = _squeeze(story)
    openers: list[ArcType] = ["correction", "project", "decision", "incident"]
    random.shuffle(openers)
    arcs: list[PlannedArc] = []
    running: list[PlannedArc] = []
    started: Counter[ArcType] = Counter()
    due, isolated_arcs = 1, 0
    for day in calendar.working_days(1, calendar.days):
        running = [arc for arc in running if arc.end >= day]
        if day < due or len(running) >= AT_ONCE:
            continue
        order = openers[len(arcs) : len(arcs) + 1] or subjects.scarcest(started)
        for type in order:
            template = story.arcs[type]
            low, high = template.days
            length = random.randint(low, max(low, round(low + (high - low) * squeeze)))
            end = _end(calendar, day, length)
            workdays = tuple(calendar.working_days(day, end))
            if len(workdays) >= 4:
                break
        else:
            continue
        subject = subjects.next(type)
        enough = isolated_arcs + 1 > _ISOLATED * (len(arcs) + 1)
        session = sessions[session_ids[type].draw(isolated if enough else ())]
        isolated_arcs += session.isolated
        arc = PlannedArc(
            f"{type}-{re.sub(r'[^a-z0-9]+', '-', subject.name.lower()).strip('-')}",
            type,
            template,
            subject,
            day,
            end,
            session,
            tuple(_echoes(story, session, rng, subject.name)),
            lasting=False,
            workdays=workdays,
        )
        started[type] += 1
        arcs.append(arc)
        running.append(arc)
        due = day + (random.randint(1, 3) if len(arcs) < 3 else random.randint(*_PAUSE))
    return list(_lasting(arcs, calendar, rng))


def _squeeze(story: Story) -> float:
    """The share of the range of lengths that arcs may use, so that they do not queue up."""
    weights = [len(story.arcs[type].subjects) for type in ARC_TYPES]

    def mean(end: int) -> float:
        lengths = [story.arcs[type].days[end] for type in ARC_TYPES]
        return sum(w * n for w, n in zip(weights, lengths, strict=True)) / sum(weights)

    low, high = mean(0), mean(1)
    room = 2 * (AT_ONCE * 0.75 * sum(_PAUSE) / 2 - low) / max(high - low, 1)
    return min(1.0, max(0.0, room))


def _end(calendar: WorkCalendar, start: int, length: int) -> int:
    """The last day of an arc; a break during the arc makes it longer."""
    end = start + length - 1
    for away in calendar.breaks:
        if start <= away.first <= end:
            end += away.last - away.first + 1
    return min(end, calendar.days)


def _echoes(story: Story, session: StorySession, rng: Rng, name: str) -> Iterator[str]:
    if session.isolated:
        return
    others = [s.id for s in story.persona.sessions if s.id != session.id and not s.isolated]
    if "principal" in others:
        yield "principal"
        others.remove("principal")
    random = rng.stream("echoes", name)
    if others and random.random() < 0.5:
        yield random.choice(others)


def _lasting(arcs: Sequence[PlannedArc], calendar: WorkCalendar, rng: Rng) -> Iterator[PlannedArc]:
    """Decide which arcs are mentioned after their end: a third of the early, most later ones."""
    early = 0
    for arc in arcs:
        if arc.isolated:
            yield arc
        elif arc.end <= _EARLY * calendar.days:
            early += arc.type != "decision"
            yield replace(arc, lasting=early % 3 == 0)
        else:
            yield replace(arc, lasting=rng.stream("lasting", arc.id).random() < _LASTS)
