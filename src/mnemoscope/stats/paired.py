"""Paired tests and intervals for two systems on the same questions.

A difference (delta) is the candidate's value minus the base's. NaN means that one of them has no
value; the question is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, log, nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.distributions import t_tail, two_sided_p
from mnemoscope.stats.intervals import (
    BLOCK,
    Bootstrap,
    Floats,
    bootstrap,
    by_cluster,
    clustered_table,
)

EXACT_RANKS = 50
"""Up to this many differences Wilcoxon's p is exact; the same limit as in scipy."""

EXACT_FLIPS = 12
"""Up to this many clusters all patterns of signs are tried, at most 4,096."""


class Test(NamedTuple):
    """A test statistic and its two-sided p; both NaN if the data allow no test."""

    statistic: float
    p: float


def mcnemar_exact(gained: int, lost: int) -> float:
    """Two-sided exact p of McNemar's test: twice the smaller tail of Binomial(gained + lost, ½).

    Questions that both systems got right, or both wrong, do not count. Without any others p is 1.
    """
    if gained < 0 or lost < 0:
        raise ValueError(f"counts cannot be negative, got {gained} gained and {lost} lost")
    discordant = gained + lost
    i = np.arange(1, min(gained, lost) + 1)
    logs = np.cumsum(np.log(discordant - i + 1) - np.log(i))
    tail = np.exp(np.append(0.0, logs) - discordant * log(2)).sum()
    return min(1.0, 2 * float(tail))


def paired_t(deltas: ArrayLike) -> Test:
    """Student's t of the mean difference, mean / (sd / sqrt(n)), with n - 1 degrees of freedom.

    If all differences are equal, their noise is unknown and there is no test; if all are zero, p
    is 1.
    """
    values = _valued(deltas)
    n = len(values)
    if n and not values.any():
        return Test(0.0, 1.0)
    if n < 2:
        return Test(nan, nan)
    mean, sd = float(values.mean()), float(values.std(ddof=1))
    if sd <= 1e-12 * abs(mean):
        return Test(nan, nan)
    t = mean / (sd / sqrt(n))
    return Test(t, 2 * t_tail(abs(t), n - 1))


def wilcoxon(deltas: ArrayLike) -> Test:
    """Wilcoxon's signed-rank test (Biometrics 1, 1945): the smaller of the two sums of ranks.

    Zeros are dropped, and ties share their mean rank. Up to 50 differences p is exact, counted over
    all signs given the ranks, ties included (for hits it equals McNemar's). Above, p is normal with
    variance n(n+1)(2n+1)/24 - Σ(t³-t)/48 and a continuity correction of ½.
    """
    values = _valued(deltas)
    if not len(values):
        return Test(nan, nan)
    # 1/2 - 1/3 and 2/3 - 1/2 differ in their last bit but must get the same rank.
    values = np.round(values / (float(np.abs(values).max()) or 1.0), 12)
    values = values[values != 0]
    n = len(values)
    if not n:
        return Test(0.0, 1.0)
    _, which, ties = np.unique(np.abs(values), return_inverse=True, return_counts=True)
    doubled = (2 * np.cumsum(ties) - ties + 1)[which]
    above = int(doubled[values > 0].sum())
    smaller = min(above, n * (n + 1) - above)
    if n <= EXACT_RANKS:
        return Test(smaller / 2, min(1.0, 2 * _share_of_signs(doubled.tolist(), smaller)))
    variance = n * (n + 1) * (2 * n + 1) / 24 - float((ties**3 - ties).sum()) / 48
    distance = n * (n + 1) / 4 - smaller / 2
    return Test(smaller / 2, two_sided_p(max(0.0, distance - 0.5) / sqrt(variance)))


def paired_bootstrap(
    base: ArrayLike,
    cand: ArrayLike,
    clusters: Sequence[str],
    *,
    seed: int,
    draws: int = 10_000,
    confidence: float = 0.95,
    limits: tuple[float, float] = (-inf, inf),
) -> Bootstrap:
    """Mean difference of every column with its percentile interval, resampling whole clusters.

    Both tables are questions x measures, with the same questions in the same order.
    """
    before, after = np.asarray(base, dtype=np.float64), np.asarray(cand, dtype=np.float64)
    if before.shape != after.shape:
        raise ValueError(
            f"base and candidate must have the same questions and measures: "
            f"got shapes {before.shape} and {after.shape}"
        )
    return bootstrap(
        after - before, clusters, seed=seed, draws=draws, confidence=confidence, limits=limits
    )


def permutation(
    deltas: ArrayLike, clusters: Sequence[str], *, seed: int, draws: int = 10_000
) -> Floats:
    """Two-sided p of every column: how often random signs give as large a sum of differences.

    If the systems do not differ, the differences of a whole cluster could equally have the other
    sign. Up to 12 clusters all patterns are tried, so p is exact and at least 2 / 2^clusters: with
    ten conversations at least 0.002. Above, p is (1 + hits) / (1 + draws), never 0 (Phipson and
    Smyth 2010). With one cluster, the sign of each question is flipped.
    """
    sums, counts = by_cluster(clustered_table(deltas, clusters, draws), clusters)
    units = len(sums)
    if units <= EXACT_FLIPS:
        patterns = (np.arange(2**units)[:, None] >> np.arange(units)) & 1
        p = _as_large(patterns.astype(np.float64), sums) / len(patterns)
    else:
        p = (1 + _hits_of_random_signs(sums, draws, np.random.default_rng(seed))) / (1 + draws)
    return np.where(counts.sum(axis=0) > 0, p, np.nan)


def _valued(deltas: ArrayLike) -> Floats:
    values = np.asarray(deltas, dtype=np.float64)
    if values.ndim != 1:
        raise ValueError(f"deltas must be one list, got shape {values.shape}")
    return values[~np.isnan(values)]


def _share_of_signs(ranks: list[int], limit: int) -> float:
    """Return the share of all 2^n subsets of ranks whose sum is at most the limit."""
    ways = np.zeros(limit + 1)
    ways[0] = 1
    for rank in ranks:
        if rank <= limit:
            ways[rank:] = ways[rank:] + ways[: limit + 1 - rank]
    return float(ways.sum()) / 2.0 ** len(ranks)


def _hits_of_random_signs(sums: Floats, draws: int, random: np.random.Generator) -> Floats:
    units = len(sums)
    block = max(1, BLOCK // units)
    hits = np.zeros(sums.shape[1])
    for start in range(0, draws, block):
        size = min(block, draws - start)
        # One random byte gives eight signs (libraries.md, B4).
        dice = random.integers(256, size=(size, -(-units // 8)), dtype=np.uint8)
        flips = np.unpackbits(dice, axis=1, count=units).astype(np.float64)
        hits += _as_large(flips, sums)
    return hits


def _as_large(flips: Floats, sums: Floats) -> Floats:
    """Count for each column the patterns (1 = flipped) with at least the observed size."""
    observed = sums.sum(axis=0)
    flipped = observed - 2 * (flips @ sums)
    # Equal sums, added in another order, differ in their last digits but must count as equal.
    slack = 1e-10 * np.abs(sums).sum(axis=0)
    hits: Floats = (np.abs(flipped) >= np.abs(observed) - slack).sum(axis=0).astype(np.float64)
    return hits
