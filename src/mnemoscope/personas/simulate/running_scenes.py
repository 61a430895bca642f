"""What runs beside the arcs: affairs and matters that are told over several days.

An affair is written out for one story, with other particulars each time. A matter is four clauses
that the story's own frames are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from mnemoscope.personas.simulate.grammar import put
from mnemoscope.personas.simulate.scene_book import Affair, Matter, SceneBook, Texts

_NEW_MATTERS = 1
"""Most matters that begin on a day, as long as there are affairs to tell."""
_DAYS_APART = (1, 1, 2)
"""Days between two parts, as often as they are listed."""
_HAS_AFTERMATH = 0.7
_REST = 60
"""Days for which something closed does not come up again, if another one can."""
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
    ) -> None:
        self._people, self._open, self._random = people, open_sessions, random
        self._book = book
        self._affairs = list(book.affairs)
        self._matters = book.own_matters()
        self._running: list[RunningScene] = []
        self.used: dict[Affair | Matter, int] = {}
        """The last day of each affair and matter."""

    def next(self, day: int, seen: Sequence[RunningScene]) -> RunningScene:
        """What has waited longest, or something new."""
        waiting = sorted((one for one in self._running if one not in seen), key=lambda one: one.due)
        if waiting and waiting[0].due <= day:
            return waiting[0]
        busy = {one.topic for one in (*self._running, *seen)}
        pools: list[Sequence[Affair | Matter]] = [self._affairs, self._matters]
        begun = sum(isinstance(one.source, Matter) and one.begun == day for one in seen)
        if begun < _NEW_MATTERS and self._random.random() < 0.5:
            pools.reverse()
        for pool in pools:
            if free := [one for one in pool if one.topic not in busy]:
                return self._start(self._rested(free, day), day)
        return waiting[0] if waiting else self._start(self._rested(self._matters, day), day)

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

    def _rested(self, pool: Sequence[Affair | Matter], day: int) -> Affair | Matter:
        """One that has rested long enough, else the one that has rested longest."""
        rested = [one for one in pool if day - self.used.get(one, -_REST) >= _REST]
        return self._random.choice(rested) if rested else min(pool, key=self.used.__getitem__)

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


def _definite(value: str) -> str:
    return re.sub(r"^an? ", "the ", value)
