"""Re-derivation: key statistics again, with another seed and by another implementation (§4.2).

What can be exact must agree to the sixth digit; what is drawn at random must agree as well as two
draws do. metrics.json is checked against the rankings, not against itself.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from math import isnan
from typing import Any

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import OVERALL, SEED, Comparison, Row
from mnemoscope.release import independent_stats
from mnemoscope.release.figures import basis
from mnemoscope.release.state import Rederivation, Release, same_person
from mnemoscope.release.timestamps import Moment

EXACT = 1e-6
DRAWS = 2_000
TAIL = 0.015
"""How far the share of draws beyond an interval's end may be from 2.5 %: four times its error."""
FEW = 30
"""With fewer differences the t-test and random signs need not agree."""


class _Ledger:
    """What was repeated, and where the two disagree."""

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


class _Both:
    """The same questions of base and candidate, read anew."""

    def __init__(self, base: RunDirectory, cand: RunDirectory) -> None:
        self.runs = {
            "base": independent_stats.read(base.path),
            "cand": independent_stats.read(cand.path),
        }
        before, after = self.runs["base"], self.runs["cand"]
        self.pairs = [(before[q], after[q]) for q in before if q in after]

    def values(self, metric: str, scope: str) -> tuple[list[float], list[float], list[str]]:
        """Base, candidate and cluster of every question in the scope."""
        chosen = [p for p in self.pairs if scope in (OVERALL, p[0].category)]
        return (
            [independent_stats.value(metric, before) for before, _ in chosen],
            [independent_stats.value(metric, after) for _, after in chosen],
            [before.cluster for before, _ in chosen],
        )


def rederive(
    release: Release, found: Sequence[Comparison], *, by: str, seed: int, when: Moment
) -> Rederivation:
    """Repeat every statistic of the report that can be repeated from the rankings."""
    if not by.strip() or same_person(by, release.state.author):
        raise UsageError("the statistics are repeated by somebody else than the report's author")
    if seed in _own_seeds(release):
        raise UsageError(f"seed {seed} is the report's own: repeat the statistics with another")
    ledger, dice = _Ledger(), random.Random(seed)
    p_values: dict[str, float] = {}
    for pair, comparison in zip(release.state.pairs, found, strict=True):
        runs = release.run(pair.base), release.run(pair.cand)
        both = _Both(*runs)
        for row in comparison.rows:
            name = f"{pair.benchmark} {row.scope} {row.metric}"
            p_values[name] = _repeat(ledger, name, row, both, dice)
        for side, run in zip(both.runs, runs, strict=True):
            _repeat_levels(ledger, f"{pair.benchmark} {side}", run, both.runs[side], comparison)
    corrected = independent_stats.holm(p_values)
    for pair, comparison in zip(release.state.pairs, found, strict=True):
        for row in comparison.rows:
            name = f"{pair.benchmark} {row.scope} {row.metric}"
            ledger.number(f"{name} p_corrected", row.p_corrected, corrected[name], 1e-4)
    return Rederivation(by, seed, when, basis(found), ledger.checked, ledger.disagreements)


def _own_seeds(release: Release) -> set[object]:
    """The seeds of the runs and of the comparison's draws."""
    return {SEED, *(release.run(one).manifest().identity.get("seed") for one in release.records())}


def _repeat(ledger: _Ledger, name: str, row: Row, both: _Both, dice: random.Random) -> float:
    """One row of a comparison; its p_raw as repeated."""
    base, cand, clusters = both.values(row.metric, row.scope)
    ledger.holds(f"{name}: {row.n} questions reported, {len(base)} found", row.n == len(base))
    if not base:
        return row.p_raw
    deltas = [after - before for before, after in zip(base, cand, strict=True)]
    ledger.number(f"{name} base", row.base, independent_stats.mean(base))
    ledger.number(f"{name} candidate", row.cand, independent_stats.mean(cand))
    ledger.number(f"{name} delta", row.delta, independent_stats.mean(deltas))
    if row.effect_name == "h":
        gained, lost = sum(d > 0 for d in deltas), sum(d < 0 for d in deltas)
        p = independent_stats.mcnemar(gained, lost)
        effect = independent_stats.cohens_h(
            independent_stats.mean(base), independent_stats.mean(cand)
        )
    else:
        sd = independent_stats.spread(deltas)
        p, effect = (
            independent_stats.t_test(deltas),
            independent_stats.mean(deltas) / sd if sd else 0.0,
        )
    ledger.number(f"{name} p_raw", row.p_raw, p)
    ledger.number(f"{name} {row.effect_name}", row.effect, effect)
    if row.scope == OVERALL:
        _repeat_draws(ledger, name, row, deltas, clusters, dice)
    return p


def _repeat_draws(
    ledger: _Ledger,
    name: str,
    row: Row,
    deltas: Sequence[float],
    clusters: Sequence[str],
    dice: random.Random,
) -> None:
    means = independent_stats.resampled(deltas, clusters, DRAWS, dice)
    units = len(set(clusters)) if len(set(clusters)) > 1 else len(deltas)
    centre, wider = independent_stats.mean(deltas), independent_stats.widening(units)
    for end, widened, inward in (("lower", row.ci95[0], 1), ("upper", row.ci95[1], -1)):
        bound = centre + (widened - centre) / wider
        # Means of few clusters come in steps: an end must lie between the strict and the weak tail.
        strict = sum((bound - m) * inward > 1e-9 for m in means) / DRAWS
        weak = sum((bound - m) * inward > -1e-9 for m in means) / DRAWS
        ledger.holds(
            f"{name}: {100 * strict:.1f} to {100 * weak:.1f} % of {DRAWS} draws lie beyond the "
            f"{end} end of the interval, 2.5 % should",
            strict <= 0.025 + TAIL and weak >= 0.025 - TAIL,
        )
    if row.effect_name != "h" and sum(d != 0 for d in deltas) >= FEW:
        flipped = independent_stats.sign_flips(deltas, DRAWS, dice)
        ledger.number(f"{name} p by random signs", row.p_raw, flipped, 0.03)


def _repeat_levels(
    ledger: _Ledger,
    name: str,
    run: RunDirectory,
    asked: dict[str, independent_stats.Asked],
    comparison: Comparison,
) -> None:
    """The figures of metrics.json, against the rankings."""
    recorded: dict[str, Any] = run.read_json("metrics.json")
    for row in comparison.rows:
        overall = row.scope == OVERALL
        scope = recorded["overall"] if overall else recorded["by_category"].get(row.scope, {})
        figure = scope.get(row.metric, {"mean": float("nan"), "n": 0})
        values = [
            independent_stats.value(row.metric, one)
            for one in asked.values()
            if overall or one.category == row.scope
        ]
        what = f"{name} {row.scope} {row.metric} in metrics.json"
        ledger.number(what, figure["mean"], independent_stats.mean(values))
        ledger.holds(f"{what}: n {figure['n']}, found {len(values)}", figure["n"] == len(values))
        if row.effect_name == "h" and figure["n"]:
            ends = figure["ci95"]
            ledger.holds(
                f"{what}: {ends} is not Wilson's interval",
                all(
                    independent_stats.wilson_error(independent_stats.mean(values), len(values), x)
                    < EXACT
                    for x in ends
                ),
            )


def is_fresh(release: Release, found: Sequence[Comparison]) -> bool:
    """Whether the recorded re-derivation is of these figures."""
    done = release.state.rederived
    return done is not None and done.basis == basis(found)
