"""Chains of facts: the values that an attribute of a thing had, and the memories that state them.

Everything is read from the files of a simulated history: its ledger, daily logs and questions.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from mnemoscope.datasets.persona_folder import QuestionEntry
from mnemoscope.text.fact_ledger import Ledger, LedgerFact
from mnemoscope.text.matching import any_says, normal_wording, normalise, sentences, spans
from mnemoscope.types import Memory

_TIMELESS = ("factual-recall", "recency-bias-resistance")
"""Categories whose questions do not say whether the value changed."""
_COMMON = 5
"""A value in more memories, such as the name of a colleague, is not told by naming it."""
_ANSWER = r"The (.{{1,80}}?) (?:for|of) {entity} is "


class FactChain(Struct, frozen=True):
    """The values of one attribute of one thing, the oldest first."""

    facts: tuple[LedgerFact, ...]
    stated: tuple[str, ...]
    """For each value, the id of the memory that states it."""
    question: str
    noun: str
    """What the attribute is called, such as `contingency`."""

    @property
    def id(self) -> str:
        return self.facts[-1].id

    @property
    def last(self) -> LedgerFact:
        return self.facts[-1]

    @property
    def entity(self) -> str:
        return self.last.entity

    @property
    def topic(self) -> str:
        return f"the {self.noun} of {self.entity}"


class NotUsable(Struct, frozen=True):
    """A chain that no question is asked about, and why."""

    fact: LedgerFact
    why: str


def fact_chains(
    ledger: Ledger, memories: Sequence[Memory], entries: Sequence[QuestionEntry]
) -> tuple[list[FactChain], list[NotUsable]]:
    """The chains of a history whose every value is stated in one memory of its day.

    An attribute that a thing has twice at once, such as a remark, has no value of its own, so it
    is left out.
    """
    by_day: dict[int, list[Memory]] = defaultdict(list)
    for memory in memories:
        by_day[int(memory.metadata["day"])].append(memory)
    ends = [fact for fact in ledger.facts.values() if not fact.superseded_by]
    same = Counter((fact.entity, fact.attribute) for fact in ends)
    wordings, search = _Wordings(ledger, entries), ValueSearch(memories)
    chains: list[FactChain] = []
    unusable: list[NotUsable] = []
    for end in ends:
        facts = (*reversed(ledger.predecessors(end)), end)
        stated = [stating(fact, by_day[fact.day]) for fact in facts]
        if same[end.entity, end.attribute] > 1:
            continue
        if len({normal_wording(fact.value) for fact in facts}) < len(facts):
            unusable.append(NotUsable(end, "a value comes back in the ledger"))
        elif any(len(search.ids([fact.value])) > _COMMON for fact in facts):
            unusable.append(NotUsable(end, "its value also stands in many other memories"))
        elif missing := [f for f, id in zip(facts, stated, strict=True) if not id]:
            unusable.append(NotUsable(missing[0], "no single memory of its day states the value"))
        else:
            question, noun = wordings.question(facts), wordings.noun(end)
            chains.append(FactChain(facts, tuple(stated), question, noun))
    return chains, unusable


def stating(fact: LedgerFact, memories: Iterable[Memory]) -> str:
    """The id of the one memory that states the value, about this entity if several do; or ''."""
    found = [memory for memory in memories if says(memory.text, wordings_of(fact))]
    if len(found) > 1:
        found = [memory for memory in found if normalise(fact.entity) in normalise(memory.text)]
    return found[0].id if len(found) == 1 else ""


def wordings_of(fact: LedgerFact) -> tuple[str, ...]:
    return fact.value, *fact.aliases


def says(text: str, wordings: Sequence[str]) -> bool:
    return any_says(sentences(text), wordings)


class ValueSearch:
    """Which memories contain a value; all texts are normalised once and searched as one."""

    def __init__(self, memories: Iterable[Memory]) -> None:
        self._ids: list[str] = []
        self._ends: list[int] = []
        texts: list[str] = []
        end = 0
        for memory in memories:
            text = normalise(memory.text) + "\n"
            end += len(text)
            texts.append(text)
            self._ids.append(memory.id)
            self._ends.append(end)
        self._text = "".join(texts)

    def ids(self, wordings: Iterable[str]) -> set[str]:
        places = (
            place for wording in wordings for place, _ in spans(self._text, normal_wording(wording))
        )
        return {self._ids[bisect_right(self._ends, place)] for place in places}


class _Wordings:
    """Questions and names of attributes, from the questions of the history where it has them."""

    def __init__(self, ledger: Ledger, entries: Sequence[QuestionEntry]) -> None:
        self._own: dict[str, str] = {}
        self._patterns: dict[str, str] = {}
        """Attribute to a question that names its entity, with {entity} in its place."""
        self._nouns: dict[str, str] = {}
        for fact, entry in _about_one_value(ledger.facts, entries):
            named = re.escape(fact.entity)
            if found := re.match(_ANSWER.format(entity=named), str(entry.answer)):
                self._nouns.setdefault(fact.attribute, found[1])
            if entry.category in _TIMELESS:
                self._own.setdefault(fact.id, entry.question)
                pattern, count = re.subn(named, "{entity}", entry.question)
                if count:
                    self._patterns.setdefault(fact.attribute, pattern)

    def question(self, facts: Sequence[LedgerFact]) -> str:
        last = facts[-1]
        for fact in facts:
            if fact.id in self._own:
                return self._own[fact.id]
        if pattern := self._patterns.get(last.attribute):
            asked = pattern.replace("{entity}", last.entity)
            return asked[:1].upper() + asked[1:]
        return f"What is the {self.noun(last)} of {last.entity}?"

    def noun(self, fact: LedgerFact) -> str:
        plain = fact.attribute.rpartition(".")[2].replace("_", " ").replace("-", " ")
        return self._nouns.get(fact.attribute, plain)


def _about_one_value(
    facts: Mapping[str, LedgerFact], entries: Sequence[QuestionEntry]
) -> Iterable[tuple[LedgerFact, QuestionEntry]]:
    """The questions that ask for the value of one fact and keep no secret."""
    for entry in entries:
        if len(entry.key) == 1 and not entry.secret and not entry.forbidden_sessions:
            id, _, aspect = entry.key[0].partition(".")
            if aspect == "value" and id in facts:
                yield facts[id], entry
