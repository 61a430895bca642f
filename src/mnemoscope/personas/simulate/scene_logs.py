"""The daily logs of the second edition: scenes with people, reasons and consequences.

Facts stand in conversations and notes about their arcs. Between them run matters, small affairs
that begin, are talked over, are settled and have an aftermath, until the day has its length.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.calendar import WorkCalendar, long_date
from mnemoscope.personas.simulate.daily_logs import later_days
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.phrases import (
    PHRASES,
    RepetitionFilter,
    count_words,
    fill,
    is_pending,
)
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
from mnemoscope.personas.simulate.scene_book import SCENES, Matter, SceneBook, Texts
from mnemoscope.personas.simulate.scene_timeline import SceneRecord, first_day
from mnemoscope.personas.simulate.story import Story
from mnemoscope.personas.simulate.timeline import LogSentence

_FRESH = 12
"""Days within which a sentence of a scene is not used again, if another wording can be found."""
_TRIES = 6
_SPREAD = (0.8, 1.25)
"""The shortest and longest working day, relative to the words asked for."""
_DAY_OFF = 0.22
"""The length of a weekend day, relative to the words asked for."""
_RESTS = 0.35
"""The probability that a day without a fact of an arc does not mention the arc."""
_LOOKS_BACK = 2
"""Most ended arcs that a day of 1,000 words mentions."""
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_SENTENCE = re.compile(r'(?<=[.!?"]) +|\n+')
_REST = 60
"""Days for which a closed matter does not come up again, if another one can."""
_DECISION_NOUNS = ("outcome", "first proposal", "main objection", "reason given")


_WEEKENDS_CLOSED = tuple(text for text in SCENES.weekends if "{after}" in text)
_WEEKENDS_OPEN = tuple(text for text in SCENES.weekends if "{after}" not in text)


@dataclass
class _RunningMatter:
    """A matter with its people, on its way through its stages."""

    matter: Matter
    session: str
    people: tuple[str, str]
    stages: list[str]
    due: int


class SceneLogs:
    """Writes the daily logs of the second edition, in order."""

    def __init__(
        self,
        story: Story,
        book: SceneBook,
        calendar: WorkCalendar,
        arcs: Sequence[PlannedArc],
        record: SceneRecord,
        rng: Rng,
        density: int,
    ) -> None:
        self._story, self._book, self._calendar = story, book, calendar
        self._arcs, self._record, self._words = arcs, record, density
        self._random = random = rng.stream("scenes")
        self._principal = story.persona.principal.name.split()[0]
        sessions = story.persona.sessions
        self._sessions = [session.id for session in sessions]
        self._people = {one.id: story.speakers(one) for one in sessions}
        self._open = [one.id for one in sessions if not one.isolated and one.id != "principal"]
        self._texts: dict[Texts, ShuffledCycle[str]] = {}
        self._cast = {id: ShuffledCycle(names, random) for id, names in self._people.items()}
        self._matters = book.all_matters()
        random.shuffle(self._matters)
        self._used: dict[Matter, int] = {}
        """The last day of each matter."""
        self._running: list[_RunningMatter] = []
        self._seen: dict[str, int] = {}
        self._lines = RepetitionFilter()
        self._routine = ShuffledCycle(story.routine, random)
        self._quiet = ShuffledCycle((*story.quiet, *PHRASES.days_off), random)
        self._facts: dict[int, list[LogSentence]] = defaultdict(list)
        for stated in record.sentences:
            self._facts[stated.day].append(stated)
        self._stated = {
            (fact.arc, fact.attribute.partition(".")[2]): fact.day
            for fact in reversed(record.facts)
        }
        self._shared: dict[str, list[str]] = defaultdict(list)
        """Who must not be a bystander where a team or the value of a preference is named."""
        for fact in record.facts:
            if fact.attribute == "team.approver":
                self._shared[fact.entity].append(fact.value)
            elif fact.attribute.startswith("person.") and fact.attribute != "person.team":
                self._shared[fact.value].append(fact.entity)
        self._later: dict[int, list[PlannedArc]] = defaultdict(list)
        workdays = calendar.working_days(1, calendar.days)
        for arc in arcs:
            for day in later_days(arc, workdays, rng.stream("later", arc.id)):
                self._later[day].append(arc)

    def write(self) -> Iterator[str]:
        """The text of each day, from day 1."""
        for day in range(1, self._calendar.days + 1):
            yield self._day(day)

    def _day(self, day: int) -> str:
        pages: dict[str, list[str]] = {session: [] for session in self._sessions}
        if self._calendar.works(day):
            self._working_day(day, pages)
        else:
            self._day_off(day, pages["principal"])
        parts = ["---\ntype: daily\n---"]
        for session in sorted(self._sessions, key=lambda session: session != "principal"):
            if pages[session]:
                date = long_date(self._calendar.date(day))
                parts += [f"# session: {session}", date, *pages[session]]
        return "\n\n".join(parts) + "\n"

    def _working_day(self, day: int, pages: dict[str, list[str]]) -> None:
        random = self._random
        target = self._words * random.uniform(*_SPREAD)
        for arc in self._arcs:
            if arc.start <= day <= arc.end:
                self._arc(arc, day, pages[arc.session.id])
        for stated in self._facts[day]:
            if not stated.arc:
                pages[stated.session].append(self._aside(stated, day))
        for arc in self._later[day][: max(1, round(_LOOKS_BACK * self._words / 1000))]:
            pages["principal"].append(self._looking_back(arc, day))
        pages["principal"].append(self._small_things(day))
        size = sum(map(count_words, pages.values()))
        seen: list[_RunningMatter] = []
        while size < target:
            running = self._next_matter(day, seen)
            seen.append(running)
            text = self._matter(running, day)
            pages[running.session].append(text)
            size += count_words([text])
        for sections in pages.values():
            random.shuffle(sections)

    def _arc(self, arc: PlannedArc, day: int, sections: list[str]) -> None:
        """Add the section of an arc, if the day has one."""
        stated = [one for one in self._facts[day] if one.arc == arc.id]
        first, last = day == first_day(arc), bool(arc.workdays) and day == arc.workdays[-1]
        if not stated and not first and not last and self._random.random() < _RESTS:
            return
        session = arc.session.id
        other = self._other(arc, day)
        involved = self._holders(arc, *([other] if other else []))
        slots = self._slots(session, day, avoid=[*(one.text for one in stated), *involved])
        slots |= {"name": arc.name, "about": arc.subject.about}
        slots["other"] = other.name if other else "anything else"
        blocks: list[str] = []
        title = "going"
        if first:
            blocks.append(self._text(arc.template.opens, day, slots))
            if alias := self._book.aliases.get(arc.name) if not arc.isolated else None:
                blocks.append(self._text(SCENES.nicknames, day, {**slots, "alias": alias}))
        for place, one in enumerate(stated):
            about = {**slots, "name": one.name or arc.name, "noun": one.noun or "matter"}
            if one.manner and place == 0:
                title, slots = one.manner if one.noun else "going", about
            named = {**about, **self._speakers(one, slots)}
            described = place == 0 and (arc.id, day) in self._record.abouts
            blocks += self._statement(one, day, named, described)
        if not stated or self._words > 1500:
            blocks.append(self._going(arc, day, slots))
        if last:
            blocks.append(self._text(arc.template.closes, day, slots))
        sections.append(_section(self._text(SCENES.titles[title], day, slots), blocks))

    def _statement(
        self, one: LogSentence, day: int, slots: Mapping[str, str], described: bool
    ) -> Iterator[str]:
        """What led to a fact, the fact, what people say to it and what follows."""
        manner = one.manner or "said"
        leads = {
            "said": SCENES.leads_said,
            "revised": SCENES.leads_revised,
            "used": SCENES.leads_used,
        }[manner]
        talk = one.sort in ("talk", "")
        lead = "" if talk else self._text(leads, day, slots)
        if described:
            lead = f"{lead} {self._text(SCENES.abouts, day, slots)}".strip()
        because = ""
        if one.reason:
            because = " " + self._text(SCENES.leads_because, day, {**slots, "reason": one.reason})
        if one.quoted:
            if lead or because:
                yield lead + because
            yield f'> {one.quoted}: "{one.text}"'
        else:
            yield f"{lead} {one.text}{because}".strip()
        dialogue, remark, deed = SCENES.replies[one.sort or "talk"]
        if manner == "used":
            if self._random.random() < 0.5:
                yield self._text((deed,), day, slots)
            return
        if self._random.random() < (0.4 if one.quoted or talk else 0.6):
            yield self._text((dialogue,), day, slots)
        else:
            yield self._text((remark,), day, slots)
        if self._random.random() < 0.7:
            yield self._text((deed,), day, slots)

    def _speakers(self, one: LogSentence, slots: Mapping[str, str]) -> Mapping[str, str]:
        """Who states the fact is {a}, and somebody else listens."""
        people = self._people[one.session]
        named = [name for name in people if name in one.text] if one.sort == "talk" else []
        speaker = one.quoted or min(named, key=one.text.index, default="")
        if not speaker:
            return {}
        return self._named(speaker, slots["b"] if slots["b"] != speaker else slots["a"])

    def _going(self, arc: PlannedArc, day: int, slots: Mapping[str, str]) -> str:
        """A day on which nothing new is known of an arc: work on it, and a near miss."""
        going = self._line(arc.template.goes_on, day, slots, arc.id)
        return self._text(
            SCENES.goings, day, {**slots, "going": going, "near": self._near(arc, day, slots)}
        )

    def _near(self, arc: PlannedArc, day: int, slots: Mapping[str, str]) -> str:
        stated = {one.noun for one in self._facts[day] if one.arc == arc.id}
        mentions = [
            text
            for kind in arc.template.facts
            if kind.noun not in stated
            for text in kind.mentions
            if not (is_pending(text) and self._stated.get((arc.id, kind.id), day + 1) <= day)
        ]
        return self._line(tuple(mentions), day, slots, arc.id) if mentions else ""

    def _looking_back(self, arc: PlannedArc, day: int) -> str:
        slots = self._slots("principal", day, self._holders(arc))
        nouns = [kind.noun for kind in arc.template.facts] or _DECISION_NOUNS
        slots |= {"noun": self._random.choice(nouns), "name": arc.name}
        slots["about"] = arc.subject.about
        title = self._text(SCENES.titles["back"], day, slots)
        return _section(title, [self._text(SCENES.looking_backs, day, slots)])

    def _aside(self, stated: LogSentence, day: int) -> str:
        same = [
            who for value, people in self._shared.items() if value in stated.text for who in people
        ]
        slots = self._slots(stated.session, day, avoid=[stated.text, *same])
        kind = "causes" if stated.manner == "event" else "people"
        title = self._text(SCENES.titles[kind], day, slots)
        return _section(title, [write(stated.text, self._random, slots)])

    def _small_things(self, day: int) -> str:
        count = self._random.randint(2, 4)
        lines = [self._filler(self._routine, day) for _ in range(count)]
        title = self._text(SCENES.titles["routine"], day, {})
        return _section(title, ["\n".join(f"- {line}" for line in lines if line)])

    def _day_off(self, day: int, sections: list[str]) -> None:
        weekday = f"{self._calendar.date(day):%A}"
        lines = [self._filler(self._quiet, day) for _ in range(self._random.randint(6, 9))]
        lines = [line for line in lines if not _named_weekend(line) - {weekday}]
        if away := self._calendar.starting(day):
            lines.insert(0, f"From today: {away.reason}.")
        title = self._text(SCENES.titles["quiet"], day, {})
        sections.append(_section(title, [" ".join(line for line in lines if line)]))
        topics: list[str] = []
        while count_words(sections) < self._words * _DAY_OFF and len(topics) < self._words / 400:
            left = [one for one in self._weekend_matters(day) if one[0].topic not in topics]
            if not left:
                break
            matter, a, b, texts = self._random.choice(left)
            topics.append(matter.topic)
            slots = self._named(a, b) | matter._asdict() | self._times()
            text = self._text(texts, day, slots)
            sections.append(_section(write(matter.topic, self._random, {}), [text]))

    def _weekend_matters(self, day: int) -> Iterator[tuple[Matter, str, str, Texts]]:
        """Open matters and those closed lately, with two people and what is said of them."""
        running = {one.matter for one in self._running}
        for one in self._running:
            if one.session == "principal" and "settles" in one.stages:
                yield one.matter, *one.people, _WEEKENDS_OPEN
        for matter, last in self._used.items():
            if matter not in running and day - last < _REST // 4:
                a, b = self._random.sample(self._people["principal"], 2)
                yield matter, a, b, _WEEKENDS_CLOSED

    def _next_matter(self, day: int, seen: Sequence[_RunningMatter]) -> _RunningMatter:
        """The matter that has waited longest, or a new one."""
        waiting = sorted((one for one in self._running if one not in seen), key=lambda one: one.due)
        busy = {one.matter.topic for one in (*self._running, *seen)}
        free = [one for one in self._matters if one.topic not in busy]
        if waiting and (waiting[0].due <= day or not free):
            return waiting[0]
        random = self._random
        matter = self._rested(free or self._matters, day)
        session = "principal"
        if self._open and random.random() < 0.5:
            session = random.choice(self._open)
        a, b = random.sample(self._people[session], 2)
        stages = ["raises", *["discusses"] * random.randint(1, 3), "settles"]
        if random.random() < 0.7:
            stages.append("afters")
        running = _RunningMatter(matter, session, (a, b), stages, day)
        self._running.append(running)
        return running

    def _rested(self, matters: Sequence[Matter], day: int) -> Matter:
        """A matter that has rested long enough, else the one that has rested longest."""
        rested = [one for one in matters if day - self._used.get(one, -_REST) >= _REST]
        if rested:
            return self._random.choice(rested)
        return min(matters, key=self._used.__getitem__)

    def _matter(self, running: _RunningMatter, day: int) -> str:
        stage = running.stages.pop(0)
        running.due = day + self._random.randint(1, 2)
        self._used[running.matter] = day
        if not running.stages:
            self._running.remove(running)
        a, b = running.people
        slots = self._named(a, b) | running.matter._asdict() | self._times()
        ending = {"discusses": ", continued", "settles": ": settled", "afters": ": an aftermath"}
        title = write(running.matter.topic, self._random, {})
        if self._random.random() < 0.4:
            title += ending.get(stage, "")
        return _section(title, [self._text(getattr(SCENES, stage), day, slots)])

    def _holders(self, *arcs: PlannedArc) -> list[str]:
        """The people who are values of these arcs."""
        return sorted(name for arc in arcs for name in self._record.holders.get(arc.id, ()))

    def _other(self, arc: PlannedArc, day: int) -> PlannedArc | None:
        """The subject that this one could be confused with: the latest of the same type."""
        before = [
            one for one in self._arcs if one is not arc and not one.isolated and one.start <= day
        ]
        alike = [one for one in before if one.type == arc.type] or before
        return alike[-1] if alike else None

    def _slots(self, session: str, day: int, avoid: Sequence[str] = ()) -> dict[str, str]:
        """Two people of a session, neither of them named in the texts to avoid."""
        cycle = self._cast[session]
        taken = [name for name in self._people[session] if any(name in text for text in avoid)]
        a = cycle.draw(taken)
        b = cycle.draw([*taken, a])
        return self._named(a, b) | self._times()

    def _named(self, a: str, b: str) -> dict[str, str]:
        first = {"A": a.split()[0], "B": b.split()[0], "P": self._principal}
        return {"a": a, "b": b, **first}

    def _times(self) -> dict[str, str]:
        return {"weekday": self._random.choice(_WEEKDAYS)}

    def _line(self, texts: Texts, day: int, slots: Mapping[str, str], subject: str) -> str:
        """A sentence of the story; its speaker is one of the two people of the scene."""
        cycle = self._cycle(texts)
        spoken = {**slots, "speaker": slots["a"]}
        found = self._lines.draw(
            cycle, day, lambda text: write(text, self._random, spoken), subject=subject, rest=3
        )
        return found or write(cycle.draw(), self._random, spoken)

    def _filler(self, cycle: ShuffledCycle[str], day: int) -> str:
        people = self._cast["principal"]
        found = self._lines.draw(cycle, day, lambda text: fill(text, people, self._random), rest=3)
        return found or fill(cycle.draw(), people, self._random)

    def _cycle(self, texts: Texts) -> ShuffledCycle[str]:
        if texts not in self._texts:
            self._texts[texts] = ShuffledCycle(texts, self._random)
        return self._texts[texts]

    def _text(self, texts: Texts, day: int, slots: Mapping[str, str]) -> str:
        """One of the texts with fresh sentences, as far as a few tries find them."""
        cycle = self._cycle(texts)
        best, repeats = "", 1 << 30
        for _ in range(_TRIES):
            text = write(cycle.draw(), self._random, slots)
            stale = sum(
                day - self._seen.get(one, -_FRESH) < _FRESH for one in _SENTENCE.split(text)
            )
            if stale < repeats:
                best, repeats = text, stale
            if not stale:
                break
        for one in _SENTENCE.split(best):
            if one.count(" ") > 2:
                self._seen[one] = day
        return best


def _section(title: str, blocks: Sequence[str]) -> str:
    return "\n\n".join((f"### {title}", *filter(None, blocks)))


def _named_weekend(line: str) -> set[str]:
    return {name for name in ("Saturday", "Sunday") if name in line}
