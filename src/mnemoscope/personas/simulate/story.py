"""Stories: the YAML files that histories are simulated from, validated when read.

A story has a cast, sessions, types of arcs with their subjects and facts, and phrasings. The
simulator draws the dates and values.
"""

from __future__ import annotations

import string
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sized
from collections.abc import Set as AbstractSet
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import read_text
from mnemoscope._store.yaml import parse_yaml

ArcType = Literal["project", "incident", "decision", "learning", "relationship", "correction"]
SHIPPED = (
    "backend-eng-saas",
    "er-physician",
    "litigation-attorney",
    "research-scientist",
    "financial-advisor",
    "executive-assistant",
)


class _Strict(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A part of a story; an unknown field is an error."""


class Person(_Strict, frozen=True):
    name: str
    role: str
    kind: Literal["human", "agent"] = "human"


class Principal(_Strict, frozen=True):
    name: str
    role: str
    profile: str = ""


class StorySession(_Strict, frozen=True):
    id: str
    kind: Literal["1to1", "group"]
    participants: tuple[str, ...]
    isolated: bool = False
    """Its content may not be disclosed in other sessions."""
    cover: tuple[str, ...] = ()
    """Of isolated sessions: neutral calendar titles that may be disclosed instead."""
    sensitive_topics: tuple[str, ...] = ()


class Project(_Strict, frozen=True):
    id: str
    name: str
    description: str


class StoryPersona(_Strict, frozen=True):
    """The content of persona.yaml."""

    id: str
    name: str
    role: str
    domain: str
    profile: str
    communication_style: str
    principal: Principal
    cast: tuple[Person, ...]
    sessions: tuple[StorySession, ...]
    company: str = ""
    team_size: int = 0
    projects: tuple[Project, ...] = ()
    shared_knowledge: tuple[str, ...] = msgspec.field(default=(), name="sharedKnowledge")


class Values(_Strict, frozen=True):
    """How a fact's value is drawn: exactly one of these is given."""

    pick: tuple[str, ...] = ()
    """One of a list."""
    number: tuple[int, int, int] | None = None
    """Low, high, step; `form` words it, with {n} for the number."""
    form: str = "{n}"
    person: bool = False
    """A person of the cast."""
    date: tuple[int, int] | None = None
    """A date this many days ahead: fewest, most."""


class StoryFact(_Strict, frozen=True):
    """A kind of fact about a subject; its value may change."""

    id: str
    noun: str
    """The thing, as a question would name it without the subject: "spending limit"."""
    values: Values
    says: tuple[str, ...]
    """Ways to state it in the log: {name}, {value}, {speaker}."""
    asks: tuple[str, ...]
    """Ways to ask for it in words that `says` does not use: {name} or {about}."""
    changes: float = 0.0
    """The probability that it is revised during its arc."""
    revises: tuple[str, ...] = ()
    """Ways to state a new value: {name}, {value}, {speaker}, and {old} where it is natural."""
    mentions: tuple[str, ...] = ()
    """Near misses: ways to talk about it without saying its value: {name}, {speaker}."""


class StorySubject(_Strict, frozen=True):
    """The subject of an arc."""

    name: str
    """Its name in the log."""
    about: str
    """A description for questions that shares no word with the name."""
    also: str = ""
    """Of a decision: another description, in words that neither the log nor `about` uses."""
    options: tuple[str, ...] = ()
    """Of a decision: three or more options."""
    objections: tuple[str, ...] = ()
    """Of a decision: two or more objections to an option."""
    reasons: tuple[str, ...] = ()
    """Of a decision: two or more reasons for an option."""


class StoryArc(_Strict, frozen=True):
    """A type of arc."""

    days: tuple[int, int]
    """Its fewest and most days."""
    sessions: tuple[str, ...]
    """The sessions in which it may take place."""
    subjects: tuple[StorySubject, ...]
    opens: tuple[str, ...]
    """Ways to begin it, each with {name} and {about}, so that the log links the two."""
    closes: tuple[str, ...]
    """Ways to end it: {name}."""
    goes_on: tuple[str, ...]
    """Ways to mention it on a day without a fact: {name}, {speaker}."""
    facts: tuple[StoryFact, ...] = ()
    proposes: tuple[str, ...] = ()
    """Of decisions: {speaker}, {option}, {name}."""
    objects: tuple[str, ...] = ()
    """Of decisions: {speaker}, {option}, {objection}, {name}."""
    resolves: tuple[str, ...] = ()
    """Of decisions: {option}, {reason}, {name}."""


class Threads(_Strict, frozen=True):
    """Causes of trouble that two arcs share, each made of a head and a tail."""

    heads: tuple[str, ...]
    tails: tuple[str, ...]
    says: tuple[str, ...]
    """Ways to say that a thread delayed an arc: {name}, {thread}."""
    asks: tuple[str, ...]
    """Ways to ask which two arcs it was: {thread}."""


class Story(_Strict, frozen=True):
    persona: StoryPersona
    epoch: str
    """The date of day 1, YYYY-MM-DD."""
    arcs: dict[ArcType, StoryArc]
    threads: Threads
    claims: tuple[str, ...]
    """Opinions in group sessions, as a clause after "that": {name}."""
    never: tuple[str, ...]
    """Questions about events that never happen: {person}."""
    routine: tuple[str, ...]
    """Filler sentences: {person}, {weekday}, {n}."""
    quiet: tuple[str, ...]
    """Filler sentences for weekends and days off."""
    breaks: tuple[str, ...]
    """Reasons for quiet weeks, such as a holiday."""

    def colleagues(self) -> list[str]:
        """People who may be named in every session: all except those only in isolated ones."""
        humans = [person.name for person in self.persona.cast if person.kind == "human"]
        hidden: set[str] = set()
        seen: set[str] = set()
        for session in self.persona.sessions:
            (hidden if session.isolated else seen).update(session.participants)
        found = [name for name in humans if name in seen or name not in hidden]
        return found if len(found) >= 6 else humans

    def speakers(self, session: StorySession) -> list[str]:
        """The speakers of a session; in a 1to1 session the agent reports what colleagues say."""
        if session.kind == "1to1":
            return self.colleagues()
        humans = {person.name for person in self.persona.cast if person.kind == "human"}
        here = [name for name in session.participants if name in humans]
        return here if len(here) >= 2 else self.colleagues()


ARC_TYPES: tuple[ArcType, ...] = get_args(ArcType)
_MINIMUM: Mapping[str, int] = {"routine": 60, "quiet": 15, "breaks": 4, "claims": 20, "never": 25}
_SUBJECTS_AND_FACTS: Mapping[ArcType, tuple[int, int]] = {
    "project": (20, 7),
    "incident": (18, 6),
    "decision": (16, 0),
    "learning": (12, 4),
    "relationship": (12, 5),
    "correction": (14, 4),
}
"""The fewest subjects and facts of each type of arc."""


def find_story(persona: str) -> Story:
    """The shipped story with this id, or the story in the file of this name."""
    path = Path(persona)
    if persona in SHIPPED or not (path.suffix in (".yaml", ".yml") or path.exists()):
        return shipped_story(persona)
    try:
        return parse_story(read_text(path), path)
    except FileNotFoundError:
        raise UsageError(
            f"{path} does not exist: give the path of a story, or one of {', '.join(SHIPPED)}"
        ) from None


def shipped_story(id: str) -> Story:
    """A story that comes with the package."""
    if id not in SHIPPED:
        raise UsageError(
            f"unknown persona {id!r}: give one of {', '.join(SHIPPED)}, or the path of a story"
        )
    resource = files("mnemoscope.personas.simulate.stories") / f"{id}.yaml"
    return parse_story(resource.read_text(encoding="utf-8"), Path(f"{id}.yaml"))


def parse_story(text: str, path: Path) -> Story:
    try:
        story = msgspec.convert(parse_yaml(text, path), Story)
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path) from None
    problems = list(_problems(story))
    if problems:
        more = f" (and {len(problems) - 10} more)" if len(problems) > 10 else ""
        raise DataError("; ".join(problems[:10]) + more, file=path)
    return story


