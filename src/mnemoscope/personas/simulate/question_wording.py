"""How questions of the second edition name subjects and facts, and what they need as evidence.

People seldom ask in the words of the log: they describe a subject, use another name of it, and say
what they want to know in everyday words.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import NamedTuple, TypeVar

from mnemoscope.personas.authored_question import AuthoredQuestion, difficulty_of
from mnemoscope.personas.simulate.arc_plan import PlannedArc
from mnemoscope.personas.simulate.grammar import write
from mnemoscope.personas.simulate.known_facts import KnownFacts, question_about
from mnemoscope.personas.simulate.scene_book import SCENES, SceneBook
from mnemoscope.personas.simulate.scene_timeline import SceneRecord
from mnemoscope.personas.simulate.story import StoryFact
from mnemoscope.text.fact_ledger import Aspect, LedgerFact

T = TypeVar("T")

_DESCRIBED = 0.25
"""The share of questions that describe their subject in words of their own."""
_ABOUT = 0.2
"""The share that uses the description of the log."""
_ALIAS = 0.4
"""The share of the others that uses another name, if there is one."""


class Subject(NamedTuple):
    """How a question names the subject of an arc."""

    text: str
    manner: str
    """name, alias or about."""


class QuestionFamily(NamedTuple):
    answered: Sequence[AuthoredQuestion]
    unanswered: Sequence[AuthoredQuestion]


class QuestionWording:
    """Words questions, and finds the days that each needs."""

    def __init__(self, known: KnownFacts, record: SceneRecord, book: SceneBook) -> None:
        self._known, self._record, self._book = known, record, book
        self._chains = [chain for chain in known.chains if not known.arc(chain[0]).isolated]
        self._omitted = [
            (arc, kind)
            for arc in known.open_arcs
            for kind in self._record.omissions.get(arc.id, ())
        ]
        self._names = {
            (fact.arc, fact.attribute): fact
            for fact in record.facts
            if fact.attribute in ("name.meaning", "name.also")
        }

    def _subject(self, arc: PlannedArc, random: Random, *, named: bool = False) -> Subject:
        described = arc.subject.also or self._description(arc)
        draw = 1.0 if named else random.random()
        if draw < _DESCRIBED and described:
            return Subject(described, "about")
        if draw < _DESCRIBED + _ABOUT:
            return Subject(arc.subject.about, "about")
        also = self._names.get((arc.id, "name.also"))
        if also and random.random() < _ALIAS:
            return Subject(also.value, "alias")
        return Subject(arc.name, "name")

    def _description(self, arc: PlannedArc) -> str:
        """A description in other words than the log's; later rounds of a subject have none."""
        return self._book.descriptions.get(arc.name, "")

    def _links(self, facts: Sequence[LedgerFact], subject: Subject) -> Iterator[LedgerFact]:
        """The facts about names without which the days of these facts do not fit the question."""
        for fact in facts:
            alias = (fact.arc, fact.day, fact.attribute) in self._record.by_alias
            described = (fact.arc, fact.day) in self._record.abouts
            if subject.manner == "about" and not described:
                yield self._names[fact.arc, "name.meaning"]
            if subject.manner != "about" and alias != (subject.manner == "alias"):
                yield self._names[fact.arc, "name.also"]

    def _ask(self, arc: PlannedArc, kind: StoryFact, random: Random) -> tuple[str, Subject]:
        ask = random.choice(kind.asks)
        # "Why did … happen?" fits the name of an incident, and not a description of what it hit.
        subject = self._subject(arc, random, named=arc.type == "incident" and "{name}" in ask)
        return write(ask, random, {"name": subject.text, "about": subject.text}), subject

    def _clause(self, arc: PlannedArc, kind: StoryFact, subject: str) -> str:
        """What a fact tells, in everyday words: how much Heron is allowed to cost."""
        clause = self._book.clauses.get(arc.type, {}).get(kind.id)
        if clause is None:
            who = "who" if kind.values.person else "what"
            clause = f"{who} the {kind.noun} for {{x}} is"
        return clause.replace("{x}", subject)

    def _phrased(
        self,
        phrasings: Sequence[str],
        arc: PlannedArc,
        kinds: Sequence[StoryFact],
        random: Random,
    ) -> tuple[str, Subject]:
        """A question about one or two kinds of facts of a subject, by noun or by clause."""
        subject = self._subject(arc, random)
        slots = {"subject": subject.text}
        for number, kind in enumerate(kinds, 1):
            slots[f"noun{number}"] = kind.noun
            slots[f"clause{number}"] = self._clause(arc, kind, subject.text)
        return write(random.choice(phrasings), random, slots), subject

    def _about(
        self,
        facts: Sequence[LedgerFact],
        category: str,
        text: str,
        answer: str,
        subject: Subject | None = None,
        *,
        aspect: Aspect = "value",
        key: tuple[str, ...] | None = None,
        until: int | None = None,
    ) -> AuthoredQuestion:
        links = dict.fromkeys(self._links(facts, subject)) if subject else {}
        return question_about(
            [*facts, *links],
            category,
            text,
            answer[0].upper() + answer[1:],
            key=tuple(f"{fact.id}.{aspect}" for fact in facts) if key is None else key,
            described=subject is not None and subject.manner == "about",
            irrelevant_after=until,
        )

    def _nothing(self, text: str, random: Random, day: int, arc: str = "") -> AuthoredQuestion:
        return AuthoredQuestion(
            question=text,
            answer=random.choice(SCENES.no_answers),
            category="negative-recall",
            difficulty=difficulty_of((day,), False),
            relevant_days=(day,),
            requires_synthesis=False,
            no_evidence=True,
            key=(),
            arc=arc,
        )

    def _lacking(
        self, random: Random, weight: Callable[[StoryFact], float]
    ) -> Iterator[tuple[PlannedArc, StoryFact]]:
        """What arcs leave out; a kind is kept with the probability that its facts have answers."""
        for arc, kind in shuffled(self._omitted, random):
            if random.random() < weight(kind):
                yield arc, kind

    def _is(self, fact: LedgerFact) -> str:
        """The verb that fits the noun of a fact: the discarded samples are."""
        return (
            "are" if re.search(r"^(?!number of).*[^sui]s$", self._known.kind(fact).noun) else "is"
        )

    def _until(self, fact: LedgerFact) -> int | None:
        return None if fact.superseded_on is None else fact.superseded_on - 1


def shuffled(items: Sequence[T], random: Random) -> list[T]:
    return random.sample(items, len(items))


def pairs(items: Sequence[T], random: Random, group: Callable[[T], str]) -> Iterator[tuple[T, T]]:
    """Pairs of items of different groups, each item at most once."""
    left = shuffled(items, random)
    for one, other in zip(left[::2], left[1::2], strict=False):
        if group(one) != group(other):
            yield one, other
