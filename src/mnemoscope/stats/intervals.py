"""Confidence intervals: Wilson's for proportions, a clustered bootstrap for means.

By hand on numpy: importing scipy costs seconds at every start of the program
(libraries.md, B4). It is the oracle in the tests.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnemoscope.stats.distributions import normal_quantile, t_quantile

Floats = NDArray[np.float64]

BLOCK = 4_000_000
"""Cluster weights held in memory at once: 32 MB of them."""


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float


class Bootstrap(NamedTuple):
    """Means with percentile intervals, one of each per column."""

    mean: Floats
    low: Floats
    high: Floats
    units: int
    """How many independent things were resampled: clusters, or questions if there was one."""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion (JASA 22, 1927); of nothing, all of [0, 1]."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} is no proportion")
    z = normal_quantile((1 + confidence) / 2)
    if n == 0:
        return Interval(0.0, 1.0)
    rate = successes / n
    spread = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    centre = rate + z * z / (2 * n)
    # The bounds are exactly 0 and 1 at the ends; rounding would leave them beside.
    low = 0.0 if successes == 0 else (centre - spread) / scale
    high = 1.0 if successes == n else (centre + spread) / scale
    return Interval(low, high)


def bootstrap(
    values: ArrayLike,
    clusters: Sequence[str],
    *,
    seed: int,
    draws: int = 10_000,
    confidence: float = 0.95,
    limits: tuple[float, float] = (-inf, inf),
) -> Bootstrap:
    """Mean and percentile interval of every column, drawing whole clusters of rows.

    Rows are questions, columns measures; NaN means that the question has no such value. Rows
    of one cluster share a history, so drawing them one by one would feign certainty. With one
    cluster there is nothing else to draw than rows. A column without any value gives NaN.

    A percentile interval of k clusters is too short, as if their spread were known: of ten it
    holds the truth in 90 % of cases instead of 95. So it is widened about the mean as Student's t
    widens the normal interval, by t(k - 1) sqrt(k / (k - 1)) / z. It then ends at the `limits` that
    all values keep to. One value cannot say how much values differ: its interval is the limits.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    sums, counts = by_cluster(clustered_table(values, clusters, draws), clusters)
    tail, units = (1 - confidence) / 2, len(sums)
    valued = counts.sum(axis=0)
    with np.errstate(invalid="ignore"):
        mean = sums.sum(axis=0) / valued
        means = _resampled_means(sums, counts, draws, np.random.default_rng(seed))
    wider = 1.0
    if units > 1:
        wider = t_quantile(tail, units - 1) * sqrt(units / (units - 1)) / normal_quantile(1 - tail)
    low, high = (
        np.where(valued == 1, limit, np.clip(mean + wider * (end - mean), *limits))
        for limit, end in zip(limits, _ends(means, tail), strict=True)
    )
    return Bootstrap(mean, low, high, units)


def clustered_table(values: ArrayLike, clusters: Sequence[str], draws: int) -> Floats:
    """The values as a table that can be resampled, or an error that says why not."""
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or not len(table) or len(table) != len(clusters):
        raise ValueError(
            f"values must be questions x measures, with a cluster for each question: "
            f"got shape {table.shape} and {len(clusters)} clusters"
        )
    if draws < 1:
        raise ValueError(f"at least one draw is needed, got {draws}")
    return table


def by_cluster(table: Floats, clusters: Sequence[str]) -> tuple[Floats, Floats]:
    """Per cluster and column, the sum of the values and how many there are."""
    present = ~np.isnan(table)
    sums, counts = np.where(present, table, 0.0), present.astype(np.float64)
    if present.all():
        # One column of counts serves all measures, and halves the matrix product to come.
        counts = counts[:, :1]
    labels, member = np.unique(np.asarray(clusters), return_inverse=True)
    if len(labels) == 1:
        return sums, counts
    order = np.argsort(member, kind="stable")
    starts = np.searchsorted(member[order], np.arange(len(labels)))
    return (
        np.add.reduceat(sums[order], starts, axis=0),
        np.add.reduceat(counts[order], starts, axis=0),
    )


def _resampled_means(
    sums: Floats, counts: Floats, draws: int, random: np.random.Generator
) -> Floats:
    """Draws x columns: the sum of the drawn sums over the sum of the drawn counts."""
    units = len(sums)
    block = max(1, BLOCK // units)
    both = np.hstack([sums, counts])
    blocks = []
    for start in range(0, draws, block):
        size = min(block, draws - start)
        # Multinomial weights, by counting drawn indices: with 500 units
        # four times faster than Generator.multinomial.
        picks = random.integers(units, size=(size, units))
        picks += np.arange(size)[:, None] * units
        weights = np.bincount(picks.ravel(), minlength=size * units).reshape(size, units)
        drawn = weights.astype(np.float64) @ both
        blocks.append(drawn[:, : sums.shape[1]] / drawn[:, sums.shape[1] :])
    return np.concatenate(blocks)


def _ends(means: Floats, tail: float) -> Floats:
    """The lower and the upper quantile of every column, over the draws that gave it a value."""
    tails = (tail, 1 - tail)
    if not np.isnan(means).any():
        ends: Floats = np.quantile(means, tails, axis=0)
        return ends
    valued = [column[~np.isnan(column)] for column in means.T]
    nothing = (np.nan, np.nan)
    return np.array([np.quantile(v, tails) if len(v) else nothing for v in valued]).T
