"""A simulated life in natural prose: a model retells each session, the ledger stays exact.

The new folder has the same papers, questions and ledger. A day is written when all its sessions are
retold faithfully; until then those that are wait beside it, so that nothing is paid for twice.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope.datasets.day_logs import day_files
from mnemoscope.models.chat import Prompt
from mnemoscope.models.prompts import load_prompt
from mnemoscope.personas.write.daily_log_writer import unwrapped
from mnemoscope.personas.write.llm_writer import LlmWriter, Task, Unusable
from mnemoscope.personas.write.log_pages import long_date
from mnemoscope.personas.write.persona_files import PersonaFiles, open_persona_files
from mnemoscope.personas.write.retelling_checks import Notes, broken
from mnemoscope.text.fact_ledger import Ledger, LedgerFact

_SESSION = re.compile(r"^#[ \t]+session:[ \t]*(\S.*?)[ \t]*$", re.MULTILINE)
_DRAFTS = ".retold"
_HOLES = frozenset({"name", "role", "style", "date", "session", "participants", "values", "notes"})


class DayText(NamedTuple):
    """A simulated log taken apart: what is retold, and what stays around it to the letter."""

    day: int
    around: tuple[str, ...]
    """The text before the first session's notes, between them, and after the last."""
    notes: tuple[Notes, ...]

    def together(self, told: Iterable[str]) -> str:
        parts = [self.around[0]]
        for text, after in zip(told, self.around[1:], strict=True):
            parts += (text, after)
        return "".join(parts)


