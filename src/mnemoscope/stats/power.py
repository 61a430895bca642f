"""The minimum detectable difference (MDD) of a comparison.

These are normal approximations of two-sided tests. A difference below the MDD may be real, but a
run of this size misses it with a probability above `1 - power`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.distributions import normal_quantile


def mdd_paired(sd_of_deltas: float, n: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """(z_{1-alpha/2} + z_power) sd / sqrt(n), for the mean of n differences."""
    for name, share in (("alpha", alpha), ("power", power)):
        if not 0 < share < 1:
            raise ValueError(f"{name} must lie between 0 and 1, got {share}")
    if not sd_of_deltas >= 0:
        raise ValueError(f"a standard deviation cannot be {sd_of_deltas}")
    if not n > 0:
        raise ValueError(f"the sample size must be positive, got {n}")
    reach = normal_quantile(1 - alpha / 2) + normal_quantile(power)
    return reach * sd_of_deltas / sqrt(n)


def mdd_mcnemar(discordance: float, n: float, *, alpha: float = 0.05, power: float = 0.8) -> float:
    """`mdd_paired` of hits, of which the share `discordance` differs between the two runs.

    The share is the variance of the differences if their mean is zero. Otherwise the variance is
    smaller by the square of the mean (Connor, Biometrics 43, 1987), so the result is slightly too
    large: by 1 % at a discordance of 10 % and n = 96.
    """
    if not 0 <= discordance <= 1:
        raise ValueError(f"{discordance} is not a proportion")
    return mdd_paired(sqrt(discordance), n, alpha=alpha, power=power)


def effective_n(values: ArrayLike, clusters: Sequence[str]) -> float:
    """The effective sample size of clustered values: n / (1 + (m - 1) ρ).

    m is Σ sizes² / n (Kish, Survey Sampling, 1965), ρ the intraclass correlation from a one-way
    analysis of variance, (B - W) / (B + (m0 - 1) W) with m0 = (n - m) / (k - 1). ρ is at least 0,
    because a negative estimate from a few clusters must not enlarge the sample. With one cluster,
    or one value in each, ρ is unknown and the result is n. NaN is left out.
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
