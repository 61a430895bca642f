"""The cells of the calibration page for several metrics and for planned power."""

from __future__ import annotations

from functools import lru_cache
from math import sqrt
from typing import NamedTuple

import numpy as np

from calibration_cells import Bound, Cell, Facts, Plan, Task
from calibration_models import (
    BINARY,
    CATEGORIES,
    DESIGNS,
    LOCOMO,
    METRICS,
    NOISY,
    Changes,
    Random,
    Rankings,
    correlated_means,
)
from calibration_rules import (
    Bools,
    Estimates,
    MaxT,
    Tail,
    differences,
    holm,
    mcnemar,
    paired_t,
)
from mnemoscope.stats.clustered import ALPHA, Floats, critical_value
from mnemoscope.stats.power import Components, power_of, simulated_power

NULL = "False verdicts of six metrics"
GAUSSIAN = "Simultaneous intervals of five metrics"
POWER = "Power of the rule"
PLANNED = "Planned power"
ERROR = Bound(0.0, 0.055)
CLUSTERING = {"no clustering": 0.0, "real clustering": 0.05, "strong clustering": 0.1}
"""The standard deviation of a system's effect on the logarithm of a conversation's ranks."""
SHIFTS = (0.036, 0.065, 0.125, 0.195)
"""By how much the better system lowers the logarithm of all ranks."""
_BLOCK = 100

_FALSE = {  # the procedures in order, for each clustering
    "no clustering": (0.046, 0.051, 0.046, 0.024, 0.012, 0.021, 0.013),
    "real clustering": (0.041, 0.047, 0.047, 0.027, 0.011, 0.174, 0.084),
    "strong clustering": (0.042, 0.042, 0.040, 0.014, 0.012, 0.413, 0.208),
}
_MISSED: dict[
    tuple[str, str], tuple[tuple[tuple[float, float] | None, ...], int]
] = {  # for correlations of 0.5 and 0.9, then the repetitions
    ("LoCoMo", "normal"): (((0.050, 0.050), (0.044, 0.044)), 2_000),
    ("20 equal", "normal"): (((0.046, 0.046), (0.051, 0.051)), 2_000),
    ("5 equal", "normal"): (((0.054, 0.054), (0.039, 0.039)), 700),
    ("6 equal", "normal"): (((0.064, 0.064), (0.051, 0.051)), 700),
    ("10 very unequal (900…7)", "normal"): (((0.047, 0.047), (0.030, 0.030)), 700),
    ("LoCoMo", NOISY): (((0.080, 0.106), (0.080, 0.106)), 2_000),
    ("20 equal", NOISY): (((0.069, 0.074), (0.069, 0.074)), 2_000),
    ("LoCoMo", "skewed"): ((None, None), 0),
    ("20 equal", "skewed"): ((None, None), 0),
}
_FOUND = {  # primary and mean of secondaries: Holm over 36, gate + max-T
    "no clustering": (
        ((0.01, 0.09), (0.25, 0.13)),
        ((0.06, 0.39), (0.59, 0.43)),
        ((0.51, 0.76), (0.98, 0.92)),
        ((0.86, 0.94), (1.00, 1.00)),
    ),
    "strong clustering": (
        ((0.00, 0.00), (0.10, 0.03)),
        ((0.02, 0.02), (0.26, 0.13)),
        ((0.06, 0.14), (0.67, 0.51)),
        ((0.36, 0.51), (0.94, 0.90)),
    ),
}
_PLANNED = {
    "no clustering": ("21.9 → 23.5", "63.6 → 62.4", "91.4 → 87.0", "98.5 → 95.8"),
    "real clustering": ("16.1 → 17.1", "43.5 → 42.3", "77.8 → 72.7", "94.2 → 89.4"),
    "strong clustering": ("9.1 → 10.1", "24.8 → 24.9", "47.7 → 44.4", "69.2 → 65.3"),
}


