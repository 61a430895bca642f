"""Clock checks: dates come from memories and questions, not from the machine's clock.

A system that ignores all dates passes, and so does one that recalls memories from after `now`.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from mnemoscope.runner.conformance.question_checks import must_be_clean, must_be_repeatable
from mnemoscope.runner.conformance.sample_facts import (
    ASKED_AT,
    FACTS,
    FIRST_DAY,
    as_memories,
    dated_memory,
)
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    SystemProbe,
    Unclear,
    differing,
    named,
)
from mnemoscope.types import Memory

_AGES = timedelta(weeks=1356), timedelta(weeks=-1400)
"""By how much the whole scenario is moved: to 1993, and to the 2040s."""
_SHIFT = 400 * 86400.0

_CODE = "Use memory.at and query.now as the dates, not the machine's clock."


def dates(system: SystemProbe) -> str:
    """Rankings stay the same if memories and questions are moved by decades."""
    must_be_repeatable(system)
    memories = as_memories("dates", FACTS)
    scope = system.scope("kit", memories)
    scope.must_find(memories)
    found = scope.rankings(memories)
    for now in (None, FIRST_DAY, ASKED_AT + timedelta(days=4000)):
        scope.recall(memories[0].text, now=now, about=memories[0].id)
    reordered: list[str] = []
    for age in _AGES:
        moved = as_memories("dates", FACTS, first=FIRST_DAY - age)
        other = system.scope("kit", moved)
        year = moved[0].at.year if moved[0].at else 0
        lost = [memory for memory in moved if not other.finds(memory, now=ASKED_AT - age)]
        lost = [memory for memory in lost if memory.id not in other.receipt.rejected]
        if lost:
            raise Flaw(
                f"found with dates in 2019, not found with dates in {year}: {named(lost)}", _CODE
            )
        reordered += differing(found, other.rankings(moved, now=ASKED_AT - age))
    if reordered:
        raise Flaw(
            f"{len(reordered)} of {len(memories) * len(_AGES)} rankings change if memories and "
            "questions are moved by decades together",
            "Correct if dates are in the searched text; otherwise the system computes ages from "
            "today instead of query.now.",
            required=False,
        )
    return "the same rankings in 1993, 2019 and the 2040s, with now moved by the same time"


def machine(system: SystemProbe) -> str:
    """Rankings stay the same if only the machine's clock changes."""
    if system.is_remote:
        raise Unclear("it runs in another process, whose clock cannot be changed (but see dates)")
    must_be_clean(system)
    early, late = _with_echoes()
    # A system that fails without the replaced clock fails here.
    system.scope("kit", early, late).recall_own(late[0])
    with system.machine_clock() as set_clock:
        try:
            usual, again = (_rankings(system, set_clock, early, late, 0.0) for _ in range(2))
        except Flaw as flaw:
            raise Unclear(f"it cannot work while the clock is replaced: {flaw.seen}") from flaw
        unusual = _rankings(system, set_clock, early, late, _SHIFT)
    if usual != again:
        raise Unclear("cannot be checked: its rankings differ with the same clock, too")
    if changed := differing(usual, unusual):
        raise Flaw(
            f"{len(changed)} of {len(usual)} rankings change with the machine's clock: "
            f"{_how(usual, unusual, changed[0])}",
            _CODE,
        )
    if not any(usual.values()):
        raise Unclear("cannot be checked: nothing was recalled (see losses)")
    return "this process's clock was set back by 400 days: the rankings did not change"


def _rankings(
    system: SystemProbe,
    set_clock: Callable[[float], None],
    early: list[Memory],
    late: list[Memory],
    back: float,
) -> dict[str, list[str]]:
    """The rankings if the clock is set back by so much between two batches."""
    set_clock(0.0)
    scope = system.scope("kit", early)
    set_clock(60.0 - back)
    scope.remember(late)
    set_clock(120.0 + back)
    asked = [*early, *late]
    scope.must_find(asked)
    return scope.rankings(asked)


def _with_echoes() -> tuple[list[Memory], list[Memory]]:
    """Some memories are repeated later in the same words: only their dates differ."""
    early = as_memories("wall", FACTS[:6])
    late = [dated_memory(f"wall-{6 + n}", fact.text, 20 + n) for n, fact in enumerate(FACTS[:3])]
    return early, [*late, *(dated_memory(f"wall-{n}", FACTS[n].text, 20 + n) for n in (9, 10, 11))]


def _how(usual: dict[str, list[str]], unusual: dict[str, list[str]], id: str) -> str:
    if set(usual[id]) != set(unusual[id]):
        return f"{len(usual[id])} memories are found before the change, {len(unusual[id])} after"
    return "the order differs"
