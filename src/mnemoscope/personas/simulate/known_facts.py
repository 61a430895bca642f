"""What is known of a life when questions are made: its facts by arc, chain and kind."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random

from mnemoscope.personas.simulate.calendar import LifeCalendar, plain_date
from mnemoscope.personas.simulate.plots import Plot, Subjects
from mnemoscope.personas.simulate.rng import Rng
from mnemoscope.personas.simulate.sentence_templates import sentence
from mnemoscope.personas.simulate.story import ARC_TYPES, Story, StoryFact
from mnemoscope.personas.simulate.timeline import TimelineRecord
from mnemoscope.text.fact_ledger import LedgerFact

Chain = tuple[LedgerFact, ...]
"""One fact of one subject over time: its first value and every revision."""


@dataclass(frozen=True)
class Draft:
    """A question that has no number yet."""

    category: str
    question: str
    answer: str
    days: tuple[int, ...]
    arc: str = ""
    key: tuple[str, ...] = ()
    secret: tuple[str, ...] = ()
    described: bool = False
    """Whether it calls its subject by a description and not by its name."""
    irrelevant_after: int | None = None
    no_evidence: bool = False
    query_session: str = ""
    forbidden_sessions: tuple[str, ...] = ()
    expected_disclosure: str = ""


class KnownFacts:
    def __init__(
        self,
        story: Story,
        calendar: LifeCalendar,
        subjects: Subjects,
        plots: Sequence[Plot],
        record: TimelineRecord,
        chance: Rng,
    ) -> None:
        self.story, self.calendar, self.record, self.chance = story, calendar, record, chance
        self.withheld = subjects.withheld
        self.plots: Mapping[str, Plot] = {plot.id: plot for plot in plots}
        self.open_plots = [plot for plot in plots if not plot.isolated]
        self.kinds: Mapping[str, StoryFact] = {
            f"{type}.{kind.id}": kind for type in ARC_TYPES for kind in story.arcs[type].facts
        }
        self.facts: dict[str, list[LedgerFact]] = defaultdict(list)
        for fact in record.facts:
            self.facts[fact.arc].append(fact)
        self.chains = self._chains()
        self._asked: set[tuple[str, str]] = set()

    def _chains(self) -> list[Chain]:
        by_id = {fact.id: fact for fact in self.record.facts}
        later = {fact.superseded_by for fact in self.record.facts}
        chains = []
        for fact in self.record.facts:
            if fact.attribute in self.kinds and fact.id not in later:
                chain = [fact]
                while chain[-1].superseded_by:
                    chain.append(by_id[chain[-1].superseded_by])
                chains.append(tuple(chain))
        return chains

    def plot(self, fact: LedgerFact) -> Plot:
        return self.plots[fact.arc]

    def kind(self, fact: LedgerFact) -> StoryFact:
        return self.kinds[fact.attribute]

    def what(self, fact: LedgerFact) -> str:
        return "who" if self.kind(fact).values.person else "what"

    def the(self, fact: LedgerFact) -> str:
        """The spending limit for Heron, in mid-sentence."""
        return f"the {self.kind(fact).noun} for {fact.entity}"

    def described(self, *facts: LedgerFact) -> bool:
        """Whether the days of these facts also say what their subject is about."""
        return all((fact.arc, fact.day) in self.record.abouts for fact in facts)

    def date(self, fact: LedgerFact) -> str:
        return plain_date(self.calendar.date(fact.day))

    def subject(self, fact: LedgerFact, random: Random, *others: LedgerFact) -> tuple[str, bool]:
        """How a question calls the subject: by its description, where the days say it, or name."""
        plot = self.plot(fact)
        if self.described(fact, *others) and random.random() < 0.75:
            return plot.subject.about, True
        return plot.name, False

    def ask(self, chain: Chain, fact: LedgerFact, random: Random) -> tuple[str, bool] | None:
        """One of the story's own ways to ask, not used for this fact before."""
        asks = [
            ask
            for ask in self.kind(fact).asks
            if (chain[0].id, ask) not in self._asked
            and ("{about}" not in ask or self.described(fact))
        ]
        if not asks:
            return None
        ask = random.choice(sorted(asks, key=lambda ask: "{about}" not in ask)[:2])
        self._asked.add((chain[0].id, ask))
        plot = self.plot(fact)
        text = sentence(ask, name=plot.name, about=plot.subject.about)
        return text, "{about}" in ask


def state_end(fact: LedgerFact) -> int | None:
    """The last day on which it is still true."""
    return None if fact.superseded_on is None else fact.superseded_on - 1
