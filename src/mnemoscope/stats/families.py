"""Simultaneous intervals: one critical value for several metrics or several systems.

The critical value of the largest |t| of correlated metrics (max-T) is simulated with a fixed seed,
so the same inputs give the same value.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

import numpy as np

from mnemoscope.stats.clustered import (
    ALPHA,
    FEW_CLUSTERS,
    ClusterSums,
    Difference,
    Floats,
    Interval,
)

DRAWS = 19_999
SEED = 42
_MANY_CLUSTERS = 50
"""Above this number of clusters the simulation draws the statistics instead of the clusters."""
_SHRINKAGE = 0.1
"""How far the correlations shrink to zero where the clusters are too few to estimate them."""
_BLOCK = 2_000_000


class Family(NamedTuple):
    """Tests that share one error rate: their critical values and adjusted p-values."""

    tests: int
    alpha: float
    maxima: Floats
    """The simulated maxima in ascending order; empty if Bonferroni corrects the family."""

    def critical(self, row: Difference) -> float:
        if len(self.maxima):
            return float(self.maxima[_place(self.alpha, len(self.maxima))])
        return row.critical(self.alpha / self.tests)

    def interval(self, row: Difference) -> Interval:
        """Return the simultaneous interval of a member of the family."""
        return row.interval(self.critical(row))

    def p(self, row: Difference) -> float:
        """The adjusted p: at most alpha if and only if the simultaneous interval excludes zero."""
        if len(self.maxima):
            as_large = len(self.maxima) - int(np.searchsorted(self.maxima, row.statistic))
            return (1 + as_large) / (len(self.maxima) + 1)
        return min(1.0, self.tests * row.p)


def bonferroni(tests: int, alpha: float = ALPHA) -> Family:
    """Return the family in which each test has the level alpha / tests."""
    return Family(tests, alpha, np.empty(0))


def max_t(
    table: ClusterSums, *, alpha: float = ALPHA, draws: int = DRAWS, seed: int = SEED
) -> Family:
    """Simulate the largest |t| over the columns, which have the correlations of these columns.

    Columns without any difference do not take part. With fewer than five clusters the tests are
    normal and Bonferroni corrects them.
    """
    groups = len(table.sizes)
    varied = [place for place in range(table.sums.shape[1]) if _varies(table.column(place))]
    m = len(varied)
    if groups < FEW_CLUSTERS:
        return bonferroni(table.sums.shape[1], alpha)
    if m <= 1:
        return bonferroni(1, alpha)
    kept = ClusterSums(*(part[:, varied] for part in table))
    root = _correlation_root(kept, _SHRINKAGE if 2 * m > groups else 0.0)
    random = np.random.default_rng(seed)
    maxima = np.empty(draws)
    block = max(1, _BLOCK // (m if groups > _MANY_CLUSTERS else groups * m))
    for start in range(0, draws, block):
        size = min(block, draws - start)
        if groups > _MANY_CLUSTERS:
            normals = np.abs(random.standard_normal((size, m)) @ root)
            scales = np.sqrt(random.chisquare(groups - 1, size) / (groups - 1))
            drawn = normals.max(axis=1) / scales
        else:
            means = random.standard_normal((size, groups, m)) @ root
            drawn = statistics_of_means(means, kept.sizes).max(axis=1)
        maxima[start : start + size] = drawn
    maxima.sort()
    return Family(m, alpha, maxima)


def _place(alpha: float, draws: int) -> int:
    """The index of the ⌈(1 - alpha)(draws + 1)⌉-th smallest of the draws."""
    return min(draws, ceil(round((1 - alpha) * (draws + 1), 9))) - 1


def statistics_of_means(means: Floats, sizes: Floats) -> Floats:
    """|t| of every draw and column from means of clusters: draws x clusters x columns."""
    groups = (sizes > 0).sum(axis=0)
    weights = sizes / sizes.sum(axis=0)
    theta = np.einsum("dgm,gm->dm", means, weights)
    spread = np.einsum("dgm,gm->dm", (means - theta[:, None, :]) ** 2, weights**2)
    found: Floats = np.abs(theta) / np.sqrt(groups / (groups - 1) * spread)
    return found


def _varies(column: ClusterSums) -> bool:
    means = column.means[:, 0]
    return len(means) > 1 and bool(np.ptp(means) > 1e-12)


def _correlation_root(table: ClusterSums, shrinkage: float) -> Floats:
    """The symmetric root of the correlations of the cluster means, weighted by size."""
    weights = table.sizes / table.sizes.sum(axis=0)
    means = table.means
    centred = np.sqrt(weights) * (means - (weights * means).sum(axis=0))
    centred /= np.linalg.norm(centred, axis=0)
    correlations = (1 - shrinkage) * centred.T @ centred + shrinkage * np.eye(centred.shape[1])
    values, vectors = np.linalg.eigh(correlations)
    root: Floats = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
    return root
