"""Scene books: the texts of the second edition of a story, validated when read.

A book has other names of subjects, sentences that use a value without announcing it, events that
make things change, teams with their people, and matters: small affairs with a cause and an end.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import read_text
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.personas.simulate.story import SHIPPED, ArcType, Story

Texts = tuple[str, ...]


class _BookPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of a scene book; an unknown field is an error."""


class TeamFact(_BookPart, frozen=True):
    """What holds for a team and so for everybody in it."""

    noun: str
    says: Texts
    uses: Texts
    """Ways to use a new value without saying that it is new."""
    asks: Texts
    """Ways to ask for it by a person of the team: {person}."""


class Preference(_BookPart, frozen=True):
    values: Texts
    shows: Texts
    """Scenes in which somebody acts on it, and nobody names it: {person}, {value}."""
    asks: Texts


class CommonScenes(_BookPart, frozen=True):
    """scenes/common.yaml; its comments describe each list."""

    frames: dict[str, Texts]
    """What a book without such frames of its own uses."""
    weekends: Texts
    abouts: Texts
    nicknames: Texts
    titles: dict[str, Texts]
    joins: Texts
    moves_person: Texts
    teams: dict[str, TeamFact]
    slots: Texts
    preferences: dict[str, Preference]
    asks_latest: Texts
    asks_date: Texts
    asks_first: Texts
    asks_why: Texts
    asks_course: Texts
    asks_both: Texts
    asks_outcome: Texts
    asks_objection: Texts
    asks_who: Texts
    asks_common: Texts
    no_answers: Texts


class Matter(NamedTuple):
    topic: str
    trouble: str
    fix: str
    after: str


class Affair(_BookPart, frozen=True, eq=False):
    """A small story in several parts, told on different days."""

    room: str
    """The session in which it goes on."""
    topic: str
    tells: Texts
    vary: dict[str, Texts] = {}
    """Particulars that are drawn anew each time, by slot."""


class Tellings(_BookPart, frozen=True):
    """Scenes that state one kind of fact, with {name} and {value}.

    {speaker} says it, {a} and {b} are other people of the session, {P} is the principal.
    """

    said: Texts
    revised: Texts = ()
    """The value replaces another one, which is not named."""
    near: Texts = ()
    """Near misses: the kind of fact comes up, and its value does not."""


class SceneEvent(NamedTuple):
    what: str
    """A clause: the notary's train was stopped in Basel."""
    name: str
    """How people refer to it later: the stranded notary in Basel."""


class SceneBook(_BookPart, frozen=True):
    aliases: dict[str, str]
    """Subject to another name of it, which shares no word with the name."""
    uses: dict[ArcType, dict[str, Texts]]
    """By arc and kind of fact: sentences that use a value: {name}, {value}, {speaker}."""
    events: Texts
    """`what | name`, both with {p} for a place."""
    places_of_events: Texts
    teams: Texts
    people: Texts
    """People who belong to teams; none of them is in the cast."""
    places: Texts
    """Where teams sit."""
    matters: Texts
    """`topic | trouble | fix | after`."""
    affairs: tuple[Affair, ...] = ()
    descriptions: dict[str, str] = {}
    """Subject to a description in words that neither the log nor the story uses for it."""
    clauses: dict[ArcType, dict[str, str]] = {}
    """By arc and kind of fact: what it tells, in everyday words: {x} is the subject."""
    tellings: dict[ArcType, dict[str, Tellings]] = {}
    """By arc and kind of fact: how it is told; others are told by a sentence of the story."""
    opens: dict[ArcType, Texts] = {}
    """The first day of an arc: {name}, {about}."""
    goings: dict[ArcType, Texts] = {}
    """A day of an arc on which nothing new is known of it: {name}."""
    frames: dict[str, Texts] = {}
    """Other scenes, by what they tell; those that are left out come from scenes/common.yaml."""

    def frame(self, name: str) -> Texts:
        return self.frames.get(name) or SCENES.frames[name]

    def shows(self, preference: str) -> Texts:
        """Scenes in which somebody acts on a preference."""
        return self.frames.get(preference) or SCENES.preferences[preference].shows

    def team_texts(self, id: str) -> tuple[Texts, Texts]:
        """How what holds for a team is told first, and how it is used after a change."""
        kind = SCENES.teams[id]
        said, used = self.frames.get(f"{id}_said"), self.frames.get(f"{id}_used")
        return said or kind.says, used or kind.uses

    def member_texts(self) -> tuple[Texts, Texts]:
        """How somebody comes to a first team, and to another one."""
        joins, moves = self.frames.get("joins"), self.frames.get("moves")
        return joins or SCENES.joins, moves or SCENES.moves_person

    def own_matters(self) -> list[Matter]:
        return [Matter(*_parts(line)) for line in self.matters]

    def all_events(self) -> list[SceneEvent]:
        return [
            SceneEvent(*(part.replace("{p}", place) for part in _parts(line)))
            for line in self.events
            for place in self.places_of_events
        ]


def _parts(line: str) -> list[str]:
    return [part.strip() for part in line.split("|")]


