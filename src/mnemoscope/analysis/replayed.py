"""What a replay shows: whether a system returns again what its run recorded.

The questions are drawn after the run was sealed, so that a forger cannot know them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, comb
from random import Random, SystemRandom

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.gates import Gate
from mnemoscope.types import FAILED, Trial

ALTERED = 0.05
"""The share of altered rankings for which the power of a replay is printed."""
_ALPHA = 0.01
QuestionKey = tuple[str, str, str]
"""Scenario, checkpoint and id of a question."""
Rankings = Mapping[QuestionKey, tuple[object, ...]]


class ReplayResult(msgspec.Struct, frozen=True):
    """How many of the drawn rankings a system returned again."""

    drawn: int
    of: int
    """How many rankings the run recorded."""
    same: int
    steady: int
    """How many of them the system returned twice, if it was asked twice; else `drawn`."""
    p: float | None
    """How likely a varying system departs from an honest record this far; None if it is steady."""
    would_find: float
    """The probability that so many questions find a run with 5 % altered rankings."""
    first: str = ""
    """The first question whose ranking differs."""
    notes: list[str] = []

    @property
    def passed(self) -> bool:
        return self.same == self.drawn or (self.p is not None and self.p > _ALPHA)

    def gate(self) -> Gate:
        power = (
            f"so many find {ALTERED:.0%} altered rankings with probability {self.would_find:.2f}"
        )
        why = f"{self.same} of {self.drawn} rankings are the same again; {power}"
        if self.same < self.drawn:
            varies = f"it agrees with itself on {self.steady} of {self.drawn}"
            likely = "" if self.p is None else f", p = {self.p:.2g}"
            why += f"; first difference: {self.first}; asked twice, {varies}{likely}"
        return Gate("replay", self.passed, "; ".join([why, *self.notes]))


def rankings_of(trials: Sequence[Trial]) -> dict[QuestionKey, tuple[object, ...]]:
    """What is compared of each question that did not fail."""
    return {
        (trial.scenario, trial.checkpoint, trial.question): (
            trial.ranking,
            sorted(trial.sources.items()),
        )
        for trial in trials
        if trial.status not in FAILED
    }


def draw_questions(
    recorded: Rankings, questions: int, draw: Random | None = None
) -> list[QuestionKey]:
    """Draw questions over all scenarios; by default with the operating system's random source."""
    if questions < 1:
        raise UsageError(f"--replay {questions}: must be 1 question or more")
    if not recorded:
        raise UsageError("the run has no rankings to replay")
    keys = sorted(recorded)
    return sorted((draw or SystemRandom()).sample(keys, min(questions, len(keys))))


def differing(
    recorded: Rankings, again: Rankings, drawn: Sequence[QuestionKey]
) -> list[QuestionKey]:
    """The drawn questions whose ranking is another one than recorded."""
    return [key for key in drawn if recorded[key] != again.get(key)]


def share_found(of: int, drawn: int, share: float = ALTERED) -> float:
    """1 − C(n−a, N)/C(n, N): the probability that N of n questions include one of a altered."""
    altered = ceil(of * share)
    return 1 - comb(of - altered, drawn) / comb(of, drawn)


def result_of(
    recorded: Rankings,
    drawn: Sequence[QuestionKey],
    first: Rankings,
    second: Rankings | None,
    notes: Sequence[str] = (),
) -> ReplayResult:
    """Judge a replay; `second` is another one, which is made if the first departs from the record.

    If the system varies, record and both replays are exchangeable for an honest run: where exactly
    one of the three differs from the others, it is the record with probability 1/3.
    """
    odd = differing(recorded, first, drawn)
    steady, p = len(drawn), None
    if second is not None:
        unsteady = [key for key in drawn if first.get(key) != second.get(key)]
        steady = len(drawn) - len(unsteady)
        if unsteady:
            alone = sum(key not in unsteady for key in odd)
            others = sum(recorded[key] in (first.get(key), second.get(key)) for key in unsteady)
            p = _at_least(alone, alone + others)
    return ReplayResult(
        len(drawn),
        len(recorded),
        len(drawn) - len(odd),
        steady,
        p,
        share_found(len(recorded), len(drawn)),
        "/".join(filter(None, odd[0])) if odd else "",
        list(notes),
    )


def _at_least(found: int, of: int) -> float:
    """P(X ≥ found) for a binomial X of `of` draws with probability 1/3."""
    ways: int = sum(comb(of, k) << (of - k) for k in range(found, of + 1))
    return ways / int(3**of)
