"""Checks of forget and fork: forgetting is complete, copies are equal and independent."""

from __future__ import annotations

from mnemoscope.runner.conformance.question_checks import must_be_repeatable
from mnemoscope.runner.conformance.sample_facts import FACTS, as_memories
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
    """Forgotten memories are gone in every form; the others are still found."""
    memories = as_memories("forget", FACTS)
    scope = system.scope("kit", memories[:6], memories[6:])
    scope.must_find(memories)
    gone = [memories[2], *memories[7:9]]
    scope.forget(gone[:1])
    scope.forget(gone[1:])
    for memory, fact in zip(gone, (FACTS[2], *FACTS[7:9]), strict=True):
        for hit in scope.recall_own(memory):
            if stems_from(hit, memory.id) or fact.secret in hit.text.lower():
                raise Flaw(
                    f"still recalled after forget: {named([memory])}",
                    "forget(selector) must delete every memory in selector.memories (by id, as in "
                    "selector.ids) and everything made from it, before it or ready() returns.",
                )
        if "answer" in system.verbs and fact.secret in scope.answer(fact.question).lower():
            raise Flaw(
                f"still in an answer after forget: {named([memory])}",
                "Delete it from summaries, profiles and caches, too.",
            )
    if lost := scope.missing([memory for memory in memories if memory not in gone]):
        raise Flaw(
            f"forgotten although it was not in the selector: {named(lost)}",
            "forget(selector) may delete only the memories in the selector.",
        )
    return f"{len(gone)} of {len(memories)} forgotten, the rest still found"


def fork(system: SystemProbe) -> str:
    """A copy ranks as a system that ingested everything, and neither sees the other's memories."""
    must_be_repeatable(system)
    past, future = as_memories("fork", FACTS)[:6], as_memories("fork", FACTS)[6:9]
    elsewhere = as_memories("else", FACTS)
    replayed = system.scope("kit", past, future).rankings([*past, *future])
    if not any(replayed.values()):
        raise Unclear("cannot be checked: nothing was recalled (see losses)")
    original = system.scope("kit", past)
    before = original.rankings(past)
    copy = original.fork()
    if copy.rankings(past) != before:
        raise Flaw("the copy ranks differently from the original", _EQUAL)
    copy.remember(future)
    if copy.rankings([*past, *future]) != replayed:
        raise Flaw("a copy that ingests more ranks differently from a replay", _EQUAL)
    _must_not_know(original, copy, "the copy", as_memories("fork", FACTS)[6:9])
    if original.rankings(past) != before:
        raise Flaw("the original ranks differently after its copy ingested more", _APART)
    original.remember(elsewhere[9:])
    _must_not_know(copy, original, "the original", elsewhere[9:])
    copy.close()
    if lost := original.missing([*past, *elsewhere[9:]]):
        raise Flaw(f"lost when the copy was closed: {named(lost)}", _APART)
    return "the copy equals a replay, and neither sees the other's new memories"


_EQUAL = "fork() must copy everything that decides a ranking, indexed or not."
_APART = "fork() must copy everything that changes later: no list, index or connection is shared."


def _must_not_know(scope: Scope, other: Scope, who: str, memories: list[Memory]) -> None:
    other.must_find(memories)
    for memory in memories:
        if any(stems_from(hit, memory.id) for hit in scope.recall_own(memory)):
            raise Flaw(f"ingested by {who} only, found in both: {named([memory])}", _APART)
