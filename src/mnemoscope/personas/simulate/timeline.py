"""Telling: when each fact of an arc becomes known, in whose words, and how it is revised.

The outcome is the ledger and the sentences that say it: each fact on one day, in one session.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random

from mnemoscope.personas.simulate.calendar import LifeCalendar
from mnemoscope.personas.simulate.cast import speakers
from mnemoscope.personas.simulate.plots import Plot
from mnemoscope.personas.simulate.rng import Deck, Rng
from mnemoscope.personas.simulate.sentence_templates import capital, sentence
from mnemoscope.personas.simulate.story import Story, StoryFact
from mnemoscope.personas.simulate.values import ValuePool, aliases
from mnemoscope.text.fact_ledger import LedgerFact

_AGAIN = 0.4
"""How likely a fact that was revised is revised once more."""
_OMIT = 0.6
"""How likely an arc never tells one kind of fact, so that asking for it is in vain."""
_QUOTED = 0.25
_LABELLED = 0.4
"""How often a sentence is headed by the name of the thing, so that it can be found by that too."""
_ABOUT = 0.6
"""How often the day of a fact also says what its subject is about."""


@dataclass(frozen=True)
class Said:
    """A sentence of the log that carries facts."""

    day: int
    session: str
    plot: str
    text: str
    quoted: str = ""
    """Who says it literally; empty for prose."""


@dataclass
class TimelineRecord:
    """What became known in the course of a life."""

    facts: list[LedgerFact] = field(default_factory=list)
    said: list[Said] = field(default_factory=list)
    omitted: dict[str, StoryFact] = field(default_factory=dict)
    """Arc to the kind of fact that it never tells."""
    abouts: set[tuple[str, int]] = field(default_factory=set)
    """Arc and day on which its description is said as well."""


@dataclass
class _Step:
    """A fact before it has its number and successor."""

    day: int
    plot: Plot
    attribute: str
    value: str
    said: Said
    speaker: str = ""
    aliases: tuple[str, ...] = ()
    session: str = ""
    next: _Step | None = None


class Timeline:
    """Goes through the arcs of a life and lets their facts become known."""

    def __init__(self, story: Story, calendar: LifeCalendar, chance: Rng) -> None:
        self.story = story
        self.calendar = calendar
        self._chance = chance
        self._within_budget = ValuePool(story, calendar, chance)
        self._claims = Deck(story.claims, chance.stream("claims"))
        self._covers: dict[str, Deck[str]] = {}
        self._load: Counter[tuple[str, int]] = Counter()
        self._steps: list[_Step] = []
        self._omitted: dict[str, StoryFact] = {}

    def tell(self, plots: Sequence[Plot]) -> TimelineRecord:
        for plot in plots:
            if plot.type == "decision":
                self._decide(plot)
            else:
                self._facts(plot)
            if plot.isolated:
                self._cover(plot)
            elif plot.session.kind == "group":
                self._argue(plot)
        self._tie([plot for plot in plots if not plot.isolated])
        return self._record()

    def _facts(self, plot: Plot) -> None:
        random = self._chance.stream("facts", plot.id)
        days = list(plot.workdays[1:])
        kinds = list(plot.arc.facts)
        random.shuffle(kinds)
        if len(kinds) > 4 and random.random() < _OMIT:
            self._omitted[plot.id] = kinds.pop()
        for kind in kinds[: 2 * len(days)]:
            times = 1
            if random.random() < kind.changes:
                times = 3 if random.random() < _AGAIN else 2
            self._chain(plot, kind, self._spread(plot, days, times, random), random)

    def _chain(self, plot: Plot, kind: StoryFact, days: Sequence[int], random: Random) -> None:
        attribute = f"{plot.type}.{kind.id}"
        values: list[str] = []
        before: _Step | None = None
        phrasings = Deck(kind.revises, random)
        for day in days:
            value = self._within_budget.draw(attribute, kind, day, values)
            phrasing = phrasings.deal() if before else random.choice(kind.says)
            speaker = random.choice(
                [who for who in speakers(self.story, plot.session) if who != value]
            )
            text = sentence(
                phrasing,
                name=plot.name,
                value=value,
                speaker=speaker,
                old=values[-1] if values else "",
            )
            quoted = "" if "{speaker}" in phrasing or random.random() > _QUOTED else speaker
            labelled = random.random() < _LABELLED and kind.noun.lower() not in text.lower()
            if labelled and not quoted:
                text = f"{capital(kind.noun)}{', revised' if before else ''}: {text}"
            step = _Step(
                day,
                plot,
                attribute,
                value,
                Said(day, plot.session.id, plot.id, text, quoted),
                speaker if quoted or "{speaker}" in phrasing else "",
                aliases(value, kind, self.calendar, day),
            )
            if before:
                before.next = step
            self._steps.append(step)
            values.append(value)
            before = step

    def _decide(self, plot: Plot) -> None:
        random = self._chance.stream("decision", plot.id)
        subject, arc = plot.subject, plot.arc
        first, second, third = self._spread(plot, list(plot.workdays[1:]), 3, random)
        proposer, opponent = random.sample(speakers(self.story, plot.session), 2)
        option = random.choice(subject.options)
        objection, reason = random.choice(subject.objections), random.choice(subject.reasons)
        others = [other for other in subject.options if other != option]
        choice = option if random.random() < 0.25 else random.choice(others)
        slots = {"name": plot.name, "option": option, "objection": objection}
        text = sentence(random.choice(arc.proposes), speaker=proposer, **slots)
        self._add(first, plot, "decision.proposal", option, text, proposer)
        text = sentence(random.choice(arc.objects), speaker=opponent, **slots)
        self._add(second, plot, "decision.objection", objection, text, opponent)
        text = sentence(random.choice(arc.resolves), name=plot.name, option=choice, reason=reason)
        self._add(third, plot, "decision.choice", choice, text)
        self._add(third, plot, "decision.reason", reason, text)

    def _argue(self, plot: Plot) -> None:
        """Two people hold two views of the same thing, so that who said what matters."""
        random = self._chance.stream("views", plot.id)
        people = random.sample(speakers(self.story, plot.session), 2)
        for speaker, day in zip(
            people, self._spread(plot, list(plot.workdays[1:]), 2, random), strict=False
        ):
            claim = self._claims.deal().format(name=plot.name)
            self._add(day, plot, "group.claim", claim, capital(claim) + ".", speaker, quoted=True)

    def _cover(self, plot: Plot) -> None:
        """What may be told of a confidential matter: a title in the calendar."""
        random = self._chance.stream("cover", plot.id)
        room = plot.session
        covers = self._covers.setdefault(
            room.id, Deck(room.cover, self._chance.stream("covers", room.id))
        )
        title = covers.deal()
        (day,) = self._spread(plot, list(plot.workdays[1:]), 1, random)
        inside = f'To anybody outside this room, {plot.name} is called "{title}" and nothing more.'
        self._steps.append(
            _Step(
                day,
                plot,
                "session.cover",
                title,
                Said(day, room.id, plot.id, inside),
                session="principal",
            )
        )

    def _tie(self, plots: Sequence[Plot]) -> None:
        """Pairs of arcs share a cause of trouble and know nothing of each other."""
        random = self._chance.stream("threads")
        threads = self.story.threads
        causes = [f"{head} {tail}" for head in threads.heads for tail in threads.tails]
        random.shuffle(causes)
        pairs = list(_pairs(plots, random))[: len(causes)]
        for cause, pair in zip(causes, pairs, strict=False):
            for plot, says in zip(pair, random.sample(threads.says, 2), strict=True):
                (day,) = self._spread(plot, list(plot.workdays[1:]), 1, random)
                text = sentence(says, name=plot.name, thread=cause)
                self._add(day, plot, "thread.cause", cause, text)

    def _add(
        self,
        day: int,
        plot: Plot,
        attribute: str,
        value: str,
        text: str,
        speaker: str = "",
        *,
        quoted: bool = False,
    ) -> None:
        said = Said(day, plot.session.id, plot.id, text, speaker if quoted else "")
        self._steps.append(_Step(day, plot, attribute, value, said, speaker))

    def _spread(self, plot: Plot, days: Sequence[int], times: int, random: Random) -> list[int]:
        """So many days, in order and apart, where little of this arc becomes known so far."""
        times = min(times, len(days))
        found = []
        for part in range(times):
            segment = days[part * len(days) // times : (part + 1) * len(days) // times]
            least = min(self._load[plot.id, day] for day in segment)
            day = random.choice([day for day in segment if self._load[plot.id, day] == least])
            self._load[plot.id, day] += 1
            found.append(day)
        return found

    def _record(self) -> TimelineRecord:
        """Number the facts in order of days and tie each to its successor."""
        self._steps.sort(key=lambda step: (step.day, step.plot.start, step.plot.id, step.attribute))
        width = max(4, len(str(len(self._steps))))
        ids = {id(step): f"f{number:0{width}}" for number, step in enumerate(self._steps, 1)}
        record = TimelineRecord(omitted=self._omitted)
        random = self._chance.stream("abouts")
        for step in self._steps:
            following = step.next
            record.facts.append(
                LedgerFact(
                    ids[id(step)],
                    step.plot.name,
                    step.attribute,
                    step.value,
                    step.day,
                    step.aliases,
                    ids[id(following)] if following else "",
                    following.day if following else None,
                    step.speaker,
                    step.session or step.plot.session.id,
                    step.plot.id,
                )
            )
            if step.attribute != "decision.reason":
                record.said.append(step.said)
            if random.random() < _ABOUT or step.plot.type == "decision":
                record.abouts.add((step.plot.id, step.day))
            if step.attribute == "session.cover":
                text = f'Blocked time in the calendar under the title "{step.value}".'
                record.said.append(Said(step.day, "principal", "", text))
        return record


def _pairs(plots: Sequence[Plot], random: Random) -> Iterable[tuple[Plot, Plot]]:
    """Each arc with one that begins somewhat later; none is in more than two pairs."""
    times: Counter[str] = Counter()
    for place, plot in enumerate(plots):
        near = [other for other in plots[place + 1 : place + 5] if times[other.id] < 1]
        if near and times[plot.id] < 2 and random.random() < 0.8:
            other = random.choice(near)
            times[plot.id] += 1
            times[other.id] += 1
            yield plot, other
