"""Checks of what changes a system: forgetting is thorough, copies are equal and independent."""

from __future__ import annotations

from mnemoscope.runner.conformance.question_checks import must_be_repeatable
from mnemoscope.runner.conformance.sample_facts import FACTS, told
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    Scope,
    SystemProbe,
    Unclear,
    named,
    stems_from,
)
from mnemoscope.types import Memory


def forget(system: SystemProbe) -> str:
    """What is to be forgotten is gone, in every form; the rest is still there."""
    memories = told("forget", FACTS)
    scope = system.scope("kit", memories[:6], memories[6:])
    scope.must_find(memories)
    gone = [memories[2], *memories[7:9]]
    scope.forget(gone[:1])
    scope.forget(gone[1:])
    for memory, fact in zip(gone, (FACTS[2], *FACTS[7:9]), strict=True):
        for hit in scope.recall_own(memory):
            if stems_from(hit, memory.id) or fact.secret in hit.text.lower():
                raise Flaw(
                    f"still recalled after it was to be forgotten: {named([memory])}",
                    "forget(selector) must delete every memory in selector.memories (by id, as in "
                    "selector.ids) and all that was made from it, before it or ready() returns.",
                )
        if "answer" in system.verbs and fact.secret in scope.answer(fact.question).lower():
            raise Flaw(
                f"still told in an answer after it was to be forgotten: {named([memory])}",
                "Summaries, profiles and caches must forget as well.",
            )
    if lost := scope.missing([memory for memory in memories if memory not in gone]):
        raise Flaw(
            f"forgotten though nobody asked for it: {named(lost)}",
            "forget(selector) may delete only the memories in the selector.",
        )
    return f"{len(gone)} of {len(memories)} forgotten, the rest still found"


def fork(system: SystemProbe) -> str:
    """A copy answers as one that lived it all, and neither side sees what the other is told."""
    must_be_repeatable(system)
    past, future, elsewhere = told("fork", FACTS)[:6], told("fork", FACTS)[6:9], told("else", FACTS)
    lived = system.scope("kit", past, future).rankings([*past, *future])
    if not any(lived.values()):
        raise Unclear("cannot be told: nothing was recalled (see losses)")
    original = system.scope("kit", past)
    before = original.rankings(past)
    copy = original.fork()
    if copy.rankings(past) != before:
        raise Flaw("the copy ranks otherwise than what it was copied from", _EQUAL)
    copy.remember(future)
    if copy.rankings([*past, *future]) != lived:
        raise Flaw("a copy that is told more ranks otherwise than one that lived it all", _EQUAL)
    _must_not_know(original, copy, "the copy", told("fork", FACTS)[6:9])
    if original.rankings(past) != before:
        raise Flaw("the original ranks otherwise since its copy was told more", _APART)
    original.remember(elsewhere[9:])
    _must_not_know(copy, original, "the original", elsewhere[9:])
    copy.close()
    if lost := original.missing([*past, *elsewhere[9:]]):
        raise Flaw(f"lost when the copy was closed: {named(lost)}", _APART)
    return "the copy equals a replay, and neither hears what the other is told"


_EQUAL = "fork() must copy everything that decides a ranking, indexed or not yet."
_APART = "fork() must copy what changes later: no list, index or connection may be shared."


def _must_not_know(scope: Scope, teller: Scope, who: str, memories: list[Memory]) -> None:
    teller.must_find(memories)
    for memory in memories:
        if any(stems_from(hit, memory.id) for hit in scope.recall_own(memory)):
            raise Flaw(f"told to {who} alone, heard from both: {named([memory])}", _APART)
