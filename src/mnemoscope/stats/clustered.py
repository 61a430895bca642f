"""Differences and means of clustered questions, with intervals that hold for few clusters.

Questions about one conversation are not independent: ten conversations with two hundred questions
each are a sample of ten. So the variance comes from the clusters only, and the critical value is
exact for clusters of these sizes whose means are normal with equal variance. If all clusters have
the same size, it is Student's t with G - 1 degrees of freedom.

A variance of zero would be a claim to certainty. Two imaginary questions, one gained and one lost,
prevent it: they matter only if almost no question changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import isfinite, log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnemoscope.stats.distributions import normal_quantile, t_quantile, t_tail, two_sided_p

Floats = NDArray[np.float64]

ALPHA = 0.05
FEW_CLUSTERS = 5
"""Below this number of clusters an interval does not generalise to other clusters."""
FEW_QUESTIONS = 30
"""Below this number of questions of few clusters, the normal quantile finds too much."""
_P_DIGITS = 8
"""Decimals of p: below them the integral has the noise of the processor's arithmetic."""
_LEAST_P = 1e-8
_NODES = 400
"""Gauss-Legendre nodes of the tail; its error is below 1e-8 for a hundred unequal clusters."""


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class ClusterSums(NamedTuple):
    """Sums by cluster of each column; a cluster in which a column has no value has size 0 there."""

    sizes: Floats
    sums: Floats
    squares: Floats

    def column(self, place: int) -> ClusterSums:
        """Return one column, without the clusters that have no value in it."""
        used = self.sizes[:, place] > 0
        return ClusterSums(*(part[used, place : place + 1] for part in self))

    @property
    def means(self) -> Floats:
        """The mean of each cluster and column; 0 where it has no values."""
        found: Floats = np.divide(
            self.sums, self.sizes, out=np.zeros_like(self.sums), where=self.sizes > 0
        )
        return found


class Difference(NamedTuple):
    """The pooled mean of question-wise differences, with its standard error and clusters."""

    delta: float
    se: float
    n: int
    clusters: int
    sizes: tuple[float, ...]
    span: float
    these_only: bool
    """Whether the standard error speaks of these clusters only, because they are too few."""

    @property
    def statistic(self) -> float:
        return abs(self.delta) / self.se

    @property
    def p(self) -> float:
        """The two-sided p, at least 1e-8; below alpha if and only if the interval excludes zero."""
        t = self.statistic
        if not self.these_only:
            p = tail(t, self.sizes)
        elif self.n < FEW_QUESTIONS:
            p = two_sided_p(t / sqrt(1 + t**2 / self.n))
        else:
            p = two_sided_p(t)
        return max(round(p, _P_DIGITS), _LEAST_P)

    def critical(self, alpha: float = ALPHA) -> float:
        """Return how many standard errors the interval reaches.

        Few questions that all change alike have no spread of their own. Their interval is the score
        interval: it has the differences that the data do not refuse when the variance is taken
        around each of them. Five of five gained are then no finding, as by the exact sign test.
        """
        if not self.these_only:
            return critical_value(alpha, self.sizes)
        z = normal_quantile(1 - alpha / 2)
        if self.n >= FEW_QUESTIONS:
            return z
        whole = 2 * self.span / self.se
        rest = 1 - z**2 / self.n
        return min(whole, z / sqrt(rest)) if rest > 0 else whole

    def interval(self, critical: float) -> Interval:
        """Return delta ± critical · se, which is not clipped: clipped ends could touch zero."""
        return Interval(self.delta - critical * self.se, self.delta + critical * self.se)

    @property
    def effective_clusters(self) -> float:
        """How many equally large clusters would weigh as these do: 1 / Σ w²."""
        sizes = np.array(self.sizes)
        return float(sizes.sum() ** 2 / (sizes**2).sum())


