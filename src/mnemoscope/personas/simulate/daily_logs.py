"""Days: the log of each day as Markdown, made of what becomes known and of what surrounds it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from mnemoscope.personas.simulate.background import Voice, later_days
from mnemoscope.personas.simulate.calendar import LifeCalendar
from mnemoscope.personas.simulate.cast import speakers
from mnemoscope.personas.simulate.phrases import (
    ABOUTS,
    DAYS_OFF,
    GROUP_TITLES,
    ON,
    QUIET_TITLES,
    ROUTINE,
    RUMOURS,
    TITLES,
)
from mnemoscope.personas.simulate.plots import Plot
from mnemoscope.personas.simulate.rng import Deck, Rng
from mnemoscope.personas.simulate.sentence_templates import Fresh, capital, fill, sentence, words
from mnemoscope.personas.simulate.story import Story
from mnemoscope.personas.simulate.timeline import Said, TimelineRecord

Density = Literal["quiet", "normal", "busy", "dense"]
_SIZE: Mapping[Density, tuple[int, int]] = {
    "quiet": (60, 90),
    "normal": (265, 350),
    "busy": (405, 500),
    "dense": (600, 690),
}
"""Words of a day, at least and at most, give or take a sentence."""
_SENTENCES: Mapping[Density, tuple[int, int]] = {
    "quiet": (1, 2),
    "normal": (1, 2),
    "busy": (2, 3),
    "dense": (3, 5),
}
_RETOLD = 50
"""A common cause of trouble is retold once in so many working days."""
_LOOKS_BACK = 6
"""At most so many arcs that are over come up on a day."""
_RESTS = 0.45
"""How often nothing is said of an arc on a day on which nothing of it becomes known."""


class DailyLogs:
    """Writes the days of a life, one after the other."""

    def __init__(
        self,
        story: Story,
        calendar: LifeCalendar,
        plots: Sequence[Plot],
        record: TimelineRecord,
        chance: Rng,
    ) -> None:
        self._story, self._almanac, self._plots, self._record = story, calendar, plots, record
        self._random = chance.stream("days")
        self._fresh = Fresh()
        self._rooms = {session.id: session for session in story.persona.sessions}
        self._people = {room.id: speakers(story, room) for room in story.persona.sessions}
        self._decks = {room: Deck(names, self._random) for room, names in self._people.items()}
        self._routine = Deck(story.routine, self._random)
        self._common = Deck(ROUTINE, self._random)
        self._quiet = Deck((*story.quiet, *DAYS_OFF), self._random)
        self._abouts = Deck(ABOUTS, self._random)
        self._titles = Deck(TITLES, self._random)
        self._rumour = Deck(RUMOURS, self._random)
        self._retold = self._rumours(chance)
        self._voices = self._make_voices(chance)
        self._said: dict[int, list[Said]] = defaultdict(list)
        for said in record.said:
            self._said[said.day].append(said)
        self._later: dict[int, list[Plot]] = defaultdict(list)
        workdays = calendar.working_days(1, calendar.days)
        for plot in plots:
            for day in later_days(plot, workdays, chance.stream("later", plot.id)):
                self._later[day].append(plot)

    def write(self) -> Iterator[str]:
        """The text of every day, from the first."""
        running: list[Plot] = []
        waiting = list(reversed(self._plots))
        for day in range(1, self._almanac.days + 1):
            while waiting and waiting[-1].start == day:
                running.append(waiting.pop())
            running = [plot for plot in running if plot.end >= day]
            yield self._day(day, running)

    def density(self, day: int, running: Sequence[Plot]) -> Density:
        if not self._almanac.works(day) or not running:
            return "quiet"
        news = len(self._said[day])
        turning = sum(day in (plot.start, plot.end) for plot in running)
        if news >= 4 or (news >= 3 and len(running) >= 3):
            return "dense"
        if news >= 2 or (news and turning) or len(running) == 4:
            return "busy"
        return "normal"

    def _day(self, day: int, running: Sequence[Plot]) -> str:
        density = self.density(day, running)
        pages: dict[str, list[str]] = {room: [] for room in self._rooms}
        for plot in running:
            self._visit(plot, day, density, pages)
        aside = self._asides(day)
        if density == "quiet":
            self._rest(day, pages, aside)
        else:
            self._look_back(day, pages)
            self._fill_up(day, density, pages, aside)
            self._close(day, running, pages)
        return self._lay_out(day, pages)

    def _visit(self, plot: Plot, day: int, density: Density, pages: dict[str, list[str]]) -> None:
        """What a day says of one arc, in its own session and, at times, in another."""
        random, works = self._random, self._almanac.works(day)
        if not works and (plot.type != "incident" or self._almanac.away(day)):
            return
        said = [one for one in self._said[day] if one.plot == plot.id]
        turning = day in (plot.start, plot.end) and works
        if not said and not turning and random.random() < _RESTS:
            return
        room = plot.session.id
        prose = [one.text for one in said if not one.quoted]
        quotes = [f'> {one.quoted}: "{one.text}"' for one in said if one.quoted]
        described = (plot.id, day) in self._record.abouts
        if described and prose and ": " not in prose[0] and random.random() < 0.5:
            prose[0] = random.choice(ON).format(about=plot.subject.about) + prose[0]
            described = False
        prose += self._voices[plot.id].on(day, room, random.randint(*_SENTENCES[density]))
        random.shuffle(prose)
        if described:
            prose.insert(random.randint(0, len(prose)), self._about(plot, day))
        if day == plot.start:
            slots = {"name": plot.name, "about": plot.subject.about}
            prose.insert(0, sentence(random.choice(plot.arc.opens), **slots))
        if day == plot.end and works:
            prose.append(sentence(random.choice(plot.arc.closes), name=plot.name))
        if prose or quotes:
            body = [
                _listed(prose) if len(prose) > 2 and random.random() < 0.25 else " ".join(prose)
            ]
            pages[room].append(_section(capital(plot.name), [*filter(None, body), *quotes]))
        if works and plot.echoes and random.random() < 0.15:
            other = random.choice(plot.echoes)
            if texts := self._voices[plot.id].on(day, other, random.randint(1, 2)):
                pages[other].append(_section(capital(plot.name), [" ".join(texts)]))

    def _about(self, plot: Plot, day: int) -> str:
        def wording(card: str) -> str:
            return sentence(card, about=plot.subject.about)

        said = self._fresh.deal(self._abouts, day, wording, rest=0)
        return said or wording(self._abouts.deal())

    def _asides(self, day: int) -> list[str]:
        """What belongs to no arc: covers of confidential matters, and old trouble retold."""
        found = [one.text for one in self._said[day] if not one.plot]
        people = self._decks["principal"]
        for thread in self._retold[day]:

            def wording(card: str, thread: str = thread) -> str:
                return fill(card.replace("{thread}", thread), people, self._random)

            if text := self._fresh.deal(self._rumour, day, wording, rest=0):
                found.append(text)
        return found

    def _rumours(self, chance: Rng) -> dict[int, list[str]]:
        """When the common causes of trouble come up again, and again without their victims."""
        last: dict[str, int] = {}
        for fact in self._record.facts:
            if fact.attribute == "thread.cause":
                last[fact.value] = fact.day
        found: dict[int, list[str]] = defaultdict(list)
        for thread, day in last.items():
            random = chance.stream("rumours", thread)
            days = self._almanac.working_days(day + 5, self._almanac.days)
            for when in random.sample(days, round(len(days) / _RETOLD)):
                found[when].append(thread)
        return found

    def _look_back(self, day: int, pages: dict[str, list[str]]) -> None:
        """Arcs that are over and come up once more."""
        for plot in self._later[day][:_LOOKS_BACK]:
            room = self._random.choice(("principal", plot.session.id))
            if texts := self._voices[plot.id].afterwards(day, room):
                pages[room].append(_section(capital(plot.name), [" ".join(texts)]))

    def _rest(self, day: int, pages: dict[str, list[str]], aside: list[str]) -> None:
        texts = list(aside)
        if away := self._almanac.starting(day):
            texts.insert(0, f"From today: {away.reason}.")
        target = self._random.randint(*_SIZE["quiet"])
        while words(texts) < target - 15:
            text = self._filler(self._quiet, day, "principal")
            if text is None:
                break
            texts.append(text)
        title = self._random.choice(QUIET_TITLES)
        half = self._random.randint(2, max(2, len(texts)))
        blocks = [" ".join(texts[:half]), " ".join(texts[half:])]
        pages["principal"].append(_section(title, [*filter(None, blocks)]))

    def _fill_up(
        self, day: int, density: Density, pages: dict[str, list[str]], aside: list[str]
    ) -> None:
        """Routine until the day has its size, most of it in the agent's own notes."""
        random = self._random
        for room, sections in pages.items():
            if sections and room != "principal":
                count = random.randint(1, 3)
                round = [self._trifle(day, room) for _ in range(count)]
                if found := [text for text in round if text]:
                    sections.append(_section(random.choice(GROUP_TITLES), [" ".join(found)]))
        size = sum(words(sections) for sections in pages.values())
        target = random.randint(*_SIZE[density]) - 30
        texts = list(aside)
        while size + words(texts) < target or len(texts) < 2:
            text = self._trifle(day, "principal")
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
            titles.append(self._titles.deal(titles))
            pages["principal"].append(_section(titles[-1], [*filter(None, body)]))

    def _close(self, day: int, running: Sequence[Plot], pages: dict[str, list[str]]) -> None:
        """The last line of a session: what is left open."""
        for room, sections in pages.items():
            here = [plot for plot in running if plot.session.id == room]
            if not sections or not here or self._random.random() < 0.35:
                continue
            chosen = self._random.sample(here, min(len(here), 2))
            loops = [self._voices[plot.id].loop(day, room) for plot in chosen]
            if found := [loop for loop in loops if loop]:
                label = self._random.choice(("Outstanding", "Open loops"))
                sections.append(f"{label}: {' '.join(found)}")

    def _trifle(self, day: int, room: str) -> str | None:
        """A piece of routine, of the story's own as long as it has fresh ones."""
        return (
            self._filler(self._routine, day, room, rest=2)
            or self._filler(self._common, day, room)
            or self._filler(self._routine, day, room)
        )

    def _filler(self, deck: Deck[str], day: int, room: str, rest: int = 0) -> str | None:
        people = self._decks[room]
        return self._fresh.deal(deck, day, lambda card: fill(card, people, self._random), rest=rest)

    def _lay_out(self, day: int, pages: Mapping[str, Sequence[str]]) -> str:
        parts = ["---\ntype: daily\n---"]
        order = sorted(self._rooms, key=lambda room: room != "principal")
        for room in order:
            if pages[room]:
                parts += [f"# session: {room}", self._almanac.worded(day), *pages[room]]
        return "\n\n".join(parts) + "\n"

    def _make_voices(self, chance: Rng) -> dict[str, Voice]:
        facts = defaultdict(list)
        for fact in self._record.facts:
            facts[fact.arc].append(fact)
        return {
            plot.id: Voice(
                plot,
                [fact for fact in facts[plot.id] if fact.attribute.startswith(f"{plot.type}.")],
                self._record.omitted.get(plot.id),
                self._people,
                chance,
                self._fresh,
            )
            for plot in self._plots
        }


def _section(title: str, blocks: Sequence[str]) -> str:
    return "\n\n".join((f"### {title}", *blocks))


def _listed(texts: Sequence[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)
