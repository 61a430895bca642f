"""The conformance kit: all checks, each tried on the system in a process that may be lost.

A system that hangs, crashes or ends its process is a finding like any other; the next check goes on
with a new one.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.runner.conformance import (
    clock_checks,
    forget_and_fork_checks,
    ingest_checks,
    isolation_checks,
    question_checks,
)
from mnemoscope.runner.conformance.system_probe import (
    BUILDING,
    Flaw,
    Raised,
    SystemProbe,
    Unclear,
)
from mnemoscope.runner.heartbeat import fork
from mnemoscope.runner.scheduler import cause_of_death
from mnemoscope.runner.worker import be_a_child_of
from mnemoscope.systems.loader import Plan, describe

Verdict = Literal["passed", "failed", "advice", "not applicable"]
"""Only what failed keeps a system from conforming; advice is about what makes figures worse."""

_FLOOR = "none"
_PATIENCE = 3.0
_MOST_HANGS = 3
"""After so many calls that never came back the rest is not asked: it would only take its time."""


class Result(Struct, frozen=True):
    """How one check ended."""

    check: str
    demand: str
    """What a system has to do to pass."""
    verdict: Verdict
    seen: str
    fix: str = ""
    """What its author should do; empty unless there is something to do."""


class _CannotCheck(NamedTuple):
    """Why a system cannot be checked at all."""

    text: str
    is_usage: bool


class CheckSpec(NamedTuple):
    demand: str
    needs: tuple[str, ...]
    """The verbs without which there is nothing to check."""
    run: Callable[[SystemProbe], str]
    of_hits: bool = True
    """Whether it says anything about a system that recalls nothing by design."""


_BOTH = ("remember", "recall")
CHECKS = {
    "read-back": CheckSpec(
        "found by its own words as soon as ready() returns", _BOTH, ingest_checks.read_back
    ),
    "losses": CheckSpec("what is not kept is in the receipt", _BOTH, ingest_checks.losses),
    "ids": CheckSpec("hits are traced to memories that were given", _BOTH, ingest_checks.ids),
    "isolation": CheckSpec(
        "a scope knows nothing of its neighbour", ("remember",), isolation_checks.isolation
    ),
    "fresh": CheckSpec("a scope that is reset is empty", ("remember",), isolation_checks.fresh),
    "side by side": CheckSpec(
        "two in one process do not disturb each other", _BOTH, isolation_checks.side_by_side
    ),
    "dates": CheckSpec("past and future dates are taken as they are", _BOTH, clock_checks.dates),
    "machine clock": CheckSpec("the machine's clock decides nothing", _BOTH, clock_checks.machine),
    "undated": CheckSpec(
        "memories and questions without a date are taken", _BOTH, ingest_checks.undated
    ),
    "steady": CheckSpec("recall changes nothing", ("recall",), question_checks.steady),
    "determinism": CheckSpec(
        "the same life gives the same rankings", ("recall",), question_checks.determinism
    ),
    "forget": CheckSpec(
        "forget really forgets, and only that", (*_BOTH, "forget"), forget_and_fork_checks.forget
    ),
    "fork": CheckSpec(
        "a copy equals a replay and goes its own way", (*_BOTH, "fork"), forget_and_fork_checks.fork
    ),
    "k": CheckSpec(
        "no more hits than asked for, none twice", ("recall",), question_checks.k, of_hits=False
    ),
    "edges": CheckSpec("odd calls do no harm", ("recall",), question_checks.edges, of_hits=False),
    "unicode": CheckSpec("any script and sign survives", _BOTH, ingest_checks.unicode),
    "long": CheckSpec("a long text is found by its end", _BOTH, ingest_checks.long_text),
    "duplicates": CheckSpec(
        "the same words twice are not lost silently", _BOTH, ingest_checks.duplicates
    ),
}


def check_system(
    plan: Plan,
    *,
    timeout: float = 60.0,
    patience: float = _PATIENCE,
    names: Sequence[str] = tuple(CHECKS),
    done: Callable[[Result], None] = lambda result: None,
) -> list[Result]:
    """Try the checks on a system.

    Args:
        plan: How to build it.
        timeout: Seconds that any one call may take.
        patience: Seconds after which a memory that does not turn up counts as lost.
        names: Which checks; by default all.
        done: Told each result as it comes.
    """
    results: list[Result] = []
    hangs = 0
    while len(results) < len(names):
        left = names[len(results) :]
        if hangs == _MOST_HANGS:
            said = f"not asked: {hangs} calls before it did not come back"
            new = [_result(name, "not applicable", said) for name in left]
        else:
            leaking = any(result.fix in isolation_checks.LEAKS for result in results)
            is_first = not results
            new, hung = _one_process(plan, left, timeout, patience, done, leaking, is_first)
            hangs += hung
        results += new
    return results


def _one_process(
    plan: Plan,
    names: Sequence[str],
    timeout: float,
    patience: float,
    done: Callable[[Result], None],
    leaking: bool,
    is_first: bool,
) -> tuple[list[Result], bool]:
    """The results until the process was lost, the last one of that; and whether it hung."""
    pipe, theirs = fork.Pipe(duplex=False)
    arguments = (theirs, plan, names, patience, leaking, is_first, os.getpid())
    process = fork.Process(target=_serve, args=arguments)
    process.start()
    theirs.close()
    results: list[Result] = []
    call, since = "starting", time.monotonic()
    trouble = ""
    hung = False
    try:
        while len(results) < len(names) and not trouble:
            if not pipe.poll(max(0.0, since + timeout - time.monotonic())):
                hung, trouble = True, f"{call} did not come back within {timeout:g} s"
                continue
            since = time.monotonic()
            try:
                message = pipe.recv()
            except (EOFError, ConnectionResetError):
                process.join(5)
                trouble = f"{cause_of_death(process.exitcode)} in {call}"
                continue
            if isinstance(message, _CannotCheck):
                process.join(5)
                raise (UsageError if message.is_usage else MnemoscopeError)(message.text)
            if isinstance(message, Result):
                results.append(message)
                done(message)
            else:
                call = message
        if not trouble:
            process.join(5)
    finally:
        process.kill()
        process.join()
        pipe.close()
    if trouble:
        fix = (
            "Give calls a deadline of their own and raise when it has passed."
            if hung
            else "Raise an exception instead of ending the process."
        )
        results.append(_result(names[len(results)], "failed", trouble, fix))
        done(results[-1])
    return results, hung


def _serve(
    pipe: Connection,
    plan: Plan,
    names: Sequence[str],
    patience: float,
    leaking: bool,
    is_first: bool,
    parent: int,
) -> None:
    """The process of its own: one check after another, every call announced.

    The first process of a system refuses one that cannot be built or lacks a method.
    """
    be_a_child_of(parent)
    system: SystemProbe | None = None
    built: Any = None
    if is_first and not plan.is_described:
        pipe.send(BUILDING)
        try:
            built = describe(plan).system
        except MnemoscopeError as error:
            pipe.send(_CannotCheck(str(error), isinstance(error, UsageError)))
            return
    met: dict[str, str] = {}
    for name in names:
        broken = False
        try:
            system = system or SystemProbe(plan, pipe.send, patience, built)
            system.is_leaking |= leaking
            result = _tried(name, system, plan)
        except Raised as flaw:
            broken, result = True, _of_error(name, flaw, met)
        except Flaw as flaw:
            verdict: Verdict = "failed" if flaw.required else "advice"
            broken, result = flaw.required, _result(name, verdict, flaw.seen, flaw.fix)
        except Unclear as reason:
            result = _result(name, "not applicable", str(reason))
        leaking |= result.fix in isolation_checks.LEAKS
        if system is not None and broken:
            system.start_over()
        pipe.send(result)
    if system is not None:
        system.close()


def _of_error(name: str, flaw: Raised, met: dict[str, str]) -> Result:
    """One error is one finding: that of the check that met it first, which `met` remembers."""
    # The ids of memories, which are others in each check, make no other error of it.
    words = re.sub(r"[\w-]*\d", "…", str(flaw.__cause__))
    error = f"{flaw.seen.partition('(')[0]} {type(flaw.__cause__).__name__} {words}"
    first = met.setdefault(error, name)
    if first != name:
        said = f"cannot be told: it raised the same error as in {first}"
        return _result(name, "not applicable", said)
    return _result(name, "failed", flaw.seen, flaw.fix)


def _tried(name: str, system: SystemProbe, plan: Plan) -> Result:
    check = CHECKS[name]
    if lacking := [verb for verb in check.needs if verb not in system.verbs]:
        if name == "read-back" and not system.can_remember:
            raise Flaw("it has no remember: nothing can be told to it", "Write remember(memories).")
        return _result(name, "not applicable", f"it has no {' and no '.join(lacking)}")
    if plan.spec.name == _FLOOR and check.of_hits:
        return _result(name, "not applicable", "it recalls nothing, by design")
    return _result(name, "passed", check.run(system))


def _result(name: str, verdict: Verdict, seen: str, fix: str = "") -> Result:
    return Result(name, CHECKS[name].demand, verdict, seen, fix)
