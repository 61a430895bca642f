"""Pass 1: the daily logs, one request a day and session, days in their order.

A session's writer sees the last entries of that session, read from disk, and nothing that another
session wrote. Prompts name dates, never day numbers. What is missing is what the schedule has and
the disk has not; there is no record beside that could disagree.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import printable, write_atomically
from mnemoscope.datasets.day_logs import DAY_FILE, Piece, body, pieces, read_day
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import load_prompt
from mnemoscope.models.replies import without_thoughts
from mnemoscope.personas.simulate.calendar import long_date
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, UnusableReply
from mnemoscope.personas.write.persona_files import Arc, Persona, PersonaFiles, PersonaSession
from mnemoscope.personas.write.session_schedule import Agenda, SessionSchedule, phase
from mnemoscope.personas.write.visibility import Visibility

HISTORY = 3
"""So many of a session's last entries its writer sees."""
_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_FENCE_LINE = re.compile(r"[ \t]*(```|~~~)")
_HEADING = re.compile(r"#(?:[ \t]|$)")
_TOPIC = re.compile(r"^###+[ \t]+\S", re.MULTILINE)
_SESSION_HEADING = re.compile(r"#[ \t]+session:", re.IGNORECASE)
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

PastEntry = tuple[date, str]
"""What a session wrote on a date."""


class Gap(NamedTuple):
    """Something that the schedule has and the disk has not."""

    day: int
    session: str

    def __str__(self) -> str:
        return f"day {self.day}, session {self.session}"


def refuse_simulated(files: PersonaFiles) -> None:
    """A history with a ledger is whole without our schedule, and exact only as it is."""
    if files.ledger.is_file():
        raise UsageError(
            f"{files.folder} was simulated: {files.ledger.name} has every fact of its days, and "
            "new prose in them would no longer be what exact scoring leans on. To have it told by "
            "a model, say --from-ledger --out NEW_FOLDER; days that are missing come back with the "
            "command that made it"
        )


def write_days(
    files: PersonaFiles,
    writer: LlmWriter,
    days: Iterable[int],
    *,
    missing: bool = False,
    overwrite: bool = False,
    tell: Callable[[str], None] = lambda line: None,
) -> int:
    """Write the days that are not there; how many were written or completed.

    With `missing` also the sessions that are missing from days that are there; with `overwrite`
    all of them anew, where a session that comes to nothing keeps what it had.
    """
    schedule = SessionSchedule.of(files)
    prompts = DayPrompts(files, schedule)
    logs = WrittenDays(files)
    written = 0
    for day in days:
        planned = schedule.sessions(day)
        if not overwrite and day in logs:
            there = logs.sessions(day)
            wanted = [id for id in planned if id not in there] if missing else []
        else:
            wanted = planned
        new = {
            one.task.about: one.result
            for one in writer.write_all(
                Task(
                    str(Gap(day, session)),
                    prompts.prompt(day, session, logs.last_entries(day, session)),
                    read_entry,
                )
                for session in wanted
            )
            if one.result is not None
        }
        texts = {id: new[about] for id in wanted if (about := str(Gap(day, id))) in new}
        if texts:
            logs.put(day, texts, schedule.order)
            written += 1
            tell(f"Generated day {day}/{files.days} ({len(logs)} unique)")
    return written


def gaps(files: PersonaFiles, days: Iterable[int] | None = None) -> list[Gap]:
    """What is missing on disk, of these days or of the whole history."""
    schedule, logs = SessionSchedule.of(files), WrittenDays(files)
    return [
        Gap(day, session)
        for day in (range(1, files.days + 1) if days is None else days)
        for session in schedule.sessions(day)
        if session not in logs.sessions(day)
    ]


def read_entry(reply: str) -> str:
    """The entry, or UnusableReply: an excuse instead of one has no topics."""
    entry = clean(reply)
    if not _TOPIC.search(entry):
        raise UnusableReply("it has no topics: each stands under a heading that begins with ###")
    return entry


def clean(reply: str) -> str:
    """The entry in a reply, without frontmatter and headings of the first rank.

    A heading of a session inside would end this one, and put words into another.
    """
    kept, in_code = [], False
    for line in body(unwrapped(reply)).split("\n"):
        if _FENCE_LINE.match(line):
            in_code = not in_code
        is_heading = _HEADING.match(line) and not in_code
        if not (is_heading or _SESSION_HEADING.match(line)):
            kept.append(line.rstrip())
    if not (entry := "\n".join(kept).strip()):
        raise UnusableReply("nothing is left of it without its frontmatter and # headings")
    return printable(entry)


