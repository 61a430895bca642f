"""Checks of what is kept: all of it, at once, under the ids it came with, however odd the text."""

from __future__ import annotations

import time

from mnemoscope.runner.conformance.sample_facts import DAWN, FACTS, remark, told
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    Scope,
    SystemProbe,
    Unclear,
    named,
    origins,
)
from mnemoscope.types import Memory

_EARLY, _LATE = told("keep", FACTS)[:8], told("keep", FACTS)[8:]
_AGAIN = 0.1
"""Seconds between two looks for a memory that is late."""


def read_back(system: SystemProbe) -> str:
    """What was told is found by its own words the moment `ready` has returned."""
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
            "ready() must return only when everything told is searchable: wait for the indexing, "
            "or index inside remember().",
        )
    if late:
        _stop_if_foreign(scope, late)
        raise Unclear(f"not found at once nor later, see losses: {named(late)}")
    first = sum(
        memory.id in origins(scope.recall_own(memory)[0])
        for memory in scope.given.values()
        if scope.finds(memory)
    )
    return (
        f"{len(scope.given)} memories told in two batches; {first} come first for their own words"
    )


def losses(system: SystemProbe) -> str:
    """What does not come back is in the receipt, with the reason."""
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
                f"told in two calls, all {len(lost)} of the first are gone: {named(lost)}",
                "remember() must keep the memories of earlier calls: add to what is there, "
                "instead of putting the new ones in its place.",
            )
        raise Flaw(
            f"{len(lost)} of {len(scope.given)} never found, and not in the receipt: {named(lost)}",
            "Store every memory, or return a Receipt from remember() that says which were "
            "rejected (and why) or merged (into what).",
        )
    owned = f"{len(scope.receipt.rejected)} rejected and {len(scope.receipt.merged)} merged"
    return f"{len(scope.given)} told, {owned} by the receipt, the rest found"


def duplicates(system: SystemProbe) -> str:
    """The same words twice are two memories, or one that says it is both."""
    twins = [remark("twin-0", FACTS[0].text, 0), remark("twin-1", FACTS[0].text, 20)]
    others = told("dup", FACTS[1:7])
    scope = system.scope("kit", [*others, *twins])
    scope.must_find(others)
    missing = scope.missing(twins)
    if missing:
        raise Flaw(
            "two memories with the same words do not both come back, and the receipt is silent",
            "Keep both, or report the second under merged in the receipt and name both in the "
            "hit's sources.",
        )
    return "two memories with the same words: both come back, or the receipt says why not"


def undated(system: SystemProbe) -> str:
    """Datasets without dates exist, and so do questions without."""
    memories = [Memory(memory.id, memory.text) for memory in told("undated", FACTS[:6])]
    scope = system.scope("kit", memories)
    lost = [memory for memory in memories if not scope.finds(memory, now=None)]
    lost = [memory for memory in lost if memory.id not in scope.receipt.rejected]
    if lost:
        scope = system.scope("kit", told("undated", FACTS[:6]))
        scope.must_find(list(scope.given.values()))
        raise Flaw(
            f"found with a date, not without: {named(lost)}",
            "`at` and `now` may be None: treat that as unknown, not as a filter.",
        )
    return "memories and questions without a date are taken"


def ids(system: SystemProbe) -> str:
    """Every hit can be traced to memories that were given."""
    memories = told("ids", FACTS[:8])
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
        raise Unclear("cannot be told: nothing was recalled (see losses)")
    return f"{hits} hits, each traced to a memory that was given"


_ODD = (
    "naïve café, Ærøskøbing, Łódź, cafe\u0301",
    "東京の図書館 도서관 图书馆",
    "مكتبة القاهرة ספרייה",
    "🦊🎻 👩🏽‍🚀 \U0001d518\U0001d52b\U0001d526",
    'it\'s "quoted" AND (NOT) OR * ^ ~ : -- ; DROP TABLE memories; %s {0} <b>&amp;</b> \\n',
    "a\ttab,\r\na line break and\u200ba zero-width space",
)


def unicode(system: SystemProbe) -> str:
    """Other scripts, emoji, quotes and search syntax go in, are found, and come out unbroken."""
    memories = [remark(f"odd-{n}", f"{FACTS[n].text} {odd}", n) for n, odd in enumerate(_ODD)]
    plain = told("plain", FACTS[6:])
    # One call, and plain ones on both sides: what is lost for another reason is not blamed on this.
    scope = system.scope("kit", [*plain[:3], *memories, *plain[3:]])
    scope.must_find(plain)
    if lost := scope.missing(memories):
        raise Flaw(f"not found by its own words: {lost[0].text[-60:]!r}", _CLEAN)
    for memory, odd in zip(memories, _ODD, strict=True):
        mangled = odd.encode().decode("latin-1")
        for hit in scope.recall_own(memory):
            if "\ufffd" in hit.text or (mangled != odd and mangled in hit.text):
                raise Flaw(f"came back mangled: {hit.text[-60:]!r}", _CLEAN)
    return f"{len(_ODD)} texts of other scripts, signs and search syntax found"


_CLEAN = "Pass texts on as UTF-8, and quote the query for the search engine instead of parsing it."


def long_text(system: SystemProbe) -> str:
    """A long memory is found by its last words, or the receipt says how much was kept."""
    filler = " ".join(f"Page {n} of the almanac lists tides and moons." for n in range(2500))
    end = FACTS[0]
    long = Memory("long-0", f"{filler} {end.text}", DAWN)
    scope = system.scope("kit", [long, *told("short", FACTS[1:8])])
    scope.must_find(list(scope.given.values())[1:])
    if long.id in scope.receipt.rejected or long.id in scope.receipt.truncated:
        return f"{len(long.text):,} characters: not kept whole, as the receipt says"
    if not any(long.id in origins(hit) for hit in scope.recall(end.text, about=long.id)):
        raise Flaw(
            f"a memory of {len(long.text):,} characters is not found by its last sentence",
            "Split long texts, or report the share that is kept under truncated in the receipt.",
        )
    return f"{len(long.text):,} characters, found by the last sentence"


def _still_missing(system: SystemProbe, scope: Scope, missing: list[Memory]) -> list[Memory]:
    """Those that have not turned up when patience is at its end."""
    deadline = time.monotonic() + system.patience
    while missing and time.monotonic() < deadline:
        time.sleep(_AGAIN)
        missing = [memory for memory in missing if not scope.finds(memory)]
    return missing


def _stop_if_foreign(scope: Scope, missing: list[Memory]) -> None:
    if scope.foreign(missing[0]):
        raise Unclear("cannot be told: hits carry ids that were never given (see ids)")
