"""Power of the rule that decides: how often it finds a true difference, and what that needs.

Everything follows from two variance components of the question-wise differences of an earlier
pair: between clusters (τ²) and between the questions of a cluster (σ²).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import erfc, inf, lgamma, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.clustered import (
    ALPHA,
    FEW_CLUSTERS,
    ClusterSums,
    Difference,
    Floats,
    critical_value,
)
from mnemoscope.stats.distributions import chi_square_quantile, t_quantile

POWER = 0.8
DRAWS = 20_000
SEED = 42


class Components(NamedTuple):
    """Variance components of question-wise differences."""

    between: float
    """τ²: between the true means of clusters."""
    within: float
    """σ²: between the questions of one cluster."""


class Detectable(NamedTuple):
    """The difference found with the given power; `low` and `high` are its 80 % limits."""

    delta: float
    low: float
    high: float


class SimulatedPower(NamedTuple):
    """How often the rule gives each verdict, in simulated comparisons."""

    better: float
    worse: float
    equivalent: float

    @property
    def decided(self) -> float:
        return self.better + self.worse


def components(column: ClusterSums) -> Components:
    """Estimate τ² and σ² from one column by the analysis of variance; τ² is at least 0."""
    sizes, sums, squares = (part[:, 0] for part in column)
    n, groups = float(sizes.sum()), len(sizes)
    means = sums / sizes
    inner = float((squares - sizes * means**2).sum())
    if n <= groups:
        # One question in each cluster: the two components cannot be told apart.
        return Components(0.0, max(0.0, float(squares.sum() - sums.sum() ** 2 / n)) / max(1, n - 1))
    within = max(0.0, inner) / (n - groups)
    if groups < 2:
        return Components(0.0, within)
    between = float((sizes * (means - sums.sum() / n) ** 2).sum()) / (groups - 1)
    typical = (n - float((sizes**2).sum()) / n) / (groups - 1)
    return Components(max(0.0, (between - within) / typical), within)


def power_of(effect: float, critical: float, freedom: int) -> float:
    """P(|T| > critical) for Student's t with this noncentrality, which is difference / se."""

    def beyond(scale: float) -> float:
        ends = (critical * scale - effect, critical * scale + effect)
        return sum(erfc(end / sqrt(2)) for end in ends) / 2

    return _mean_over_scales(beyond, freedom)


@lru_cache(maxsize=4096)
def noncentrality(power: float, critical: float, freedom: int) -> float:
    """Return the difference, in standard errors, that is found with this power."""
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, got {power}")
    low, high = 0.0, critical + 1.0
    while power_of(high, critical, freedom) < power:
        low, high = high, 2 * high
    while high - low > 1e-9 * high:
        middle = (low + high) / 2
        if power_of(middle, critical, freedom) < power:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def detectable(row: Difference, critical: float, power: float = POWER) -> Detectable:
    """Return the smallest difference that the rule finds with this power, given a comparison.

    The standard error is itself an estimate from G clusters: the limits are those of an 80 %
    interval for it.
    """
    freedom = (row.n if row.these_only else row.clusters) - 1
    if freedom < 1:
        return Detectable(inf, inf, inf)
    found = noncentrality(power, critical, freedom) * row.se
    low, high = (sqrt(freedom / chi_square_quantile(end, freedom)) for end in (0.9, 0.1))
    return Detectable(found, found * low, found * high)


def simulated_power(
    sizes: ArrayLike,
    parts: Components,
    delta: float,
    *,
    critical: float | None = None,
    band: float | None = None,
    span: float = 1.0,
    draws: int = DRAWS,
    seed: int = SEED,
) -> SimulatedPower:
    """Apply the rule to simulated clusters with a true difference, and count its verdicts."""
    errors, reach = _simulated(sizes, parts, critical, span, draws, seed)
    low, high = delta + errors - reach, delta + errors + reach
    inside = (low >= -band) & (high <= band) if band is not None else np.zeros(draws, dtype=bool)
    return SimulatedPower(
        better=float(((low > 0) & ~inside).mean()),
        worse=float(((high < 0) & ~inside).mean()),
        equivalent=float(inside.mean()),
    )


