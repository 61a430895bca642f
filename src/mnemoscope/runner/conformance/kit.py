"""The conformance kit: runs all checks on a system, in a child process.

A system that hangs, crashes or ends its process fails that check; the next check starts a new
process.
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
from mnemoscope.runner.lost_questions import cause_of_death
from mnemoscope.runner.worker import be_a_child_of
from mnemoscope.systems.loader import Plan, describe

Verdict = Literal["passed", "failed", "advice", "not applicable"]
"""Only a failed check means that a system does not conform; advice concerns worse figures."""

_NO_MEMORY = "none"
_PATIENCE = 3.0
_MOST_HANGS = 3
"""After so many calls without a reply the remaining checks are skipped."""


class Result(Struct, frozen=True):
    """How one check ended."""

    check: str
    demand: str
    """What a system must do to pass."""
    verdict: Verdict
    seen: str
    fix: str = ""
    """What its author should do; empty if the check passed."""


class _CannotCheck(NamedTuple):
    """Why a system cannot be checked at all."""

    text: str
    is_usage: bool


class CheckSpec(NamedTuple):
    demand: str
    needs: tuple[str, ...]
    """The methods that the check needs."""
    run: Callable[[SystemProbe], str]
    of_hits: bool = True
    """Whether the check needs a system that recalls something."""


_BOTH = ("remember", "recall")
CHECKS = {
    "read-back": CheckSpec(
        "a memory is found by its own words as soon as ready() returns",
        _BOTH,
        ingest_checks.read_back,
    ),
    "losses": CheckSpec(
        "a memory that is not stored is in the receipt", _BOTH, ingest_checks.losses
    ),
    "ids": CheckSpec("hits have the ids of given memories", _BOTH, ingest_checks.ids),
    "isolation": CheckSpec(
        "a scope contains nothing of another scope", ("remember",), isolation_checks.isolation
    ),
    "fresh": CheckSpec("a scope is empty after a reset", ("remember",), isolation_checks.fresh),
    "side by side": CheckSpec(
        "two systems in one process do not affect each other", _BOTH, isolation_checks.side_by_side
    ),
    "dates": CheckSpec("past and future dates are accepted", _BOTH, clock_checks.dates),
    "machine clock": CheckSpec(
        "the machine's clock does not change rankings", _BOTH, clock_checks.machine
    ),
    "undated": CheckSpec(
        "memories and questions without a date are accepted", _BOTH, ingest_checks.undated
    ),
    "steady": CheckSpec("recall does not change rankings", ("recall",), question_checks.steady),
    "determinism": CheckSpec(
        "the same memories give the same rankings", ("recall",), question_checks.determinism
    ),
    "forget": CheckSpec(
        "forget removes the given memories and no others",
        (*_BOTH, "forget"),
        forget_and_fork_checks.forget,
    ),
    "fork": CheckSpec(
        "a copy equals a replay and is independent", (*_BOTH, "fork"), forget_and_fork_checks.fork
    ),
    "k": CheckSpec(
        "at most k hits, each memory once", ("recall",), question_checks.k, of_hits=False
    ),
    "edges": CheckSpec(
        "unusual calls do not damage the system", ("recall",), question_checks.edges, of_hits=False
    ),
    "unicode": CheckSpec("all scripts and symbols are preserved", _BOTH, ingest_checks.unicode),
    "long": CheckSpec("a long text is found by its last sentence", _BOTH, ingest_checks.long_text),
    "duplicates": CheckSpec(
        "memories with equal texts are both found, or in the receipt",
        _BOTH,
        ingest_checks.duplicates,
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
    """Run the checks on a system.

    Args:
        plan: How to build the system.
        timeout: Seconds that any one call may take.
        patience: Seconds after which a memory that is not found counts as lost.
        names: Which checks; by default all.
        done: Called with each result.
    """
    results: list[Result] = []
    hangs = 0
    while len(results) < len(names):
        left = names[len(results) :]
        if hangs == _MOST_HANGS:
            skipped = f"skipped: {hangs} earlier calls did not return"
            new = [_result(name, "not applicable", skipped) for name in left]
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
    """The results until the process ended or hung, and whether it hung."""
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
                hung, trouble = True, f"{call} did not return within {timeout:g} s"
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
            "Set a deadline for calls, and raise an exception when it has passed."
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
    """The child process: runs one check after another, and announces every call to the parent.

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
            result = _checked(name, system, plan)
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
    """One error is one finding, of the first check that raised it; `met` maps errors to checks."""
    # The ids of memories differ between checks and do not make a different error.
    words = re.sub(r"[\w-]*\d", "…", str(flaw.__cause__))
    error = f"{flaw.seen.partition('(')[0]} {type(flaw.__cause__).__name__} {words}"
    first = met.setdefault(error, name)
    if first != name:
        return _result(name, "not applicable", f"cannot be checked: same error as in {first}")
    return _result(name, "failed", flaw.seen, flaw.fix)


def _checked(name: str, system: SystemProbe, plan: Plan) -> Result:
    check = CHECKS[name]
    if lacking := [verb for verb in check.needs if verb not in system.verbs]:
        if name == "read-back" and not system.can_remember:
            raise Flaw("it has no remember method", "Write remember(memories).")
        return _result(name, "not applicable", f"it has no {' and no '.join(lacking)}")
    if plan.spec.name == _NO_MEMORY and check.of_hits:
        return _result(name, "not applicable", "it recalls nothing, by design")
    return _result(name, "passed", check.run(system))


def _result(name: str, verdict: Verdict, seen: str, fix: str = "") -> Result:
    return Result(name, CHECKS[name].demand, verdict, seen, fix)
