"""What happens to the facts of a history in the `change` benchmark, and the notes that are planted.

Each chain of facts gets one role by a hash, so that nothing in its text or place says which. Notes
are short sections that stand in the daily logs: a value told twice, two values that contradict each
other, a value that comes back, plans, cancellations, and requests to forget.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import Literal

from msgspec import Struct

from mnemoscope.datasets.fact_chains import FactChain, ValueSearch, says, wordings_of
from mnemoscope.text.fact_ledger import LedgerFact
from mnemoscope.text.matching import normal_wording
from mnemoscope.types import Memory

Role = Literal["changed", "reversed", "forgotten", "kept", "duplicate", "contradiction"]
_SINGLE: tuple[Role, ...] = ("forgotten", "kept", "duplicate", "contradiction")
_PAIR: tuple[Role, ...] = ("changed", "changed", "reversed")
_AHEAD = (5, 60)
"""The first and the last day of coming plans, counted from the end of the history."""


class PlantedNote(Struct, frozen=True):
    """A section that is added to the log of a day."""

    day: int
    text: str
    """With its heading."""


class RoleOfChain(Struct, frozen=True):
    """A chain with its role, and the note that the role needs."""

    chain: FactChain
    role: Role
    note: PlantedNote | None = None
    other_value: str = ""
    """The value of the note that contradicts the chain's."""


class PlannedMeeting(Struct, frozen=True):
    """Two plans about one thing; the first has passed or was cancelled, the second holds."""

    entity: str
    arc: str
    cancelled: bool
    first: PlantedNote
    second: PlantedNote
    first_date: date
    second_date: date
    cancellation: PlantedNote | None = None

    @property
    def notes(self) -> list[PlantedNote]:
        return [note for note in (self.first, self.second, self.cancellation) if note]


class History(Struct, frozen=True):
    """What the plan is made from."""

    persona: str
    epoch: date
    chains: Sequence[FactChain]
    memories: Sequence[Memory]
    days: Sequence[int]
    """The days that have a log, in order."""
    names: Sequence[str]
    """People of the persona's cast."""
    seed: int

    def rng(self, *about: str) -> random.Random:
        return random.Random("/".join((str(self.seed), self.persona, *about)))

    def place(self, id: str) -> str:
        """Where something stands in an order that says nothing about it."""
        return hashlib.sha256(f"{self.seed}/{self.persona}/{id}".encode()).hexdigest()

    def date(self, day: int) -> date:
        return self.epoch + timedelta(days=day - 1)

    def day_between(self, first: int, last: int, rng: random.Random) -> int | None:
        """A day with a log; None if there is none."""
        days = [day for day in self.days if first <= day <= last]
        return rng.choice(days) if days else None


def roles_of(history: History) -> list[RoleOfChain]:
    """A role for each chain; chains in memories that are forgotten are left out."""
    ordered = sorted(history.chains, key=lambda chain: history.place(chain.id))
    wanted = _assigned(ordered, ValueSearch(history.memories))
    gone = {id for chain, role in wanted if role == "forgotten" for id in chain.stated}
    secret = [chain.last for chain, role in wanted if role == "forgotten"]
    in_memory: dict[str, int] = {}
    for chain in history.chains:
        for id in chain.stated:
            in_memory[id] = in_memory.get(id, 0) + 1
    found = []
    for chain, role in wanted:
        if role != "forgotten" and not gone.isdisjoint(chain.stated):
            continue
        planned = _with_note(history, chain, role, in_memory, secret)
        if planned is not None:
            found.append(planned)
    return found


def _assigned(chains: Sequence[FactChain], search: ValueSearch) -> list[tuple[FactChain, Role]]:
    found: list[tuple[FactChain, Role]] = []
    singles = pairs = 0
    taken: set[str] = set()
    for chain in chains:
        role: Role = "changed"
        if len(chain.facts) == 1:
            role, singles = _SINGLE[singles % len(_SINGLE)], singles + 1
        elif len(chain.facts) == 2:
            role, pairs = _PAIR[pairs % len(_PAIR)], pairs + 1
        if role == "forgotten":
            # A value that also stands elsewhere could be told without the forgotten memory.
            alone = search.ids(wordings_of(chain.last)) == set(chain.stated)
            if not alone or chain.stated[0] in taken or says(chain.topic, wordings_of(chain.last)):
                role = "kept"
            else:
                taken.update(chain.stated)
        found.append((chain, role))
    return found


