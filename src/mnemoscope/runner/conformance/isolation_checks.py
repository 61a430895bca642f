"""Checks of isolation: what was told in one scope is unknown in every other, and after a reset."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.runner.conformance.sample_facts import FACTS, SampleFact, told
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    Scope,
    SystemProbe,
    Unclear,
    named,
    stems_from,
)
from mnemoscope.types import Memory

OURS, THEIRS, LATER = FACTS[:4], FACTS[4:8], FACTS[8:]
_HOME, _NEXT_DOOR = "kit one", "kit-one two"
"""Names that a careless prefix search or clean-up of names would take for one another."""


_APART = (
    "reset(scope) must open a space that sees no other: give each scope a store, collection or "
    "namespace of its own, and search in that alone."
)
_EMPTY = "reset(scope) must empty the scope if it exists already."
LEAKS = frozenset({_APART, _EMPTY})
"""What the author of a system is told whose scopes are not empty when they begin."""


def isolation(system: SystemProbe) -> str:
    """A canary that is known next door must not be heard here, where other things are known."""
    canaries = told("iso-a", OURS)
    home = system.scope(_HOME, canaries)
    _must_know(system, home, canaries, OURS)
    next_door = system.scope(_NEXT_DOOR, told("iso-b", THEIRS))
    if heard := _leaks(system, next_door, canaries, OURS):
        raise Flaw(
            f"told in scope {_HOME!r}, heard in scope {_NEXT_DOOR!r}: {named(heard)}",
            _APART,
        )
    return f"{len(canaries)} canaries told next door, none heard here"


def fresh(system: SystemProbe) -> str:
    """A scope that is opened again is as empty as a new one: replays and resumed runs do that."""
    before = told("fresh-a", OURS)
    _must_know(system, system.scope(_HOME, before), before, OURS)
    again = system.scope(_HOME, told("fresh-b", LATER))
    if heard := _leaks(system, again, before, OURS):
        raise Flaw(
            f"told before reset({_HOME!r}), heard after it: {named(heard)}",
            _EMPTY,
        )
    return "a scope opened again knew nothing of what it was told before"


def side_by_side(system: SystemProbe) -> str:
    """Systems live beside each other in a run of several; resetting one must not touch another."""
    if system.is_shared_object:
        raise Unclear("it is one object, so there are never two of it in a process")
    ours, theirs = told("side-a", OURS), told("side-b", THEIRS)
    one = system.separate_scope(_HOME, ours)
    one.must_find(ours)
    other = system.separate_scope(_NEXT_DOOR, theirs)
    try:
        lost, heard = one.missing(ours), _leaks(system, one, theirs, THEIRS)
        crossed = _leaks(system, other, ours, OURS)
    finally:
        one.close()
    gone = other.missing(theirs)
    other.close()
    advice = "Keep state in the object and in its scope, not in the class, module or one database."
    if lost:
        raise Flaw(f"lost when another one was reset: {named(lost)}", advice)
    if heard or crossed:
        raise Flaw(f"told to one system, heard from another: {named(heard or crossed)}", advice)
    if gone:
        raise Flaw(f"lost when another one was closed: {named(gone)}", advice)
    return "two of them in one process, in two scopes: neither noticed the other"


def _must_know(
    system: SystemProbe, scope: Scope, told_it: list[Memory], facts: Sequence[SampleFact]
) -> None:
    if "recall" in system.verbs:
        scope.must_find(told_it)
    elif not any(fact.secret in scope.answer(fact.question).lower() for fact in facts):
        raise Unclear("cannot be told: its answers say nothing of what it was told")


def _leaks(
    system: SystemProbe, scope: Scope, elsewhere: Sequence[Memory], facts: Sequence[SampleFact]
) -> list[Memory]:
    """The memories that this life was never told and yet gives away, by id, source or wording."""
    heard = []
    for memory, fact in zip(elsewhere, facts, strict=True):
        said = ""
        hits = []
        if "recall" in system.verbs:
            hits = scope.recall_own(memory)
            said = " ".join(hit.text for hit in hits)
        if "answer" in system.verbs:
            said += scope.answer(fact.question)
        if fact.secret in said.lower() or any(stems_from(hit, memory.id) for hit in hits):
            heard.append(memory)
    return heard
