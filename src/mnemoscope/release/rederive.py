"""Re-derivation: compute the key statistics again with another seed and other libraries (§4.2).

Exact statistics must agree to the sixth digit; random ones as well as two draws agree.
metrics.json is checked against the rankings.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from statistics import fmean
from typing import NamedTuple

import numpy as np

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import OVERALL, SEED, Comparison, Row
from mnemoscope.release.decide import basis
from mnemoscope.release.state import Moment, Rederivation, Release, same_person

try:
    from mnemoscope.release import independent_stats as again
except ImportError as error:
    feature = "the independent re-derivation of a release's statistics"
    raise MissingExtra(feature, "pip install 'mnemoscope[rederive]'") from error

EXACT = 1e-6
DRAWS = 2_000
TAIL = 0.015
"""Tolerance for the share of draws beyond an interval's end, 2.5 %: four standard errors."""
FEW = 30
"""With fewer differences the t-test and random signs need not agree."""


class _Ledger:
    """The number of repeated statistics, and the disagreements."""

    def __init__(self) -> None:
        self.checked = 0
        self.disagreements: list[str] = []

    def number(self, what: str, reported: float, repeated: float, tolerance: float = EXACT) -> None:
        same = (isnan(reported) and isnan(repeated)) or abs(reported - repeated) <= tolerance
        self.holds(f"{what}: reported {reported:.6g}, repeated {repeated:.6g}", same)

    def holds(self, what: str, true: bool) -> None:
        self.checked += 1
        if not true:
            self.disagreements.append(what)


class _Repeated(NamedTuple):
    """The questions of one run and each metric's values, computed again."""

    questions: dict[str, again.MeasuredQuestion]
    values: dict[str, dict[str, float]]

    def within(self, scope: str) -> list[str]:
        """The questions of a category, or all."""
        return [q for q, one in self.questions.items() if scope in (OVERALL, one.category)]


def rederive(
    release: Release, found: Sequence[Comparison], *, by: str, seed: int, when: Moment
) -> Rederivation:
    """Repeat every statistic of the report that can be repeated from the rankings."""
    if not by.strip() or same_person(by, release.state.author):
        raise UsageError("--name: the report's author cannot repeat the statistics; name another")
    runs = [release.run(record) for record in release.records()]
    if seed in {SEED, *(run.manifest().identity.get("seed") for run in runs)}:
        raise UsageError(f"--seed {seed} is the seed of the report: choose another")
    ledger, dice = _Ledger(), np.random.default_rng(seed)
    reported: dict[str, Row] = {}
    p_values: dict[str, float] = {}
    for pair, comparison in zip(release.state.pairs, found, strict=True):
        sides = {"base": release.run(pair.base), "cand": release.run(pair.cand)}
        metrics = [row.metric for row in comparison.rows]
        repeated = {}
        for side, run in sides.items():
            questions = again.read(run.path)
            repeated[side] = _Repeated(questions, again.values(metrics, questions))
        for row in comparison.rows:
            name = f"{pair.benchmark} {row.scope} {row.metric}"
            reported[name] = row
            p_values[name] = _repeat(ledger, name, row, repeated["base"], repeated["cand"], dice)
        for side, run in sides.items():
            name = f"{pair.benchmark} {side}"
            _repeat_levels(ledger, name, run, repeated[side], comparison.rows)
    for name, p in again.holm(p_values).items():
        ledger.number(f"{name} p_corrected", reported[name].p_corrected, p, 1e-4)
    return Rederivation(by, seed, when, basis(found), ledger.checked, ledger.disagreements)


def _repeat(
    ledger: _Ledger,
    name: str,
    row: Row,
    before: _Repeated,
    after: _Repeated,
    dice: np.random.Generator,
) -> float:
    """Repeat one row of a comparison and return its p_raw."""
    paired = [q for q in before.within(row.scope) if q in after.questions]
    ledger.holds(f"{name}: {row.n} questions reported, {len(paired)} found", row.n == len(paired))
    if not paired:
        return row.p_raw
    base = [before.values[row.metric][q] for q in paired]
    cand = [after.values[row.metric][q] for q in paired]
    deltas = [new - old for old, new in zip(base, cand, strict=True)]
    ledger.number(f"{name} base", row.base, fmean(base))
    ledger.number(f"{name} candidate", row.cand, fmean(cand))
    ledger.number(f"{name} delta", row.delta, fmean(deltas))
    if row.effect_name == "h":
        p = again.mcnemar(sum(d > 0 for d in deltas), sum(d < 0 for d in deltas))
        effect = again.cohens_h(fmean(base), fmean(cand))
    else:
        p, effect = again.t_test(deltas), again.effect_size(deltas)
    ledger.number(f"{name} p_raw", row.p_raw, p)
    ledger.number(f"{name} {row.effect_name}", row.effect, effect)
    if row.scope == OVERALL:
        clusters = [before.questions[q].cluster for q in paired]
        _repeat_draws(ledger, name, row, deltas, clusters, dice)
    return p


def _repeat_draws(
    ledger: _Ledger,
    name: str,
    row: Row,
    deltas: Sequence[float],
    clusters: Sequence[str],
    dice: np.random.Generator,
) -> None:
    means = again.resampled(deltas, clusters, DRAWS, dice)
    units = len(set(clusters)) if len(set(clusters)) > 1 else len(deltas)
    centre, wider = fmean(deltas), again.widening(units)
    for end, widened, inward in (("lower", row.ci95[0], 1), ("upper", row.ci95[1], -1)):
        bound = centre + (widened - centre) / wider
        # Means of few clusters take few values: an end must lie between strict and weak tail.
        strict, weak = (((bound - means) * inward > edge).mean() for edge in (1e-9, -1e-9))
        ledger.holds(
            f"{name}: {100 * strict:.1f} to {100 * weak:.1f} % of {DRAWS} draws lie beyond the "
            f"{end} end of the interval, expected 2.5 %",
            bool(strict <= 0.025 + TAIL and weak >= 0.025 - TAIL),
        )
    if row.effect_name != "h" and sum(d != 0 for d in deltas) >= FEW:
        flipped = again.sign_flips(deltas, DRAWS, dice)
        ledger.number(f"{name} p by random signs", row.p_raw, flipped, 0.03)


def _repeat_levels(
    ledger: _Ledger, name: str, run: RunDirectory, repeated: _Repeated, rows: Sequence[Row]
) -> None:
    """Check the figures of metrics.json against the rankings."""
    recorded = run.read_json("metrics.json")
    for row in rows:
        overall = row.scope == OVERALL
        scope = recorded["overall"] if overall else recorded["by_category"].get(row.scope, {})
        figure = scope.get(row.metric, {"mean": float("nan"), "n": 0})
        values = [repeated.values[row.metric][q] for q in repeated.within(row.scope)]
        what = f"{name} {row.scope} {row.metric} in metrics.json"
        ledger.number(what, figure["mean"], fmean(values))
        ledger.holds(f"{what}: n {figure['n']}, found {len(values)}", figure["n"] == len(values))
        if row.effect_name == "h" and figure["n"]:
            ends = figure["ci95"]
            wilson = again.wilson(round(sum(values)), len(values))
            same = all(abs(x - y) <= EXACT for x, y in zip(ends, wilson, strict=True))
            ledger.holds(f"{what}: {ends} is not Wilson's interval", same)
