"""Pass 1: the daily logs of a life, one request a day and session, days in their order.

A session's writer sees the last entries of that session, read from disk, and nothing that another
session wrote. What is missing is what the calendar has and the disk has not; no record is kept
beside that could disagree.
"""

from __future__ import annotations

import re
from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import printable, write_atomically
from mnemoscope.datasets.day_logs import DAY_FILE, Piece, body, pieces, read_day
from mnemoscope.models.replies import without_thoughts
from mnemoscope.personas.write.day_prompts import DayPrompts, Entry
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, Unusable
from mnemoscope.personas.write.persona_files import PersonaFiles
from mnemoscope.personas.write.writing_calendar import WritingCalendar

HISTORY = 3
"""So many of a session's last entries its writer sees."""
_FENCE = re.compile(r"\A```[\w+-]*[ \t]*\n(.*?)\n?```\Z", re.DOTALL)
_FENCE_LINE = re.compile(r"[ \t]*(```|~~~)")
_HEADING = re.compile(r"#(?:[ \t]|$)")
_TOPIC = re.compile(r"^###+[ \t]+\S", re.MULTILINE)
_SESSION_HEADING = re.compile(r"#[ \t]+session:", re.IGNORECASE)


class Gap(NamedTuple):
    """Something that the calendar has and the disk has not."""

    day: int
    session: str

    def __str__(self) -> str:
        return f"day {self.day}, session {self.session}"


def refuse_simulated(home: PersonaFiles) -> None:
    """A life with a ledger is whole without our calendar, and exact only as it is."""
    if home.ledger.is_file():
        raise UsageError(
            f"{home.folder} was simulated: {home.ledger.name} has every fact of its days, and new "
            "prose in them would no longer be what exact scoring leans on. To have it told by a "
            "model, say --from-ledger --out NEW_FOLDER; days that are missing come back with the "
            "command that made it"
        )


def write_days(
    home: PersonaFiles,
    desk: LlmWriter,
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
    calendar = WritingCalendar.of(home)
    prompts = DayPrompts(home, calendar)
    shelf = WrittenDays(home)
    written = 0
    for day in days:
        planned = calendar.sessions(day)
        if not overwrite and day in shelf:
            there = shelf.sessions(day)
            wanted = [id for id in planned if id not in there] if missing else []
        else:
            wanted = planned
        new = {
            one.task.about: one.result
            for one in desk.write_all(
                Task(
                    str(Gap(day, session)),
                    prompts.prompt(day, session, shelf.last_entries(day, session)),
                    read_entry,
                )
                for session in wanted
            )
            if one.result is not None
        }
        texts = {id: new[about] for id in wanted if (about := str(Gap(day, id))) in new}
        if texts:
            shelf.put(day, texts, calendar.order)
            written += 1
            tell(f"Generated day {day}/{home.days} ({len(shelf)} unique)")
    return written


def gaps(home: PersonaFiles, days: Iterable[int] | None = None) -> list[Gap]:
    """What is missing on disk, of these days or of the whole life."""
    calendar, shelf = WritingCalendar.of(home), WrittenDays(home)
    return [
        Gap(day, session)
        for day in (range(1, home.days + 1) if days is None else days)
        for session in calendar.sessions(day)
        if session not in shelf.sessions(day)
    ]


def read_entry(reply: str) -> str:
    """The entry, or Unusable: an excuse instead of one has no topics."""
    entry = clean(reply)
    if not _TOPIC.search(entry):
        raise Unusable("it has no topics: each stands under a heading that begins with ###")
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
        raise Unusable("nothing is left of it without its frontmatter and # headings")
    return printable(entry)


def unwrapped(reply: str) -> str:
    """The text without thoughts before it and a code fence around the whole."""
    text = without_thoughts(reply).replace("\r\n", "\n").replace("\r", "\n").strip()
    fenced = _FENCE.match(text)
    return fenced[1].strip() if fenced else text


class WrittenDays:
    """The daily logs on disk, and which sessions wrote on which days."""

    def __init__(self, home: PersonaFiles) -> None:
        self._home = home
        self._sessions: dict[int, frozenset[str]] = {}
        self._days: dict[str, list[int]] = {}
        folder = home.beside("memories")
        for path in folder.iterdir() if folder.is_dir() else ():
            if name := DAY_FILE.fullmatch(path.name):
                self._note(int(name[1]), _pieces(path))

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, day: object) -> bool:
        return day in self._sessions

    def sessions(self, day: int) -> frozenset[str]:
        return self._sessions.get(day, frozenset())

    def last_entries(self, day: int, session: str) -> list[Entry]:
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