def unwrapped(reply: str) -> str:
    """The text without thoughts before it and a code fence around the whole."""
    text = without_thoughts(reply).replace("\r\n", "\n").replace("\r", "\n").strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


class WrittenDays:
    """The daily logs on disk, and which sessions wrote on which days."""

    def __init__(self, files: PersonaFiles) -> None:
        self._home = files
        self._sessions: dict[int, frozenset[str]] = {}
        self._days: dict[str, list[int]] = {}
        folder = files.beside("memories")
        for path in folder.iterdir() if folder.is_dir() else ():
            if name := DAY_FILE.fullmatch(path.name):
                self._note(int(name[1]), _pieces(path))

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, day: object) -> bool:
        return day in self._sessions

    def sessions(self, day: int) -> frozenset[str]:
        return self._sessions.get(day, frozenset())

    def last_entries(self, day: int, session: str) -> list[PastEntry]:
        """What this session wrote last before the day, oldest first."""
        days = self._days.get(session, [])
        before = days[: bisect_left(days, day)][-HISTORY:]
        return [
            (self._home.date_of(earlier), piece.text)
            for earlier in before
            for piece in _pieces(self._home.log(earlier))
            if piece.session == session
        ]

    def put(self, day: int, texts: dict[str, str], order: list[str]) -> None:
        """Write these sessions into the day's log; others that it has are kept."""
        path = self._home.log(day)
        kept = [piece for piece in _pieces(path) if piece.session not in texts]
        new = [Piece("", text, session) for session, text in texts.items()]
        place = {session: number for number, session in enumerate(["", *order])}
        whole = sorted([*kept, *new], key=lambda piece: place.get(piece.session, len(place)))
        parts = ["---\ntype: daily\n---"]
        for piece in whole:
            parts += [f"# session: {piece.session}"] if piece.session else []
            parts.append(piece.text)
        write_atomically(path, ("\n\n".join(parts) + "\n").encode())
        self._note(day, whole)

    def _note(self, day: int, found: Iterable[Piece]) -> None:
        sessions = frozenset(piece.session for piece in found if piece.text.strip())
        for session in sessions - self.sessions(day):
            insort(self._days.setdefault(session, []), day)
        self._sessions[day] = sessions


def _pieces(path: Path) -> list[Piece]:
    """The day's sessions that hold anything; none where there is no such day."""
    if not path.exists():
        return []
    return [piece for piece in pieces(read_day(path), "session") if piece.text.strip()]


class DayPrompts:
    """The prompts of all sessions; each is told what it may know and no more."""

    def __init__(self, files: PersonaFiles, schedule: SessionSchedule) -> None:
        self._home = files
        self._schedule = schedule
        self._day = load_prompt("write-day", _DAY)
        self._filler = load_prompt("write-filler", _FILLER)
        self._visible = {id: Visibility(files.persona, files.arcs, id) for id in schedule.order}

    def prompt(self, day: int, session: str, history: Sequence[PastEntry]) -> Prompt:
        """`history` is what this very session wrote last, oldest first."""
        seen, agenda = self._visible[session], self._schedule.agenda(day, session)
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
        today = {arc.id for arc in self._schedule.agenda(day, session).own}
        for whole in self._home.arcs.arcs:
            if whole.primary_session != session or whole.id in today or whole.start > day:
                continue
            arc = self._visible[session].arc(whole)
            known = (
                f" It is known by now: {arc.corrected_belief}" if _is_put_right(arc, day) else ""
            )
            state = "over" if arc.end < day else "still going on, but not today's matter"
            yield f"{arc.title} ({state}).{known}"


def _who(persona: Persona, session: str) -> dict[str, str]:
    rooms = {room.id: room for room in persona.sessions}
    own = rooms.get(session) or PersonaSession(session, "1to1")
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


def _room(room: PersonaSession) -> str:
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


def _told(history: Sequence[PastEntry]) -> str:
    return "\n\n".join(f"[{long_date(day)}]\n{text}" for day, text in history) or "(nothing yet)"
