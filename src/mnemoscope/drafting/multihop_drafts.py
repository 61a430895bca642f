"""Questions that need two memories, joined by an entity or by a day."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import date
from itertools import combinations
from random import Random

from mnemoscope.drafting.draft import Draft
from mnemoscope.drafting.memory_index import MemoryIndex
from mnemoscope.drafting.noun_phrases import Phrase

_MOST_ON_A_TOPIC = 6


class MultihopDrafts:
    """Candidates of the stratum `multihop`."""

    def __init__(self, index: MemoryIndex) -> None:
        self._index = index

    def drafts(self, rng: Random) -> Iterator[Draft]:
        """By turns joined by an entity and by a day."""
        yield from _by_turns([self._by_entity(rng), self._by_day(rng)])

    def _by_entity(self, rng: Random) -> Iterator[Draft]:
        joined = self._topics()
        topics = sorted(joined)
        rng.shuffle(topics)
        for topic in topics:
            phrase, ids = joined[topic]
            pairs = (
                (one, two)
                for one, two in combinations(ids, 2)
                if self._index.are_apart(one, two)
                and self._index.circle(one) == self._index.circle(two)
            )
            first, second = next(pairs, ("", ""))
            if not first or not (said := self._said(first, second)):
                continue
            one, two = self._beside(first, phrase), self._beside(second, phrase)
            if one and two and one.text.lower() != two.text.lower():
                text = f"What {said} about {phrase.asked} in connection with {one.asked}, "
                text += f"and what in connection with {two.asked}?"
                note = f"joined by {phrase.text}"
                yield Draft("multihop", text, (first, second), note=note)

    def _topics(self) -> dict[str, tuple[Phrase, tuple[str, ...]]]:
        """Phrases that a few memories share, each with these memories in the order of time."""
        by_text: defaultdict[str, list[str]] = defaultdict(list)
        known: dict[str, Phrase] = {}
        for id in self._index.usable:
            for phrase in self._index.phrases[id]:
                if (
                    phrase.is_specific
                    and self._index.frequency(phrase) <= self._index.rules.joining
                ):
                    by_text[phrase.text.lower()].append(id)
                    known.setdefault(phrase.text.lower(), phrase)
        found = {}
        for text, ids in by_text.items():
            everywhere = self._index.having(text)
            if 2 <= len(everywhere) <= _MOST_ON_A_TOPIC and len(ids) > 1:
                found[text] = (known[text], tuple(sorted(ids, key=self._index.time_order)))
        return found

    def _beside(self, id: str, topic: Phrase) -> Phrase | None:
        """The rarest phrase that, of the memories on a topic, only this one has."""
        taken = set(self._index.stems_of(topic.text))
        found = [
            one
            for one in self._index.phrases[id]
            if (own := set(self._index.stems_of(one.text)))
            and not own & taken
            and self._index.frequency(one) <= self._index.rules.joining
            and self._index.is_only_in(id, topic.text, one.text)
            and self._index.are_told_together(id, topic, one)
        ]
        return min(found, key=lambda one: (self._index.frequency(one), one.text), default=None)

    def _by_day(self, rng: Random) -> Iterator[Draft]:
        """A memory on a topic of several days, and another memory that tells which day is meant."""
        days: defaultdict[date, list[str]] = defaultdict(list)
        for id in self._index.usable:
            if (at := self._index.memories[id].at) is not None:
                days[at.date()].append(id)
        topics = self._topics_of_days()
        order = sorted(topics)
        rng.shuffle(order)
        for day in order:
            topic, asked = rng.choice(topics[day])
            on_topic = self._index.having(topic.text)
            circle = self._index.circle(asked)
            others = [
                id for id in days[day] if id not in on_topic and self._index.circle(id) == circle
            ]
            rng.shuffle(others)
            for other in others:
                if own := self._index.own_phrases(other):
                    who = self._index.speaker(other)
                    named = f"{who} mentioned" if who else "the memories mention"
                    text = f"On the day when {named} {own[0].asked}, "
                    text += f"what {self._said(asked)} about {topic.asked}?"
                    yield Draft("multihop", text, (other, asked), note="joined by a day")
                    break

    def _topics_of_days(self) -> dict[date, list[tuple[Phrase, str]]]:
        """Topics of several days, by day, each with the only memory of that day about it."""
        found: defaultdict[date, list[tuple[Phrase, str]]] = defaultdict(list)
        for phrase, ids in self._topics().values():
            ats = [self._index.memories[id].at for id in self._index.having(phrase.text)]
            days = [at.date() for at in ats if at is not None]
            for id in ids:
                at = self._index.memories[id].at
                if at is not None and days.count(at.date()) == 1 and len(set(days)) > 1:
                    found[at.date()].append((phrase, id))
        return found

    def _said(self, *ids: str) -> str:
        """What was said, if all these memories have one speaker or none; else empty."""
        names = {self._index.speaker(id) for id in ids}
        if len(names) > 1:
            return ""
        [name] = names
        return f"did {name} say" if name else "do the memories say"


def _by_turns(kinds: list[Iterator[Draft]]) -> Iterator[Draft]:
    while kinds:
        for kind in list(kinds):
            if (draft := next(kind, None)) is None:
                kinds.remove(kind)
            else:
                yield draft
