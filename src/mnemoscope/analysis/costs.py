"""Sum the requests, tokens and cost of language models in a run, by phase and by side.

The system remembers and recalls; the harness answers and judges, unless the system answers by
itself. A phase that was repeated after a crash counts twice, because its requests were sent twice.
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
    """Usage by phase, by side, in total and per question."""

    currency: str
    phases: dict[str, Spent]
    sides: dict[str, Spent]
    total: Spent
    questions: int
    per_question: dict[str, float] | None
    estimated: bool


def accounts(timings: Iterable[Timing], *, system_answers: bool = False) -> Costs:
    """Sum all usage, in the form of timing.json."""
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
    """Return the phase that was timed; a question without any time failed while recalling."""
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
        # fsum is exact, so the order of the questions does not change the sum.
        "cost": rounded(fsum(usage.cost for usage in usages)),
        "paid": rounded(fsum(usage.paid for usage in usages)),
        "estimated": any(usage.estimated for usage in usages),
    }
