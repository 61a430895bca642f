"""The log of each day as Markdown: sentences that state facts, and background sentences.

Background sentences are near misses: they share words with the facts and state no value.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from random import Random

from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.calendar import Density, WorkCalendar, long_date
from mnemoscope.personas.simulate.phrases import (
    PHRASES,
    RepetitionFilter,
    capital,
    count_words,
    fill,
    is_pending,
    sentence,
)
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
from mnemoscope.personas.simulate.story import Story, StoryFact
from mnemoscope.personas.simulate.timeline import LogSentence, TimelineRecord
from mnemoscope.text.fact_ledger import LedgerFact

_WORDS: Mapping[Density, tuple[int, int]] = {
    "quiet": (60, 90),
    "normal": (265, 350),
    "busy": (405, 500),
    "dense": (600, 690),
}
"""Fewest and most words of a day, within about a sentence."""
_SENTENCES: Mapping[Density, tuple[int, int]] = {
    "quiet": (1, 2),
    "normal": (1, 2),
    "busy": (2, 3),
    "dense": (3, 5),
}
_CAUSE_EVERY = 50
"""Working days between two mentions of a common cause of trouble."""
_LOOKS_BACK = 6
"""Most ended arcs that a day mentions."""
_RESTS = 0.45
"""The probability that a day without a fact of an arc does not mention the arc."""
_PHRASING_RESTS = 5
"""Days during which a phrasing is not used again for the same arc."""
_COMES_BACK = 7
"""Working days between two mentions of an ended arc that lasts. So a longer history hides its facts
among more near misses."""
_REMEMBERED = 1500
"""Days after which an ended arc is not mentioned any more."""
_DECISION_NOUNS = ("outcome", "first proposal", "main objection", "reason given")
_MENTIONS = 0.3
"""The probability that a sentence on a running arc is a near miss."""
_OMITTED_FIRST = 0.4
"""The probability that a near miss is about the omitted fact."""


class ArcBackground:
    """Sentences on one arc that state no value, without repeats within a month."""

    def __init__(
        self,
        arc: PlannedArc,
        facts: Sequence[LedgerFact],
        omitted: StoryFact | None,
        speakers: Mapping[str, Sequence[str]],
        rng: Rng,
        fresh: RepetitionFilter,
    ) -> None:
        self.arc = arc
        self._random = random = rng.stream("voice", arc.id)
        self._fresh = fresh
        self._omitted = omitted
        self._speakers = {id: ShuffledCycle(names, random) for id, names in speakers.items()}
        self._own = ShuffledCycle(arc.template.goes_on, random)
        self._common = ShuffledCycle(PHRASES.goes_on, random)
        self._afterwards = ShuffledCycle(PHRASES.afterwards, random)
        self._looking_back = ShuffledCycle(PHRASES.looking_back, random)
        self._described_back = ShuffledCycle(PHRASES.described_back, random)
        self._loops = ShuffledCycle(PHRASES.open_points, random)
        kinds = arc.template.facts
        self._nouns = ShuffledCycle([kind.noun for kind in kinds] or _DECISION_NOUNS, random)
        self._known: dict[str, int] = {}
        self._stated: set[tuple[str, int]] = set()
        for fact in facts:
            kind = fact.attribute.partition(".")[2]
            self._known[kind] = min(self._known.get(kind, fact.day), fact.day)
            self._stated.add((kind, fact.day))
        self._mentions = {kind.id: ShuffledCycle(kind.mentions, random) for kind in kinds}
        self._harmless = {
            kind.id: ShuffledCycle([text for text in kind.mentions if not is_pending(text)], random)
            for kind in kinds
        }

    def on(self, day: int, session: str, count: int) -> list[str]:
        """Up to `count` sentences for a day of the arc; fewer if too few phrasings are fresh."""
        found = []
        for _ in range(count):
            text = self._mention(day, session) if self._random.random() < _MENTIONS else None
            if text is None:
                own = self._random.random() < 0.75
                text = self._fresh_one(self._own if own else self._common, day, session)
            if text:
                found.append(text)
        return found

    def open_point(self, day: int, session: str) -> str | None:
        """A point that is open at the end of a day."""
        return self._mention(day, session) or self._fresh_one(self._loops, day, session)

    def afterwards(self, day: int, session: str) -> list[str]:
        """Sentences after the end of the arc: near misses by name and by description."""
        kinds = [self._looking_back, self._afterwards, self._described_back]
        self._random.shuffle(kinds)
        count = self._random.randint(2, 3)
        found = [self._fresh_one(kind, day, session) for kind in kinds[:count]]
        return [text for text in found if text]

    def _mention(self, day: int, session: str) -> str | None:
        """A near miss about a fact that is not stated on this day."""
        if self._omitted and self._random.random() < _OMITTED_FIRST:
            kind = self._omitted.id
        elif kinds := [kind for kind in self._mentions if (kind, day) not in self._stated]:
            kind = self._random.choice(kinds)
        else:
            return None
        known = self._known.get(kind, day + 1) <= day
        return self._fresh_one((self._harmless if known else self._mentions)[kind], day, session)

    def _fresh_one(self, cycle: ShuffledCycle[str], day: int, session: str) -> str | None:
        return self._fresh.draw(
            cycle,
            day,
            lambda phrasing: self._fill(phrasing, session),
            subject=self.arc.id,
            rest=_PHRASING_RESTS,
        )

    def _fill(self, phrasing: str, session: str) -> str:
        speaker = self._speakers[session].draw() if "{speaker}" in phrasing else ""
        noun = self._nouns.draw() if "{noun}" in phrasing else ""
        subject = self.arc.subject
        return sentence(
            phrasing, name=subject.name, about=subject.about, speaker=speaker, noun=noun
        )


def later_days(arc: PlannedArc, workdays: Sequence[int], random: Random) -> Collection[int]:
    """The days that mention an arc after its end."""
    if not arc.lasting:
        return ()
    first, last = arc.end + 4, arc.end + _REMEMBERED
    days = workdays[bisect_left(workdays, first) : bisect_right(workdays, last)]
    return random.sample(days, round(len(days) / _COMES_BACK))


class DailyLogs:
    """Writes the daily logs of a simulated history, in order."""

    def __init__(
        self,
        story: Story,
        calendar: WorkCalendar,
        arcs: Sequence[PlannedArc],
        record: TimelineRecord,
        rng: Rng,
    ) -> None:
        self._calendar, self._arcs, self._record = calendar, arcs, record
        self._random = random = rng.stream("days")
        self._fresh = RepetitionFilter()
        self._sessions = [session.id for session in story.persona.sessions]
        self._people = {one.id: story.speakers(one) for one in story.persona.sessions}
        self._names = {id: ShuffledCycle(names, random) for id, names in self._people.items()}
        self._routine = ShuffledCycle(story.routine, random)
        self._common = ShuffledCycle(PHRASES.routine, random)
        self._quiet = ShuffledCycle((*story.quiet, *PHRASES.days_off), random)
        self._abouts = ShuffledCycle(PHRASES.abouts, random)
        self._titles = ShuffledCycle(PHRASES.titles, random)
        self._rumours = ShuffledCycle(PHRASES.rumours, random)
        self._causes = self._plan_causes(rng)
        self._background = self._make_background(rng)
        self._facts: dict[int, list[LogSentence]] = defaultdict(list)
        for stated in record.sentences:
            self._facts[stated.day].append(stated)
        self._later: dict[int, list[PlannedArc]] = defaultdict(list)
        workdays = calendar.working_days(1, calendar.days)
        for arc in arcs:
            for day in later_days(arc, workdays, rng.stream("later", arc.id)):
                self._later[day].append(arc)

    def write(self) -> Iterator[str]:
        """The text of each day, from day 1."""
        running: list[PlannedArc] = []
        waiting = list(reversed(self._arcs))
        for day in range(1, self._calendar.days + 1):
            while waiting and waiting[-1].start == day:
                running.append(waiting.pop())
            running = [arc for arc in running if arc.end >= day]
            yield self._day(day, running)

    def _density(self, day: int, running: Sequence[PlannedArc]) -> Density:
        if not self._calendar.works(day) or not running:
            return "quiet"
        news = len(self._facts[day])
        turning = sum(day in (arc.start, arc.end) for arc in running)
        if news >= 4 or (news >= 3 and len(running) >= 3):
            return "dense"
        if news >= 2 or (news and turning) or len(running) == 4:
            return "busy"
        return "normal"

    def _day(self, day: int, running: Sequence[PlannedArc]) -> str:
        density = self._density(day, running)
        pages: dict[str, list[str]] = {session: [] for session in self._sessions}
        for arc in running:
            self._write_arc(arc, day, density, pages)
        asides = self._asides(day)
        if density == "quiet":
            self._quiet_day(day, pages, asides)
        else:
            for arc in self._later[day][:_LOOKS_BACK]:
                session = self._random.choice(("principal", arc.session.id))
                if texts := self._background[arc.id].afterwards(day, session):
                    pages[session].append(_section(capital(arc.name), [" ".join(texts)]))
            self._fill_up(day, density, pages, asides)
            self._close(day, running, pages)
        parts = ["---\ntype: daily\n---"]
        for session in sorted(self._sessions, key=lambda session: session != "principal"):
            if pages[session]:
                date = long_date(self._calendar.date(day))
                parts += [f"# session: {session}", date, *pages[session]]
        return "\n\n".join(parts) + "\n"

    def _write_arc(
        self, arc: PlannedArc, day: int, density: Density, pages: dict[str, list[str]]
    ) -> None:
        """Add what a day says about one arc to its session and sometimes to another."""
        random, works = self._random, self._calendar.works(day)
        if not works and (arc.type != "incident" or self._calendar.away(day)):
            return
        stated = [one for one in self._facts[day] if one.arc == arc.id]
        turning = day in (arc.start, arc.end) and works
        if not stated and not turning and random.random() < _RESTS:
            return
        session, background = arc.session.id, self._background[arc.id]
        prose = [one.text for one in stated if not one.quoted]
        quotes = [f'> {one.quoted}: "{one.text}"' for one in stated if one.quoted]
        described = (arc.id, day) in self._record.abouts
        if described and prose and ": " not in prose[0] and random.random() < 0.5:
            prose[0] = random.choice(PHRASES.heads).format(about=arc.subject.about) + prose[0]
            described = False
        prose += background.on(day, session, random.randint(*_SENTENCES[density]))
        random.shuffle(prose)
        if described:
            prose.insert(random.randint(0, len(prose)), self._about(arc, day))
        if day == arc.start:
            slots = {"name": arc.name, "about": arc.subject.about}
            prose.insert(0, sentence(random.choice(arc.template.opens), **slots))
        if day == arc.end and works:
            prose.append(sentence(random.choice(arc.template.closes), name=arc.name))
        if prose or quotes:
            listed = len(prose) > 2 and random.random() < 0.25
            body = _listed(prose) if listed else " ".join(prose)
            pages[session].append(_section(capital(arc.name), [body, *quotes]))
        if works and arc.echoes and random.random() < 0.15:
            other = random.choice(arc.echoes)
            if texts := background.on(day, other, random.randint(1, 2)):
                pages[other].append(_section(capital(arc.name), [" ".join(texts)]))

    def _about(self, arc: PlannedArc, day: int) -> str:
        def wording(phrasing: str) -> str:
            return sentence(phrasing, about=arc.subject.about)

        fresh = self._fresh.draw(self._abouts, day, wording, rest=0)
        return fresh or wording(self._abouts.draw())

    def _asides(self, day: int) -> list[str]:
        """Sentences outside of arcs: covers of confidential subjects, and common causes."""
        found = [one.text for one in self._facts[day] if not one.arc]
        people = self._names["principal"]
        for thread in self._causes[day]:

            def wording(phrasing: str, thread: str = thread) -> str:
                return fill(phrasing.replace("{thread}", thread), people, self._random)

            if text := self._fresh.draw(self._rumours, day, wording, rest=0):
                found.append(text)
        return found

    def _plan_causes(self, rng: Rng) -> dict[int, list[str]]:
        """The days that mention common causes of trouble again, without the arcs concerned."""
        last: dict[str, int] = {}
        for fact in self._record.facts:
            if fact.attribute == "thread.cause":
                last[fact.value] = fact.day
        found: dict[int, list[str]] = defaultdict(list)
        for thread, day in last.items():
            random = rng.stream("rumours", thread)
            days = self._calendar.working_days(day + 5, self._calendar.days)
            for when in random.sample(days, round(len(days) / _CAUSE_EVERY)):
                found[when].append(thread)
        return found

    def _quiet_day(self, day: int, pages: dict[str, list[str]], asides: list[str]) -> None:
        texts = list(asides)
        if away := self._calendar.starting(day):
            texts.insert(0, f"From today: {away.reason}.")
        target = self._random.randint(*_WORDS["quiet"])
        while count_words(texts) < target - 15:
            text = self._filler(self._quiet, day, "principal")
            if text is None:
                break
            texts.append(text)
        title = self._random.choice(PHRASES.quiet_titles)
        half = self._random.randint(2, max(2, len(texts)))
        blocks = [" ".join(texts[:half]), " ".join(texts[half:])]
        pages["principal"].append(_section(title, blocks))

    def _fill_up(
        self, day: int, density: Density, pages: dict[str, list[str]], asides: list[str]
    ) -> None:
        """Add filler until the day has its length, most of it to the principal session."""
        random = self._random
        for session, sections in pages.items():
            if sections and session != "principal":
                count = random.randint(1, 3)
                sentences = [self._routine_sentence(day, session) for _ in range(count)]
                if found := [text for text in sentences if text]:
                    title = random.choice(PHRASES.group_titles)
                    sections.append(_section(title, [" ".join(found)]))
        size = sum(count_words(sections) for sections in pages.values())
        target = random.randint(*_WORDS[density]) - 30
        texts = list(asides)
        while size + count_words(texts) < target or len(texts) < 2:
            text = self._routine_sentence(day, "principal")
            if text is None:
                break
            texts.append(text)
        random.shuffle(texts)
        titles: list[str] = []
        while texts:
            count = min(len(texts), random.randint(4, 8))
            chunk, texts = texts[:count], texts[count:]
            listed = random.randint(0, count)
            body = [" ".join(chunk[listed:]), _listed(chunk[:listed])]
            titles.append(self._titles.draw(titles))
            pages["principal"].append(_section(titles[-1], body))

    def _close(self, day: int, running: Sequence[PlannedArc], pages: dict[str, list[str]]) -> None:
        """Add the last line of each session: its open points."""
        for session, sections in pages.items():
            here = [arc for arc in running if arc.session.id == session]
            if not sections or not here or self._random.random() < 0.35:
                continue
            chosen = self._random.sample(here, min(len(here), 2))
            points = [self._background[arc.id].open_point(day, session) for arc in chosen]
            if found := [point for point in points if point]:
                label = self._random.choice(("Outstanding", "Open loops"))
                sections.append(f"{label}: {' '.join(found)}")

    def _routine_sentence(self, day: int, session: str) -> str | None:
        """A filler sentence, from the story as long as it has fresh ones."""
        return (
            self._filler(self._routine, day, session, rest=2)
            or self._filler(self._common, day, session)
            or self._filler(self._routine, day, session)
        )

    def _filler(
        self, cycle: ShuffledCycle[str], day: int, session: str, rest: int = 0
    ) -> str | None:
        people = self._names[session]

        def wording(phrasing: str) -> str:
            # Most have no slot: asked here, because a history tries hundreds of thousands.
            return fill(phrasing, people, self._random) if "{" in phrasing else capital(phrasing)

        return self._fresh.draw(cycle, day, wording, rest=rest)

    def _make_background(self, rng: Rng) -> dict[str, ArcBackground]:
        facts = defaultdict(list)
        for fact in self._record.facts:
            facts[fact.arc].append(fact)
        return {
            arc.id: ArcBackground(
                arc,
                [fact for fact in facts[arc.id] if fact.attribute.startswith(f"{arc.type}.")],
                self._record.omitted.get(arc.id),
                self._people,
                rng,
                self._fresh,
            )
            for arc in self._arcs
        }


def _section(title: str, blocks: Sequence[str]) -> str:
    return "\n\n".join((f"### {title}", *filter(None, blocks)))


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)