def tasks() -> list[Task]:
    """All simulations of this module, in the order of the page."""
    return [
        *(_null(clustering) for clustering in CLUSTERING),
        *(
            _gaussian(design, kind, correlation, Facts(*ends, count) if ends else None)
            for (design, kind), (facts, count) in _MISSED.items()
            for correlation, ends in zip((0.5, 0.9), facts, strict=True)
        ),
        *(_power(name, place) for name in _FOUND for place in range(len(SHIFTS))),
        *(_planned_ranking(name, place) for name in CLUSTERING for place in range(len(SHIFTS))),
        *(planned_changes(name) for name in SETTINGS),
    ]


class Comparisons(NamedTuple):
    """Sums and squares of repetitions x conversations x categories x metrics."""

    sums: Floats
    squares: Floats

    @property
    def overall(self) -> Floats:
        """Cluster sums over all categories: repetitions x metrics x conversations."""
        return np.moveaxis(self.sums.sum(axis=2), 1, 2)


@lru_cache(maxsize=1)
def rankings() -> Rankings:
    return Rankings()


@lru_cache(maxsize=8)
def _max_t(design: str, columns: int) -> MaxT:
    return MaxT(DESIGNS[design], columns)


@lru_cache(maxsize=1)
def _tails() -> list[Tail]:
    """The tails of the scopes: each category, then all questions."""
    scopes = [rankings().category_sizes[:, place] for place in range(CATEGORIES)]
    return [Tail(sizes.astype(float).tolist()) for sizes in [*scopes, LOCOMO]]


def draw(clustering: float, shift: float, random: Random, count: int) -> Comparisons:
    drawn = [
        rankings().draw(clustering, shift, random, min(_BLOCK, count - start))
        for start in range(0, count, _BLOCK)
    ]
    return Comparisons(*(np.concatenate(part) for part in zip(*drawn, strict=True)))


class Family(NamedTuple):
    """The verdicts of the rule on six metrics: repetitions x metrics."""

    rows: Estimates
    primary: Bools
    secondaries: Bools
    guarded: Bools
    """Whether each metric differs by the intervals that are simultaneous over all six."""


def decide(found: Comparisons) -> Family:
    """Primary metric, simultaneous secondaries, and the guard of a release."""
    rows = differences(LOCOMO, found.overall)
    means = found.sums.sum(axis=2) / LOCOMO[:, None]
    primary = rows.statistic[:, 0] > critical_value(ALPHA, LOCOMO.tolist())
    secondaries = _max_t("LoCoMo", len(METRICS) - 1).decided(means[..., 1:], rows.statistic[:, 1:])
    guarded = _max_t("LoCoMo", len(METRICS)).decided(means, rows.statistic)
    return Family(rows, primary, secondaries, guarded)


def _by_scope(values: Floats) -> Floats:
    """Each category, then all questions, along the axis of categories."""
    return np.concatenate([values, values.sum(axis=-2, keepdims=True)], axis=-2)


def holm_of_questions(found: Comparisons) -> Bools:
    """Holm over 36 p-values that ignore conversations: McNemar's for hits, else Student's t."""
    sums, squares = (_by_scope(part.sum(axis=1)) for part in found)
    n = _by_scope(rankings().category_sizes.sum(axis=0)[:, None].astype(float))
    p = paired_t(sums, squares, n)
    for place in BINARY:
        p[..., place] = mcnemar(sums[..., place], squares[..., place])
    return holm(p.reshape(len(p), -1)).reshape(p.shape)


def holm_of_clusters(found: Comparisons) -> Bools:
    """Holm over 36 p-values of the clustered rule."""
    scopes = _by_scope(found.sums)
    sizes = _by_scope(rankings().category_sizes[..., None].astype(float))[..., 0]
    p = np.empty((len(scopes), CATEGORIES + 1, len(METRICS)))
    for place, tail in enumerate(_tails()):
        cluster_sums = np.moveaxis(scopes[:, :, place, :], 1, 2)
        p[:, place] = tail(differences(sizes[:, place], cluster_sums).statistic)
    return holm(p.reshape(len(p), -1)).reshape(p.shape)


