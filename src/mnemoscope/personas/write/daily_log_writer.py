"""Pass 1: the daily logs, one request for each day and session, in the order of days.

A prompt contains the last entries of its session, read from disk, and nothing of another session.
Prompts contain dates, never day numbers. An entry is missing if the schedule has it and the disk
does not; there is no other record.
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
"""How many of the session's last entries a prompt contains."""
_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_FENCE_LINE = re.compile(r"[ \t]*(```|~~~)")
_HEADING = re.compile(r"#(?:[ \t]|$)")
_TOPIC = re.compile(r"^###+[ \t]+\S", re.MULTILINE)
_SESSION_HEADING = re.compile(r"#[ \t]+session:", re.IGNORECASE)
ECHOED_LINES = 3
"""How much of its description a prompt contains for an arc of another session."""
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
    """An entry of the schedule that is not on disk."""

    day: int
    session: str

    def __str__(self) -> str:
        return f"day {self.day}, session {self.session}"


def refuse_simulated(files: PersonaFiles) -> None:
    """UsageError for a simulated history: its logs must match its ledger."""
    if files.ledger.is_file():
        raise UsageError(
            f"{files.folder} was simulated: its logs must match {files.ledger.name}, because exact "
            "scoring depends on that. To let a model rewrite it, give --from-ledger --out "
            "NEW_FOLDER; to restore missing days, run `mnemoscope personas simulate` again"
        )


def write_days(
    files: PersonaFiles,
    writer: LlmWriter,
    days: Iterable[int],
    *,
    missing: bool = False,
    overwrite: bool = False,
    progress: Callable[[str], None] = lambda line: None,
) -> int:
    """Write the days that have no log; returns how many were written or completed.

    `missing` also adds missing sessions to existing days. `overwrite` writes all days again; a
    session whose request fails keeps its text.
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
            progress(f"Generated day {day}/{files.days} ({len(logs)} unique)")
    return written


def gaps(files: PersonaFiles, days: Iterable[int] | None = None) -> list[Gap]:
    """What is missing on disk for these days or the whole history."""
    schedule, logs = SessionSchedule.of(files), WrittenDays(files)
    return [
        Gap(day, session)
        for day in (range(1, files.days + 1) if days is None else days)
        for session in schedule.sessions(day)
        if session not in logs.sessions(day)
    ]


def read_entry(reply: str) -> str:
    """The entry of a reply; UnusableReply if it has no topics, as an excuse has."""
    entry = clean(reply)
    if not _TOPIC.search(entry):
        raise UnusableReply("it has no topics: each stands under a heading that begins with ###")
    return entry


def clean(reply: str) -> str:
    """The entry in a reply, without frontmatter and first-level headings.

    A session heading inside would end this session and begin another.
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
    """The text without reasoning before it and a code fence around it."""
    text = without_thoughts(reply).replace("\r\n", "\n").replace("\r", "\n").strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


class WrittenDays:
    """The daily logs on disk, and which sessions wrote on which days."""

    def __init__(self, files: PersonaFiles) -> None:
        self._files = files
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
        """The session's last entries before the day, oldest first."""
        days = self._days.get(session, [])
        before = days[: bisect_left(days, day)][-HISTORY:]
        return [
            (self._files.date_of(earlier), piece.text)
            for earlier in before
            for piece in _pieces(self._files.log(earlier))
            if piece.session == session
        ]

    def put(self, day: int, texts: dict[str, str], order: list[str]) -> None:
        """Write these sessions into the day's log and keep its others."""
        path = self._files.log(day)
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
    """The day's sessions that have text; none if the log does not exist."""
    if not path.exists():
        return []
    return [piece for piece in pieces(read_day(path), "session") if piece.text.strip()]


