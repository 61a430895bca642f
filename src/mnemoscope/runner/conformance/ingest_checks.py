"""Ingestion checks: every memory is stored at once, under its own id, whatever its text."""

from __future__ import annotations

import time

from mnemoscope.runner.conformance.sample_facts import FACTS, FIRST_DAY, as_memories, dated_memory
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    Scope,
    SystemProbe,
    Unclear,
    named,
    origins,
)
from mnemoscope.types import Memory

_EARLY, _LATE = as_memories("keep", FACTS)[:8], as_memories("keep", FACTS)[8:]
_AGAIN = 0.1
"""Seconds between two attempts to find a memory."""


def read_back(system: SystemProbe) -> str:
    """Memories are found by their own words as soon as `ready` returns."""
    scope = system.scope("kit", _EARLY)
    late = scope.missing(_EARLY)
    scope.remember(_LATE)
    late = late or scope.missing([*_EARLY, *_LATE])
    if set(scope.given) <= scope.receipt.rejected.keys():
        why = next(iter(scope.receipt.rejected.values()))
        raise Flaw(f"it rejected every memory: {why}", "Accept plain sentences with a date.")
    if late and (lost := _still_missing(system, scope, late)) != late:
        came = [memory for memory in late if memory not in lost]
        raise Flaw(
            f"not found right after ready(), found a moment later: {named(came)}",
            "ready() must return only when all memories are searchable: wait for the indexing, "
            "or index inside remember().",
        )
    if late:
        _stop_if_foreign(scope, late)
        raise Unclear(f"not found at once or later, see losses: {named(late)}")
    first = sum(
        memory.id in origins(scope.recall_own(memory)[0])
        for memory in scope.given.values()
        if scope.finds(memory)
    )
    return (
        f"{len(scope.given)} memories given in two batches; {first} rank first for their own words"
    )


def losses(system: SystemProbe) -> str:
    """A memory that is not found is in the receipt, with the reason."""
    scope = system.scope("kit", _EARLY, _LATE)
    strange = (scope.receipt.rejected.keys() | scope.receipt.merged.keys()) - scope.given.keys()
    if strange:
        raise Flaw(
            f"the receipt names ids that were not given: {', '.join(sorted(strange)[:3])}",
            "Use the ids of the memories in the receipt.",
        )
    missing = scope.missing(scope.given.values())
    if lost := _still_missing(system, scope, missing):
        _stop_if_foreign(scope, lost)
        if {memory.id for memory in lost} == {memory.id for memory in _EARLY}:
            raise Flaw(
                f"after a second call, all {len(lost)} of the first are gone: {named(lost)}",
                "remember() must keep the memories of earlier calls: add to them "
                "instead of replacing them.",
            )
        raise Flaw(
            f"{len(lost)} of {len(scope.given)} never found, and not in the receipt: {named(lost)}",
            "Store every memory, or return a Receipt from remember() that says which were "
            "rejected (and why) or merged (into what).",
        )
    listed = f"{len(scope.receipt.rejected)} rejected and {len(scope.receipt.merged)} merged"
    return f"{len(scope.given)} given, {listed} in the receipt, the others found"


def duplicates(system: SystemProbe) -> str:
    """Two memories with the same text are both found, or merged in the receipt."""
    twins = [dated_memory("twin-0", FACTS[0].text, 0), dated_memory("twin-1", FACTS[0].text, 20)]
    others = as_memories("dup", FACTS[1:7])
    scope = system.scope("kit", [*others, *twins])
    scope.must_find(others)
    missing = scope.missing(twins)
    if missing:
        raise Flaw(
            "two memories with the same words: one is not found, and not in the receipt",
            "Keep both, or report the second under merged in the receipt and name both in the "
            "hit's sources.",
        )
    return "two memories with the same words: both are found, or the receipt lists one"


def undated(system: SystemProbe) -> str:
    """Memories and questions may have no date."""
    memories = [Memory(memory.id, memory.text) for memory in as_memories("undated", FACTS[:6])]
    scope = system.scope("kit", memories)
    lost = [memory for memory in memories if not scope.finds(memory, now=None)]
    lost = [memory for memory in lost if memory.id not in scope.receipt.rejected]
    if lost:
        scope = system.scope("kit", as_memories("undated", FACTS[:6]))
        scope.must_find(list(scope.given.values()))
        raise Flaw(
            f"found with a date, not found without: {named(lost)}",
            "`at` and `now` may be None: treat None as unknown, not as a filter.",
        )
    return "memories and questions without a date are accepted"