def _null(clustering: str) -> Task:
    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        found = draw(CLUSTERING[clustering], 0.0, random, count)
        rule = decide(found)
        below = rule.rows.delta < 0
        iid, exact = holm_of_questions(found), holm_of_clusters(found)
        worse = _by_scope(found.sums.sum(axis=1)) < 0
        any_secondary = _any(rule.secondaries)
        false: list[tuple[str, Bools, bool]] = [
            ("gate + max-T: any false verdict", rule.primary | rule.primary & any_secondary, True),
            ("secondaries alone, simultaneous", any_secondary, True),
            ("guard of a release: any false verdict", _any(rule.guarded), True),
            ("guard of a release: false HOLD", _any(rule.guarded & below), True),
            ("Holm over 36, clustered p", _any(exact), False),
            ("Holm over 36, p ignores clusters", _any(iid), False),
            ("the same: false HOLD", _any(iid & worse), False),
        ]
        effective = _effective(found)
        label = f"{clustering}: n_eff {effective[0]:,.0f} / {effective[-1]:,.0f}"
        return [
            Cell(
                NULL,
                (label, name),
                float(wrong.mean()),
                count,
                ERROR if ours else None,
                Facts(fact, fact, 900, comparable=ours),
            )
            for (name, wrong, ours), fact in zip(false, _FALSE[clustering], strict=True)
        ]

    return Task(NULL, clustering, 10_000, simulate)


def _any(verdicts: Bools) -> Bools:
    """Whether a repetition has at least one of these verdicts."""
    found: Bools = np.asarray(verdicts.reshape(len(verdicts), -1).any(axis=1))
    return found


def _effective(found: Comparisons) -> Floats:
    """How many independent questions each metric's pooled mean is worth."""
    n = LOCOMO.sum()
    pooled = found.sums.sum(axis=(1, 2)) / n
    single = found.squares.sum(axis=(1, 2)).mean(axis=0) / n - pooled.mean(axis=0) ** 2
    effective: Floats = single / pooled.var(axis=0)
    return effective


def _gaussian(design: str, kind: str, correlation: float, facts: Facts | None) -> Task:
    """Five metrics whose conversation means have equal variances, the model of the rule."""
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        means = correlated_means(len(sizes), 5, correlation, kind, random, count)
        # The range of a metric is so small here that the imaginary questions do not matter.
        rows = differences(sizes, np.moveaxis(means * sizes[:, None], 1, 2), span=1e-6)
        missed = _max_t(design, 5).decided(means, rows.statistic).any(axis=1)
        required = ERROR if kind == "normal" else None
        labels = (design, kind, f"{correlation:g}")
        return [Cell(GAUSSIAN, labels, float(missed.mean()), count, required, facts)]

    return Task(GAUSSIAN, f"{design}, {kind}, {correlation:g}", 40_000, simulate)


def _power(clustering: str, place: int) -> Task:
    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        found = draw(CLUSTERING[clustering], SHIFTS[place], random, count)
        rule = decide(found)
        better = rule.rows.delta > 0
        exact = holm_of_clusters(found)[:, -1, :] & better
        confirmed = rule.secondaries & rule.primary[:, None] & better[:, 1:]
        truth = 100 * rule.rows.delta[:, 0].mean()
        rates = (
            ("Holm over 36", (exact[:, 0], exact[:, 1:])),
            ("gate + max-T", (rule.primary & better[:, 0], confirmed)),
        )
        facts = _FOUND[clustering][place]
        return [
            Cell(
                POWER,
                (clustering, f"{truth:.1f} pp", procedure, what),
                float(right.mean()),
                count,
                None,
                Facts(fact, fact, 350, comparable=False),
            )
            for (procedure, parts), known in zip(rates, facts, strict=True)
            for what, right, fact in zip(("primary", "secondaries"), parts, known, strict=True)
        ]

    return Task(POWER, f"{clustering}, {SHIFTS[place]}", 2_000, simulate)


