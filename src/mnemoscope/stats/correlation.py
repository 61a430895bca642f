"""Correlation of two measures: Pearson's r and Spearman's rho, with intervals by Fisher's z."""

from __future__ import annotations

from collections.abc import Sequence
from math import atanh, nan, sqrt, tanh
from typing import NamedTuple

import numpy as np

from mnemoscope.stats.distributions import normal_quantile
from mnemoscope.stats.intervals import Interval

_EXACT = 1e-9
"""This close to 1 the points lie on a line, and Fisher's z gives no interval."""


class Correlation(NamedTuple):
    """A coefficient, NaN if it is undefined, and its interval if there is one."""

    r: float
    ci95: Interval | None
    n: int


def pearson(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Pearson's r; Fisher's z = atanh r has the standard error 1 / sqrt(n - 3)."""
    return _correlation(x, y, 0.0)


def spearman(x: Sequence[float], y: Sequence[float]) -> Correlation:
    """Rank correlation; ties get their mean rank.

    The interval is Bonett and Wright's (Psychometrika 65, 2000): Fisher's z with the standard
    error sqrt((1 + r²/2) / (n - 3)). It assumes independent points.
    """
    return _correlation(_ranks(x), _ranks(y), 0.5)


def _correlation(x: Sequence[float], y: Sequence[float], extra: float) -> Correlation:
    n = len(x)
    if n < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Correlation(nan, None, n)
    r = min(max(float(np.corrcoef(x, y)[0, 1]), -1.0), 1.0)
    if n < 4 or abs(r) > 1 - _EXACT:
        return Correlation(r, None, n)
    reach = normal_quantile(0.975) * sqrt((1 + extra * r * r) / (n - 3))
    return Correlation(r, Interval(tanh(atanh(r) - reach), tanh(atanh(r) + reach)), n)


def _ranks(values: Sequence[float]) -> list[float]:
    _, which, ties = np.unique(np.asarray(values), return_inverse=True, return_counts=True)
    means = np.cumsum(ties) - (ties - 1) / 2
    return [float(rank) for rank in means[which]]
