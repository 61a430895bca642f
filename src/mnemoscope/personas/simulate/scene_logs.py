"""The daily logs of the second edition: scenes with people, reasons and consequences.

Facts stand in scenes about their arcs. Beside them run affairs and small matters, a part at a time,
until the day has its length.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.calendar import WorkCalendar, long_date
from mnemoscope.personas.simulate.daily_logs import later_days
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.phrases import (
    PHRASES,
    RepetitionFilter,
    count_words,
    fill,
)
from mnemoscope.personas.simulate.rng import Rng, ShuffledCycle
from mnemoscope.personas.simulate.running_scenes import RunningScene, RunningScenes
from mnemoscope.personas.simulate.scene_book import SCENES, SceneBook, Texts
from mnemoscope.personas.simulate.scene_timeline import SceneRecord, first_day
from mnemoscope.personas.simulate.story import Story
from mnemoscope.personas.simulate.timeline import LogSentence

_FRESH = 12
"""Days within which a sentence of a scene is not used again, if another wording can be found."""
_CLOSE = 3
"""Days within which a scene of anything but a fact does not return, and no sentence beside one."""
_FRAME_RESTS = 2
"""Days after which a frame may tell of another matter."""
_WORDS_OF_A_LINE = 9
_MOST_LINES = 10
"""Most small things of a day that has little else."""
_TRIES = 8
_NAMES = re.compile(r"\b[A-Z]\w+(?: [A-Z]\w+)?")
_DENSE = 1500
"""Words of a working day from which affairs may return sooner than is pleasant to read."""
_SPREAD = (0.8, 1.25)
"""The shortest and longest working day, relative to the words asked for."""
_DAY_OFF = 0.22
"""The length of a weekend day, relative to the words asked for."""
_RESTS = 0.35
"""The probability that a day without a fact of an arc does not mention the arc."""
_REMEMBERED = ("project", "incident", "decision")
"""The types of arcs that a later day looks back at."""
_LOOKS_BACK = 3
"""Most ended arcs that a day of 1,000 words mentions."""
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")
_SPEAKER = re.compile(r"^> [^:\n]+: ", re.MULTILINE)
_SENTENCE_END = re.compile(r'(?<=[.!?]) +(?=[A-Z"])|(?<=[.!?]") +(?=[A-Z])')
_AWAY = re.compile(
    r"\b(sick|travell?ing|vacation|holiday|garden|gardening|spring)\b|went home early"
)
"""Small things that only hold in some seasons, or of people who may come up elsewhere that day."""
_SENTENCE = re.compile(r'(?<=[.!?"]) +|\n+')


_WEEKENDS_CLOSED = tuple(text for text in SCENES.weekends if "{after}" in text)
_WEEKENDS_OPEN = tuple(text for text in SCENES.weekends if "{after}" not in text)


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
        self._running = RunningScenes(
            book, self._people, self._open, random, repeats=density > _DENSE
        )
        self._first_names = _first_names(story, book)
        self._seen: dict[str, int] = {}
        """Sentences and templates to the last day of each."""
        self._lines = RepetitionFilter()
        self._routine = ShuffledCycle(_anytime(story.routine), random)
        self._quiet = ShuffledCycle(_anytime((*story.quiet, *PHRASES.days_off)), random)
        self._facts: dict[int, list[LogSentence]] = defaultdict(list)
        for stated in record.sentences:
            self._facts[stated.day].append(stated)
        self._values: dict[int, list[str]] = defaultdict(list)
        for fact in record.facts:
            self._values[fact.day].append(fact.value.lower())
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
            if arc.type not in _REMEMBERED:
                continue
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
        quiet: list[PlannedArc] = []
        for arc in self._arcs:
            if arc.start <= day <= arc.end and not self._arc(arc, day, pages[arc.session.id]):
                quiet.append(arc)
        for stated in self._facts[day]:
            if not stated.arc:
                pages[stated.session].append(self._aside(stated, day))
        for arc in self._later[day][: max(1, round(_LOOKS_BACK * self._words / 1000))]:
            if text := self._looking_back(arc, day):
                pages["principal"].append(text)
        size = sum(map(count_words, pages.values())) + 5 * _WORDS_OF_A_LINE
        seen: list[RunningScene] = []
        while size < target and (scene := self._running.next(day, seen)):
            seen.append(scene)
            if text := self._scene(scene, day):
                pages[scene.session].append(text)
                size += count_words([text])
        while size < target and quiet:
            arc = quiet.pop(0)
            sections = pages[arc.session.id]
            if self._arc(arc, day, sections, rests=0):
                size += count_words(sections[-1:])
        missing = 5 + max(0.0, target - size) / _WORDS_OF_A_LINE
        pages["principal"].append(self._small_things(day, min(_MOST_LINES, round(missing))))
        for sections in pages.values():
            random.shuffle(sections)

    def _arc(self, arc: PlannedArc, day: int, sections: list[str], rests: float = _RESTS) -> bool:
        """Add the section of an arc, if the day has one."""
        stated = [one for one in self._facts[day] if one.arc == arc.id]
        first, last = day == first_day(arc), bool(arc.workdays) and day == arc.workdays[-1]
        if not stated and not first and not last and self._random.random() < rests:
            return False
        session = arc.session.id
        involved = self._holders(arc)
        slots = self._slots(session, day, avoid=[*(one.text for one in stated), *involved])
        slots |= {"name": arc.name, "about": arc.subject.about}
        blocks: list[str] = []
        title = "going"
        if first:
            opens = self._book.opens.get(arc.type, arc.template.opens)
            blocks.append(self._text(opens, day, slots))
            if alias := self._book.aliases.get(arc.name) if not arc.isolated else None:
                blocks.append(self._text(SCENES.nicknames, day, {**slots, "alias": alias}))
        for place, one in enumerate(stated):
            about = {**slots, "name": one.name or arc.name, "noun": one.noun or "matter"}
            if one.manner and place == 0:
                title = one.manner if one.noun and len(stated) == 1 else "going"
                slots = about
            described = place == 0 and (arc.id, day) in self._record.abouts
            blocks.append(self._statement(one, day, about, described))
        if not stated and not first and not last:
            blocks.append(self._going(arc, day, slots))
        if last:
            blocks.append(self._text(arc.template.closes, day, slots))
        if not any(blocks):
            return False
        text = self._short_names("\n\n".join(filter(None, blocks)), involved)
        sections.append(_section(self._text(SCENES.titles[title], day, slots), [text]))
        return True

    def _statement(
        self, one: LogSentence, day: int, slots: Mapping[str, str], described: bool
    ) -> str:
        """The scene of a fact, with what made it change and what its subject is."""
        lead = ""
        if one.reason:
            because = self._book.frame("because")
            lead = self._text(because, day, {**slots, "reason": one.reason}) + " "
        text = self._fresh(one.text, day, slots)
        if described:
            explained = with_meaning(text, slots["name"], slots["about"])
            text = explained or f"{self._text(SCENES.abouts, day, slots)} {text}"
        if one.quoted:
            return f'{lead}\n\n> {one.quoted}: "{text}"'.strip()
        return f"{lead}{text}"

    def _going(self, arc: PlannedArc, day: int, slots: Mapping[str, str]) -> str:
        """A day on which nothing new is known of an arc: work on it, or a near miss."""
        told = self._book.tellings.get(arc.type, {}).values()
        texts = (*self._book.goings.get(arc.type, ()), *(t for one in told for t in one.near))
        if not texts:
            return self._line(arc.template.goes_on, day, slots, arc.id)
        return self._rare(texts, day, slots)

    def _looking_back(self, arc: PlannedArc, day: int) -> str:
        slots = self._slots("principal", day, self._holders(arc))
        slots["name"] = arc.name
        text = self._rare(self._book.frame("back"), day, slots)
        title = self._text(SCENES.titles["back"], day, slots)
        return _section(title, [text]) if text else ""

    def _aside(self, stated: LogSentence, day: int) -> str:
        same = [
            who for value, people in self._shared.items() if value in stated.text for who in people
        ]
        slots = self._slots(stated.session, day, avoid=[stated.text, *same])
        kind = "causes" if stated.manner == "event" else "people"
        title = self._text(SCENES.titles[kind], day, slots)
        return _section(title, [self._fresh(stated.text, day, slots)])

    def _small_things(self, day: int, most: int) -> str:
        count = max(self._random.randint(4, 6), most)
        lines = dict.fromkeys(self._filler(self._routine, day) for _ in range(count))
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
            left = [one for one in self._running.weekend(day) if one[0].topic not in topics]
            if not left:
                break
            matter, person, is_open = self._random.choice(left)
            topics.append(matter.topic)
            slots = self._named(person, person) | matter._asdict() | self._times(day)
            texts = _WEEKENDS_OPEN if is_open else _WEEKENDS_CLOSED
            text = self._short_names(self._rare(texts, day, slots))
            if not text:
                continue
            sections.append(_section(write(matter.topic, self._random, {}), [text]))

    def _scene(self, scene: RunningScene, day: int) -> str:
        """The next stage of an affair or a matter; empty if its words were used lately."""
        slots = {**self._named(*scene.people), **self._times(day), **scene.slots}
        rest = 0 if self._words > _DENSE else _FRAME_RESTS
        if not self._unused(scene.stages[0], day, rest):
            return ""
        text = self._rare(self._running.tell(scene, day), day, slots, rest)
        return _section(write(scene.title, self._random, {}), [self._short_names(text)])

    def _holders(self, arc: PlannedArc) -> list[str]:
        """The people who are values of an arc."""
        return sorted(self._record.holders.get(arc.id, ()))

    def _slots(self, session: str, day: int, avoid: Sequence[str] = ()) -> dict[str, str]:
        """Two people of a session, neither of them named in the texts to avoid."""
        cycle = self._cast[session]
        taken = [name for name in self._people[session] if any(name in text for text in avoid)]
        a = cycle.draw(taken)
        b = cycle.draw([*taken, a])
        return self._named(a, b) | self._times(day)

    def _named(self, a: str, b: str) -> dict[str, str]:
        first = {"A": a.split()[0], "B": b.split()[0], "P": self._principal}
        return {"a": a, "b": b, **first}

    def _times(self, day: int) -> dict[str, str]:
        """A weekday other than today."""
        today = f"{self._calendar.date(day):%A}"
        return {"weekday": self._random.choice([one for one in _WEEKDAYS if one != today])}

    def _short_names(self, text: str, keep: Sequence[str] = ()) -> str:
        """The text with full names only where somebody comes up first, or states a fact."""
        for name, first in self._first_names.items():
            if name in text and not any(name in one for one in keep):
                text = later_mentions(text, name, first)
        return text

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

    def _unused(self, texts: Texts, day: int, days: int = _CLOSE) -> Texts:
        """The texts that have not been used for some days."""
        return tuple(one for one in texts if day - self._seen.get(one, -_FRESH) >= days)

    def _rare(self, texts: Texts, day: int, slots: Mapping[str, str], days: int = _CLOSE) -> str:
        """One of the texts that have not been used for some days; empty if there is none."""
        unused = self._unused(texts, day, days)
        if not unused:
            return ""
        longest = max(day - self._seen.get(one, -_FRESH) for one in unused)
        old = [one for one in unused if day - self._seen.get(one, -_FRESH) >= min(longest, _FRESH)]
        template = self._random.choice(old)
        self._seen[template] = day
        return self._fresh(template, day, slots)

    def _fresh(self, template: str, day: int, slots: Mapping[str, str]) -> str:
        """The text without closing sentences that a neighbouring day has and that state nothing."""
        texts = [write(template, self._random, slots) for _ in range(_TRIES)]
        text = min(texts, key=lambda one: sum(self._stale(said, day) for said in _said(one)))
        paragraphs = []
        for paragraph in text.split("\n\n"):
            said = [paragraph] if paragraph.startswith(">") else _SENTENCE_END.split(paragraph)
            while len(said) > 1 and self._stale(said[-1], day):
                if any(value in said[-1].lower() for value in self._values[day]):
                    break
                said.pop()
            paragraphs.append(" ".join(said))
        text = "\n\n".join(paragraphs)
        self._note(text, day)
        return text

    def _stale(self, sentence: str, day: int) -> bool:
        """Whether a neighbouring day has the sentence, with whichever names."""
        return day - self._seen.get(_nameless(sentence), -_FRESH) < _CLOSE

    def _note(self, text: str, day: int) -> None:
        for one in _said(text):
            if one.count(" ") > 2:
                self._seen[one] = self._seen[_nameless(one)] = day

    def _text(self, texts: Texts, day: int, slots: Mapping[str, str]) -> str:
        """One of the texts with fresh sentences, as far as a few tries find them."""
        cycle = self._cycle(texts)
        best, repeats = "", 1 << 30
        for _ in range(_TRIES):
            text = write(cycle.draw(), self._random, slots)
            stale = sum(day - self._seen.get(one, -_FRESH) < _FRESH for one in _said(text))
            if stale < repeats:
                best, repeats = text, stale
            if not stale:
                break
        self._note(best, day)
        return best


def _anytime(lines: Sequence[str]) -> Texts:
    return tuple(line for line in lines if not _AWAY.search(line))


def _first_names(story: Story, book: SceneBook) -> dict[str, str]:
    """People whose first name is theirs alone."""
    names = [*(person.name for person in story.persona.cast), *book.people]
    times = Counter(name.split()[0] for name in names)
    return {name: name.split()[0] for name in names if times[name.split()[0]] == 1}


def later_mentions(text: str, name: str, first: str) -> str:
    """The text with the first name in place of the full one after its first mention in prose."""
    lines = []
    seen = False
    for line in text.split("\n"):
        label = f"> {name}: "
        head = label if line.startswith(label) else ""
        body = line[len(head) :]
        if seen:
            body = body.replace(name, first)
        elif name in body:
            place = body.index(name) + len(name)
            body = body[:place] + body[place:].replace(name, first)
        seen = seen or name in line
        lines.append(head + body)
    return "\n".join(lines)


def with_meaning(text: str, name: str, about: str) -> str:
    """The text with what the name means, in brackets where prose first has the name alone.

    Empty if only a quotation has the name.
    """
    alone = re.compile(rf"(?<!\w){re.escape(name)}(?!\w|['’]s)", re.IGNORECASE)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        if not line.startswith(">") and (found := alone.search(line)):
            lines[number] = f"{line[: found.end()]} ({about}){line[found.end() :]}"
            return "\n".join(lines)
    return ""


def _said(text: str) -> list[str]:
    """The sentences of a text, whoever says them."""
    return _SENTENCE.split(_SPEAKER.sub("", text))


@lru_cache(1 << 16)
def _nameless(sentence: str) -> str:
    return _NAMES.sub("N", sentence)


def _section(title: str, blocks: Sequence[str]) -> str:
    return "\n\n".join((f"### {title}", *filter(None, blocks)))


def _named_weekend(line: str) -> set[str]:
    return {name for name in ("Saturday", "Sunday") if name in line}
