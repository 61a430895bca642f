"""Many systems at once: which pairs differ, groups that cannot be told apart, rank intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import log, sqrt
from string import ascii_lowercase
from typing import NamedTuple

import numpy as np

from mnemoscope.stats.clustered import (
    ALPHA,
    Difference,
    Floats,
    Interval,
    cluster_sums,
    critical_value,
    difference,
)
from mnemoscope.stats.distributions import t_quantile
from mnemoscope.stats.families import DRAWS, SEED, bonferroni

_MODERATED_CLUSTERS = 10
SIMILAR = 0.75
"""The largest standard deviation of the log variances of pairs that counts as similar.

Pairs of equal variance have about 0.5 with ten clusters, and less with more. docs/calibration.md
has the error rate of the rule with equal and unequal variances."""
_MANY_CLUSTERS = 50
"""Above this number of clusters the simulation draws their moments instead of the clusters."""
_PRIOR_FREEDOM = 9
"""Degrees of freedom of the mean variance over all pairs, towards which each variance shrinks."""


class Pair(NamedTuple):
    """The difference second - first of two systems, with its simultaneous interval."""

    first: int
    second: int
    row: Difference
    interval: Interval

    @property
    def decided(self) -> bool:
        return self.interval.low > 0 or self.interval.high < 0


class Ranks(NamedTuple):
    """The ranks that a system may have, given all decided pairs."""

    best: int
    worst: int


def all_pairs(
    values: Floats, clusters: Sequence[str], span: float = 1.0, *, alpha: float = ALPHA
) -> list[Pair]:
    """Compare all pairs of systems (columns) on the same questions, with one error rate.

    With at least ten clusters of similar size and pairs of similar variance, the variance of each
    pair shrinks towards the mean over all pairs, and the critical value of the largest |t| is
    simulated. Otherwise Bonferroni corrects the exact intervals: moderated ones fail with few or
    unequal clusters, and a weak system among similar ones would hide their differences.
    """
    count = values.shape[1]
    first, second = np.triu_indices(count, 1)
    if not len(first):
        return []
    table = cluster_sums(values[:, second] - values[:, first], clusters)
    rows = [difference(table.column(place), span) for place in range(len(first))]
    sizes = rows[0].sizes
    groups = len(sizes)
    if _is_moderated(sizes, alpha) and _are_similar(rows):
        mean = float(np.mean([row.se**2 for row in rows]))
        freedom = groups - 1
        rows = [
            row._replace(
                se=sqrt((_PRIOR_FREEDOM * mean + freedom * row.se**2) / (_PRIOR_FREEDOM + freedom))
            )
            for row in rows
        ]
        critical = _largest_of_pairs(count, tuple(sorted(sizes)), alpha)
        intervals = [row.interval(critical) for row in rows]
    else:
        family = bonferroni(len(rows), alpha)
        intervals = [family.interval(row) for row in rows]
    return [
        Pair(i, j, row, interval)
        for i, j, row, interval in zip(
            first.tolist(), second.tolist(), rows, intervals, strict=True
        )
    ]


def letters(systems: int, decided: Iterable[tuple[int, int]], order: Sequence[int]) -> list[str]:
    """Return the letters of each system: systems that share a letter cannot be told apart.

    Insert and absorb: for every decided pair, each group that holds both is replaced by the groups
    without one of them; groups inside others are deleted. `order` lists the systems from the best
    to the worst; the first group gets the letter a.
    """
    found: list[frozenset[int]] = [frozenset(range(systems))]
    for i, j in decided:
        parts: list[frozenset[int]] = []
        for group in found:
            parts += [group - {i}, group - {j}] if i in group and j in group else [group]
        unique = set(parts)
        found = [part for part in unique if not any(part < other for other in unique)]
    place = {system: rank for rank, system in enumerate(order)}
    found.sort(key=lambda group: sorted(place[system] for system in group))
    return [
        "".join(_letter(rank) for rank, group in enumerate(found) if system in group)
        for system in range(systems)
    ]


def rank_intervals(systems: int, above: Iterable[tuple[int, int]]) -> list[Ranks]:
    """Return each system's possible ranks; `above` holds (better, worse) of every decided pair."""
    better, worse = [0] * systems, [0] * systems
    for upper, lower in above:
        better[lower] += 1
        worse[upper] += 1
    return [Ranks(1 + better[i], systems - worse[i]) for i in range(systems)]


def _letter(rank: int) -> str:
    """Return a to z, then a2 to z2, and so on."""
    turn, place = divmod(rank, len(ascii_lowercase))
    return ascii_lowercase[place] + (str(turn + 1) if turn else "")


def _is_moderated(sizes: Sequence[float], alpha: float) -> bool:
    if len(sizes) < _MODERATED_CLUSTERS:
        return False
    return critical_value(alpha, sizes) <= 1.1 * t_quantile(alpha / 2, len(sizes) - 1)


def _are_similar(rows: Sequence[Difference]) -> bool:
    return float(np.std([2 * log(row.se) for row in rows])) <= SIMILAR


@lru_cache(maxsize=256)
def _largest_of_pairs(systems: int, sizes: tuple[float, ...], alpha: float) -> float:
    """Simulate the critical value of max |t| over all pairs of equal independent systems."""
    groups = len(sizes)
    weights = np.array(sizes) / sum(sizes)
    random = np.random.default_rng(SEED)
    maxima = np.empty(DRAWS)
    freedom = groups - 1
    pairs = systems * (systems - 1) / 2
    has_many = groups > max(_MANY_CLUSTERS, systems)
    # A small block stays in the processor's cache, which halves the time.
    block = max(1, 50_000 // (systems * (systems if has_many else groups)))
    for start in range(0, DRAWS, block):
        size = min(block, DRAWS - start)
        # The moments of pairs follow from those of systems, so pairs need no table of clusters.
        if has_many:
            theta, products = _drawn_moments(random, size, systems, freedom)
        else:
            means = random.standard_normal((size, systems, groups))
            theta = means @ weights
            centred = (means - theta[:, :, None]) * (weights * sqrt(groups / freedom))
            products = centred @ centred.transpose(0, 2, 1)
        own = np.einsum("dss->ds", products)
        variance = own[:, :, None] + own[:, None, :] - 2 * products
        # Every pair is in the matrix twice, and the diagonal is zero.
        mean = variance.sum(axis=(1, 2)) / (2 * pairs)
        variance *= freedom / (_PRIOR_FREEDOM + freedom)
        variance += (_PRIOR_FREEDOM / (_PRIOR_FREEDOM + freedom) * mean)[:, None, None]
        squared = (theta[:, :, None] - theta[:, None, :]) ** 2
        squared /= variance
        maxima[start : start + size] = squared.max(axis=(1, 2))
    return float(np.sqrt(np.quantile(maxima, 1 - alpha)))


def _drawn_moments(
    random: np.random.Generator, size: int, systems: int, freedom: int
) -> tuple[Floats, Floats]:
    """Draw means of systems and their covariances as over equal clusters: normal and Wishart.

    Bartlett's decomposition draws a Wishart matrix without its clusters, so that the time does not
    depend on their number.
    """
    root = np.tril(random.standard_normal((size, systems, systems)), -1)
    diagonal = np.arange(systems)
    root[:, diagonal, diagonal] = np.sqrt(random.chisquare(freedom - diagonal, (size, systems)))
    products: Floats = root @ root.transpose(0, 2, 1) / freedom
    return random.standard_normal((size, systems)), products