def simulated_detectable(
    sizes: ArrayLike,
    parts: Components,
    *,
    critical: float | None = None,
    span: float = 1.0,
    power: float = POWER,
    draws: int = DRAWS,
    seed: int = SEED,
) -> float:
    """Return the difference at which `simulated_power` with this seed finds `better` so often.

    Unlike the closed form of `detectable` it also holds for clusters of very unequal sizes. With a
    span of 0 there are no imaginary questions, as if each cluster had endlessly many.
    """
    errors, reach = _simulated(sizes, parts, critical, span, draws, seed)
    return float(np.quantile(reach - errors, power))


def _simulated(
    sizes: ArrayLike,
    parts: Components,
    critical: float | None,
    span: float,
    draws: int,
    seed: int,
) -> tuple[Floats, Floats]:
    """The errors of simulated mean differences, and half the width of their intervals."""
    count = np.asarray(sizes, dtype=np.float64)
    groups, n = len(count), float(count.sum())
    if groups < FEW_CLUSTERS:
        raise ValueError(f"the rule needs at least {FEW_CLUSTERS} clusters, got {groups}")
    if critical is None:
        critical = critical_value(ALPHA, count.tolist())
    random = np.random.default_rng(seed)
    spread = np.sqrt(parts.between + parts.within / count)
    means = spread * random.standard_normal((draws, groups))
    errors = means @ (count / n)
    variance = groups / (groups - 1) * (((means - errors[:, None]) * count / n) ** 2).sum(axis=1)
    return errors, critical * np.sqrt(variance + 2 * span**2 / n**2)


def clusters_needed(
    delta: float,
    parts: Components,
    questions: float,
    *,
    alpha: float = ALPHA,
    power: float = POWER,
    limit: int = 100_000,
) -> int | None:
    """Return the smallest number of clusters, of that many questions each, with this power."""
    if not delta > 0:
        raise ValueError(f"the difference to detect must be positive, got {delta}")
    variance = parts.between + parts.within / questions

    def enough(groups: int) -> bool:
        se = sqrt(variance / groups)
        critical = t_quantile(alpha / 2, groups - 1)
        return se == 0 or power_of(delta / se, critical, groups - 1) >= power

    if not enough(limit):
        return None
    low, high = FEW_CLUSTERS - 1, FEW_CLUSTERS
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if enough(middle):
            high = middle
        else:
            low = middle
    return high


def endless_questions(
    sizes: Sequence[float], parts: Components, critical: float, power: float = POWER
) -> float:
    """The difference found with this power if the clusters had endlessly many questions."""
    weights = np.array(sizes) / sum(sizes)
    se = sqrt(parts.between * float((weights**2).sum()))
    return noncentrality(power, critical, len(sizes) - 1) * se


@lru_cache(maxsize=1)
def _nodes() -> tuple[list[float], list[float]]:
    nodes, weights = np.polynomial.legendre.leggauss(120)
    return nodes.tolist(), weights.tolist()


def _mean_over_scales(value: Callable[[float], float], freedom: int) -> float:
    """The mean of a function of s, where ν s² is χ² with ν degrees of freedom."""
    nodes, weights = _nodes()
    width = 12 / sqrt(2 * freedom)
    low, high = max(0.0, 1 - width), 1 + width
    total = 0.0
    scale = log(2) + freedom / 2 * log(freedom / 2) - lgamma(freedom / 2)
    for node, weight in zip(nodes, weights, strict=True):
        s = low + (high - low) * (node + 1) / 2
        density = np.exp(scale + (freedom - 1) * log(s) - freedom * s * s / 2) if s > 0 else 0.0
        total += weight * float(density) * value(s)
    return total * (high - low) / 2
