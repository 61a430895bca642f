"""Intervals of measurements in the order of time, of which neighbours resemble each other.

A stall delays many consecutive requests, so requests are not independent. Blocks of consecutive
values stay together: percentiles are resampled by blocks, means vary between blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, sqrt

import numpy as np

from mnemoscope.stats.clustered import ALPHA, Interval, cluster_sums, level
from mnemoscope.stats.distributions import t_quantile

BLOCKS = 20
"""Each block should be longer than what its values have in common, such as a stall."""
_DRAWS = 1000


def percentile_intervals(
    values: Sequence[float], percents: Sequence[float], seed: int = 0
) -> list[Interval | None]:
    """The 95 % interval of each percentile, by a circular block bootstrap.

    The method is that of Politis and Romano (1992). None with fewer than two values a block, or
    fewer than five values beyond the percentile: then the interval would be that of a few values.
    """
    data = np.asarray(values, dtype=np.float64)
    n = len(data)
    if n < 2 * BLOCKS:
        return [None] * len(percents)
    length = ceil(n / BLOCKS)
    rng = np.random.default_rng(seed)
    found = np.empty((_DRAWS, len(percents)))
    within = np.arange(length)
    for draw in range(_DRAWS):
        starts = rng.integers(0, n, size=BLOCKS)
        places = (starts[:, None] + within).ravel()[:n] % n
        found[draw] = np.percentile(data[places], percents)
    low, high = np.percentile(found, (100 * ALPHA / 2, 100 - 100 * ALPHA / 2), axis=0)
    return [
        Interval(float(low[i]), float(high[i])) if n * (100 - percent) / 100 >= 5 else None
        for i, percent in enumerate(percents)
    ]


def mean_interval(values: Sequence[float]) -> Interval | None:
    """Student's interval of the mean of block totals, such as requests in equal spans of time."""
    data = np.asarray(values, dtype=np.float64)
    if len(data) < 2:
        return None
    mean = float(data.mean())
    error = float(data.std(ddof=1)) / sqrt(len(data))
    reach = t_quantile(ALPHA / 2, len(data) - 1) * error
    return Interval(mean - reach, mean + reach)


def share_interval(flags: Sequence[bool]) -> Interval | None:
    """The interval of a share, such as of failed requests, with blocks of time as clusters."""
    if not flags:
        return None
    length = ceil(len(flags) / BLOCKS)
    blocks = [str(place // length) for place in range(len(flags))]
    column = [[float(flag)] for flag in flags]
    return level(cluster_sums(column, blocks))
