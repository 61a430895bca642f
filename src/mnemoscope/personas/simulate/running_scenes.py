"""What runs beside the arcs: affairs and matters that are told over several days.

An affair is written out for one story, with other particulars each time. A matter is four clauses
that the story's own frames are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from random import Random

from mnemoscope.personas.simulate.grammar import put
from mnemoscope.personas.simulate.scene_book import Affair, Matter, SceneBook, Texts

_NEW_MATTERS = 1
"""Most matters that begin on a day, as long as there are affairs to tell."""
_DAYS_APART = (1, 1, 2)
"""Days between two parts, as often as they are listed."""
_HAS_AFTERMATH = 0.9
_REST = 60
"""Days for which something closed does not come up again, if another one can."""
_LEAST_REST = {Affair: 10, Matter: 4}
"""Days for which something closed does not come up again at all."""
_DAYS_OF_ALL = 8
"""Days over which all affairs begin, so that they do not all end at once and rest together."""
_LIKE = 4
"""Days after the end of one thing before another one with a word of its topic begins."""
_COMMON_WORDS = frozenset("about after against another from into over that their with".split())
_SLOT = re.compile(r"\{(\w+)\}")


@dataclass
class RunningScene:
    """An affair or a matter on its way through its stages."""

    source: Affair | Matter
    session: str
    title: str
    slots: Mapping[str, str]
    people: tuple[str, str]
    stages: list[Texts]
    begun: int
    due: int

    @property
    def topic(self) -> str:
        return self.source.topic


class RunningScenes:
    """Decides what goes on on a day, and what is new."""

    def __init__(
        self,
        book: SceneBook,
        people: Mapping[str, Sequence[str]],
        open_sessions: Sequence[str],
        random: Random,
        *,
        repeats: bool = False,
    ) -> None:
        self._repeats = repeats
        self._people, self._open, self._random = people, open_sessions, random
        self._book = book
        self._affairs = list(book.affairs)
        self._matters = book.own_matters()
        self._running: list[RunningScene] = []
        self.used: dict[Affair | Matter, int] = {}
        """The last day of each affair and matter."""

    def next(self, day: int, seen: Sequence[RunningScene]) -> RunningScene | None:
        """What has waited longest, or something new; None if all of it was there lately."""
        shown = set(map(id, seen))
        waiting = [one for one in self._running if id(one) not in shown]
        waiting.sort(key=lambda one: one.due)
        if waiting and waiting[0].due <= day:
            return waiting[0]
        near = [one.topic for one in (*self._running, *seen)]
        if not self._repeats:
            near += [one.topic for one, last in self.used.items() if day - last < _LIKE]
        pools: list[Sequence[Affair | Matter]] = [self._affairs, self._matters]
        begun = sum(isinstance(one.source, Matter) and one.begun == day for one in seen)
        if begun < _NEW_MATTERS and self._random.random() < 0.5:
            pools.reverse()
        for pool in pools:
            most = max(1, len(pool) // _DAYS_OF_ALL)
            new = sum(one.begun == day and one.source in pool for one in seen)
            if new >= most and not self._repeats:
                continue
            free = [one for one in pool if not any(map(partial(_alike, one.topic), near))]
            if source := self._rested(free, day):
                return self._start(source, day)
        if waiting:
            return waiting[0]
        running = [id(one.source) for one in (*self._running, *seen)]
        left = [one for one in self._matters if id(one) not in running]
        return self._start(min(left, key=self._last), day) if left and self._repeats else None

    def tell(self, scene: RunningScene, day: int) -> Texts:
        """The texts of the next stage; a scene without another stage is closed."""
        stage = scene.stages.pop(0)
        scene.due = day + self._random.choice(_DAYS_APART)
        self.used[scene.source] = day
        if not scene.stages:
            self._running.remove(scene)
        return stage

    def weekend(self, day: int) -> Iterator[tuple[Matter, str, bool]]:
        """Matters that are open or were closed lately, with somebody and whether they are open."""
        running = {id(one.source) for one in self._running}
        for one in self._running:
            if isinstance(one.source, Matter) and self._book.frame("settles") in one.stages:
                yield one.source, one.people[0], True
        for source, last in self.used.items():
            if isinstance(source, Matter) and id(source) not in running and day - last < _REST // 4:
                yield source, self._random.choice(self._people["principal"]), False

    def _rested(self, pool: Sequence[Affair | Matter], day: int) -> Affair | Matter | None:
        """One that has rested long enough, else the one that has rested longest."""
        if rested := [one for one in pool if day - self._last(one) >= _REST]:
            return self._random.choice(rested)
        longest = min(pool, key=self._last, default=None)
        if longest and (self._repeats or day - self._last(longest) > _LEAST_REST[type(longest)]):
            return longest
        return None

    def _last(self, one: Affair | Matter) -> int:
        return self.used.get(one, -_REST)

    def _start(self, source: Affair | Matter, day: int) -> RunningScene:
        random = self._random
        if isinstance(source, Affair):
            session = source.room
            stages: list[Texts] = [(text,) for text in _referring(source.tells)]
            slots = {name: random.choice(choices) for name, choices in source.vary.items()}
            slots |= {f"the_{name}": _definite(value) for name, value in slots.items()}
            title = put(source.topic, slots)
        else:
            session = "principal"
            if self._open and random.random() < 0.5:
                session = random.choice(self._open)
            stages = [self._book.frame("raises"), self._book.frame("settles")]
            if random.random() < _HAS_AFTERMATH:
                stages.append(self._book.frame("afters"))
            slots, title = source._asdict(), source.topic
        a, b = random.sample(self._people[session], 2)
        scene = RunningScene(source, session, title, slots, (a, b), stages, day, day)
        self._running.append(scene)
        return scene


def _referring(tells: Sequence[str]) -> Iterator[str]:
    """The parts of an affair; a particular that an earlier part mentions is `the` one."""
    known: set[str] = set()
    for text in tells:
        slots = set(_SLOT.findall(text))
        for slot in sorted(slots & known - {"P", "weekday"}):
            text = text.replace(f"{{{slot}}}", f"{{the_{slot}}}")
        known |= slots
        yield text


@lru_cache(1 << 16)
def _alike(topic: str, other: str) -> bool:
    """Whether two topics share two words, or the only one that one of them has."""
    one, two = _words(topic), _words(other)
    return topic == other or len(one & two) >= min(2, max(1, min(len(one), len(two))))


@cache
def _words(topic: str) -> set[str]:
    """The words that tell what a topic is about."""
    return set(re.findall(r"[a-z]{4,}", _SLOT.sub("", topic).lower())) - _COMMON_WORDS


def _definite(value: str) -> str:
    return re.sub(r"^an? ", "the ", value)
