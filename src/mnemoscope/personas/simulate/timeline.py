"""The timeline: the day, value, wording and revisions of each fact of an arc.

The result is the ledger and the sentences that state its facts, each on one day in one session.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from random import Random

from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.calendar import WorkCalendar, is_weekend, plain_date
from mnemoscope.personas.simulate.phrases import capital, sentence
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
from mnemoscope.personas.simulate.story import Story, StoryFact
from mnemoscope.text.fact_ledger import LedgerFact, date_wordings

_AGAIN = 0.4
"""The probability that a revised fact is revised once more."""
_OMIT = 0.6
"""The probability that an arc omits one kind of fact; a question about it has no answer."""
_QUOTED = 0.25
"""The probability that a fact is stated in a quotation."""
_LABELLED = 0.4
"""The probability that a sentence begins with the noun of the fact, so that it matches a search."""
_ABOUT = 0.6
"""The probability that the day of a fact also describes its subject."""
_UNITS = {
    "ms": "milliseconds",
    "min": "minutes",
    "h": "hours",
    "km": "kilometres",
    "kg": "kilograms",
    "mg": "milligrams",
    "MB": "megabytes",
    "GB": "gigabytes",
}


@dataclass(frozen=True)
class LogSentence:
    """A sentence of the log that states facts."""

    day: int
    session: str
    arc: str
    text: str
    quoted: str = ""
    """The speaker of a quotation; empty for prose."""
    manner: str = ""
    """Of the second edition: said, revised, used, event, state or shown."""
    noun: str = ""
    name: str = ""
    """The name under which the sentence speaks of its subject."""
    reason: str = ""
    """The name of the event that made the value change."""


@dataclass
class TimelineRecord:
    """The facts of a simulated history and the sentences that state them."""

    facts: list[LedgerFact] = field(default_factory=list)
    sentences: list[LogSentence] = field(default_factory=list)
    omitted: dict[str, StoryFact] = field(default_factory=dict)
    """The kind of fact that an arc never states, by arc."""
    abouts: set[tuple[str, int]] = field(default_factory=set)
    """Pairs of arc and day on which the log also describes the subject."""


@dataclass
class PlannedFact:
    """A fact without its id and the id of its successor."""

    day: int
    arc: PlannedArc
    attribute: str
    value: str
    sentence: LogSentence
    speaker: str = ""
    aliases: tuple[str, ...] = ()
    session: str = ""
    entity: str = ""
    """What the fact is about, if it is not the subject of its arc."""
    next: PlannedFact | None = None


class ValuePool:
    """Draws values; two subjects share one only when no other value is left."""

    def __init__(self, story: Story, calendar: WorkCalendar, rng: Rng) -> None:
        self._people = story.colleagues()
        self._calendar = calendar
        self._rng = rng
        self._pools: dict[str, ShuffledCycle[str]] = {}
        self._dates: dict[str, set[str]] = {}

    def draw(self, attribute: str, fact: StoryFact, day: int, avoid: Collection[str]) -> str:
        """A value for a fact of this day that is not in `avoid`."""
        if fact.values.date:
            return self._date(attribute, fact.values.date, day, avoid)
        if attribute not in self._pools:
            random = self._rng.stream("values", attribute)
            self._pools[attribute] = ShuffledCycle(self._choices(fact), random)
        return self._pools[attribute].draw(avoid)

    def _choices(self, fact: StoryFact) -> Sequence[str]:
        if fact.values.number:
            low, high, step = fact.values.number
            return [fact.values.form.replace("{n}", str(n)) for n in range(low, high + 1, step)]
        return self._people if fact.values.person else fact.values.pick

    def _date(
        self, attribute: str, ahead: tuple[int, int], day: int, avoid: Collection[str]
    ) -> str:
        random = self._rng.stream("dates", f"{attribute} {day} {sorted(avoid)}")
        taken = self._dates.setdefault(attribute, set())
        value = ""
        for _ in range(60):
            when = self._calendar.date(day + random.randint(*ahead))
            if is_weekend(when):
                when += timedelta(days=7 - when.weekday())
            value = plain_date(when)
            if value not in taken and value not in avoid:
                break
        taken.add(value)
        return value


def aliases(value: str, fact: StoryFact, calendar: WorkCalendar, day: int) -> tuple[str, ...]:
    """Other wordings of the value."""
    if fact.values.person:
        return ()
    if not fact.values.date:
        return tuple(dict.fromkeys(word for word in _rewordings(value) if word != value))
    for ahead in range(2000):
        wordings = date_wordings(calendar.date(day + ahead))
        if value in wordings:
            return tuple(word for word in wordings if word != value)
    return ()


def _rewordings(value: str) -> Iterator[str]:
    if found := re.search(r"([$€£])(\d+)k\b", value):
        full = f"{found[1]}{int(found[2]) * 1000:,}"
        yield value.replace(found[0], full)
    if found := re.search(r"([$€£])(\d+)m\b", value, re.IGNORECASE):
        yield value.replace(found[0], f"{found[1]}{found[2]} million")
    if found := re.search(r"\b(\d{1,2}):(\d\d) ?([AaPp])\.?[Mm]\.?", value):
        hour = int(found[1]) % 12 + (12 if found[3] in "Pp" else 0)
        yield value.replace(found[0], f"{hour:02}:{found[2]}")
        yield value.replace(found[0], f"{found[1]}:{found[2]} {found[3].lower()}m")
    if found := re.search(r"(?<![-\w.,])(?<!extension )\d{4,}(?![-\w.,])", value):
        yield value.replace(found[0], f"{int(found[0]):,}")
    if found := re.search(r"\d%", value):
        yield value.replace("%", " percent")
    for short, long in _UNITS.items():
        if re.search(rf"\d {short}\b", value):
            yield re.sub(rf"(\d) {short}\b", rf"\1 {long}", value)


class Timeline:
    """Decides for all arcs of a history when and how their facts are stated."""

    def __init__(self, story: Story, calendar: WorkCalendar, rng: Rng) -> None:
        self.story = story
        self.calendar = calendar
        self._rng = rng
        self._values = ValuePool(story, calendar, rng)
        self._claims = ShuffledCycle(story.claims, rng.stream("claims"))
        self._covers: dict[str, ShuffledCycle[str]] = {}
        self._load: Counter[tuple[str, int]] = Counter()
        self._planned: list[PlannedFact] = []
        self._omitted: dict[str, StoryFact] = {}

    def build(self, arcs: Sequence[PlannedArc]) -> TimelineRecord:
        for arc in arcs:
            if arc.type == "decision":
                self._decide(arc)
            else:
                self._facts(arc)
            if arc.isolated:
                self._cover(arc)
            elif arc.session.kind == "group":
                self._argue(arc)
        self._share_causes([arc for arc in arcs if not arc.isolated])
        return self._record()

    def _facts(self, arc: PlannedArc) -> None:
        random = self._rng.stream("facts", arc.id)
        kinds = list(arc.template.facts)
        random.shuffle(kinds)
        if len(kinds) > 4 and random.random() < _OMIT:
            self._omitted[arc.id] = kinds.pop()
        for kind in kinds[: 2 * len(arc.workdays[1:])]:
            times = 1
            if random.random() < kind.changes:
                times = 3 if random.random() < _AGAIN else 2
            self._chain(arc, kind, self._spread(arc, times, random), random)

    def _chain(self, arc: PlannedArc, kind: StoryFact, days: Sequence[int], random: Random) -> None:
        """One fact and its revisions, one on each of the days."""
        attribute = f"{arc.type}.{kind.id}"
        values: list[str] = []
        before: PlannedFact | None = None
        phrasings = ShuffledCycle(kind.revises, random)
        for day in days:
            value = self._values.draw(attribute, kind, day, values)
            phrasing = phrasings.draw() if before else random.choice(kind.says)
            others = [name for name in self.story.speakers(arc.session) if name != value]
            speaker, old = random.choice(others), values[-1] if values else ""
            text = sentence(phrasing, name=arc.name, value=value, speaker=speaker, old=old)
            quoted = "" if "{speaker}" in phrasing or random.random() > _QUOTED else speaker
            labelled = random.random() < _LABELLED and kind.noun.lower() not in text.lower()
            if labelled and not quoted:
                text = f"{capital(kind.noun)}{', revised' if before else ''}: {text}"
            if not quoted and "{speaker}" not in phrasing:
                speaker = ""
            planned = self._add(day, arc, attribute, value, text, speaker, quoted=bool(quoted))
            planned.aliases = aliases(value, kind, self.calendar, day)
            if before:
                before.next = planned
            values.append(value)
            before = planned

    def _decide(self, arc: PlannedArc) -> None:
        random = self._rng.stream("decision", arc.id)
        subject, template = arc.subject, arc.template
        first, second, third = self._spread(arc, 3, random)
        proposer, opponent = random.sample(self.story.speakers(arc.session), 2)
        option = random.choice(subject.options)
        objection, reason = random.choice(subject.objections), random.choice(subject.reasons)
        others = [other for other in subject.options if other != option]
        choice = option if random.random() < 0.25 else random.choice(others)
        slots = {"name": arc.name, "option": option, "objection": objection}
        text = sentence(random.choice(template.proposes), speaker=proposer, **slots)
        self._add(first, arc, "decision.proposal", option, text, proposer)
        text = sentence(random.choice(template.objects), speaker=opponent, **slots)
        self._add(second, arc, "decision.objection", objection, text, opponent)
        resolves = random.choice(template.resolves)
        text = sentence(resolves, name=arc.name, option=choice, reason=reason)
        self._add(third, arc, "decision.choice", choice, text)
        self._add(third, arc, "decision.reason", reason, text)

    def _argue(self, arc: PlannedArc) -> None:
        """Two people state different views of one subject; questions ask who said what."""
        random = self._rng.stream("views", arc.id)
        people = random.sample(self.story.speakers(arc.session), 2)
        for speaker, day in zip(people, self._spread(arc, 2, random), strict=False):
            claim = self._claims.draw().format(name=arc.name)
            self._add(day, arc, "group.claim", claim, capital(claim) + ".", speaker, quoted=True)

    def _cover(self, arc: PlannedArc) -> None:
        """A neutral calendar title that may be disclosed instead of a confidential subject."""
        random = self._rng.stream("cover", arc.id)
        session = arc.session
        if session.id not in self._covers:
            covers = ShuffledCycle(session.cover, self._rng.stream("covers", session.id))
            self._covers[session.id] = covers
        title = self._covers[session.id].draw()
        (day,) = self._spread(arc, 1, random)
        inside = f'To anybody outside this room, {arc.name} is called "{title}" and nothing more.'
        self._add(day, arc, "session.cover", title, inside).session = "principal"

    def _share_causes(self, arcs: Sequence[PlannedArc]) -> None:
        """Give pairs of arcs a common cause of trouble; they do not mention each other."""
        random = self._rng.stream("threads")
        threads = self.story.threads
        causes = [f"{head} {tail}" for head in threads.heads for tail in threads.tails]
        random.shuffle(causes)
        pairs = list(_pairs(arcs, random))[: len(causes)]
        for cause, pair in zip(causes, pairs, strict=False):
            for arc, says in zip(pair, random.sample(threads.says, 2), strict=True):
                (day,) = self._spread(arc, 1, random)
                text = sentence(says, name=arc.name, thread=cause)
                self._add(day, arc, "thread.cause", cause, text)

    def _add(
        self,
        day: int,
        arc: PlannedArc,
        attribute: str,
        value: str,
        text: str,
        speaker: str = "",
        *,
        quoted: bool = False,
    ) -> PlannedFact:
        stated = LogSentence(day, arc.session.id, arc.id, text, speaker if quoted else "")
        planned = PlannedFact(day, arc, attribute, value, stated, speaker)
        self._planned.append(planned)
        return planned

    def _spread(self, arc: PlannedArc, times: int, random: Random) -> list[int]:
        """Up to `times` days in order, each from another part of the arc and with few facts."""
        days = arc.workdays[1:]
        times = min(times, len(days))
        found = []
        for part in range(times):
            segment = days[part * len(days) // times : (part + 1) * len(days) // times]
            least = min(self._load[arc.id, day] for day in segment)
            day = random.choice([day for day in segment if self._load[arc.id, day] == least])
            self._load[arc.id, day] += 1
            found.append(day)
        return found

    def _record(self) -> TimelineRecord:
        """Number the facts in the order of days and link each to its successor."""
        self._planned.sort(key=lambda fact: (fact.day, fact.arc.start, fact.arc.id, fact.attribute))
        width = max(4, len(str(len(self._planned))))
        ids = {id(fact): f"f{number:0{width}}" for number, fact in enumerate(self._planned, 1)}
        record = TimelineRecord(omitted=self._omitted)
        random = self._rng.stream("abouts")
        for fact in self._planned:
            following = fact.next
            record.facts.append(
                LedgerFact(
                    ids[id(fact)],
                    fact.entity or fact.arc.name,
                    fact.attribute,
                    fact.value,
                    fact.day,
                    fact.aliases,
                    ids[id(following)] if following else "",
                    following.day if following else None,
                    fact.speaker,
                    fact.session or fact.arc.session.id,
                    fact.arc.id,
                )
            )
            if fact.attribute != "decision.reason" and fact.sentence.text:
                record.sentences.append(fact.sentence)
            if random.random() < _ABOUT or fact.arc.type == "decision":
                record.abouts.add((fact.arc.id, fact.day))
            if fact.attribute == "session.cover":
                text = f'Blocked time in the calendar under the title "{fact.value}".'
                record.sentences.append(LogSentence(fact.day, "principal", "", text))
        return record


def _pairs(arcs: Sequence[PlannedArc], random: Random) -> Iterable[tuple[PlannedArc, PlannedArc]]:
    """Pairs of an arc and one that begins later; an arc is in at most two pairs."""
    times: Counter[str] = Counter()
    for place, arc in enumerate(arcs):
        near = [other for other in arcs[place + 1 : place + 5] if times[other.id] < 1]
        if near and times[arc.id] < 2 and random.random() < 0.8:
            other = random.choice(near)
            times[arc.id] += 1
            times[other.id] += 1
            yield arc, other