def cluster_sums(values: ArrayLike, clusters: Sequence[str]) -> ClusterSums:
    """Sum every column by cluster; rows are questions, NaN means that a question has no value."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not len(table) or len(table) != len(clusters):
        raise ValueError(
            f"values must be questions x measures, with a cluster for each question: "
            f"got shape {table.shape} and {len(clusters)} clusters"
        )
    present = ~np.isnan(table)
    # In order of first appearance, so that names do not matter.
    index = {name: place for place, name in enumerate(dict.fromkeys(clusters))}
    member = np.fromiter((index[name] for name in clusters), dtype=np.intp, count=len(clusters))
    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(len(index)))
    filled = np.where(present, table, 0.0)[order]
    sizes, sums, squares = (
        np.add.reduceat(part, starts, axis=0)
        for part in (present[order].astype(np.float64), filled, filled**2)
    )
    return ClusterSums(sizes, sums, squares)


def difference(column: ClusterSums, span: float = 1.0, *, these_only: bool = False) -> Difference:
    """Return the pooled mean difference of one column with its standard error.

    The variance is G/(G-1) Σ (S - θN)² / n² from the cluster sums S and sizes N. With fewer than
    five clusters, or on request, it is that of the questions within these clusters. `span` is the
    range of the metric.
    """
    if column.sizes.shape[1] != 1 or not column.sizes.sum():
        raise ValueError("a difference needs one column with at least one value")
    if not span > 0 or not isfinite(span):
        raise ValueError(f"the range of a metric must be positive, got {span}")
    sizes, sums, squares = (part[:, 0] for part in column)
    n, groups = float(sizes.sum()), len(sizes)
    theta = float(sums.sum()) / n
    these_only = these_only or groups < FEW_CLUSTERS
    if these_only:
        inner = sizes > 1
        spread = squares[inner] - sums[inner] ** 2 / sizes[inner]
        variance = float((sizes[inner] * spread / (sizes[inner] - 1)).sum()) / n**2
    else:
        variance = groups / (groups - 1) * float(((sums - theta * sizes) ** 2).sum()) / n**2
    se = sqrt(max(0.0, variance) + 2 * span**2 / n**2)
    return Difference(theta, se, round(n), groups, tuple(sizes.tolist()), span, these_only)


def beyond_these(column: ClusterSums, span: float = 1.0, alpha: float = ALPHA) -> Interval | None:
    """Return the interval that speaks of other clusters where there are two to four of them."""
    groups = len(column.sizes)
    if not 1 < groups < FEW_CLUSTERS:
        return None
    sizes, sums = column.sizes[:, 0], column.sums[:, 0]
    n = float(sizes.sum())
    theta = float(sums.sum()) / n
    variance = groups / (groups - 1) * float(((sums - theta * sizes) ** 2).sum()) / n**2
    reach = critical_value(alpha, sizes.tolist()) * sqrt(variance + 2 * span**2 / n**2)
    return Interval(theta - reach, theta + reach)


def level(column: ClusterSums, limits: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Return the 95 % interval of a mean: Wilson's, with the effective number of questions.

    It is the hull of two Wilson intervals: one with the number of questions that the variance
    between clusters is worth, and one with that of the variance between questions. With fewer than
    five clusters it is the second alone.
    """
    [found] = levels(column, limits)
    return found


def levels(columns: ClusterSums, limits: tuple[float, float] = (0.0, 1.0)) -> list[Interval]:
    """Return the `level` of each column; every cluster has values in every column."""
    low, span = limits[0], limits[1] - limits[0]
    # One row a column: a sum has the same bits as that of the column alone.
    sizes, sums, squares = (np.ascontiguousarray(part.T) for part in columns)
    n, groups = sizes.sum(axis=1), sizes.shape[1]
    squares = (squares - 2 * low * sums + low**2 * sizes).sum(axis=1) / span**2
    sums = (sums - low * sizes) / span
    means = np.clip(sums.sum(axis=1) / n, 0.0, 1.0)
    deviations = ((sums - means[:, None] * sizes) ** 2).sum(axis=1)
    z = normal_quantile(1 - ALPHA / 2)
    found: list[Interval] = []
    for mean, own, total, square, deviation in zip(
        *(part.tolist() for part in (means, sizes, n, squares, deviations)), strict=True
    ):
        wide, variance = z, None
        if groups >= FEW_CLUSTERS:
            wide = critical_value(ALPHA, own)
            variance = groups / (groups - 1) * deviation / total**2
        ends = _level(mean, total, square / total - mean**2, variance, z, wide)
        found.append(Interval(low + span * ends.low, low + span * ends.high))
    return found


def _level(
    mean: float, n: float, spread: float, variance: float | None, z: float, wide: float
) -> Interval:
    """Wilson's interval of a mean from 0 to 1; the variance is that between clusters, if known."""
    noise = mean * (1 - mean)
    if noise < 1e-15:
        return _wilson(round(mean), n, wide)
    # If all values are equal, their spread is unknown: hits and misses would vary most.
    questions = n * noise / spread if spread > 1e-12 else n
    found = _wilson(mean, questions, z)
    if variance is None:
        return found
    effective = noise / variance if variance > 1e-15 else questions
    other = _wilson(mean, effective, wide)
    return Interval(min(found.low, other.low), max(found.high, other.high))