def ids(system: SystemProbe) -> str:
    """Every hit has the id of a given memory, or such ids as sources."""
    memories = as_memories("ids", FACTS[:8])
    scope = system.scope("kit", memories)
    hits = 0
    for memory in memories:
        if strangers := scope.foreign(memory):
            raise Flaw(
                f"a hit has the id {strangers[0].id!r:.60}, which no memory has, and no sources",
                "Return the Memory's own id (store it as metadata), or list the ids of the "
                "memories that a hit was made from in its sources.",
            )
        hits += len(scope.recall_own(memory))
    if not hits:
        raise Unclear("cannot be checked: nothing was recalled (see losses)")
    return f"{hits} hits, each with the id of a given memory"


_ODD = (
    "naïve café, Ærøskøbing, Łódź, cafe\u0301",
    "東京の図書館 도서관 图书馆",
    "مكتبة القاهرة ספרייה",
    "🦊🎻 👩🏽‍🚀 \U0001d518\U0001d52b\U0001d526",
    'it\'s "quoted" AND (NOT) OR * ^ ~ : -- ; DROP TABLE memories; %s {0} <b>&amp;</b> \\n',
    "a\ttab,\r\na line break and\u200ba zero-width space",
)


def unicode(system: SystemProbe) -> str:
    """Other scripts, emoji, quotes and search syntax are found and returned unchanged."""
    memories = [dated_memory(f"odd-{n}", f"{FACTS[n].text} {odd}", n) for n, odd in enumerate(_ODD)]
    plain = as_memories("plain", FACTS[6:])
    # Plain memories in the same call: if those are lost, too, the check gives no result.
    scope = system.scope("kit", [*plain[:3], *memories, *plain[3:]])
    scope.must_find(plain)
    if lost := scope.missing(memories):
        raise Flaw(f"not found by its own words: {lost[0].text[-60:]!r}", _CLEAN)
    for memory, odd in zip(memories, _ODD, strict=True):
        mangled = odd.encode().decode("latin-1")
        for hit in scope.recall_own(memory):
            if "\ufffd" in hit.text or (mangled != odd and mangled in hit.text):
                raise Flaw(f"the text of a hit is damaged: {hit.text[-60:]!r}", _CLEAN)
    return f"{len(_ODD)} texts with other scripts, symbols and search syntax found"


_CLEAN = "Pass texts on as UTF-8, and quote the query for the search engine instead of parsing it."


def long_text(system: SystemProbe) -> str:
    """A long memory is found by its last sentence, or the receipt says how much was stored."""
    filler = " ".join(f"Page {n} of the almanac lists tides and moons." for n in range(2500))
    end = FACTS[0]
    long = Memory("long-0", f"{filler} {end.text}", FIRST_DAY)
    scope = system.scope("kit", [long, *as_memories("short", FACTS[1:8])])
    scope.must_find(list(scope.given.values())[1:])
    if long.id in scope.receipt.rejected or long.id in scope.receipt.truncated:
        return f"{len(long.text):,} characters: not stored completely, as the receipt says"
    if not any(long.id in origins(hit) for hit in scope.recall(end.text, about=long.id)):
        raise Flaw(
            f"a memory of {len(long.text):,} characters is not found by its last sentence",
            "Split long texts, or report the stored share under truncated in the receipt.",
        )
    return f"{len(long.text):,} characters, found by the last sentence"


def _still_missing(system: SystemProbe, scope: Scope, missing: list[Memory]) -> list[Memory]:
    """The memories that are still not found after the system's patience."""
    deadline = time.monotonic() + system.patience
    while missing and time.monotonic() < deadline:
        time.sleep(_AGAIN)
        missing = [memory for memory in missing if not scope.finds(memory)]
    return missing


def _stop_if_foreign(scope: Scope, missing: list[Memory]) -> None:
    if scope.foreign(missing[0]):
        raise Unclear("cannot be checked: hits have ids that were never given (see ids)")
