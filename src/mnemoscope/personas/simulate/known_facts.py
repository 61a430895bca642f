"""The facts of a simulated history by arc, kind and revision, for making questions."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from random import Random

from mnemoscope.personas.authored_question import AuthoredQuestion, difficulty_of
from mnemoscope.personas.simulate.arc_plan import PlannedArc, SubjectPool
from mnemoscope.personas.simulate.calendar import WorkCalendar, plain_date
from mnemoscope.personas.simulate.phrases import sentence
from mnemoscope.personas.simulate.rng import Rng
from mnemoscope.personas.simulate.story import ARC_TYPES, Story, StoryFact
from mnemoscope.personas.simulate.timeline import TimelineRecord
from mnemoscope.text.fact_ledger import Aspect, LedgerFact

Chain = tuple[LedgerFact, ...]
"""One fact of one subject over time: its first value and every revision."""


def question_about(
    facts: Sequence[LedgerFact],
    category: str,
    question: str,
    answer: str,
    *,
    aspect: Aspect = "value",
    key: tuple[str, ...] | None = None,
    described: bool = False,
    irrelevant_after: int | None = None,
) -> AuthoredQuestion:
    """A question without an id whose evidence is the days of these facts.

    Its key is this aspect of each fact, unless another key is given. `described` says that the
    question describes its subject and does not name it.
    """
    days = tuple(sorted({fact.day for fact in facts}))
    return AuthoredQuestion(
        question=question,
        answer=answer,
        category=category,
        difficulty=difficulty_of(days, described),
        relevant_days=days,
        requires_synthesis=len(days) > 1,
        irrelevant_after=irrelevant_after,
        key=tuple(f"{fact.id}.{aspect}" for fact in facts) if key is None else key,
        arc=facts[0].arc,
    )


class KnownFacts:
    """What the functions that make questions need of a simulated history."""

    def __init__(
        self,
        story: Story,
        calendar: WorkCalendar,
        subjects: SubjectPool,
        arcs: Sequence[PlannedArc],
        record: TimelineRecord,
        rng: Rng,
    ) -> None:
        self.story, self.calendar, self.record, self.rng = story, calendar, record, rng
        self.withheld = subjects.withheld
        self.arcs: Mapping[str, PlannedArc] = {arc.id: arc for arc in arcs}
        self.open_arcs = [arc for arc in arcs if not arc.isolated]
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

    def arc(self, fact: LedgerFact) -> PlannedArc:
        return self.arcs[fact.arc]

    def kind(self, fact: LedgerFact) -> StoryFact:
        return self.kinds[fact.attribute]

    def the(self, fact: LedgerFact) -> str:
        """The fact for the middle of a sentence: `the spending limit for Heron`."""
        return f"the {self.kind(fact).noun} for {fact.entity}"

    def described(self, *facts: LedgerFact) -> bool:
        """Whether the logs of these facts' days also describe their subject."""
        return all((fact.arc, fact.day) in self.record.abouts for fact in facts)

    def date(self, fact: LedgerFact) -> str:
        return plain_date(self.calendar.date(fact.day))

    def subject(self, fact: LedgerFact, random: Random) -> tuple[str, bool]:
        """The description of the subject, if the log of the day has it, or its name."""
        arc = self.arc(fact)
        if self.described(fact) and random.random() < 0.75:
            return arc.subject.about, True
        return arc.name, False

    def ask(self, chain: Chain, fact: LedgerFact, random: Random) -> tuple[str, bool] | None:
        """A question in one of the story's phrasings that was not used for this fact."""
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
        subject = self.arc(fact).subject
        return sentence(ask, name=subject.name, about=subject.about), "{about}" in ask