class Retelling:
    """A simulated life and the folder in which it is told anew."""

    def __init__(self, source: PersonaFiles, out: Path) -> None:
        self.source = source
        path = source.ledger
        if not path.is_file():
            raise MissingData(
                f"{path} is missing: only a life that was simulated has a ledger; make one with "
                "mnemoscope personas simulate"
            )
        if out.resolve() == source.folder.resolve():
            raise UsageError(f"--out {out} is the simulated life itself; choose another folder")
        if out.exists() and not out.is_dir():
            raise UsageError(f"--out {out} cannot be a folder: a file is in its place")
        self._ledger = tuple(Ledger.read(path, source.epoch).facts.values())
        self._out = out
        self._by_place: dict[tuple[int, str], list[LedgerFact]] = {}
        for fact in self._ledger:
            self._by_place.setdefault((fact.day, fact.session), []).append(fact)
        self._prompt = load_prompt("write-from-ledger", _HOLES, frozenset({"notes", "values"}))

    def open(self) -> PersonaFiles:
        """The new folder, with the papers, the questions and the ledger of the old one."""
        for path in self._papers():
            copy = self._out / path.relative_to(self.source.folder)
            content = path.read_bytes()
            if copy.exists() and copy.read_bytes() != content:
                raise UsageError(
                    f"{copy} is there already and is not that of {self.source.folder}; choose "
                    "another --out"
                )
            if not copy.exists():
                write_atomically(copy, content)
        return open_persona_files(self._out, self.source.arcs_file.name)

    def _papers(self) -> Iterator[Path]:
        folder = self.source.folder
        yield from (folder / "persona.yaml", self.source.arcs_file)
        yield from (self.source.beside("qa") / "questions.yaml", self.source.ledger)

    def days(self, wanted: range) -> list[int]:
        """The days of the simulated life among those wanted."""
        return [day for day in day_files(self.source.beside("memories")) if day in wanted]

    def missing(self, home: PersonaFiles, wanted: range) -> list[int]:
        return [day for day in self.days(wanted) if not home.log(day).exists()]

    def write(
        self, home: PersonaFiles, desk: LlmWriter, days: Iterable[int], *, anew: bool = False
    ) -> Iterator[int]:
        """Retell these days; each day's number as soon as its log is on disk."""
        waiting: dict[int, tuple[DayText, dict[int, str]]] = {}
        ready: list[int] = []

        def keep(day: int, place: int, told: str) -> None:
            text, have = waiting[day]
            have[place] = told
            if len(have) == len(text.notes):
                self._finish(home, text, have)
                ready.append(day)
                del waiting[day]

        def tasks() -> Iterator[Task[_Told]]:
            for day in days:
                text = self.taken_apart(day)
                waiting[day] = text, {}
                for place, notes in enumerate(text.notes):
                    draft = "" if anew else _read_draft(home, day, place)
                    if draft and not broken(notes, draft, self._ledger):
                        keep(day, place, draft)
                    else:
                        yield self._task(notes, place)

        for written in desk.write_all(tasks()):
            if written.result is not None:
                day, place, told = written.result
                write_atomically(_draft(home, day, place), f"{told}\n".encode())
                keep(day, place, told)
            while ready:
                yield ready.pop(0)
        yield from ready

    def taken_apart(self, day: int) -> DayText:
        raw = self.source.log(day).read_bytes().decode()
        headings = list(_SESSION.finditer(raw))
        around: list[str] = []
        notes: list[Notes] = []
        done = 0
        ends = [heading.start() for heading in headings[1:]] + [len(raw)]
        for heading, end in zip(headings, ends, strict=True):
            body = raw[heading.end() : end]
            text = body.strip()
            if not text:
                continue
            start = heading.end() + body.index(text)
            around.append(raw[done:start])
            done = start + len(text)
            facts = self._by_place.get((day, heading[1]), [])
            notes.append(Notes(day, heading[1], text, tuple(facts)))
        return DayText(day, (*around, raw[done:]), tuple(notes))

    def _task(self, notes: Notes, place: int) -> Task[_Told]:
        def read(reply: str) -> _Told:
            told = _cleaned(reply)
            if problems := broken(notes, told, self._ledger):
                raise Unusable(" ".join(problems))
            return _Told(notes.day, place, told)

        about = f"day {notes.day}, session {notes.session}"
        return Task(about, self._asked(notes), read)

    def _asked(self, notes: Notes) -> Prompt:
        persona = self.source.persona
        room = next((one for one in persona.sessions if one.id == notes.session), None)
        prompt = self._prompt.fill(
            name=persona.name,
            role=persona.role,
            style=persona.communication_style.strip(),
            date=long_date(self.source.date_of(notes.day)),
            session=notes.session,
            participants=", ".join(room.participants) if room else "nobody else",
            values="\n".join(map(_value, notes.facts)) or "none",
            notes=notes.text,
        )
        return msgspec.structs.replace(prompt, typical=notes.text)

    def _finish(self, home: PersonaFiles, text: DayText, told: dict[int, str]) -> None:
        whole = text.together(told[place] for place in range(len(text.notes)))
        write_atomically(home.log(text.day), whole.encode())
        shutil.rmtree(home.folder / _DRAFTS / f"day-{text.day:04}", ignore_errors=True)


class _Told(NamedTuple):
    day: int
    place: int
    text: str


def _value(fact: LedgerFact) -> str:
    by = f", said by {fact.speaker}" if fact.speaker else ""
    also = f" (or {' or '.join(fact.aliases)})" if fact.aliases else ""
    return f"- {fact.value}{also}: {fact.entity}{by}"


def _cleaned(reply: str) -> str:
    """The text without thoughts, a fence around it, or the session's own heading."""
    text = unwrapped(reply)
    if heading := _SESSION.match(text):
        text = text[heading.end() :].strip()
    return text


def _draft(home: PersonaFiles, day: int, place: int) -> Path:
    """By its place in the day: a session may come twice, and be called anything."""
    return home.folder / _DRAFTS / f"day-{day:04}" / f"{place}.md"


def _read_draft(home: PersonaFiles, day: int, place: int) -> str:
    path = _draft(home, day, place)
    return path.read_text(encoding="utf-8").strip() if path.is_file() else ""
