"""What a run asked of language models, and what that cost: by phase, and whose phase it is.

Remembering and recalling are the system's; answering and judging are the harness's, unless the
system answers by itself. Sums of what was recorded: a phase that a killed run had to repeat counts
twice, because it was asked twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum
from typing import Any

from mnemoscope.types import Timing, Usage

PHASES = ("remember", "recall", "answer", "judge")
_NUMBERS = ("requests", "cached", "retries", "input_tokens", "output_tokens")
_MONEY = ("cost", "paid")
_DIGITS = 10


def accounts(timings: Iterable[Timing], *, system_answers: bool = False) -> dict[str, Any]:
    """Requests, tokens and US dollars for each phase, for each side, in all and for a question."""
    timings = list(timings)
    used: dict[str, list[Usage]] = {phase: [] for phase in PHASES}
    for timing in timings:
        if timing.usage is not None:
            used[phase_of(timing)].append(timing.usage)
    system = PHASES[: 3 if system_answers else 2]
    everything = [usage for own in used.values() for usage in own]
    total = _sum(everything)
    asks = {(t.scenario, t.checkpoint, t.question) for t in timings if t.question}
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
        "per_question": {
            name: round(total[name] / len(asks), _DIGITS) for name in (*_NUMBERS, *_MONEY)
        }
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


def _sum(usages: Iterable[Usage]) -> dict[str, Any]:
    usages = list(usages)
    return {
        **{name: sum(getattr(usage, name) for usage in usages) for name in _NUMBERS},
        # Exact, so that the order in which questions came back changes no digit.
        **{name: round(fsum(getattr(usage, name) for usage in usages), _DIGITS) for name in _MONEY},
        "estimated": any(usage.estimated for usage in usages),
    }
