"""The timeline of the second edition: facts are announced, used in passing or caused by events.

Beside the facts of arcs it plans other names of subjects, teams with their people, and preferences.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from random import Random

from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.calendar import WorkCalendar
from mnemoscope.personas.simulate.grammar import put
from mnemoscope.personas.simulate.phrases import capital
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
from mnemoscope.personas.simulate.scene_book import SCENES, SceneBook, Texts
from mnemoscope.personas.simulate.story import Story, StoryFact, StorySubject
from mnemoscope.personas.simulate.timeline import (
    LogSentence,
    PlannedFact,
    Timeline,
    TimelineRecord,
    aliases,
)

_AGAIN = 0.4
_BY_ALIAS = 0.4
_IMPLICIT = 0.55
_CAUSED = 0.5
_QUOTED = 0.35
_OPEN = 0.3
"""The probability that a decision stays open, and that nobody objects in it."""
_TEAM_CHANGES = (90, 220)
"""Days between two values of a fact about a team, and between two teams of a person."""
_FIRST_PERSON = re.compile(r"\b(I|my|me|we had it wrong)\b")


@dataclass
class SceneRecord(TimelineRecord):
    """What the second edition notes in addition, by arc or by person."""

    omissions: dict[str, list[StoryFact]] = field(default_factory=dict)
    """The kinds of facts that an arc never states."""
    by_alias: set[tuple[str, int, str]] = field(default_factory=set)
    """Arc, day and attribute of the facts that are stated under another name of the subject."""
    undecided: set[str] = field(default_factory=set)
    unopposed: set[str] = field(default_factory=set)
    causes: dict[tuple[str, int], str] = field(default_factory=dict)
    """(attribute, day) of a caused change to the name of the event."""
    holders: dict[str, set[str]] = field(default_factory=dict)
    """The people who are values of an arc; no scene of it has them as bystanders."""
    covered: dict[str, str] = field(default_factory=dict)
    """Confidential arc to the session in which its cover may be told."""
    team_facts: dict[str, list[str]] = field(default_factory=dict)
    """Team to the ids of what is stated about it; the others never are."""


class SceneTimeline(Timeline):
    """Decides when and how the facts of the second edition are stated."""

    def __init__(self, story: Story, book: SceneBook, calendar: WorkCalendar, rng: Rng) -> None:
        super().__init__(story, calendar, rng)
        self._book = book
        self._events = ShuffledCycle(book.all_events(), rng.stream("events"))
        self._events_left = len(self._events)
        self._speakers: dict[str, set[str]] = {}
        self._wordings: dict[tuple[str, ...], ShuffledCycle[str]] = {}
        self._scenes = SceneRecord()

    def build(self, arcs: Sequence[PlannedArc]) -> SceneRecord:
        self._people(self._rng.stream("people"))
        self._preferences(self._rng.stream("preferences"))
        for arc in arcs:
            self._names(arc)
        record = super().build(arcs)
        scenes = self._scenes
        scenes.facts, scenes.abouts = record.facts, record.abouts
        scenes.sentences = record.sentences
        return scenes

    def alias(self, arc: PlannedArc) -> str:
        return "" if arc.isolated else self._book.aliases.get(arc.name, "")

    def _names(self, arc: PlannedArc) -> None:
        """What the first day of an arc says about its names; the page writes these sentences."""
        silent = LogSentence(first_day(arc), arc.session.id, arc.id, "")
        about = PlannedFact(first_day(arc), arc, "name.meaning", arc.subject.about, silent)
        self._planned.append(about)
        if alias := self.alias(arc):
            self._planned.append(PlannedFact(first_day(arc), arc, "name.also", alias, silent))

    def _facts(self, arc: PlannedArc) -> None:
        random = self._rng.stream("facts", arc.id)
        kinds = list(arc.template.facts)
        random.shuffle(kinds)
        omitted = 2 if len(kinds) > 5 else 1
        self._scenes.omissions[arc.id] = kinds[:omitted]
        for kind in kinds[omitted:][: 2 * len(arc.workdays[1:])]:
            times = 1
            if random.random() < kind.changes:
                times = 3 if random.random() < _AGAIN else 2
            self._chain(arc, kind, self._spread(arc, times, random), random)

    def _chain(self, arc: PlannedArc, kind: StoryFact, days: Sequence[int], random: Random) -> None:
        attribute = f"{arc.type}.{kind.id}"
        uses = self._book.uses.get(arc.type, {}).get(kind.id, ())
        scenes = self._book.tellings.get(arc.type, {}).get(kind.id)
        values: list[str] = []
        before: PlannedFact | None = None
        for day in days:
            taken: set[str] = set()
            if kind.values.person:
                taken = self._speakers.get(arc.id, set()) | self._scenes.holders.get(arc.id, set())
            value = self._values.draw(attribute, kind, day, [*values, *taken])
            if kind.values.person:
                self._scenes.holders.setdefault(arc.id, set()).add(value)
            manner, event = "said", ""
            if before:
                manner = "used" if uses and random.random() < _IMPLICIT else "revised"
            if before and manner == "revised" and not arc.isolated:
                event = self._cause(arc, before.day, day, random)
            own = {"said": scenes.said, "revised": scenes.revised}.get(manner) if scenes else ()
            phrasings = {"said": kind.says, "revised": kind.revises, "used": uses}[manner]
            phrasing = self._wording(own or phrasings)
            held = self._scenes.holders.get(arc.id, set())
            people = self.story.speakers(arc.session)
            others = [name for name in people if name not in held] or [
                name for name in people if name != value
            ]
            speaker, old = random.choice(others), values[-1] if values else ""
            alias = self.alias(arc)
            by_alias = self._rng.stream("alias", f"{arc.id} {day}").random() < _BY_ALIAS
            name = alias if alias and by_alias else arc.name
            text = put(phrasing, {"name": name, "value": value, "speaker": speaker, "old": old})
            text = text if own else capital(text)
            spoken = "{speaker}" in phrasing
            quoted = (
                not spoken
                and not own
                and manner != "used"
                and not _FIRST_PERSON.search(text)
                and random.random() < _QUOTED
            )
            said_by = speaker if spoken or quoted else ""
            if said_by:
                self._speakers.setdefault(arc.id, set()).add(speaker)
            planned = self._add(day, arc, attribute, value, text, said_by, quoted=quoted)
            planned.sentence = replace(
                planned.sentence,
                manner=manner,
                noun=kind.noun,
                name=name,
                reason=event,
            )
            planned.aliases = aliases(value, kind, self.calendar, day)
            if name != arc.name:
                self._scenes.by_alias.add((arc.id, day, attribute))
            if event:
                self._scenes.causes[f"{arc.id} {attribute}", day] = event
            if before:
                before.next = planned
            values.append(value)
            before = planned

    def _wording(self, texts: Texts) -> str:
        """One of the texts; each is used before one is used again."""
        if texts not in self._wordings:
            random = self._rng.stream("wordings", "\n".join(texts))
            self._wordings[texts] = ShuffledCycle(texts, random)
        return self._wordings[texts].draw()

    def _cause(self, arc: PlannedArc, after: int, before: int, random: Random) -> str:
        """An event between two days that makes a value change; empty for most changes."""
        days = [day for day in arc.workdays if after < day < before][-8:]
        if not days or not self._events_left or random.random() > _CAUSED:
            return ""
        self._events_left -= 1
        event = self._events.draw()
        day = random.choice(days)
        text = put(self._wording(self._book.frame("event")), {"event": event.what})
        stated = LogSentence(day, arc.session.id, "", text, manner="event")
        planned = PlannedFact(day, arc, "event.what", event.what, stated)
        planned.aliases, planned.entity = (event.name,), event.name
        self._planned.append(planned)
        return event.name

    def _decide(self, arc: PlannedArc) -> None:
        """Some decisions stay open, and in some nobody objects."""
        place = len(self._planned)
        super()._decide(arc)
        random = self._rng.stream("open", arc.id)
        dropped: tuple[str, ...] = ()
        if random.random() < _OPEN:
            dropped = ("decision.choice", "decision.reason")
            self._scenes.undecided.add(arc.id)
        elif random.random() < _OPEN:
            dropped = ("decision.objection",)
            self._scenes.unopposed.add(arc.id)
        nouns = {"proposal": "first proposal", "objection": "objection", "choice": "outcome"}
        decided = self._planned[place:]
        values = {fact.attribute.partition(".")[2]: fact.value for fact in decided}
        kept = [fact for fact in decided if fact.attribute not in dropped]
        for fact in kept:
            id = fact.attribute.partition(".")[2]
            frame = {"choice": "outcome", "reason": "outcome"}.get(id, id)
            option = values["choice" if frame == "outcome" else "proposal"]
            slots = {"name": arc.name, "speaker": fact.speaker, **values, "option": option}
            fact.sentence = replace(
                fact.sentence,
                text=put(self._wording(self._book.frame(frame)), slots),
                manner="said",
                noun=nouns.get(id, "reason"),
                name=arc.name,
            )
        self._planned[place:] = kept

    def _argue(self, arc: PlannedArc) -> None:
        if arc.type == "relationship":  # opinions and delays are about things, not about people
            return
        place = len(self._planned)
        super()._argue(arc)
        for fact in self._planned[place:]:
            slots = {"name": arc.name, "speaker": fact.speaker, "claim": fact.value}
            text = put(self._wording(self._book.frame("claim")), slots)
            fact.sentence = replace(
                fact.sentence, text=text, quoted="", manner="said", name=arc.name
            )

    def _share_causes(self, arcs: Sequence[PlannedArc]) -> None:
        place = len(self._planned)
        super()._share_causes([arc for arc in arcs if arc.type != "relationship"])
        for fact in self._planned[place:]:
            slots = {"name": fact.arc.name, "thread": fact.value}
            text = put(self._wording(self._book.frame("delay")), slots)
            fact.sentence = replace(fact.sentence, text=text, manner="said", name=fact.arc.name)

    def _cover(self, arc: PlannedArc) -> None:
        """A title that may be told in one other session; in the others nothing may be told."""
        super()._cover(arc)
        sessions = self.story.persona.sessions
        rooms = [one.id for one in sessions if one.kind == "group" and not one.isolated]
        if not rooms:
            return
        room = self._rng.stream("covered", arc.id).choice(rooms)
        self._scenes.covered[arc.id] = room
        fact = self._planned[-1]
        text = (
            f'If the {room} session asks, {arc.name} is called "{fact.value}" and nothing more; '
            "in the other rooms nothing is said at all."
        )
        fact.sentence = replace(fact.sentence, text=text, manner="said", name=arc.name)

    def _people(self, random: Random) -> None:
        """Who belongs to which team over time, and what holds for each team."""
        last = self.calendar.days
        teams = list(self._book.teams)
        cycle = ShuffledCycle(teams, random)
        pools = {
            "place": ShuffledCycle(self._book.places, random),
            "approver": ShuffledCycle(self.story.colleagues(), random),
            "extension": ShuffledCycle([f"extension {n}" for n in range(2104, 8990, 37)], random),
            "slot": ShuffledCycle(SCENES.slots, random),
        }
        ids = ShuffledCycle(list(SCENES.teams), random)
        for team in teams:
            first = ids.draw()
            stated = [first, ids.draw([first])]
            self._scenes.team_facts[team] = stated
            for id in stated:
                said, used = self._book.team_texts(id)
                texts = (ShuffledCycle(said, random), ShuffledCycle(used, random))
                self._state(team, f"team.{id}", "team", texts, pools[id], last, random)
        for person in self._people_here():
            joins, moves = self._book.member_texts()
            texts = (ShuffledCycle(joins, random), ShuffledCycle(moves, random))
            self._state(person, "person.team", "person", texts, cycle, last, random)

    def _people_here(self) -> Sequence[str]:
        """Short histories have fewer people, so that their days are not crowded."""
        return self._book.people[: max(3, min(len(self._book.people), self.calendar.days // 25))]

    def _state(
        self,
        entity: str,
        attribute: str,
        slot: str,
        texts: tuple[ShuffledCycle[str], ShuffledCycle[str]],
        values: ShuffledCycle[str],
        last: int,
        random: Random,
    ) -> None:
        """A value that changes a few times over the whole history."""
        before: PlannedFact | None = None
        used: list[str] = []
        for day in self._days_of_change(last, random):
            value = values.draw(used)
            used = [*used, value][-2:]
            team = value if slot == "person" else entity
            slots = {slot: entity, "team": team, "value": value, "person1": entity.split()[0]}
            text = put(texts[bool(before)].draw(), slots)
            planned = self._aside(day, entity, attribute, value, text, "state")
            if before:
                before.next = planned
            before = planned

    def _days_of_change(self, last: int, random: Random) -> Iterator[int]:
        day = random.randint(1, max(1, min(120, last // 3)))
        while day <= last:
            if days := self.calendar.working_days(day, day + 20):
                yield days[0]
            day += random.randint(*_TEAM_CHANGES)

    def _preferences(self, random: Random) -> None:
        """Each person shows half of the kinds of preferences, on two days each."""
        values = {id: ShuffledCycle(one.values, random) for id, one in SCENES.preferences.items()}
        for person in (*self._people_here(), *self.story.colleagues()):
            for id in random.sample(list(SCENES.preferences), 2):
                value = values[id].draw()
                start = random.randint(1, max(1, self.calendar.days - 40))
                days = self.calendar.working_days(start, start + 40)
                if len(days) < 2:
                    continue
                shows = self._book.shows(id)
                shown = random.sample(shows, min(2, len(shows)))
                for day, show in zip(sorted(random.sample(days, 2)), shown, strict=False):
                    text = put(show, {"person": person, "value": value})
                    self._aside(day, person, f"person.{id}", value, text, "shown")

    def _aside(
        self, day: int, entity: str, attribute: str, value: str, text: str, manner: str
    ) -> PlannedFact:
        """A fact of the principal session that belongs to no arc."""
        principal = next(one for one in self.story.persona.sessions if one.id == "principal")
        template = self.story.arcs["relationship"]
        subject = StorySubject(entity, "")
        none = PlannedArc("", "relationship", template, subject, 0, 0, principal, (), False, ())
        stated = LogSentence(day, "principal", "", text, manner=manner)
        planned = PlannedFact(day, none, attribute, value, stated)
        self._planned.append(planned)
        return planned


def first_day(arc: PlannedArc) -> int:
    """The day that introduces an arc and its names."""
    return arc.workdays[0] if arc.workdays else arc.start