def _components(found: Comparisons) -> Components:
    """The variance components of the primary metric, averaged over all repetitions."""
    sums = found.sums[..., 0].sum(axis=2)
    squares = found.squares[..., 0].sum(axis=(1, 2))
    n, groups = LOCOMO.sum(), len(LOCOMO)
    means = sums / LOCOMO
    pooled = sums.sum(axis=1) / n
    within = float((squares - (LOCOMO * means**2).sum(axis=1)).mean() / (n - groups))
    between = float((LOCOMO * (means - pooled[:, None]) ** 2).sum(axis=1).mean() / (groups - 1))
    typical = (n - (LOCOMO**2).sum() / n) / (groups - 1)
    return Components(max(0.0, (between - within) / typical), within)


def plan(
    setting: str, sizes: Floats, parts: Components, delta: float, better: Bools, facts: str = ""
) -> Plan:
    weights = sizes / sizes.sum()
    critical = critical_value(ALPHA, sizes.tolist())
    se = sqrt(float((weights**2 * (parts.between + parts.within / sizes)).sum()))
    return Plan(
        setting,
        delta,
        float(better.mean()),
        len(better),
        simulated_power(sizes, parts, delta).better,
        power_of(delta / se, critical, len(sizes) - 1),
        delta <= 0.0125,
        facts,
    )


def _planned_ranking(clustering: str, place: int) -> Task:
    """The power of the primary metric, planned from the true components of the rankings."""

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        found = draw(CLUSTERING[clustering], SHIFTS[place], random, count)
        rows = differences(LOCOMO, found.overall[:, 0])
        better = rows.delta > critical_value(ALPHA, LOCOMO.tolist()) * rows.se
        name = f"rankings on LoCoMo, {clustering}"
        delta = float(rows.delta.mean())
        return [plan(name, LOCOMO, _components(found), delta, better, _PLANNED[clustering][place])]

    return Task(PLANNED, f"{clustering}, {SHIFTS[place]}", 8_000, simulate)


SETTINGS: dict[str, tuple[str, Changes]] = {
    "hits on LoCoMo, 5 % changed, no clustering": ("LoCoMo", Changes(0.05, 0.01, 0.0)),
    "hits on LoCoMo, 10 % changed, real clustering": ("LoCoMo", Changes(0.1, 0.01, 0.015)),
    "hits on LoCoMo, 10 % changed, strong clustering": ("LoCoMo", Changes(0.1, 0.01, 0.03)),
    "hits in 20 conversations of 100, 10 % changed": ("20 equal", Changes(0.1, 0.012, 0.015)),
    "hits in 5 conversations of 100, 10 % changed": ("5 equal", Changes(0.1, 0.012, 0.015)),
    "hits in 10 very unequal conversations": (
        "10 very unequal (900…7)",
        Changes(0.1, 0.012, 0.015),
    ),
    "hits on LoCoMo, 15 % changed, real clustering": ("LoCoMo", Changes(0.15, 0.03, 0.02)),
    "hits in 20 conversations of 100, 15 % changed": ("20 equal", Changes(0.15, 0.03, 0.02)),
    "hits in 5 conversations of 100, 15 % changed": ("5 equal", Changes(0.15, 0.05, 0.02)),
    "hits of 469 single questions, 8 % changed": ("469 single questions", Changes(0.08, 0.03, 0.0)),
}


def planned_changes(name: str) -> Task:
    """The power for gained and lost hits, planned from their true components."""
    design, model = SETTINGS[name]
    sizes = DESIGNS[design]

    def simulate(random: Random, count: int) -> list[Cell | Plan]:
        truth, parts = model.truth()
        critical = critical_value(ALPHA, sizes.tolist())
        found: list[Bools] = []
        for start in range(0, count, 2_000):
            sums, _, _ = model.draw(sizes, random, min(2_000, count - start))
            rows = differences(sizes, sums)
            found.append(rows.delta > critical * rows.se)
        return [plan(name, sizes, parts, truth, np.concatenate(found))]

    return Task(PLANNED, name, 20_000, simulate)
