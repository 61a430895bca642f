"""The record of a judge's drawn exam: every verdict, and the figures that follow from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mnemoscope.stats.clustered import Interval
from mnemoscope.stats.judge_errors import (
    MOST_OF_A_KIND,
    MOST_UNJUDGED,
    MOST_WRONG,
    ErrorCell,
    ErrorRate,
    error_rate,
    kind_rates,
    mix_range,
    reasons_to_fail,
)
from mnemoscope.types import Usage

VERSION = 2
"""Files of version 1 hold results of the fixed probes, which are a smoke test."""


class ProbeVerdict(Struct, frozen=True, omit_defaults=True):
    """One probe and what the judge said."""

    id: str
    kind: str
    acceptable: bool
    stratum: str
    weight: float
    accepted: bool | None
    """None if the judge reached no verdict."""
    reasoning: str = ""
    """For wrong and missing verdicts."""
    shared: str = ""
    """How many of the reference's words the answer has."""
    beside: str = ""
    """How many other words it has; empty in exams of older rules."""

    @property
    def mistake(self) -> str:
        if self.accepted is None:
            return "unjudged"
        if self.accepted == self.acceptable:
            return ""
        return "false reject" if self.acceptable else "false accept"


class ExamRecord(Struct, frozen=True, kw_only=True):
    """An exam drawn from a benchmark, or a labelled set of the user's own."""

    version: int = VERSION
    rules: int
    """The version of the rules that drew it."""
    benchmark: str
    data: tuple[str, ...]
    """The sha256 of the benchmark's files."""
    seed: str
    seed_given: bool
    """Whether the user chose the seed: then the probes may have been known beforehand."""
    probes_sha256: str
    verdicts: tuple[ProbeVerdict, ...]
    held: dict[str, int]
    shares: dict[str, float]
    judge: dict[str, Any] = {}
    """The judge's identity, without what cannot change a verdict."""
    usage: Usage | None = None

    def cells(self) -> list[ErrorCell]:
        counts: dict[tuple[str, bool, str, float, str, str], list[int]] = {}
        for one in self.verdicts:
            key = (one.kind, one.acceptable, one.stratum, one.weight, one.shared, one.beside)
            own = counts.setdefault(key, [0, 0, 0])
            own[0] += one.accepted is not None
            own[1] += one.accepted is not None and one.accepted != one.acceptable
            own[2] += one.accepted is None
        return [
            ErrorCell(kind, acceptable, stratum, own[0], own[1], own[2], weight, shared, beside)
            for (kind, acceptable, stratum, weight, shared, beside), own in sorted(counts.items())
        ]

    @property
    def reasons(self) -> list[str]:
        """Why the judge failed, as sentences; empty if it passed."""
        return reasons_to_fail(self.cells(), self.shares, self.held)

    @property
    def passed(self) -> bool:
        return not self.reasons

    def rate(self, *, acceptable: bool) -> ErrorRate:
        """False rejects of acceptable answers, or false accepts of the others."""
        own = [cell for cell in self.cells() if cell.acceptable is acceptable]
        return error_rate(own, self.shares)

    def any_mix(self, *, acceptable: bool) -> Interval:
        """The range of that rate if it is not known how near answers are to their references."""
        own = [cell for cell in self.cells() if cell.acceptable is acceptable]
        return mix_range(own, self.shares)

    @property
    def mistakes(self) -> list[ProbeVerdict]:
        return [one for one in self.verdicts if one.mistake]

    def kinds(self) -> dict[str, dict[str, Any]]:
        """Each kind with its counts, its rate of errors and the interval of the rate."""
        found: dict[str, dict[str, Any]] = {}
        cells = self.cells()
        rates = kind_rates(cells)
        for cell in cells:
            own = found.setdefault(
                cell.kind,
                {"probes": 0, "false_accepts": 0, "false_rejects": 0, "unjudged": 0}
                | {"wrong": 0, "right": 0},
            )
            own["probes"] += cell.n + cell.unjudged
            own["unjudged"] += cell.unjudged
            own["false_rejects" if cell.acceptable else "false_accepts"] += cell.errors
            own["right" if cell.acceptable else "wrong"] += cell.n
        for kind, own in found.items():
            own["rate"], own["ci95"] = rates[kind].rate, [rates[kind].low, rates[kind].high]
        return found

    def summary(self) -> dict[str, Any]:
        """What a run records of it: counts by kind and stratum, without the single verdicts."""
        unjudged = sum(one.accepted is None for one in self.verdicts)
        sides = {
            name: {
                "count": found.errors,
                "of": found.of,
                "rate": found.rate,
                "ci95": [found.low, found.high],
            }
            for name, found in (
                ("false_accept", self.rate(acceptable=False)),
                ("false_reject", self.rate(acceptable=True)),
            )
        }
        return {
            "version": self.version,
            "rules": self.rules,
            "benchmark": self.benchmark,
            "data": list(self.data),
            "seed": self.seed,
            "seed_given": self.seed_given,
            "probes_sha256": self.probes_sha256,
            "passed": self.passed,
            "reasons": self.reasons,
            **sides,
            "unjudged": {
                "count": unjudged,
                "of": len(self.verdicts),
                "rate": unjudged / len(self.verdicts) if self.verdicts else 0.0,
            },
            "kinds": self.kinds(),
            "cells": [list(cell) for cell in self.cells()],
            "held": self.held,
            "shares": self.shares,
            "limits": {
                "false_accept": MOST_WRONG,
                "false_reject": MOST_WRONG,
                "unjudged": MOST_UNJUDGED,
                "of_one_kind": MOST_OF_A_KIND,
            },
        }


def combined(records: Sequence[ExamRecord], *, rule: str) -> ExamRecord | None:
    """The exam of several judges together, from the probes that all of them judged.

    `rule` is `majority` for a panel, where a tie fails, and `appeal` for a second judge that is
    asked where the first one fails an answer. None if they share no probes.
    """
    if len({(one.benchmark, one.data, one.rules) for one in records}) != 1:
        return None
    by_id: list[Mapping[str, ProbeVerdict]] = [{v.id: v for v in r.verdicts} for r in records]
    shared = [one for one in records[0].verdicts if all(one.id in own for own in by_id)]
    if not shared:
        return None
    verdicts = []
    for one in shared:
        votes = [own[one.id].accepted for own in by_id]
        verdicts.append(replace(one, accepted=_vote(votes, rule), reasoning=""))
    return replace(
        records[0],
        verdicts=tuple(verdicts),
        seed_given=any(one.seed_given for one in records),
        usage=None,
    )


def _vote(votes: Sequence[bool | None], rule: str) -> bool | None:
    if rule == "appeal":
        first, second = votes
        return second if first is False and second is not None else first
    given = [vote for vote in votes if vote is not None]
    if 2 * len(given) < len(votes):
        return None
    return 2 * sum(given) > len(given)
