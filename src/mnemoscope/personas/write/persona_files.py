"""A persona folder: the persona, its arcs, and where its daily logs and questions are.

The formats are Recall Bench's. Unknown fields are ignored, because files of other projects are read
as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import date
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta, Struct, field

from mnemoscope._store.errors import DataError, MissingData
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.datasets.day_logs import LAST_DAY, PRINCIPAL, pieces, read_day
from mnemoscope.datasets.persona_folder import DEFAULT_EPOCH, Day, arcs_file, read_paper
from mnemoscope.personas.simulate.calendar import date_of_day, long_date
from mnemoscope.personas.simulate.story import ArcType, Person, Principal, Project

Id = Annotated[str, Meta(pattern=r"^[\w.@-]+$")]


class PersonaSession(Struct, frozen=True, omit_defaults=True):
    """A session; PRINCIPAL is the one with the person that the persona works for."""

    id: Id
    kind: str
    participants: tuple[str, ...] = ()
    isolated: bool = False
    """Its content may not be disclosed in other sessions."""
    shared: bool = False
    first_day: Day | None = field(default=None, name="firstDay")
    last_day: Day | None = field(default=None, name="lastDay")
    sensitive_topics: tuple[str, ...] = ()

    def is_open(self, day: int) -> bool:
        return (self.first_day or 1) <= day <= (self.last_day or day)


class Persona(Struct, frozen=True, omit_defaults=True):
    """persona.yaml"""

    id: Id
    name: str
    role: str
    domain: str
    profile: str
    communication_style: str
    sessions: tuple[PersonaSession, ...]
    cast: tuple[Person, ...] = ()
    principal: Principal | None = None
    company: str = ""
    institution: str = ""
    firm: str = ""
    team_size: int = 0
    projects: tuple[Project, ...] = ()
    shared_knowledge: tuple[str, ...] = field(default=(), name="sharedKnowledge")
    epoch: str = ""

    def is_isolated(self, session: str) -> bool:
        return any(one.id == session and one.isolated for one in self.sessions)


class Directive(Struct, frozen=True):
    """An event that must happen on a day."""

    day: Day
    event: str


class Arc(Struct, frozen=True, omit_defaults=True):
    """An arc of the history."""

    id: Id
    type: ArcType
    title: str
    description: str
    start: Day = field(name="startDay")
    end: Day = field(name="endDay")
    primary_session: str = field(default=PRINCIPAL, name="primarySession")
    referenced_sessions: tuple[str, ...] = field(default=(), name="referencedSessions")
    forbidden_sessions: tuple[str, ...] = field(default=(), name="forbiddenSessions")
    participants: tuple[str, ...] = ()
    directives: tuple[Directive, ...] = ()
    wrong_day: Day | None = field(default=None, name="wrongDay")
    corrected_day: Day | None = field(default=None, name="correctedDay")
    wrong_belief: str = field(default="", name="wrongBelief")
    corrected_belief: str = field(default="", name="correctedBelief")

    def is_active(self, day: int) -> bool:
        return self.start <= day <= self.end

    def directed(self, day: int) -> Iterator[str]:
        return (directive.event for directive in self.directives if directive.day == day)


class Arcs(Struct, frozen=True, omit_defaults=True):
    """arcs-180d.yaml"""

    arcs: tuple[Arc, ...]
    epoch: str = ""
    max_concurrent: int = field(default=4, name="maxConcurrent")

    def active(self, day: int) -> list[Arc]:
        return [arc for arc in self.arcs if arc.is_active(day)]


class PersonaFiles(Struct, frozen=True):
    """The persona and arcs of a folder, and the paths of its daily logs and questions."""

    folder: Path
    arcs_file: Path
    persona: Persona
    arcs: Arcs

    @property
    def days(self) -> int:
        """The length of the history: by the arcs file's name, else the end of the last arc."""
        span = self.arcs_file.stem.removeprefix("arcs-").removesuffix("d")
        return (
            int(span) if span.isdecimal() else max((arc.end for arc in self.arcs.arcs), default=0)
        )

    @property
    def epoch(self) -> date:
        """The date of day 1."""
        return date.fromisoformat(self.arcs.epoch or self.persona.epoch or DEFAULT_EPOCH)

    def is_open(self, session: str) -> bool:
        """Whether the session's content may be disclosed in other sessions."""
        return not self.persona.is_isolated(session)

    def date_of(self, day: int) -> date:
        return date_of_day(self.epoch, day)

    def dated(self, day: int) -> str:
        """The date of a day for texts: Friday, 16 January 2026 (2026-01-16)."""
        return f"{long_date(self.date_of(day))} ({self.date_of(day).isoformat()})"

    def beside(self, name: str) -> Path:
        """`memories`, `qa`, `conversations` or `tools`, paired with the arcs file."""
        return self.folder / (name + self.arcs_file.stem.removeprefix("arcs"))

    @property
    def ledger(self) -> Path:
        """The ledger, which simulated histories and rewritten ones have."""
        return self.beside("qa") / "ledger.jsonl"

    def log(self, day: int) -> Path:
        return self.beside("memories") / f"day-{day:04}.md"

    def written_days(self, days: Iterable[int]) -> list[int]:
        """The days that have a log; an error if none has."""
        found = sorted(day for day in days if self.log(day).is_file())
        if not found:
            raise MissingData(
                f"{self.beside('memories')} contains no log of these days: write them first with "
                "`mnemoscope personas generate`"
            )
        return found

    def sessions_of(self, day: int) -> dict[str, str]:
        """The text of each session of the day; text without a session has the key ""."""
        texts: dict[str, str] = {}
        for piece in pieces(read_day(self.log(day)), "session"):
            if piece.text:
                earlier = texts.get(piece.session)
                texts[piece.session] = f"{earlier}\n\n{piece.text}" if earlier else piece.text
        return texts

    def page(self, day: int, shown: Callable[[str], bool] = lambda session: True) -> str:
        """The day's log for a prompt, with the sessions that may be shown; "" if none may be."""
        parts = [
            f"# session: {session}\n\n{text}" if session else text
            for session, text in self.sessions_of(day).items()
            if shown(session)
        ]
        return "\n\n".join(parts)


def open_persona_files(folder: Path, arcs: str = "") -> PersonaFiles:
    """Read the persona and arcs of a folder; an error names the file and the field."""
    chosen = arcs_file(folder, arcs)
    persona = read_paper(folder / "persona.yaml", Persona, "who the persona is")
    files = PersonaFiles(folder, chosen, persona, read_paper(chosen, Arcs, "the story's arcs"))
    if not 1 <= files.days <= LAST_DAY:
        raise DataError(
            f"a history of {files.days} days by the file's name or its last arc: it must have 1 to "
            f"{LAST_DAY}",
            file=chosen,
        )
    try:
        _ = files.date_of(files.days)
    except (ValueError, OverflowError):
        raise DataError(
            "field `epoch`: should be a date such as 2026-01-31, from which its days are counted",
            file=chosen,
        ) from None
    return files


def as_yaml(content: Persona | Arcs) -> str:
    return dump_yaml(msgspec.to_builtins(content))
