"""What a persona and its arcs must keep, beyond the form of their files.

Each broken rule is one sentence that says what to change, to a model as well as to a person.

| life         | project | incident | decision | learning | relationship | correction | directed |
|--------------|---------|----------|----------|----------|--------------|------------|----------|
| 500 or more  | 5       | 2        | 3        | 2        | 2            | 4          | 5        |
| 180          | 2       | 1        | 1        | 1        | 1            | 1          | 2        |
| 60           | 1       | 1        | 1        | 1        | 1            | 1          | 1        |
| under 60     | 0       | 0        | 0        | 0        | 0            | 0          | 0        |

Between 60 and 500 days in proportion to 500, rounded, at least one each; a shorter life needs one
arc of any type. `directed` are arcs with directives. Lives of 500 days or more have 15 to 22 arcs
(the minima alone make 18), shorter ones at most 22. At most 4 are active on a day. From 60 days on
there is a quiet period without arcs: 1.2 % of the days, at least 2, and 10 are always enough; none
is longer than 15 days, and at most two have 10 or more.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby

from mnemoscope.datasets.day_logs import PRINCIPAL
from mnemoscope.personas.write.persona_files import Arc, Arcs, Persona, PersonaSession
from mnemoscope.personas.write.visibility import Visibility

LONG, SHORT = 500, 60
"""Days: from here on all rules hold in full; from here on they hold in proportion."""
MINIMA = {
    "project": 5,
    "incident": 2,
    "decision": 3,
    "learning": 2,
    "relationship": 2,
    "correction": 4,
}
DIRECTED = 5
FEWEST, MOST, AT_ONCE = 15, 22, 4
QUIET_LEAST, QUIET_MOST, QUIET_PERIODS = 10, 15, 2


def scaled(number: int, days: int) -> int:
    """What a minimum for long lives is in one of so many days."""
    if days < SHORT:
        return 0
    return max(1, math.floor(number * min(days, LONG) / LONG + 0.5))


def least_quiet(days: int) -> int:
    """How long the quiet period is at least."""
    return min(QUIET_LEAST, max(2, math.ceil(0.012 * days)))


def broken_persona(persona: Persona) -> list[str]:
    """What to change about a persona; nothing where all rules are kept."""
    return list(_broken_persona(persona))


def broken_arcs(arcs: Arcs, persona: Persona, days: int) -> list[str]:
    """What to change about the arcs of this persona's life of so many days."""
    return [
        *_repeated("arc id", (arc.id for arc in arcs.arcs)),
        *(reason for arc in arcs.arcs for reason in _broken_arc(arc, persona, days)),
        *_told_elsewhere(arcs, persona),
        *_counts(arcs, days),
        *_crowded(arcs, days),
        *_quiet(arcs, days),
    ]


def _broken_persona(persona: Persona) -> Iterator[str]:
    for field in ("name", "role", "domain", "profile", "communication_style"):
        if not getattr(persona, field).strip():
            yield f"`{field}` is empty: fill it"
    if persona.principal is None:
        yield "`principal` is missing: say whom the persona works for, with name and role"
    yield from _repeated("session id", (room.id for room in persona.sessions))
    yield from _repeated("name in the cast", (person.name for person in persona.cast))
    yield from _repeated("project id", (project.id for project in persona.projects))
    pairs = [room.id for room in persona.sessions if room.kind == "1to1"]
    if pairs != [PRINCIPAL]:
        yield (
            f"exactly one session has the kind 1to1, and its id is `{PRINCIPAL}`; here "
            f"{', '.join(pairs) or 'none'} has it: make all others groups"
        )
    for person in persona.cast:
        if person.kind == "agent" and not person.name.startswith("@"):
            yield f"{person.name} of the cast is an agent: begin the name with @"
    known = _people(persona)
    for room in persona.sessions:
        yield from _broken_session(room, known)


def _broken_session(room: PersonaSession, known: set[str]) -> Iterator[str]:
    where = f"session {room.id}"
    if room.kind not in ("1to1", "group"):
        yield f"{where}: the kind is 1to1 or group, not {room.kind!r}"
    if not room.participants:
        yield f"{where}: list its participants"
    yield from _strangers(where, room.participants, known)
    if room.id == PRINCIPAL and room.isolated:
        yield f"{where} cannot be isolated: make another session the isolated one"
    if room.isolated and room.shared:
        yield f"{where} is both isolated and shared: choose one"
    if room.isolated and not room.sensitive_topics:
        yield f"{where} is isolated: list in sensitive_topics what may not be told elsewhere"
    if room.first_day and room.last_day and room.first_day > room.last_day:
        yield f"{where}: firstDay {room.first_day} is after lastDay {room.last_day}"


