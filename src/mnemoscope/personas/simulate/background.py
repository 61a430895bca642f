"""Background: what is said of an arc on days and in places where nothing becomes known.

These sentences share their words with the facts and hold no value: they are the near misses.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Mapping, Sequence
from random import Random

from mnemoscope.personas.simulate.phrases import (
    AFTERWARDS,
    DESCRIBED_BACK,
    GOES_ON,
    LOOKING_BACK,
    LOOPS,
)
from mnemoscope.personas.simulate.plots import Plot
from mnemoscope.personas.simulate.rng import Deck, Rng
from mnemoscope.personas.simulate.sentence_templates import Fresh, sentence, tells_that_open
from mnemoscope.personas.simulate.story import StoryFact
from mnemoscope.text.fact_ledger import LedgerFact

_REST = 5
"""For so many days a phrasing is not used again of the same arc."""
_COMES_BACK = 7
"""An arc that is over and lasts comes up once in so many working days: what is to be remembered
is buried the deeper the longer the life is."""
_REMEMBERED = 1500
"""Days after which nobody speaks of an arc any more."""
_OF_DECISIONS = ("outcome", "first proposal", "main objection", "reason given")
_MENTIONS = 0.3
"""How often a sentence on a running arc is a near miss."""
_OMITTED_FIRST = 0.4
"""How often a near miss is about what is never told."""


class Voice:
    """Ways to speak of one arc, with a memory for what was said lately."""

    def __init__(
        self,
        plot: Plot,
        facts: Sequence[LedgerFact],
        omitted: StoryFact | None,
        speakers: Mapping[str, Sequence[str]],
        chance: Rng,
        fresh: Fresh,
    ) -> None:
        self.plot = plot
        self._random = chance.stream("voice", plot.id)
        self._speakers = {room: Deck(names, self._random) for room, names in speakers.items()}
        self._own = Deck(plot.arc.goes_on, self._random)
        self._common = Deck(GOES_ON, self._random)
        self._afterwards = Deck(AFTERWARDS, self._random)
        self._looking_back = Deck(LOOKING_BACK, self._random)
        self._described_back = Deck(DESCRIBED_BACK, self._random)
        self._loops = Deck(LOOPS, self._random)
        self._nouns = Deck([kind.noun for kind in plot.arc.facts] or _OF_DECISIONS, self._random)
        self._fresh = fresh
        self._omitted = omitted
        self._known: dict[str, int] = {}
        self._told: set[tuple[str, int]] = set()
        for fact in facts:
            kind = fact.attribute.partition(".")[2]
            self._known[kind] = min(self._known.get(kind, fact.day), fact.day)
            self._told.add((kind, fact.day))
        self._mentions = {kind.id: Deck(kind.mentions, self._random) for kind in plot.arc.facts}
        self._harmless = {
            kind.id: Deck(
                [text for text in kind.mentions if not tells_that_open(text)], self._random
            )
            for kind in plot.arc.facts
        }

    def on(self, day: int, room: str, count: int) -> list[str]:
        """So many sentences for a day of the arc, fewer where there is nothing fresh to say."""
        found = []
        for _ in range(count):
            text = self._mention(day, room) if self._random.random() < _MENTIONS else None
            text = text or self._goes_on(day, room)
            if text:
                found.append(text)
        return found

    def loop(self, day: int, room: str) -> str | None:
        """Something that is left open at the end of a day."""
        return self._mention(day, room) or self._fresh_one(self._loops, day, room)

    def afterwards(self, day: int, room: str) -> list[str]:
        """What is said once the arc is over: near misses by name and by description."""
        decks = [self._looking_back, self._afterwards, self._described_back]
        self._random.shuffle(decks)
        found = [self._fresh_one(deck, day, room) for deck in decks[: self._random.randint(2, 3)]]
        return [text for text in found if text]

    def _goes_on(self, day: int, room: str) -> str | None:
        deck = self._own if self._random.random() < 0.75 else self._common
        return self._fresh_one(deck, day, room)

    def _mention(self, day: int, room: str) -> str | None:
        kind = self._some_kind(day)
        if kind is None:
            return None
        known = self._known.get(kind, day + 1) <= day
        return self._fresh_one((self._harmless if known else self._mentions)[kind], day, room)

    def _fresh_one(self, deck: Deck[str], day: int, room: str) -> str | None:
        return self._fresh.deal(
            deck, day, lambda card: self._fill(card, room), of=self.plot.id, rest=_REST
        )

    def _some_kind(self, day: int) -> str | None:
        if self._omitted and self._random.random() < _OMITTED_FIRST:
            return self._omitted.id
        kinds = [kind for kind in self._mentions if (kind, day) not in self._told]
        return self._random.choice(kinds) if kinds else None

    def _fill(self, phrasing: str, room: str) -> str:
        speaker = self._speakers[room].deal() if "{speaker}" in phrasing else ""
        noun = self._nouns.deal() if "{noun}" in phrasing else ""
        subject = self.plot.subject
        return sentence(
            phrasing, name=subject.name, about=subject.about, speaker=speaker, noun=noun
        )


def later_days(plot: Plot, workdays: Sequence[int], random: Random) -> Collection[int]:
    """When an arc that is over comes up once more: again and again, for years."""
    if not plot.lasting:
        return ()
    first, last = plot.end + 4, plot.end + _REMEMBERED
    days = workdays[bisect_left(workdays, first) : bisect_right(workdays, last)]
    return random.sample(days, round(len(days) / _COMES_BACK))