_SLOT = re.compile(r"\{(\w+)\}")
_SCENE_SLOTS = frozenset(("P", "weekday"))
_FRAMES: Mapping[str, tuple[str, ...]] = {
    "claim": ("speaker", "claim"),
    "delay": ("name", "thread"),
    "proposal": ("speaker", "name", "option"),
    "objection": ("speaker", "name", "option", "objection"),
    "outcome": ("name", "option", "reason"),
    "because": ("reason",),
    "event": ("event",),
    "back": ("name",),
    "raises": ("topic", "trouble"),
    "settles": ("topic", "fix"),
    "afters": ("topic", "after"),
    "joins": ("person", "team"),
    "moves": ("person", "team"),
    **dict.fromkeys(("drink", "snack", "format", "hour"), ("person", "value")),
    **{
        f"{id}_{manner}": ("team", "value")
        for id in ("place", "approver", "extension", "slot")
        for manner in ("said", "used")
    },
}
"""The frames that a book may have, and the slots that each of their texts needs."""
_SENTENCE = re.compile(r'(?<=[.!?"]) +|\n+')
_FOLDER = files("mnemoscope.personas.simulate.scenes")


def find_scenes(persona: str, story: Story) -> SceneBook:
    """The scene book of a shipped story, or `NAME.scenes.yaml` beside the file of your own."""
    if persona in SHIPPED:
        name = f"{persona}.yaml"
        return parse_scenes((_FOLDER / name).read_text(encoding="utf-8"), Path(name), story)
    path = Path(persona).with_suffix(".scenes.yaml")
    try:
        return parse_scenes(read_text(path), path, story)
    except FileNotFoundError:
        raise UsageError(
            f"{path} does not exist: the second edition of a story needs a scene book beside it"
        ) from None


def parse_scenes(text: str, path: Path, story: Story) -> SceneBook:
    try:
        book = msgspec.convert(parse_yaml(text, path), SceneBook)
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path) from None
    if problems := list(_problems(book, story)):
        raise DataError("; ".join(problems[:10]), file=path)
    return book


def _problems(book: SceneBook, story: Story) -> Iterator[str]:
    names = {subject.name for arc in story.arcs.values() for subject in arc.subjects}
    for name in sorted(set(book.aliases) - names):
        yield f"aliases: no subject is called {name!r}"
    for name in sorted(set(book.descriptions) - names):
        yield f"descriptions: no subject is called {name!r}"
    for type, clauses in book.clauses.items():
        for id in sorted(set(clauses) - {kind.id for kind in story.arcs[type].facts}):
            yield f"clauses.{type}: no kind of fact is called {id!r}"
        for id, clause in clauses.items():
            if "{x}" not in clause:
                yield f"clauses.{type}.{id}: needs {{x}}: {clause!r}"
    for alias in sorted(set(book.aliases.values()) & names):
        yield f"aliases: {alias!r} is the name of another subject"
    for field, parts in (("matters", 4), ("events", 2)):
        for line in getattr(book, field):
            if len(_parts(line)) != parts:
                yield f"{field}: {line!r} needs {parts} parts with | between them"
    rooms = {session.id for session in story.persona.sessions if not session.isolated}
    for affair in book.affairs:
        if affair.room not in rooms:
            yield f"affairs: {affair.topic!r} is in {affair.room!r}, which is no open session"
        known = {*affair.vary, *_SCENE_SLOTS}
        for text in (affair.topic, *affair.tells):
            for slot in sorted(set(_SLOT.findall(text)) - known):
                yield f"affairs: {affair.topic!r} has no choices for {{{slot}}}"
    cast = {person.name for person in story.persona.cast}
    for person in sorted(set(book.people) & cast):
        yield f"people: {person} is in the cast already"
    for type, kinds in book.uses.items():
        known = {kind.id for kind in story.arcs[type].facts}
        for id in sorted(set(kinds) - known):
            yield f"uses.{type}: no kind of fact is called {id!r}"
        for id, texts in kinds.items():
            for text in texts:
                if "{name}" not in text or "{value}" not in text:
                    yield f"uses.{type}.{id}: needs {{name}} and {{value}}: {text!r}"
    for type, told in book.tellings.items():
        kinds_here = {kind.id: kind for kind in story.arcs[type].facts}
        for id, telling in told.items():
            if id not in kinds_here:
                yield f"tellings.{type}: no kind of fact is called {id!r}"
                continue
            of_person = kinds_here[id].values.person
            for text in (*telling.said, *telling.revised):
                # People also stand by: one sentence says who has to do with the subject.
                told_in = _SENTENCE.split(text) if of_person else [text]
                if not any("{name}" in part and "{value}" in part for part in told_in):
                    yield f"tellings.{type}.{id}: needs {{name}} and {{value}} together: {text!r}"
            for text in telling.near:
                if "{name}" not in text or "{value}" in text:
                    yield f"tellings.{type}.{id}: needs {{name}} and no {{value}}: {text!r}"
    for name, texts in book.frames.items():
        if name not in _FRAMES:
            yield f"frames: {name!r} is none of {', '.join(_FRAMES)}"
            continue
        for text in texts:
            for slot in _FRAMES[name]:
                if f"{{{slot}}}" not in text:
                    yield f"frames.{name}: needs {{{slot}}}: {text!r}"
            if name.startswith("approver_") and not any(
                "{team}" in part and "{value}" in part for part in _SENTENCE.split(text)
            ):
                yield f"frames.{name}: needs {{team}} and {{value}} together: {text!r}"
    fewest: Mapping[str, int] = {"teams": 4, "people": 6, "places": 8, "matters": 12, "events": 4}
    for field, least in fewest.items():
        if len(getattr(book, field)) < least:
            yield f"{field}: needs at least {least}"


SCENES = msgspec.convert(
    parse_yaml((_FOLDER / "common.yaml").read_text(encoding="utf-8"), Path("common.yaml")),
    CommonScenes,
)
