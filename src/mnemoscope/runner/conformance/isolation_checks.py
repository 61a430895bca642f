"""Isolation checks: memories of one scope are not found in another, nor after a reset."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.runner.conformance.sample_facts import FACTS, SampleFact, as_memories
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
_SCOPE, _OTHER_SCOPE = "kit one", "kit-one two"
"""Names that a prefix search or a normalisation of names would confuse."""


_APART = (
    "reset(scope) must isolate the scope: give each scope its own store, collection or "
    "namespace, and search only there."
)
_EMPTY = "reset(scope) must empty a scope that exists already."
LEAKS = frozenset({_APART, _EMPTY})
"""The advice to authors of systems whose scopes are not empty at the start."""


def isolation(system: SystemProbe) -> str:
    """Memories of one scope must not be found in another scope that has other memories."""
    canaries = as_memories("iso-a", OURS)
    own = system.scope(_SCOPE, canaries)
    _must_know(system, own, canaries, OURS)
    other = system.scope(_OTHER_SCOPE, as_memories("iso-b", THEIRS))
    if found := _leaks(system, other, canaries, OURS):
        raise Flaw(
            f"given in scope {_SCOPE!r}, found in scope {_OTHER_SCOPE!r}: {named(found)}",
            _APART,
        )
    return f"{len(canaries)} memories given in another scope, none found here"


def fresh(system: SystemProbe) -> str:
    """A scope is empty after a reset: replays and resumed runs rely on it."""
    before = as_memories("fresh-a", OURS)
    _must_know(system, system.scope(_SCOPE, before), before, OURS)
    again = system.scope(_SCOPE, as_memories("fresh-b", LATER))
    if found := _leaks(system, again, before, OURS):
        raise Flaw(
            f"given before reset({_SCOPE!r}), found after it: {named(found)}",
            _EMPTY,
        )
    return "after a reset, none of the earlier memories is found"


def side_by_side(system: SystemProbe) -> str:
    """Two systems in one process do not affect each other's memories."""
    if system.is_shared_object:
        raise Unclear("it is one object, so a process never has two of it")
    ours, theirs = as_memories("side-a", OURS), as_memories("side-b", THEIRS)
    one = system.separate_scope(_SCOPE, ours)
    one.must_find(ours)
    other = system.separate_scope(_OTHER_SCOPE, theirs)
    try:
        lost, found = one.missing(ours), _leaks(system, one, theirs, THEIRS)
        crossed = _leaks(system, other, ours, OURS)
    finally:
        one.close()
    gone = other.missing(theirs)
    other.close()
    advice = "Keep state in the object and its scope, not in the class, the module or one database."
    if lost:
        raise Flaw(f"lost when another system was reset: {named(lost)}", advice)
    if found or crossed:
        raise Flaw(f"given to one system, found in another: {named(found or crossed)}", advice)
    if gone:
        raise Flaw(f"lost when another system was closed: {named(gone)}", advice)
    return "two systems in one process, in two scopes: neither affected the other"


def _must_know(
    system: SystemProbe, scope: Scope, memories: list[Memory], facts: Sequence[SampleFact]
) -> None:
    if "recall" in system.verbs:
        scope.must_find(memories)
    elif not any(fact.secret in scope.answer(fact.question).lower() for fact in facts):
        raise Unclear("cannot be checked: its answers do not contain its memories")


def _leaks(
    system: SystemProbe, scope: Scope, elsewhere: Sequence[Memory], facts: Sequence[SampleFact]
) -> list[Memory]:
    """The memories of another scope that are found here, by id, source or wording."""
    found = []
    for memory, fact in zip(elsewhere, facts, strict=True):
        text = ""
        hits = []
        if "recall" in system.verbs:
            hits = scope.recall_own(memory)
            text = " ".join(hit.text for hit in hits)
        if "answer" in system.verbs:
            text += scope.answer(fact.question)
        if fact.secret in text.lower() or any(stems_from(hit, memory.id) for hit in hits):
            found.append(memory)
    return found
