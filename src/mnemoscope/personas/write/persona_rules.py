"""The rules for a persona and its arcs, beyond the format of their files.

Each broken rule is one sentence that tells the user or the model what to change.

| days         | project | incident | decision | learning | relationship | correction | directed |
|--------------|---------|----------|----------|----------|--------------|------------|----------|
| 500 or more  | 5       | 2        | 3        | 2        | 2            | 4          | 5        |
| 180          | 2       | 1        | 1        | 1        | 1            | 1          | 2        |
| 60           | 1       | 1        | 1        | 1        | 1            | 1          | 1        |
| under 60     | 0       | 0        | 0        | 0        | 0            | 0          | 0        |

Between 60 and 500 days the minima are in proportion to 500, rounded, at least one each; a shorter
history needs one arc of any type. `directed` are arcs with directives. Histories of 500 days or
more have 15 to 22 arcs (the minima add up to 18), shorter ones at most 22. At most 4 are active on
a day. From 60 days on there is a quiet period without arcs of 1.2 % of the days, at least 2 and
at most 10; no quiet period is longer than 15 days, and at most two have 10 days or more.
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
"""Days from which the minima apply in full, and days from which they apply in proportion."""
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
    """The minimum for a history of `days` days, from the minimum for long ones."""
    if days < SHORT:
        return 0
    return max(1, math.floor(number * min(days, LONG) / LONG + 0.5))


def least_quiet(days: int) -> int:
    """The fewest days of the quiet period."""
    return min(QUIET_LEAST, max(2, math.ceil(0.012 * days)))


def broken_persona(persona: Persona) -> list[str]:
    """What to change about a persona; empty if it breaks no rule."""
    return list(_broken_persona(persona))


def broken_arcs(arcs: Arcs, persona: Persona, days: int) -> list[str]:
    """What to change about the arcs of a history of `days` days; empty if they break no rule."""
    return [
        *_repeated("arc id", (arc.id for arc in arcs.arcs)),
        *(reason for arc in arcs.arcs for reason in _broken_arc(arc, persona, days)),
        *_leaked(arcs, persona),
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
    yield from _repeated("session id", (session.id for session in persona.sessions))
    yield from _repeated("name in the cast", (person.name for person in persona.cast))
    yield from _repeated("project id", (project.id for project in persona.projects))
    pairs = [session.id for session in persona.sessions if session.kind == "1to1"]
    if pairs != [PRINCIPAL]:
        yield (
            f"exactly one session has the kind 1to1, and its id is `{PRINCIPAL}`; here "
            f"{', '.join(pairs) or 'none'} has it: make all others groups"
        )
    for person in persona.cast:
        if person.kind == "agent" and not person.name.startswith("@"):
            yield f"{person.name} of the cast is an agent: begin the name with @"
    known = _people(persona)
    for session in persona.sessions:
        yield from _broken_session(session, known)


def _broken_session(session: PersonaSession, known: set[str]) -> Iterator[str]:
    where = f"session {session.id}"
    if session.kind not in ("1to1", "group"):
        yield f"{where}: the kind is 1to1 or group, not {session.kind!r}"
    if not session.participants:
        yield f"{where}: list its participants"
    yield from _strangers(where, session.participants, known)
    if session.id == PRINCIPAL and session.isolated:
        yield f"{where} cannot be isolated: make another session the isolated one"
    if session.isolated and session.shared:
        yield f"{where} is both isolated and shared: choose one"
    if session.isolated and not session.sensitive_topics:
        yield f"{where} is isolated: list in sensitive_topics what may not be told elsewhere"
    if session.first_day and session.last_day and session.first_day > session.last_day:
        yield f"{where}: firstDay {session.first_day} is after lastDay {session.last_day}"


def _broken_arc(arc: Arc, persona: Persona, days: int) -> Iterator[str]:
    where = f"arc {arc.id}"
    sessions = {session.id: session for session in persona.sessions}
    if not arc.title.strip() or not arc.description.strip():
        yield f"{where}: give it a title and a description"
    if not 1 <= arc.start <= arc.end <= days:
        yield (
            f"{where} goes from day {arc.start} to day {arc.end}: let it begin on day 1 or later, "
            f"and end after that, on day {days} at the latest"
        )
    named = (arc.primary_session, *arc.referenced_sessions, *arc.forbidden_sessions)
    for id in dict.fromkeys(named):
        if id not in sessions:
            yield f"{where}: there is no session {id!r}; there are {', '.join(sessions)}"
    yield from _strangers(where, arc.participants, _people(persona))
    session = sessions.get(arc.primary_session)
    if session is not None:
        if not (session.is_open(arc.start) and session.is_open(arc.end)):
            yield f"{where} lies outside the days of its session {session.id}: move it"
        if session.isolated and arc.referenced_sessions:
            yield (
                f"{where} unfolds in the isolated session {session.id} and may surface nowhere "
                "else: leave referencedSessions away"
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


def _leaked(arcs: Arcs, persona: Persona) -> Iterator[str]:
    """Arcs whose session would write about a secret of another session."""
    visible = {session.id: Visibility(persona, arcs, session.id) for session in persona.sessions}
    for arc in arcs.arcs:
        seen = visible.get(arc.primary_session)
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