def _broken_arc(arc: Arc, persona: Persona, days: int) -> Iterator[str]:
    where = f"arc {arc.id}"
    rooms = {room.id: room for room in persona.sessions}
    if not arc.title.strip() or not arc.description.strip():
        yield f"{where}: give it a title and a description"
    if not 1 <= arc.start <= arc.end <= days:
        yield (
            f"{where} goes from day {arc.start} to day {arc.end}: let it begin on day 1 or later, "
            f"and end after that, on day {days} at the latest"
        )
    named = (arc.primary_session, *arc.referenced_sessions, *arc.forbidden_sessions)
    for id in dict.fromkeys(named):
        if id not in rooms:
            yield f"{where}: there is no session {id!r}; there are {', '.join(rooms)}"
    yield from _strangers(where, arc.participants, _people(persona))
    room = rooms.get(arc.primary_session)
    if room is not None:
        if not (room.is_open(arc.start) and room.is_open(arc.end)):
            yield f"{where} lies outside the days of its session {room.id}: move it"
        if room.isolated and arc.referenced_sessions:
            yield (
                f"{where} unfolds in the isolated session {room.id} and may surface nowhere else: "
                "leave referencedSessions away"
            )
    for id in arc.referenced_sessions:
        if id == arc.primary_session or id in arc.forbidden_sessions:
            yield f"{where}: {id} is its own session or a forbidden one: do not reference it"
    for directive in arc.directives:
        if not arc.is_active(directive.day):
            yield (
                f"{where}: its directive on day {directive.day} is outside of it; it goes from "
                f"day {arc.start} to day {arc.end}"
            )
    if arc.type == "correction":
        yield from _broken_correction(arc, where)


def _broken_correction(arc: Arc, where: str) -> Iterator[str]:
    wrong, right = arc.wrong_day, arc.corrected_day
    if wrong is None or right is None:
        yield f"{where} is a correction: give both wrongDay and correctedDay"
    elif not arc.start <= wrong < right <= arc.end:
        yield (
            f"{where}: wrongDay {wrong} comes before correctedDay {right}, and both lie between "
            f"day {arc.start} and day {arc.end}: move them"
        )
    beliefs = arc.wrong_belief.strip(), arc.corrected_belief.strip()
    if not all(beliefs) or beliefs[0] == beliefs[1]:
        yield f"{where} is a correction: give a wrongBelief and another correctedBelief"


def _told_elsewhere(arcs: Arcs, persona: Persona) -> Iterator[str]:
    """Arcs that would have a session speak of what is another's secret."""
    eyes = {room.id: Visibility(persona, arcs, room.id) for room in persona.sessions}
    for arc in arcs.arcs:
        seen = eyes.get(arc.primary_session)
        if seen is not None and seen.hides(arc):
            yield (
                f"arc {arc.id} names what an isolated session keeps to itself, but unfolds in "
                f"{arc.primary_session}: move it there, or word it without"
            )


def _counts(arcs: Arcs, days: int) -> Iterator[str]:
    found = Counter(arc.type for arc in arcs.arcs)
    for type, number in MINIMA.items():
        needed = scaled(number, days)
        there = sum(count for kind, count in found.items() if kind == type)
        if there < needed:
            yield f"there are {there} arcs of type {type}: at least {needed} are needed"
    directed = sum(1 for arc in arcs.arcs if arc.directives)
    if directed < scaled(DIRECTED, days):
        yield (
            f"{directed} arcs have directives: give some to at least {scaled(DIRECTED, days)} arcs"
        )
    least = FEWEST if days >= LONG else 1
    if not least <= len(arcs.arcs) <= MOST:
        yield f"there are {len(arcs.arcs)} arcs: make it {least} to {MOST}"


def _crowded(arcs: Arcs, days: int) -> Iterator[str]:
    crowded = [day for day in range(1, days + 1) if len(arcs.active(day)) > AT_ONCE]
    if crowded:
        ids = ", ".join(arc.id for arc in arcs.active(crowded[0]))
        yield (
            f"on {len(crowded)} days more than {AT_ONCE} arcs are active, first on day "
            f"{crowded[0]} ({ids}): move or shorten some of them"
        )


def _quiet(arcs: Arcs, days: int) -> Iterator[str]:
    if days < SHORT:
        return
    least = least_quiet(days)
    periods = [
        list(run)
        for quiet, run in groupby(range(1, days + 1), lambda day: not arcs.active(day))
        if quiet
    ]
    if not any(len(period) >= least for period in periods):
        yield f"no {least} days in a row are without any arc: leave such a quiet period somewhere"
    for period in periods:
        if len(period) > QUIET_MOST:
            yield (
                f"days {period[0]} to {period[-1]} are without any arc: {QUIET_MOST} days are the "
                "longest quiet period; let an arc reach into them"
            )
    long = [period for period in periods if QUIET_LEAST <= len(period) <= QUIET_MOST]
    if len(long) > QUIET_PERIODS:
        yield (
            f"there are {len(long)} quiet periods of {QUIET_LEAST} days or more: "
            f"{QUIET_PERIODS} are enough; let arcs reach into the others"
        )


def _people(persona: Persona) -> set[str]:
    people = {person.name for person in persona.cast} | {persona.name}
    return people | ({persona.principal.name} if persona.principal else set())


def _strangers(where: str, names: Iterable[str], known: set[str]) -> Iterator[str]:
    for name in names:
        if name not in known:
            yield (
                f"{where}: {name!r} is neither in the cast nor the principal nor the persona: add "
                "them to the cast, or spell the name as there"
            )


def _repeated(what: str, ids: Iterable[str]) -> Iterator[str]:
    for id, times in Counter(ids).items():
        if times > 1:
            yield f"the {what} {id!r} is there {times} times: each is used once"
