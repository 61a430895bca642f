"""A permutation test for two systems on the same questions, a check beside the decision rule.

A difference (delta) is the candidate's value minus the base's. NaN means that one of them has no
value; the question is left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.intervals import BLOCK, Floats, by_cluster, clustered_table

EXACT_FLIPS = 12
"""Up to this many clusters all patterns of signs are tried, at most 4,096."""


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
