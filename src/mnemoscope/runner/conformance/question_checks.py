"""Recall checks: it changes nothing, is repeatable, respects k, and survives unusual calls."""

from __future__ import annotations

from collections.abc import Callable

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.child_process import AdapterDied
from mnemoscope.runner.conformance.sample_facts import FACTS, FIRST_DAY, as_memories
from mnemoscope.runner.conformance.system_probe import (
    Flaw,
    SystemProbe,
    Unclear,
    differing,
    named,
)
from mnemoscope.types import Memory

_MEMORIES = as_memories("ask", FACTS)


def repeatable(system: SystemProbe) -> bool:
    """Whether two systems with the same memories give the same rankings."""
    one, other = (system.separate_scope("kit", _MEMORIES[:6], _MEMORIES[6:]) for _ in range(2))
    same = one.rankings(_MEMORIES) == other.rankings(_MEMORIES)
    one.close()
    other.close()
    return same


def must_be_repeatable(system: SystemProbe) -> None:
    """Require that rankings can be compared: two fresh systems must rank alike."""
    must_be_clean(system)
    if not system.is_shared_object and not repeatable(system):
        raise Unclear("cannot be checked: two fresh systems rank differently (see determinism)")


def must_be_clean(system: SystemProbe) -> None:
    if system.is_leaking:
        raise Unclear("cannot be checked: a scope is not empty at the start (see isolation, fresh)")


def determinism(system: SystemProbe) -> str:
    if system.is_shared_object:
        raise Unclear("it is one object, so two fresh ones cannot be compared")
    must_be_clean(system)
    if not repeatable(system):
        raise Flaw(
            "two fresh systems with the same memories rank differently",
            "Fix seeds and tie-breaks; if that is impossible (a language model decides), expect "
            "figures that differ from run to run.",
            required=False,
        )
    return "two fresh systems with the same memories rank the same"


def steady(system: SystemProbe) -> str:
    """Earlier questions must not change the ranking of later ones."""
    must_be_repeatable(system)
    scope = system.scope("kit", _MEMORIES)
    first = scope.rankings(_MEMORIES[:1])
    repeated = scope.rankings(_MEMORIES[:1])
    for _ in range(3):
        scope.rankings(_MEMORIES[1:4])
    later = scope.rankings(_MEMORIES)
    fix = (
        "recall must not learn: switch off reinforcement, access counts and query logging, or keep "
        "them out of the ranking."
    )
    if repeated != first:
        raise Flaw("the same question, asked twice in a row, has two different rankings", fix)
    if later[_MEMORIES[0].id] != first[_MEMORIES[0].id]:
        raise Flaw("a question has a different ranking after other questions", fix)
    untouched = system.scope("kit", _MEMORIES)
    asked_first = untouched.rankings(reversed(_MEMORIES))
    if changed := differing(asked_first, later):
        text = next(memory for memory in _MEMORIES if memory.id == changed[0])
        raise Flaw(f"asked in another order, this has a different ranking: {named([text])}", fix)
    if not any(later.values()):
        raise Unclear("cannot be checked: nothing was recalled (see losses)")
    return "the same rankings twice in a row, after other questions, and in another order"


def k(system: SystemProbe) -> str:
    scope = system.scope("kit", _MEMORIES)
    for wanted in (1, 3, 5):
        hits = scope.recall(_MEMORIES[0].text, wanted, about=_MEMORIES[0].id)
        if len(hits) > wanted:
            raise Flaw(
                f"{len(hits)} hits for k={wanted}",
                "Return the k best; more are recorded, too, and use the reader's context.",
                required=False,
            )
        seen = [hit.id for hit in hits]
        if len(set(seen)) < len(seen):
            raise Flaw(
                f"one id occurs more than once among {len(seen)} hits",
                "Return each memory once, at its best rank: repetitions use up k.",
                required=False,
            )
    return "at most k hits, each once"


def edges(system: SystemProbe) -> str:
    """Unusual calls may raise an error, but the system must work afterwards."""
    can_remember = "remember" in system.verbs
    scope = system.scope("kit")
    refused = _refused({"a question in an empty scope": lambda: scope.recall("anything at all")})
    before = []
    if can_remember:
        scope.remember(_MEMORIES)
        before = scope.missing(_MEMORIES)
    tries: dict[str, Callable[[], object]] = {
        "a memory with no text": lambda: scope.remember([Memory("edge-0", "", FIRST_DAY)]),
        "no memories": lambda: scope.remember([]),
        "an empty question": lambda: scope.recall(""),
        "k=0": lambda: scope.recall(_MEMORIES[0].text, 0),
        "a question of 20,000 words": lambda: scope.recall("what of the harbour " * 5000),
    }
    refused += _refused({w: t for w, t in tries.items() if can_remember or "memor" not in w})
    if can_remember and (lost := [m for m in scope.missing(_MEMORIES) if m not in before]):
        after = f"; it refused {', '.join(refused)}" if refused else ""
        raise Flaw(
            f"after unusual calls it no longer finds {named(lost)}{after}",
            "Refuse what you cannot accept with an exception or in the receipt, and keep the rest "
            "unchanged.",
        )
    return f"refused with an error: {', '.join(refused)}" if refused else "accepted all of them"


def _refused(tries: dict[str, Callable[[], object]]) -> list[str]:
    """The calls that raise an exception; one that ends the process is a flaw."""
    refused = []
    for what, attempt in tries.items():
        try:
            attempt()
        except Flaw as flaw:
            if isinstance(flaw.__cause__, SystemExit | BadReply | AdapterDied):
                raise Flaw(f"{what}: {flaw.seen}", _REFUSE) from flaw
            refused.append(f"{what} ({type(flaw.__cause__).__name__})")
    return refused


_REFUSE = "Return a list, which may be empty, or raise an exception that says what is wrong."
