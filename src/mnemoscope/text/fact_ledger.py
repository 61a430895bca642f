"""The ledger: the dated facts of a simulated history, and the answer keys derived from them.

The simulator writes the ledger, and the dataset loader reads it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import numbered_records
from mnemoscope.types import AnswerKey

Aspect = Literal["value", "date", "speaker", "entity"]
"""The part of a fact that a question asks for."""


class LedgerFact(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One fact, which only the log of its day states."""

    id: str
    entity: str
    """What the fact is about, as named in the log."""
    attribute: str
    """Kind of arc and kind of fact, such as `project.budget`; similar facts share it."""
    value: str
    day: int
    """The day of the log that states it; the fact is valid from then on."""
    aliases: tuple[str, ...] = ()
    """Other accepted wordings of the value."""
    superseded_by: str = ""
    superseded_on: int | None = None
    speaker: str = ""
    session: str = "principal"
    arc: str = ""


_LAST_DAY = 1_000_000


class Ledger:
    """All facts of one simulated history, in order of days."""

    def __init__(self, facts: Iterable[LedgerFact], epoch: date) -> None:
        self.epoch = epoch
        self.facts: Mapping[str, LedgerFact] = {fact.id: fact for fact in facts}
        self._by_attribute: dict[str, list[LedgerFact]] = {}
        self._by_entity: dict[str, list[LedgerFact]] = {}
        self._before: dict[str, LedgerFact] = {}
        for fact in self.facts.values():
            self._by_attribute.setdefault(fact.attribute, []).append(fact)
            self._by_entity.setdefault(fact.entity, []).append(fact)
            if fact.superseded_by:
                self._before[fact.superseded_by] = fact

    @classmethod
    def read(cls, path: Path, epoch: date) -> Ledger:
        facts: dict[str, LedgerFact] = {}
        for line, fact in numbered_records(path, LedgerFact):
            if fact.id in facts:
                raise DataError(f"duplicate fact {fact.id!r}", file=path, line=line)
            facts[fact.id] = fact
        for fact in facts.values():
            if fact.superseded_by and fact.superseded_by not in facts:
                raise DataError(
                    f"fact {fact.id!r} is superseded by {fact.superseded_by!r}, which is missing",
                    file=path,
                )
            if fact.superseded_by and facts[fact.superseded_by].day < fact.day:
                raise DataError(
                    f"fact {fact.id!r} of day {fact.day} is superseded by an earlier one", file=path
                )
            if not 1 <= fact.day <= _LAST_DAY:
                raise DataError(f"fact {fact.id!r}: day {fact.day} is out of range", file=path)
        if cycle := _find_cycle(facts):
            raise DataError(f"fact {cycle!r} supersedes itself through other facts", file=path)
        return cls(facts.values(), epoch)

    def predecessors(self, fact: LedgerFact) -> list[LedgerFact]:
        """The facts that it superseded, the latest first."""
        found = []
        while (earlier := self._before.get(fact.id)) is not None:
            found.append(earlier)
            fact = earlier
        return found

    def replaced_by(self, references: Sequence[str]) -> list[str]:
        """References to the values that the referenced values superseded, directly or earlier."""
        values = (one.partition(".")[0] for one in references if one.endswith(".value"))
        return [f"{old.id}.value" for id in values for old in self.predecessors(self.facts[id])]

    def wordings(self, reference: str) -> tuple[str, ...]:
        """Every wording of a reference such as `f0012.value`; the aspect is one of `Aspect`."""
        id, _, aspect = reference.partition(".")
        fact = self.facts[id]
        match aspect:
            case "value":
                return (fact.value, *fact.aliases)
            case "date":
                return date_wordings(self.epoch + timedelta(days=fact.day - 1))
            case "speaker" if fact.speaker:
                return (fact.speaker,)
            case "entity":
                return (fact.entity,)
        raise KeyError(reference)

    def key(self, references: Sequence[str], secrets: Sequence[str] = ()) -> AnswerKey:
        """The values that an answer must name, must not reveal, and could confuse."""
        required = tuple(dict.fromkeys(map(self.wordings, references)))
        right = {wording.casefold() for item in required for wording in item}
        outdated: list[str] = []
        others: list[str] = []
        for reference in references:
            id, _, aspect = reference.partition(".")
            fact = self.facts[id]
            if aspect == "value":
                outdated += [old.value for old in self.predecessors(fact)]
            others += [wording for near in self._near(fact, aspect) for wording in near]
        hidden = [wording for id in secrets for wording in self.wordings(f"{id}.value")]
        return AnswerKey(
            required,
            outdated=_unlike(outdated, right),
            others=_unlike(others, right | {value.casefold() for value in outdated}),
            secret=_unlike(hidden, right),
        )

    def _near(self, fact: LedgerFact, aspect: str) -> Iterator[tuple[str, ...]]:
        """Values that could be mistaken for the answer."""
        if aspect == "date":
            for other in self._by_entity[fact.entity]:
                yield self.wordings(f"{other.id}.date")
            return
        for other in self._by_attribute[fact.attribute]:
            if aspect == "value" and other.entity != fact.entity:
                yield (other.value,)
            elif aspect == "entity" and other.entity != fact.entity:
                yield (other.entity,)
            elif aspect == "speaker" and other.entity == fact.entity and other.speaker:
                yield (other.speaker,)


def date_wordings(day: date) -> tuple[str, ...]:
    """The unambiguous formats of a date."""
    month = day.strftime("%B")
    return (
        day.isoformat(),
        f"{day.day} {month} {day.year}",
        f"{month} {day.day}, {day.year}",
        f"{day.day} {month[:3]} {day.year}",
        f"{month[:3]} {day.day}, {day.year}",
    )


def _find_cycle(facts: Mapping[str, LedgerFact]) -> str | None:
    """A fact whose chain of superseding facts is a cycle; None if there is none."""
    ends: set[str] = set()
    for start in facts:
        seen: set[str] = set()
        id = start
        while id and id not in ends:
            if id in seen:
                return id
            seen.add(id)
            id = facts[id].superseded_by
        ends |= seen
    return None


def _unlike(values: Iterable[str], right: set[str]) -> tuple[str, ...]:
    return tuple(value for value in dict.fromkeys(values) if value.casefold() not in right)
