"""Checks of the clock: memories say when they happened, questions say when they are asked.

The machine's own clock must decide nothing. That is all that is demanded: a system that looks at
no date at all passes, and so does one that recalls what happened after a question's `now`.
"""

from __future__ import annotations

from datetime import timedelta

from mnemoscope.runner.conformance.machine_clock import MachineClock, machine_clock
from mnemoscope.runner.conformance.question_checks import must_be_clean, must_be_repeatable
from mnemoscope.runner.conformance.sample_facts import DAWN, DUSK, FACTS, remark, told
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    SystemProbe,
    Unclear,
    differing,
    named,
)
from mnemoscope.types import Memory

_AGES = timedelta(weeks=1356), timedelta(weeks=-1400)
"""How far the whole scenario is moved: to 1993, and to the 2040s."""
_WHILE = 400 * 86400.0

_CODE = "Use memory.at for when it happened and query.now for now; never the machine's clock."


def dates(system: SystemProbe) -> str:
    """A life that happened decades earlier or later, questions and all, is remembered the same."""
    must_be_repeatable(system)
    memories = told("dates", FACTS)
    scope = system.scope("kit", memories)
    scope.must_find(memories)
    found = scope.rankings(memories)
    for now in (None, DAWN, DUSK + timedelta(days=4000)):
        scope.recall(memories[0].text, now=now, about=memories[0].id)
    reordered: list[str] = []
    for age in _AGES:
        moved = told("dates", FACTS, first=DAWN - age)
        other = system.scope("kit", moved)
        year = moved[0].at.year if moved[0].at else 0
        lost = [memory for memory in moved if not other.finds(memory, now=DUSK - age)]
        lost = [memory for memory in lost if memory.id not in other.receipt.rejected]
        if lost:
            raise Flaw(f"found when it happened in 2019, not when in {year}: {named(lost)}", _CODE)
        reordered += differing(found, other.rankings(moved, now=DUSK - age))
    if reordered:
        raise Flaw(
            f"{len(reordered)} of {len(memories) * len(_AGES)} rankings change when memories and "
            "questions move by decades together",
            "Fine where dates are part of the text that is searched; otherwise ages are counted "
            "from today instead of query.now.",
            required=False,
        )
    return "the same rankings in 1993, 2019 and the 2040s, with now moved along"


def machine(system: SystemProbe) -> str:
    """What is told and asked stays the same; only the machine's clock is put forward and back."""
    if system.is_remote:
        raise Unclear("it lives in another process, whose clock cannot be moved (but see dates)")
    must_be_clean(system)
    early, late = _with_echoes()
    # What fails by itself must not be blamed on the clock.
    system.scope("kit", early, late).recall_own(late[0])
    with machine_clock() as clock:
        try:
            usual, again = (_lived(system, clock, early, late, 0.0) for _ in range(2))
        except Flaw as flaw:
            raise Unclear(f"it cannot work while the clock is replaced: {flaw.seen}") from flaw
        unusual = _lived(system, clock, early, late, _WHILE)
    if usual != again:
        raise Unclear("cannot be told: it differs from life to life whatever the clock says")
    if changed := differing(usual, unusual):
        raise Flaw(
            f"{len(changed)} of {len(usual)} rankings change with the machine's clock alone: "
            f"{_how(usual, unusual, changed[0])}",
            _CODE,
        )
    if not any(usual.values()):
        raise Unclear("cannot be told: nothing was recalled (see losses)")
    return "the machine's clock, as this process sees it, was put back 400 days: nothing changed"


def _lived(
    system: SystemProbe, clock: MachineClock, early: list[Memory], late: list[Memory], back: float
) -> dict[str, list[str]]:
    """The rankings after a life in which the clock is put back by so much between two batches."""
    clock.put(0.0)
    scope = system.scope("kit", early)
    clock.put(60.0 - back)
    scope.remember(late)
    clock.put(120.0 + back)
    asked = [*early, *late]
    scope.must_find(asked)
    return scope.rankings(asked)


def _with_echoes() -> tuple[list[Memory], list[Memory]]:
    """Some are said again later in the same words: only time can tell those apart."""
    early = told("wall", FACTS[:6])
    late = [remark(f"wall-{6 + n}", fact.text, 20 + n) for n, fact in enumerate(FACTS[:3])]
    return early, [*late, *(remark(f"wall-{n}", FACTS[n].text, 20 + n) for n in (9, 10, 11))]


def _how(usual: dict[str, list[str]], unusual: dict[str, list[str]], id: str) -> str:
    if set(usual[id]) != set(unusual[id]):
        return f"{len(usual[id])} memories come back before it is moved, {len(unusual[id])} after"
    return "the order is another"