def _with_note(
    history: History,
    chain: FactChain,
    role: Role,
    in_memory: Mapping[str, int],
    secret: Sequence[LedgerFact],
) -> RoleOfChain | None:
    """The role with its note; None if there is no day or value for the note."""
    rng = history.rng(chain.id)
    last, end = chain.last, history.days[-1]
    if role in ("changed", "kept"):
        return RoleOfChain(chain, role)
    if role == "forgotten":
        return RoleOfChain(chain, role, _note(end + 1, chain.entity, _REQUEST, topic=chain.topic))
    day = history.day_between(last.day + 1, end, rng)
    if day is None:
        return None
    if role == "reversed":
        text = {"topic": chain.topic, "value": chain.facts[0].value}
        return RoleOfChain(chain, role, _note(day, chain.entity, _REVERSED, **text))
    if role == "duplicate":
        if in_memory[chain.stated[0]] == 1 and rng.random() < 0.5:
            whole = next(m.text for m in history.memories if m.id == chain.stated[0])
            if whole.startswith("### ") and "\n#" not in whole:
                return RoleOfChain(chain, role, PlantedNote(day, whole))
        text = {"topic": chain.topic, "value": last.value}
        return RoleOfChain(chain, role, _note(day, chain.entity, _REPEATED, **text))
    others = _other_values(history.chains, chain, secret)
    if not others:
        return None
    value, name = rng.choice(others), _name(history, rng)
    note = _note(day, chain.entity, _CONTRADICTED, topic=chain.topic, value=value, name=name)
    return RoleOfChain(chain, role, note, value)


_REQUEST = "Please forget {topic}: delete it wherever you keep it, and do not mention it again."
_REVERSED = "We are back to {value}: that is {topic} again."
_REPEATED = "For the record, once more: {topic} is {value}."
_CONTRADICTED = "{name} has it that {topic} is {value}."
_PLANNED = "Put in the diary: {name} and I meet about {topic} on {date}."
_CANCELLED = "The meeting about {topic} on {date} is off."


def _note(day: int, entity: str, text: str, **words: str) -> PlantedNote:
    said = text.format(**words)
    heading, body = (one[:1].upper() + one[1:] for one in (entity, said))
    return PlantedNote(day, f"### {heading}\n\n{body}")


def _name(history: History, rng: random.Random) -> str:
    return rng.choice(history.names) if history.names else "A colleague"


def _hidden(secret: Iterable[LedgerFact]) -> set[str]:
    return {normal_wording(wording) for fact in secret for wording in wordings_of(fact)}


def _other_values(
    chains: Iterable[FactChain], own: FactChain, secret: Sequence[LedgerFact]
) -> list[str]:
    """Values that the same attribute has elsewhere, except those that are to be forgotten."""
    hidden = _hidden(secret)
    known = {normal_wording(wording) for wording in wordings_of(own.last)}
    found = {
        chain.last.value: None
        for chain in chains
        if chain.last.attribute == own.last.attribute and chain.entity != own.entity
    }
    return [value for value in sorted(found) if normal_wording(value) not in hidden | known]


def planned_meetings(history: History, roles: Sequence[RoleOfChain]) -> list[PlannedMeeting]:
    """For each thing two plans, of which the first has passed or was cancelled at the end.

    A date that a request to forget is about is not used.

    The plan that holds may be noted before or after the other, so that neither the newest nor the
    oldest note is right by its age.
    """
    first_day: dict[str, LedgerFact] = {}
    for chain in history.chains:
        known = first_day.setdefault(chain.entity, chain.facts[0])
        if chain.facts[0].day < known.day:
            first_day[chain.entity] = chain.facts[0]
    hidden = _hidden(one.chain.last for one in roles if one.role == "forgotten")
    found: list[PlannedMeeting] = []
    end = history.days[-1]
    for number, entity in enumerate(sorted(first_day, key=history.place)):
        fact, rng = first_day[entity], history.rng("plan", entity)
        cancelled = number % 2 == 1
        days = [history.day_between(fact.day, end - 2, rng) for _ in range(2)]
        told = days[0]
        off = history.day_between(told + 1, end, rng) if told is not None else None
        if told is None or days[1] is None or off is None:
            continue
        holds = end + rng.randint(*_AHEAD)
        passed = rng.randint(told + 1, end - 1)
        first = end + rng.randint(2, holds - end - 1) if cancelled else passed
        dates = [history.date(first), history.date(holds)]
        if not hidden.isdisjoint(normal_wording(written_date(on)) for on in dates):
            continue
        planned = [
            _note(day, entity, _PLANNED, topic=entity, date=written_date(on), name=name)
            for day, on, name in (
                (told, dates[0], _name(history, rng)),
                (days[1], dates[1], _name(history, rng)),
            )
        ]
        cancellation = _note(off, entity, _CANCELLED, topic=entity, date=written_date(dates[0]))
        found.append(
            PlannedMeeting(
                entity=entity,
                arc=fact.arc,
                cancelled=cancelled,
                first=planned[0],
                second=planned[1],
                first_date=dates[0],
                second_date=dates[1],
                cancellation=cancellation if cancelled else None,
            )
        )
    return found


def written_date(day: date) -> str:
    return f"{day.day} {day:%B} {day.year}"
