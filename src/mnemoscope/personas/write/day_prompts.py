"""The words in which a model is told what to write of one session on one day.

Only dates are told, never day numbers: the log of a life knows nothing of its place in a benchmark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import load_prompt
from mnemoscope.personas.write.log_pages import long_date
from mnemoscope.personas.write.persona_files import Arc, Persona, PersonaFiles, Session
from mnemoscope.personas.write.visibility import Visibility
from mnemoscope.personas.write.writing_calendar import Agenda, WritingCalendar, phase

ECHOED_LINES = 3
"""Of an arc that only surfaces here, so much of its description is told."""
_LENGTHS = {
    "quiet": "quiet: little happens; one or two short topics, 80 to 150 words",
    "normal": "normal: two or three topics, 200 to 350 words",
    "busy": "busy: three to five topics, 350 to 600 words",
    "dense": "dense: a day on which much turns; five or more topics, 600 to 900 words",
}
_WHO = frozenset(
    "name role domain organisation profile style principal cast sessions projects knowledge "
    "session sensitive".split()
)
_DAY = _WHO | frozenset("date density arcs echoes events beliefs earlier history".split())
_FILLER = _WHO | frozenset("date density earlier history".split())

Entry = tuple[date, str]
"""What a session wrote on a date."""


class DayPrompts:
    """The prompts of all sessions of a life; each is told what it may know and no more."""

    def __init__(self, home: PersonaFiles, calendar: WritingCalendar) -> None:
        self._home = home
        self._calendar = calendar
        self._day = load_prompt("write-day", _DAY)
        self._filler = load_prompt("write-filler", _FILLER)
        self._eyes = {id: Visibility(home.persona, home.arcs, id) for id in calendar.order}

    def prompt(self, day: int, session: str, history: Sequence[Entry]) -> Prompt:
        """`history` is what this very session wrote last, oldest first."""
        seen, agenda = self._eyes[session], self._calendar.agenda(day, session)
        values = {
            **_who(seen.persona(), session),
            "date": long_date(self._home.date_of(day)),
            "density": _LENGTHS[agenda.density],
            "earlier": _listed(self._earlier(day, session)),
            "history": _told(history),
        }
        if agenda.is_filler:
            return self._filler.fill(**values)
        return self._day.fill(**values, **_agenda(agenda, seen, day))

    def _earlier(self, day: int, session: str) -> Iterator[str]:
        """This session's own arcs that are over, or go on without being today's matter."""
        today = {arc.id for arc in self._calendar.agenda(day, session).own}
        for whole in self._home.arcs.arcs:
            if whole.primary_session != session or whole.id in today or whole.start > day:
                continue
            arc = self._eyes[session].arc(whole)
            known = (
                f" It is known by now: {arc.corrected_belief}" if _is_put_right(arc, day) else ""
            )
            state = "over" if arc.end < day else "still going on, but not today's matter"
            yield f"{arc.title} ({state}).{known}"


def _who(persona: Persona, session: str) -> dict[str, str]:
    rooms = {room.id: room for room in persona.sessions}
    own = rooms.get(session) or Session(session, "1to1")
    principal = persona.principal
    told = (
        f"{principal.name}, {principal.role}. {principal.profile}" if principal else "nobody named"
    )
    return {
        "name": persona.name,
        "role": persona.role,
        "domain": persona.domain,
        "organisation": persona.company or persona.institution or persona.firm or "not named",
        "profile": persona.profile.strip(),
        "style": persona.communication_style.strip(),
        "principal": told.strip(),
        "cast": _listed(f"{one.name}, {one.role} ({one.kind})" for one in persona.cast),
        "sessions": _listed(_room(room) for room in persona.sessions),
        "projects": _listed(f"{one.name}: {one.description}" for one in persona.projects),
        "knowledge": _listed(persona.shared_knowledge),
        "session": _room(own),
        "sensitive": _listed(own.sensitive_topics),
    }


def _room(room: Session) -> str:
    kind = "one to one" if room.kind == "1to1" else room.kind
    kept = "; what is said here stays here" if room.isolated else ""
    return f"{room.id} ({kind}; {', '.join(room.participants) or 'nobody named'}{kept})"


def _agenda(agenda: Agenda, seen: Visibility, day: int) -> dict[str, str]:
    own = [seen.arc(arc) for arc in agenda.own]
    echoed = [seen.arc(arc) for arc in agenda.echoed]
    return {
        "arcs": _listed(_arc(arc, day) for arc in own),
        "echoes": _listed(f"{arc.title}: {_first_lines(arc.description)}" for arc in echoed),
        "events": _listed(event for arc in (*own, *echoed) for event in arc.directed(day)),
        "beliefs": _listed(belief for arc in (*own, *echoed) for belief in _beliefs(arc, day)),
    }


def _arc(arc: Arc, day: int) -> str:
    people = f" With {', '.join(arc.participants)}." if arc.participants else ""
    begins = ", begins today" if day == arc.start else ", ends today" if day == arc.end else ""
    return f"{arc.title} ({arc.type}, {phase(arc, day)} phase{begins}). {arc.description}{people}"


def _beliefs(arc: Arc, day: int) -> Iterator[str]:
    """What is held to be true on this day, right or wrong."""
    wrong, right = arc.wrong_day, arc.corrected_day
    if wrong is None or right is None or day < wrong:
        return
    if day == wrong:
        yield f"Today this is said and believed; nobody doubts it: {arc.wrong_belief}"
    elif day < right:
        yield f"This is still believed, and nobody doubts it: {arc.wrong_belief}"
    elif day == right:
        yield (
            f"Today it turns out that this was wrong: {arc.wrong_belief} This is right, and the "
            f"log says so in plain words: {arc.corrected_belief}"
        )
    else:
        yield f"This is known to be right: {arc.corrected_belief}"


def _is_put_right(arc: Arc, day: int) -> bool:
    return arc.corrected_day is not None and arc.corrected_day < day and bool(arc.corrected_belief)


def _first_lines(text: str) -> str:
    return "\n".join(text.strip().split("\n")[:ECHOED_LINES])


def _listed(lines: Iterator[str] | Sequence[str]) -> str:
    indented = ("- " + line.strip().replace("\n", "\n  ") for line in lines if line.strip())
    return "\n".join(indented) or "- none"


def _told(history: Sequence[Entry]) -> str:
    return "\n\n".join(f"[{long_date(day)}]\n{text}" for day, text in history) or "(nothing yet)"
