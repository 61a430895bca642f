"""What a run asked of language models, and what that cost: by phase, and whose phase it is.

Remembering and recalling are the system's; answering and judging are the harness's, unless the
system answers by itself. Sums of what was recorded: a phase that a killed run had to repeat counts
twice, because it was asked twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import TypedDict

from mnemoscope.analysis.estimates import rounded
from mnemoscope.types import Timing, Usage

PHASES = ("remember", "recall", "answer", "judge")


class Spent(TypedDict):
    """Requests, tokens and US dollars."""

    requests: int
    cached: int
    retries: int
    input_tokens: int
    output_tokens: int
    cost: float
    paid: float
    estimated: bool


class Costs(TypedDict):
    """What was spent for each phase, for each side, in all and for a question."""

    currency: str
    phases: dict[str, Spent]
    sides: dict[str, Spent]
    total: Spent
    questions: int
    per_question: dict[str, float] | None
    estimated: bool


def accounts(timings: Iterable[Timing], *, system_answers: bool = False) -> Costs:
    """All that was spent, as timing.json has it."""
    timings = list(timings)
    used: dict[str, list[Usage]] = {phase: [] for phase in PHASES}
    for timing in timings:
        if timing.usage is not None:
            used[phase_of(timing)].append(timing.usage)
    system = PHASES[: 3 if system_answers else 2]
    total = _sum(usage for own in used.values() for usage in own)
    asks = {(t.scenario, t.checkpoint, t.question) for t in timings if t.question}
    numbers: dict[str, float] = {k: v for k, v in total.items() if isinstance(v, int | float)}
    del numbers["estimated"]
    return {
        "currency": "USD",
        "phases": {phase: _sum(own) for phase, own in used.items()},
        "sides": {
            "system": _sum(usage for phase in system for usage in used[phase]),
            "harness": _sum(
                usage for phase, own in used.items() if phase not in system for usage in own
            ),
        },
        "total": total,
        "questions": len(asks),
        "per_question": {name: rounded(value / len(asks)) for name, value in numbers.items()}
        if asks
        else None,
        "estimated": total["estimated"],
    }


def phase_of(timing: Timing) -> str:
    """Which phase was timed. One that failed before it could be timed was recalling."""
    for phase, took in (
        ("judge", timing.judge_ms),
        ("answer", timing.answer_ms),
        ("recall", timing.recall_ms),
    ):
        if took is not None:
            return phase
    return "recall" if timing.question and timing.index_ms is None else "remember"


def _sum(usages: Iterable[Usage]) -> Spent:
    usages = list(usages)
    return {
        "requests": sum(usage.requests for usage in usages),
        "cached": sum(usage.cached for usage in usages),
        "retries": sum(usage.retries for usage in usages),
        "input_tokens": sum(usage.input_tokens for usage in usages),
        "output_tokens": sum(usage.output_tokens for usage in usages),
        # Exact, so that the order in which questions came back changes no digit.
        "cost": rounded(fsum(usage.cost for usage in usages)),
        "paid": rounded(fsum(usage.paid for usage in usages)),
        "estimated": any(usage.estimated for usage in usages),
    }