def _problems(story: Story) -> Iterator[str]:
    """All rules that the story breaks."""
    for field, least in _MINIMUM.items():
        yield from _enough(field, getattr(story, field), least)
    people = {person.name for person in story.persona.cast} | {story.persona.principal.name}
    sessions = {session.id for session in story.persona.sessions}
    if "principal" not in sessions:
        yield "persona.sessions: needs one with the id principal"
    for session in story.persona.sessions:
        if strangers := set(session.participants) - people:
            yield f"session {session.id}: {', '.join(sorted(strangers))} not in the cast"
        if session.isolated and len(session.cover) < 3:
            yield f"session {session.id}: an isolated session needs 3 covers"
    for kind in ARC_TYPES:
        if kind not in story.arcs:
            yield f"arcs: {kind} is missing"
            continue
        yield from _arc_problems(kind, story.arcs[kind], sessions)
    names = [subject.name.lower() for arc in story.arcs.values() for subject in arc.subjects]
    yield from (f"two subjects are called {name!r}" for name in _repeated(names))
    yield from _enough("threads.heads", story.threads.heads, 12)
    yield from _enough("threads.tails", story.threads.tails, 8)
    yield from _phrasings("threads.says", story.threads.says, 4, {"name", "thread"})
    yield from _phrasings("threads.asks", story.threads.asks, 3, {"thread"})
    yield from _phrasings("claims", story.claims, 0, {"name"})
    for field in ("routine", "quiet", "never", "breaks"):
        yield from _phrasings(field, getattr(story, field), 0, set(), {"person", "weekday", "n"})