def tail(statistic: float, sizes: Sequence[float]) -> float:
    """P(|T| >= statistic) for the t statistic of a pooled mean over clusters of these sizes."""
    key = tuple(sorted(sizes))
    if len(key) < 2:
        raise ValueError("one cluster has no variance between clusters")
    if not statistic > 0:
        return 1.0
    if key[0] == key[-1]:
        return min(1.0, 2 * t_tail(statistic, len(key) - 1))
    return _unequal_tail(statistic, key)


def critical_value(alpha: float, sizes: Sequence[float]) -> float:
    """Return the value that |T| exceeds with probability alpha."""
    if not 0 < alpha < 1:
        raise ValueError(f"alpha must lie between 0 and 1, got {alpha}")
    if len(sizes) < 2:
        raise ValueError("one cluster has no variance between clusters")
    return _critical_value(alpha, tuple(sorted(sizes)))


@lru_cache(maxsize=4096)
def _critical_value(alpha: float, sizes: tuple[float, ...]) -> float:
    student = t_quantile(alpha / 2, len(sizes) - 1)
    if sizes[0] == sizes[-1]:
        return student

    def excess(t: float) -> float:
        return log(max(_unequal_tail(t, sizes), 1e-300) / alpha)

    low = high = student
    at_low = at_high = excess(student)
    while at_low < 0:
        low, high, at_high = low / 2, low, at_low
        at_low = excess(low)
    while at_high > 0:
        low, high, at_low = high, high * 2, at_high
        at_high = excess(high)
    # The Illinois method: false position that halves the weight of an end that does not move.
    side = 0
    while high - low > 1e-10 * high:
        t = (low * at_high - high * at_low) / (at_high - at_low)
        if not low < t < high:
            t = (low + high) / 2
        at = excess(t)
        if at == 0:
            return t
        if at > 0:
            if t - low < 1e-11 * high and side > 0:
                return t
            low, at_low = t, at
            at_high = at_high / 2 if side > 0 else at_high
            side = 1
        else:
            if high - t < 1e-11 * high and side < 0:
                return t
            high, at_high = t, at
            at_low = at_low / 2 if side < 0 else at_low
            side = -1
    return (low + high) / 2


@lru_cache(maxsize=1)
def _nodes() -> tuple[Floats, Floats]:
    """Nodes and weights on (0, ∞), by u = (s / (1 - s))³ from Gauss-Legendre on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    s = (nodes + 1) / 2
    u = (s / (1 - s)) ** 3
    return u, weights / 2 * 3 * s**2 / (1 - s) ** 4


def _unequal_tail(statistic: float, sizes: tuple[float, ...]) -> float:
    """P(xᵀ(wwᵀ - t²M)x > 0) for normal x by Imhof's integral (Biometrika 48, 1961).

    M is the matrix of the variance estimate. Clusters of one size share an eigenvalue, so the
    eigenvalue problem has the size of the number of distinct sizes.
    """
    distinct, counts = np.unique(np.array(sizes), return_counts=True)
    groups = len(sizes)
    share = distinct / float(np.dot(distinct, counts))
    weight = np.sqrt(counts) * share
    centring = np.eye(len(share)) - np.outer(np.sqrt(counts), weight)
    scale = statistic**2 * groups / (groups - 1)
    form = np.outer(weight, weight) - scale * centring.T @ (share[:, None] ** 2 * centring)
    eigenvalues = np.append(np.linalg.eigvalsh(form), -scale * share**2)
    repeats = np.append(np.ones(len(share)), counts - 1.0)
    eigenvalues /= np.abs(eigenvalues).max()
    kept = (np.abs(eigenvalues) > 1e-12) & (repeats > 0)
    eigenvalues, repeats = eigenvalues[kept], repeats[kept]
    u, weights = _nodes()
    angles = np.outer(u, eigenvalues)
    beta = np.arctan(angles) @ repeats / 2
    decay = np.exp(np.log1p(angles**2) @ repeats / -4)
    integral = float(np.dot(weights, np.sin(beta) * decay / u))
    return min(1.0, max(0.0, 0.5 + integral / np.pi))


def _wilson(mean: float, n: float, critical: float) -> Interval:
    square = critical**2
    centre = mean + square / (2 * n)
    spread = critical * sqrt(max(0.0, mean * (1 - mean)) / n + square / (4 * n * n))
    scale = 1 + square / n
    low = 0.0 if mean == 0 else max(0.0, (centre - spread) / scale)
    high = 1.0 if mean == 1 else min(1.0, (centre + spread) / scale)
    return Interval(low, high)
