"""Confidence intervals: Wilson's for proportions, a clustered bootstrap for means.

Written with numpy, because importing scipy costs seconds at every start of the program
(libraries.md, B4). The tests compare with scipy.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnemoscope.stats.clustered import Interval as Interval
from mnemoscope.stats.distributions import normal_quantile, t_quantile

Floats = NDArray[np.float64]

BLOCK = 4_000_000
"""How many cluster weights are in memory at once: 32 MB."""


class Bootstrap(NamedTuple):
    """The mean and percentile interval of each column."""

    mean: Floats
    low: Floats
    high: Floats
    units: int
    """How many units were resampled: clusters, or rows if there is one cluster."""


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's score interval of a proportion (JASA 22, 1927); [0, 1] for n = 0."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n} is not a proportion")
    z = normal_quantile((1 + confidence) / 2)
    if n == 0:
        return Interval(0.0, 1.0)
    rate = successes / n
    spread = z * sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    scale = 1 + z * z / n
    centre = rate + z * z / (2 * n)
    # At the ends the bounds are exactly 0 and 1; computed ones would have rounding errors.
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
    """Mean and percentile interval of every column, resampling whole clusters of rows.

    Rows are questions, columns are measures; NaN means that the question has no value. Rows of one
    cluster share a history and are not independent, so single rows are resampled only if there is
    just one cluster. A column without values gives NaN.

    A percentile interval of k clusters is too short: with ten clusters it contains the true mean in
    90 % of cases instead of 95. So it is widened around the mean as Student's t widens the normal
    interval, by t(k - 1) sqrt(k / (k - 1)) / z, and then clipped to the `limits` of the values. The
    interval of a single value is the limits.
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
    """Return the values as a table for resampling; raise ValueError if the shapes do not fit."""
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
    """Return the sum and the number of values for each cluster and column."""
    present = ~np.isnan(table)
    sums, counts = np.where(present, table, 0.0), present.astype(np.float64)
    if present.all():
        # All columns have the same counts: one column of them halves the matrix product.
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
    """Return draws x columns: the sum of the drawn sums / the sum of the drawn counts."""
    units = len(sums)
    block = max(1, BLOCK // units)
    both = np.hstack([sums, counts])
    blocks = []
    for start in range(0, draws, block):
        size = min(block, draws - start)
        # Multinomial weights from counts of drawn indices: four times faster than
        # Generator.multinomial with 500 units.
        picks = random.integers(units, size=(size, units))
        picks += np.arange(size)[:, None] * units
        weights = np.bincount(picks.ravel(), minlength=size * units).reshape(size, units)
        drawn = weights.astype(np.float64) @ both
        blocks.append(drawn[:, : sums.shape[1]] / drawn[:, sums.shape[1] :])
    return np.concatenate(blocks)


def _ends(means: Floats, tail: float) -> Floats:
    """Return the lower and upper quantile of every column, over its draws without NaN."""
    tails = (tail, 1 - tail)
    if not np.isnan(means).any():
        ends: Floats = np.quantile(means, tails, axis=0)
        return ends
    valued = [column[~np.isnan(column)] for column in means.T]
    nothing = (np.nan, np.nan)
    return np.array([np.quantile(v, tails) if len(v) else nothing for v in valued]).T