class DayPrompts:
    """The prompts of all sessions, each with what its session may know."""

    def __init__(self, files: PersonaFiles, schedule: SessionSchedule) -> None:
        self._files = files
        self._schedule = schedule
        self._day = load_prompt("write-day", _DAY)
        self._filler = load_prompt("write-filler", _FILLER)
        self._visible = {id: Visibility(files.persona, files.arcs, id) for id in schedule.order}

    def prompt(self, day: int, session: str, history: Sequence[PastEntry]) -> Prompt:
        """The prompt of a session; `history` is its last entries, oldest first."""
        seen, agenda = self._visible[session], self._schedule.agenda(day, session)
        values = {
            **_who(seen.persona(), session),
            "date": long_date(self._files.date_of(day)),
            "density": _LENGTHS[agenda.density],
            "earlier": _listed(self._earlier(day, session)),
            "history": "\n\n".join(f"[{long_date(day)}]\n{text}" for day, text in history)
            or "(nothing yet)",
        }
        if agenda.is_filler:
            return self._filler.fill(**values)
        return self._day.fill(**values, **_agenda(agenda, seen, day))

    def _earlier(self, day: int, session: str) -> Iterator[str]:
        """The session's arcs that began before and are not on today's agenda."""
        today = {arc.id for arc in self._schedule.agenda(day, session).own}
        for whole in self._files.arcs.arcs:
            if whole.primary_session != session or whole.id in today or whole.start > day:
                continue
            arc = self._visible[session].arc(whole)
            corrected = arc.corrected_day is not None and arc.corrected_day < day
            known = (
                f" It is known by now: {arc.corrected_belief}"
                if corrected and arc.corrected_belief
                else ""
            )
            state = "over" if arc.end < day else "still going on, but not today's matter"
            yield f"{arc.title} ({state}).{known}"


def _who(persona: Persona, session: str) -> dict[str, str]:
    sessions = {one.id: one for one in persona.sessions}
    own = sessions.get(session) or PersonaSession(session, "1to1")
    principal = persona.principal
    boss = (
        f"{principal.name}, {principal.role}. {principal.profile}" if principal else "nobody named"
    )
    return {
        "name": persona.name,
        "role": persona.role,
        "domain": persona.domain,
        "organisation": persona.company or persona.institution or persona.firm or "not named",
        "profile": persona.profile.strip(),
        "style": persona.communication_style.strip(),
        "principal": boss.strip(),
        "cast": _listed(f"{one.name}, {one.role} ({one.kind})" for one in persona.cast),
        "sessions": _listed(map(_session, persona.sessions)),
        "projects": _listed(f"{one.name}: {one.description}" for one in persona.projects),
        "knowledge": _listed(persona.shared_knowledge),
        "session": _session(own),
        "sensitive": _listed(own.sensitive_topics),
    }


def _session(session: PersonaSession) -> str:
    kind = "one to one" if session.kind == "1to1" else session.kind
    kept = "; what is said here stays here" if session.isolated else ""
    return f"{session.id} ({kind}; {', '.join(session.participants) or 'nobody named'}{kept})"


def _agenda(agenda: Agenda, seen: Visibility, day: int) -> dict[str, str]:
    own = [seen.arc(arc) for arc in agenda.own]
    echoed = [seen.arc(arc) for arc in agenda.echoed]
    return {
        "arcs": _listed(_arc(arc, day) for arc in own),
        "echoes": _listed(
            f"{arc.title}: " + "\n".join(arc.description.strip().split("\n")[:ECHOED_LINES])
            for arc in echoed
        ),
        "events": _listed(event for arc in (*own, *echoed) for event in arc.directed(day)),
        "beliefs": _listed(belief for arc in (*own, *echoed) for belief in _beliefs(arc, day)),
    }


def _arc(arc: Arc, day: int) -> str:
    people = f" With {', '.join(arc.participants)}." if arc.participants else ""
    begins = ", begins today" if day == arc.start else ", ends today" if day == arc.end else ""
    return f"{arc.title} ({arc.type}, {phase(arc, day)} phase{begins}). {arc.description}{people}"


def _beliefs(arc: Arc, day: int) -> Iterator[str]:
    """What the persona believes on this day, right or wrong."""
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


def _listed(lines: Iterable[str]) -> str:
    indented = ("- " + line.strip().replace("\n", "\n  ") for line in lines if line.strip())
    return "\n".join(indented) or "- none"
