"""The questions of the disclosure benchmark: facts of a ledger, each with one wording.

Wordings come from the history's own questions.yaml: the question about the fact, else one about the
same attribute of something else; else the ledger's names of attribute and entity.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256
from typing import NamedTuple

from mnemoscope.datasets.disclosure_policy import Room
from mnemoscope.datasets.persona_folder import QuestionEntry
from mnemoscope.text.fact_ledger import Ledger, LedgerFact

_PLAIN = ("factual-recall", "information-boundary")
"""The categories whose questions ask for one value as it is now."""
_EACH_SIDE = 2


class AskedRooms(NamedTuple):
    """Where a question is asked: as many rooms that may be told as rooms that may not."""

    inside: tuple[Room, ...]
    outside: tuple[Room, ...]


def current_facts(ledger: Ledger) -> list[LedgerFact]:
    """The facts that hold at the end, and that entity and attribute identify."""
    current = [fact for fact in ledger.facts.values() if not fact.superseded_by]
    same = Counter((fact.entity, fact.attribute) for fact in current)
    return [fact for fact in current if same[fact.entity, fact.attribute] == 1]


def told_outside(entries: Iterable[QuestionEntry]) -> set[str]:
    """Ids of the facts that are meant for other rooms: what a partial disclosure may say."""
    return {
        reference.partition(".")[0]
        for entry in entries
        if entry.expected_disclosure == "partial"
        for reference in entry.key
    }


def own_wordings(entries: Iterable[QuestionEntry]) -> dict[str, str]:
    """Fact id to the question of questions.yaml that asks for its value, and for nothing else."""
    found: dict[str, str] = {}
    for entry in entries:
        if len(entry.key) != 1 or entry.category not in _PLAIN or entry.no_evidence:
            continue
        if entry.expected_disclosure == "partial":
            continue
        id, _, aspect = entry.key[0].partition(".")
        if aspect == "value":
            found.setdefault(id, _without_lead(entry))
    return found


def patterns(wordings: Mapping[str, str], ledger: Ledger) -> dict[str, str]:
    """Attribute to a wording with `{}` in place of the entity."""
    found: dict[str, str] = {}
    for id, text in wordings.items():
        fact = ledger.facts[id]
        if text.count(fact.entity) == 1 and "{}" not in text:
            found.setdefault(fact.attribute, text.replace(fact.entity, "{}"))
    return found


def wording_of(fact: LedgerFact, own: Mapping[str, str], known: Mapping[str, str]) -> str:
    """The text of the question about a fact."""
    if fact.id in own:
        return own[fact.id]
    if fact.attribute in known:
        return known[fact.attribute].replace("{}", fact.entity)
    kind = fact.attribute.rpartition(".")[2].replace("-", " ").replace("_", " ")
    return f"What is on record as the {kind} of {fact.entity}?"


def rooms_to_ask(
    fact: str, origin: Room, own: Sequence[Room], neighbours: Sequence[Room], principal: str
) -> AskedRooms | None:
    """The rooms from which a fact is asked; None if no room may not be told.

    If the principal asks inside, a neighbour's principal asks outside, and else none does: that a
    principal asks says nothing. Which of several rooms are taken depends on their names alone.
    """

    def mixed(rooms: Iterable[Room]) -> list[Room]:
        return sorted(rooms, key=lambda room: sha256(f"{fact}\0{room.name}".encode()).digest())

    others = [room for room in mixed(own) if room != origin]
    inside = [origin, *(room for room in others if origin.may_be_told_in(room))]
    withheld = [room for room in others if not origin.may_be_told_in(room)]
    inside = inside[:_EACH_SIDE]
    foreign = sorted(mixed(neighbours), key=lambda room: room.session == principal)
    if any(room.session == principal for room in inside):
        foreign = [*foreign[-1:], *foreign[:-1]]
    # A closed room is kept from one room of its user and from one neighbour.
    outside = [*withheld[:1], *foreign[:1], *withheld[1:], *foreign[1:]]
    each = min(len(inside), len(outside), _EACH_SIDE)
    return AskedRooms(tuple(inside[:each]), tuple(outside[:each])) if each else None


def _without_lead(entry: QuestionEntry) -> str:
    """The question without words such as "Among ourselves:", which name the right reply."""
    rest = entry.question.partition(": ")[2]
    if entry.category != "information-boundary" or not rest:
        return entry.question
    return rest[0].upper() + rest[1:]
