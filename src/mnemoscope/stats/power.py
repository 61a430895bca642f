"""What a comparison could have seen: the minimum detectable difference, and power.

Normal approximations of two-sided tests. A difference below the minimum detectable one (MDD) may
be real, but a run of this size would miss it more often than `1 - power` says.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.distributions import normal_cdf, normal_quantile


def mdd_unpaired(
    p: float, n1: float, n2: float, *, alpha: float = 0.05, power: float = 0.8
) -> float:
    """(z_{1-alpha/2} + z_power) sqrt(p (1 - p) (1/n1 + 1/n2)): two samples with rates near p."""
    return _reach(alpha, power) * sqrt(_variance(p) * (1 / _sized(n1) + 1 / _sized(n2)))


def mdd_paired(sd_of_deltas: float, n: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """(z_{1-alpha/2} + z_power) sd / sqrt(n), for the mean of n differences."""
    return _reach(alpha, power) * _spread(sd_of_deltas) / sqrt(_sized(n))


def mdd_mcnemar(discordance: float, n: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """`mdd_paired` of hits, of which the share `discordance` differs: their variance is it.

    It is the variance without a difference; with one it is less by its square (Connor,
    Biometrics 43, 1987), so that this errs on the large side, by 1 % at 10 % and n = 96.
    """
    _variance(discordance)
    return mdd_paired(sqrt(discordance), n, alpha=alpha, power=power)


def power_unpaired(p1: float, p2: float, n1: float, n2: float, *, alpha: float = 0.05) -> float:
    """The chance that the n-weighted two-proportion z-test rejects when the rates are p1 and p2.

    The critical difference has the pooled rate's error, the observed one its own (Fleiss 1981).
    """
    each = 1 / _sized(n1) + 1 / _sized(n2)
    assumed = sqrt(_variance((n1 * p1 + n2 * p2) / (n1 + n2)) * each)
    actual = sqrt(_variance(p1) / n1 + _variance(p2) / n2)
    return _beyond(abs(p2 - p1), assumed * _critical(alpha), actual)


def power_paired(delta: float, sd_of_deltas: float, n: float, *, alpha: float = 0.05) -> float:
    """The chance that a paired test of n differences with this mean and spread rejects."""
    error = _spread(sd_of_deltas) / sqrt(_sized(n))
    return _beyond(abs(delta), error * _critical(alpha), error)


def effective_n(values: ArrayLike, clusters: Sequence[str]) -> float:
    """How many independent values the clustered ones are worth: n / (1 + (m - 1) ρ).

    m is Σ sizes² / n (Kish, Survey Sampling, 1965), ρ the intraclass correlation from a one-way
    analysis of variance, (B - W) / (B + (m0 - 1) W) with m0 = (n - m) / (k - 1), not below 0:
    what a few clusters show by chance shall not make a sample larger. Where ρ cannot be known,
    with one cluster, or one value in each, n is returned as it is. NaN is left out.
    """
    given = np.asarray(values, dtype=np.float64)
    if given.ndim != 1 or len(given) != len(clusters):
        raise ValueError(
            f"values must be one list with a cluster for each: "
            f"got shape {given.shape} and {len(clusters)} clusters"
        )
    present = ~np.isnan(given)
    given = given[present]
    _, member = np.unique(np.asarray(clusters)[present], return_inverse=True)
    n = len(given)
    sizes = np.bincount(member)
    k = len(sizes)
    if k < 2 or k == n:
        return float(n)
    means = np.bincount(member, weights=given) / sizes
    within = float(((given - means[member]) ** 2).sum()) / (n - k)
    between = float((sizes * (means - given.mean()) ** 2).sum()) / (k - 1)
    weighted = float((sizes**2).sum()) / n
    typical = (n - weighted) / (k - 1)
    total = between + (typical - 1) * within
    correlation = max(0.0, (between - within) / total) if total > 0 else 0.0
    return n / (1 + (weighted - 1) * correlation)


def _reach(alpha: float, power: float) -> float:
    if not 0 < power < 1:
        raise ValueError(f"power must lie between 0 and 1, got {power}")
    return _critical(alpha) + normal_quantile(power)


def _critical(alpha: float) -> float:
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    return normal_quantile(1 - alpha / 2)


def _variance(rate: float) -> float:
    if not 0 <= rate <= 1:
        raise ValueError(f"{rate} is no proportion")
    return rate * (1 - rate)


def _spread(sd: float) -> float:
    if not sd >= 0:
        raise ValueError(f"a standard deviation cannot be {sd}")
    return sd


def _sized(n: float) -> float:
    if not n > 0:
        raise ValueError(f"a sample of {n} can detect nothing")
    return n


def _beyond(delta: float, critical: float, error: float) -> float:
    """P(|X| > critical) for X normal around delta."""
    if error == 0:
        return float(delta > critical)
    return normal_cdf((delta - critical) / error) + normal_cdf((-delta - critical) / error)
