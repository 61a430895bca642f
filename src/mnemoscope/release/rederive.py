"""Re-derivation: compute the key statistics again with another seed and other libraries (§4.2).

Exact statistics must agree to the sixth digit; random ones as well as two draws agree.
metrics.json is checked against the rankings.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan, sqrt
from statistics import fmean
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import SEED
from mnemoscope.analysis.comparison import OVERALL, Comparison, Row
from mnemoscope.release.decide import basis
from mnemoscope.release.people import check_name, look_alike
from mnemoscope.release.state import Moment, Rederivation, Release

try:
    from mnemoscope.release import independent_stats as again
except ImportError as error:
    feature = "the independent re-derivation of a release's statistics"
    raise MissingExtra(feature, "pip install 'mnemoscope[rederive]'") from error

EXACT = 1e-6
DRAWS = 4_000
SLACK = 0.003
"""The error of the report's own simulation, added to four standard errors of the repeated one."""


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
    by = check_name(by)
    if look_alike(by, release.state.author):
        raise UsageError("--name: the report's author cannot repeat the statistics; name another")
    runs = [release.run(record) for record in release.records()]
    if seed in {SEED, *(run.manifest().identity.get("seed") for run in runs)}:
        raise UsageError(f"--seed {seed} is the seed of the report: choose another")
    ledger, dice = _Ledger(), np.random.default_rng(seed)
    for pair, comparison in zip(release.state.pairs, found, strict=True):
        sides = {"base": release.run(pair.base), "cand": release.run(pair.cand)}
        metrics = [row.metric for row in comparison.rows]
        repeated = {}
        for side, run in sides.items():
            questions = again.read(run.path)
            repeated[side] = _Repeated(questions, again.values(metrics, questions))
        both = (repeated["base"], repeated["cand"])
        maxima = _maxima(comparison, *both, dice)
        for row in comparison.rows:
            name = f"{pair.benchmark} {row.scope} {row.metric}"
            _repeat(ledger, name, row, *both, comparison.declared.alpha, maxima)
        for side, run in sides.items():
            name = f"{pair.benchmark} {side}"
            _repeat_levels(ledger, name, run, repeated[side], comparison.rows)
    return Rederivation(by, seed, when, basis(found), ledger.checked, ledger.disagreements)


class _Maxima(NamedTuple):
    """The simulated family of the secondary metrics; without values Bonferroni corrects it."""

    values: NDArray[np.float64]
    tests: int


def _deltas(
    row: Row, before: _Repeated, after: _Repeated
) -> tuple[list[str], list[float], list[float]]:
    """The questions that both runs measured, with the values of each."""
    paired = [q for q in before.within(row.scope) if q in after.questions]
    base, cand = ([one.values[row.metric][q] for q in paired] for one in (before, after))
    return paired, base, cand


def _maxima(
    comparison: Comparison, before: _Repeated, after: _Repeated, dice: np.random.Generator
) -> _Maxima:
    means, sizes = [], np.empty(0)
    rows = [row for row in comparison.rows if row.role == "secondary"]
    for row in rows:
        paired, base, cand = _deltas(row, before, after)
        if not paired:
            continue
        clusters = [before.questions[q].cluster for q in paired]
        deltas = [new - old for old, new in zip(base, cand, strict=True)]
        _, sizes, own = again.clustered(deltas, clusters)
        if np.ptp(own) > 1e-12:
            means.append(own)
    if len(sizes) < again.FEW_CLUSTERS:
        return _Maxima(np.empty(0), len(rows))
    if len(means) < 2:
        return _Maxima(np.empty(0), 1)
    return _Maxima(again.largest(np.array(means).T, sizes, DRAWS, dice), len(means))


def _repeat(
    ledger: _Ledger,
    name: str,
    row: Row,
    before: _Repeated,
    after: _Repeated,
    alpha: float,
    maxima: _Maxima,
) -> None:
    """Repeat one row of a comparison."""
    paired, base, cand = _deltas(row, before, after)
    ledger.holds(f"{name}: {row.n} questions reported, {len(paired)} found", row.n == len(paired))
    if not paired:
        return
    deltas = [new - old for old, new in zip(base, cand, strict=True)]
    se, sizes, _ = again.clustered(deltas, [before.questions[q].cluster for q in paired])
    delta = fmean(deltas)
    ledger.number(f"{name} base", row.base, fmean(base))
    ledger.number(f"{name} candidate", row.cand, fmean(cand))
    ledger.number(f"{name} delta", row.delta, delta)
    ledger.number(f"{name} standard error", row.se, se)
    proportion = row.effect_name == "h"
    effect = again.cohens_h(fmean(base), fmean(cand)) if proportion else again.effect_size(deltas)
    ledger.number(f"{name} {row.effect_name}", row.effect, effect)
    for end, sign in ((row.ci95[0], -1), (row.ci95[1], 1)):
        ledger.number(f"{name} end of the interval", end, delta + sign * row.critical * se)
    statistic = abs(delta) / se
    if row.role == "secondary" and len(maxima.values):
        _repeat_share(ledger, f"{name} p", row.p, float((maxima.values >= statistic).mean()))
        beyond = float((maxima.values > row.critical).mean())
        _repeat_share(ledger, f"{name} share beyond the interval", alpha, beyond)
        return
    tests = maxima.tests if row.role == "secondary" else 1
    ledger.number(f"{name} p", row.p, min(1.0, tests * again.tail(statistic, sizes)), 1e-5)
    expected = min(again.critical(alpha / tests, sizes), 2 * row.span / se)
    ledger.number(f"{name} critical value", row.critical, expected, 1e-4 * expected)


def _repeat_share(ledger: _Ledger, what: str, reported: float, repeated: float) -> None:
    noise = 4 * sqrt(max(reported * (1 - reported), 1 / DRAWS) / DRAWS)
    ledger.number(what, reported, repeated, noise + SLACK)


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
        if figure["n"]:
            ends = figure["ci95"]
            clusters = [repeated.questions[q].cluster for q in repeated.within(row.scope)]
            interval = again.level(values, clusters)
            same = all(abs(x - y) <= EXACT for x, y in zip(ends, interval, strict=True))
            ledger.holds(f"{what}: {ends} is not the clustered interval {interval}", same)