def _arc_problems(kind: ArcType, arc: StoryArc, sessions: set[str]) -> Iterator[str]:
    where = f"arcs.{kind}"
    least_subjects, least_facts = _SUBJECTS_AND_FACTS[kind]
    if not 0 < arc.days[0] <= arc.days[1]:
        yield f"{where}.days: {arc.days} is not a range of days"
    for session in set(arc.sessions) - sessions:
        yield f"{where}.sessions: session {session!r} does not exist"
    yield from _enough(f"{where}.subjects", arc.subjects, least_subjects)
    yield from _phrasings(f"{where}.opens", arc.opens, 3, {"name", "about"})
    yield from _phrasings(f"{where}.closes", arc.closes, 3, {"name"})
    yield from _phrasings(f"{where}.goes_on", arc.goes_on, 6, {"name"}, {"speaker"})
    if kind == "decision":
        yield from _phrasings(f"{where}.proposes", arc.proposes, 4, {"speaker", "option", "name"})
        needed = {"speaker", "option", "objection", "name"}
        yield from _phrasings(f"{where}.objects", arc.objects, 4, needed)
        yield from _phrasings(f"{where}.resolves", arc.resolves, 4, {"option", "reason", "name"})
        for subject in arc.subjects:
            if min(len(subject.options) - 1, len(subject.objections), len(subject.reasons)) < 2:
                yield f"{where}: {subject.name} needs 3 options, 2 objections and 2 reasons"
            if not subject.also:
                yield f"{where}: {subject.name} needs `also`, a description in other words"
    yield from _enough(f"{where}.facts", arc.facts, least_facts)
    for fact in arc.facts:
        yield from _fact_problems(f"{where}.{fact.id}", fact)
    for what in ("id", "noun"):
        repeated = _repeated(getattr(fact, what) for fact in arc.facts)
        yield from (f"{where}: two facts have the {what} {value!r}" for value in repeated)


def _fact_problems(where: str, fact: StoryFact) -> Iterator[str]:
    values = fact.values
    given = [bool(values.pick), values.number is not None, values.person, values.date is not None]
    if sum(given) != 1:
        yield f"{where}.values: give one of pick, number, person, date"
    if values.pick and len(values.pick) < 8:
        yield f"{where}.values.pick: {len(values.pick)} where at least 8 are needed"
    start, end, step = values.number or (0, 0, 1)
    if values.number and (step < 1 or len(range(start, end, step)) < 20):
        yield f"{where}.values.number: fewer than 20 numbers where at least 20 are needed"
    if values.number and _slots(values.form) != {"n"}:
        yield f"{where}.values.form: should contain {{n}} and no other slot"
    yield from _phrasings(f"{where}.says", fact.says, 4, {"name", "value"}, {"speaker"})
    yield from _phrasings(f"{where}.mentions", fact.mentions, 2, {"name"}, {"speaker"})
    yield from _enough(f"{where}.asks", fact.asks, 3)
    for ask in fact.asks:
        slots = _slots(ask)
        if slots not in ({"name"}, {"about"}):
            yield f"{where}.asks: {ask!r} should contain {{name}} or {{about}} and no other slot"
    if fact.asks and not any("{about}" in ask for ask in fact.asks):
        yield f"{where}.asks: at least one should use {{about}}"
    if fact.changes > 0:
        optional = {"speaker", "old"}
        yield from _phrasings(f"{where}.revises", fact.revises, 3, {"name", "value"}, optional)


def _phrasings(
    where: str,
    phrasings: Iterable[str],
    least: int,
    needed: set[str],
    optional: AbstractSet[str] = frozenset(),
) -> Iterator[str]:
    given = tuple(phrasings)
    yield from _enough(where, given, least)
    for text in given:
        slots = _slots(text)
        if not needed <= slots <= needed | optional:
            wanted = ", ".join(f"{{{slot}}}" for slot in sorted(needed)) or "no slot"
            yield f"{where}: {text!r} should contain {wanted}"


def _enough(where: str, given: Sized, least: int) -> Iterator[str]:
    if len(given) < least:
        yield f"{where}: {len(given)} where at least {least} are needed"


def _slots(text: str) -> set[str]:
    """The slots of a phrasing; one with a format is another slot than the one without."""
    try:
        parts = list(string.Formatter().parse(text))
    except ValueError:  # a brace without its partner
        return {text}
    return {slot + (form or "") + (how or "") for _, slot, form, how in parts if slot is not None}


def _repeated(values: Iterable[str]) -> list[str]:
    return sorted(value for value, times in Counter(values).items() if times > 1)
