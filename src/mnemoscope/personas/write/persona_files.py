"""A persona's papers: who they are, and the arcs of their story, as Recall Bench writes them.

Fields that nobody here knows are kept out of the way, not refused: other people's papers are read
as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field

from mnemoscope._store.errors import DataError
from mnemoscope._store.yaml import dump_yaml
from mnemoscope.datasets.day_logs import LAST_DAY
from mnemoscope.datasets.persona_folder import DEFAULT_EPOCH, Day, arcs_file, read_paper
from mnemoscope.personas.simulate.story import ArcType, Person, Principal, Project

PRINCIPAL = "principal"
"""The session between the persona and whom they work for; every life has it."""
Id = Annotated[str, Meta(pattern=r"^[\w.@-]+$")]


class Session(Struct, frozen=True, omit_defaults=True):
    """A room that things are said in."""

    id: Id
    kind: str
    participants: tuple[str, ...] = ()
    isolated: bool = False
    """What is said here may not be told elsewhere."""
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
    sessions: tuple[Session, ...]
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
        return any(room.id == session and room.isolated for room in self.sessions)


class Directive(Struct, frozen=True):
    """Something that must happen on a day."""

    day: Day
    event: str


class Arc(Struct, frozen=True, omit_defaults=True):
    """A thread of the story."""

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
    """A persona's folder: the papers, and where its days and questions are."""

    folder: Path
    arcs_file: Path
    persona: Persona
    arcs: Arcs

    @property
    def days(self) -> int:
        """How long the life is: as the file's name says, else to the end of the last arc."""
        span = self.arcs_file.stem.removeprefix("arcs-").removesuffix("d")
        return (
            int(span) if span.isdecimal() else max((arc.end for arc in self.arcs.arcs), default=0)
        )

    @property
    def epoch(self) -> date:
        """The date of day 1."""
        return date.fromisoformat(self.arcs.epoch or self.persona.epoch or DEFAULT_EPOCH)

    def is_open(self, session: str) -> bool:
        """Whether what is said there may be told elsewhere."""
        return not self.persona.is_isolated(session)

    def date_of(self, day: int) -> date:
        return self.epoch + timedelta(days=day - 1)

    def beside(self, name: str) -> Path:
        """`memories`, `qa`, `conversations` or `tools`, paired with the arcs file."""
        return self.folder / (name + self.arcs_file.stem.removeprefix("arcs"))

    @property
    def ledger(self) -> Path:
        """Where a simulated life, and one retold from it, has every fact; others have none."""
        return self.beside("qa") / "ledger.jsonl"

    def log(self, day: int) -> Path:
        return self.beside("memories") / f"day-{day:04}.md"


def open_persona_files(folder: Path, arcs: str = "") -> PersonaFiles:
    """The folder's papers; what cannot be read is an error that names file and field."""
    chosen = arcs_file(folder, arcs)
    persona = read_paper(folder / "persona.yaml", Persona, "who the persona is")
    home = PersonaFiles(folder, chosen, persona, read_paper(chosen, Arcs, "the story's arcs"))
    if not 1 <= home.days <= LAST_DAY:
        raise DataError(
            f"a life of {home.days} days: it has 1 to {LAST_DAY}, as the file's name or its last "
            "arc says",
            file=chosen,
        )
    try:
        _ = home.date_of(home.days)
    except (ValueError, OverflowError):
        raise DataError(
            "field `epoch`: no date such as 2026-01-31 from which its days can be counted",
            file=chosen,
        ) from None
    return home


def as_yaml(paper: Any) -> str:
    return dump_yaml(msgspec.to_builtins(paper))
