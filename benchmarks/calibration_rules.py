"""The decision rules of `mnemoscope.stats` for many simulated comparisons at once.

All critical values and tails come from the product. Only the arithmetic of one comparison is
written again, with an axis of repetitions. tests/stats/test_calibration.py compares every function
here with the function of the product that it stands for.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy  # imports a part of itself when it is first used
from numpy.typing import NDArray

from mnemoscope.stats.clustered import ALPHA, FEW_CLUSTERS, Floats, critical_value, tail
from mnemoscope.stats.distributions import normal_quantile
from mnemoscope.stats.families import DRAWS, SEED

Bools = NDArray[np.bool_]


class Estimates(NamedTuple):
    """The pooled difference of each repetition and its standard error."""

    delta: Floats
    se: Floats

    @property
    def statistic(self) -> Floats:
        found: Floats = np.abs(self.delta) / self.se
        return found

    def missed(self, truth: float | Floats, critical: float) -> Bools:
        """Whether the interval does not hold the truth."""
        found: Bools = np.abs(self.delta - truth) > critical * self.se
        return found


def differences(sizes: Floats, sums: Floats, span: float = 1.0) -> Estimates:
    """`clustered.difference` of cluster sums: the last axis holds the clusters."""
    n, groups = sizes.sum(), len(sizes)
    delta = sums.sum(axis=-1) / n
    spread = ((sums - delta[..., None] * sizes) ** 2).sum(axis=-1)
    variance = groups / (groups - 1) * spread / n**2
    return Estimates(delta, np.sqrt(variance + 2 * span**2 / n**2))


def differences_of_these(sizes: Floats, sums: Floats, squares: Floats) -> Estimates:
    """`clustered.difference` with `these_only`, for clusters of at least two questions."""
    n = sizes.sum()
    spread = squares - sums**2 / sizes
    variance = (sizes * spread / (sizes - 1)).sum(axis=-1) / n**2
    return Estimates(sums.sum(axis=-1) / n, np.sqrt(np.maximum(variance, 0) + 2 / n**2))


def levels_of_hits(sizes: Floats, sums: Floats) -> tuple[Floats, Floats]:
    """`clustered.level` of hits and misses, whose squares have the same sums."""
    n, groups = float(sizes.sum()), len(sizes)
    mean = sums.sum(axis=-1) / n
    z = normal_quantile(1 - ALPHA / 2)
    if groups < FEW_CLUSTERS:
        return _wilson(mean, np.full_like(mean, n), np.full_like(mean, z))
    noise = mean * (1 - mean)
    variance = ((sums - mean[..., None] * sizes) ** 2).sum(axis=-1) * groups / (groups - 1) / n**2
    known = (noise > 1e-15) & (variance > 1e-15)
    effective = np.divide(noise, variance, out=np.full_like(mean, n), where=known)
    wide = np.full_like(mean, critical_value(ALPHA, sizes.tolist()))
    low, high = _wilson(mean, effective, wide)
    # If all questions are hits, or none is, the product uses the wider critical value alone.
    low_of_questions, high_of_questions = _wilson(
        mean, np.full_like(mean, n), np.full_like(mean, z)
    )
    return np.minimum(low, low_of_questions), np.maximum(high, high_of_questions)


def _wilson(mean: Floats, n: Floats, critical: Floats) -> tuple[Floats, Floats]:
    square = critical**2
    centre = mean + square / (2 * n)
    spread = critical * np.sqrt(mean * (1 - mean) / n + square / (4 * n * n))
    scale = 1 + square / n
    low = np.where(mean == 0, 0.0, np.maximum(0, (centre - spread) / scale))
    high = np.where(mean == 1, 1.0, np.minimum(1, (centre + spread) / scale))
    return low, high


class MaxT:
    """`families.max_t` for many tables with the same sizes of clusters.

    The seed of the product is fixed, so all tables meet the same normal draws. With X = Z L the
    variance of column j is a quadratic form of L's column j, whose matrix depends on Z only.
    """

    def __init__(self, sizes: Floats, columns: int) -> None:
        groups = len(sizes)
        self.weights = sizes / sizes.sum()
        self.shrinkage = 0.1 if 2 * columns > groups else 0.0
        self.lowest = 0.96 * critical_value(ALPHA, sizes.tolist())
        self.highest = 1.04 * critical_value(ALPHA / columns, sizes.tolist())
        draws = np.random.default_rng(SEED).standard_normal((DRAWS, groups, columns))
        self.centres = np.einsum("dgm,g->dm", draws, self.weights)
        centred = (draws - self.centres[:, None, :]) * self.weights[:, None]
        self.first, self.second = np.triu_indices(columns)
        forms = np.einsum("dgm,dgk->dmk", centred, centred) * groups / (groups - 1)
        twice = np.where(self.first == self.second, 1.0, 2.0)
        self.forms = np.ascontiguousarray(forms[:, self.first, self.second] * twice)

    def critical(self, means: Floats) -> float:
        """The critical value of one table of cluster means: clusters x columns."""
        centred = np.sqrt(self.weights)[:, None] * (means - self.weights @ means)
        centred = centred / np.linalg.norm(centred, axis=0)
        correlations = (1 - self.shrinkage) * centred.T @ centred
        correlations += self.shrinkage * np.eye(means.shape[1])
        values, vectors = np.linalg.eigh(correlations)
        root = (vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T
        variances = self.forms @ (root[self.first] * root[self.second])
        largest = ((self.centres @ root) ** 2 / variances).max(axis=1)
        place = int(np.ceil(round((1 - ALPHA) * (DRAWS + 1), 9))) - 1
        return float(np.sqrt(np.partition(largest, place)[place]))

    def decided(self, means: Floats, statistics: Floats) -> Bools:
        """Whether each statistic (repetitions x columns) exceeds its table's critical value.

        The critical value lies between those of one test and of Bonferroni, apart from the error
        of 19,999 draws, which is below 2 %. So it is computed only where a statistic lies between
        them, with 4 % to spare.
        """
        found: Bools = statistics > self.highest
        between = ((statistics > self.lowest) & ~found).any(axis=1)
        for place in np.flatnonzero(between):
            found[place] = statistics[place] > self.critical(means[place])
        return found


class Tail:
    """`clustered.tail` of many statistics, interpolated between computed ones."""

    def __init__(self, sizes: Sequence[float]) -> None:
        self.grid = np.concatenate([np.linspace(0, 10, 401), np.geomspace(10.05, 1_000, 150)])
        found = np.array([tail(t, sizes) for t in self.grid.tolist()])
        self.logs = np.log(np.maximum(np.minimum.accumulate(found), 1e-12))

    def __call__(self, statistics: Floats) -> Floats:
        found: Floats = np.exp(np.interp(statistics, self.grid, self.logs))
        return found


def mcnemar(sums: Floats, squares: Floats) -> Floats:
    """Exact p of McNemar's test of differences in {-1, 0, 1}, given their sums and squares."""
    changed = np.rint(squares)
    lost = np.rint((changed - np.abs(sums)) / 2)
    found: Floats = np.minimum(1.0, 2 * scipy.stats.binom.cdf(lost, changed, 0.5))
    return found


def paired_t(sums: Floats, squares: Floats, n: Floats) -> Floats:
    """The p-value of a paired t-test, given sums, sums of squares and numbers of differences."""
    variance = np.maximum(squares - sums**2 / n, 1e-300) / (n - 1)
    found: Floats = 2 * scipy.stats.t.sf(np.abs(sums) / np.sqrt(n * variance), n - 1)
    return found


def holm(p: Floats) -> Bools:
    """Which tests Holm's procedure rejects at ALPHA: repetitions x tests."""
    tests = p.shape[1]
    order = np.argsort(p, axis=1)
    passed = np.take_along_axis(p, order, axis=1) <= ALPHA / (tests - np.arange(tests))
    found: Bools = np.empty_like(passed)
    np.put_along_axis(found, order, np.logical_and.accumulate(passed, axis=1), axis=1)
    return found
