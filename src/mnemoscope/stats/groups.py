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
SIMILAR = 1.0
"""The largest standard deviation of the log variances of pairs that counts as similar.

Pairs of equal variance have about 0.5 with ten clusters, and less with more. docs/calibration.md
has the error rate of the rule with equal and unequal variances."""
_MANY_CLUSTERS = 50
"""Above this number of clusters the simulation draws their moments instead of the clusters."""
_PRIOR_FREEDOM = 14
"""Degrees of freedom of the variance towards which the variance of each pair shrinks."""
_UNEQUAL = 3.0
"""How much more half of the systems vary in the second simulation of the critical value."""


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
    pair is moderated by those of the other pairs, and the critical value of the largest |t| is
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
    if count > 2 and _is_moderated(sizes, alpha) and _are_similar(rows):
        variances = np.zeros((count, count))
        variances[first, second] = variances[second, first] = [row.se**2 for row in rows]
        used = np.sqrt(moderated(variances, groups - 1)[first, second])
        rows = [row._replace(se=se) for row, se in zip(rows, used.tolist(), strict=True)]
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


def moderated(variances: Floats, freedom: int) -> Floats:
    """Shrink the variance of each pair of at least three systems.

    `variances` is systems x systems with the diagonal 0, and may have axes before these two. Each
    variance shrinks towards the middle of two values: the mean over all pairs, which is known best,
    and the sum of what the two systems contribute, fitted to all pairs by least squares. The mean
    alone would understate the pairs of systems that vary more than others.
    """
    systems = variances.shape[-1]
    of_system = variances.sum(axis=-1)
    mean = of_system.sum(axis=-1, keepdims=True) / (systems * (systems - 1))
    own = (of_system - mean * systems / 2) / (systems - 2)
    target: Floats = own[..., :, None] + own[..., None, :]
    np.maximum(target, 0.0, out=target)
    target += mean[..., None]
    target *= _PRIOR_FREEDOM / 2
    target += freedom * variances
    target /= _PRIOR_FREEDOM + freedom
    return target


@lru_cache(maxsize=256)
def _largest_of_pairs(systems: int, sizes: tuple[float, ...], alpha: float) -> float:
    """Simulate the critical value of max |t| over all pairs of independent systems.

    It is the larger of two: all systems vary equally, or half of them vary three times as much.
    The same draws serve both. The quantile is taken two standard errors of its probability higher,
    so that the error rate does not exceed alpha by the luck of the seed.
    """
    groups = len(sizes)
    weights = np.array(sizes) / sum(sizes)
    random = np.random.default_rng(SEED)
    freedom = groups - 1
    spreads = np.ones((2, systems))
    spreads[1, systems - systems // 2 :] = _UNEQUAL
    maxima = np.empty((2, DRAWS))
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
        for place, spread in enumerate(spreads):
            maxima[place, start : start + size] = _largest_squared(
                theta * spread, products * np.outer(spread, spread), freedom
            )
    share = 1 - alpha + 2 * sqrt(alpha * (1 - alpha) / DRAWS)
    return float(np.sqrt(np.quantile(maxima, min(1.0, share), axis=1).max()))


def _largest_squared(theta: Floats, products: Floats, freedom: int) -> Floats:
    """The largest t² over all pairs of each draw, from means and covariances of the systems."""
    own = np.einsum("dss->ds", products)
    variances = own[:, :, None] + own[:, None, :] - 2 * products
    squared = (theta[:, :, None] - theta[:, None, :]) ** 2
    squared /= moderated(variances, freedom)
    found: Floats = squared.max(axis=(1, 2))
    return found


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
