"""Means and proportions with 95 % intervals, in the form of a run's JSON files."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mnemoscope.stats import bootstrap, wilson

SEED = 42
DRAWS = 2_000
"""At this many draws the Monte Carlo error of a 95 % interval's ends is 3 % of its half-width."""
_DIGITS = 10
"""Enough digits that rounding to four later is not rounding twice."""


class Estimate(TypedDict):
    """A mean over n values; failed and unjudged questions are `missing`, not zeros."""

    mean: float | None
    n: int
    ci95: list[float] | None
    missing: NotRequired[int]
    bounds: NotRequired[list[float]]
    """The mean if every missing value were the worst, and the mean without them."""


class Rate(TypedDict):
    """A proportion of n, with Wilson's interval."""

    rate: float | None
    count: int
    n: int
    ci95: list[float] | None
    missing: NotRequired[int]
    bounds: NotRequired[list[float]]


def rounded(value: float) -> float:
    return round(float(value), _DIGITS)


def rounded_all(values: Sequence[float]) -> list[float]:
    return [rounded(value) for value in values]


def rate(count: int, n: int) -> Rate:
    """Return count / n with its interval; None where n is 0."""
    if not n:
        return {"rate": None, "count": 0, "n": 0, "ci95": None}
    return {"rate": rounded(count / n), "count": count, "n": n, "ci95": share_interval(count, n)}


def share_interval(count: int, n: int) -> list[float]:
    return rounded_all(wilson(count, n))


def interval_of_mean(
    values: NDArray[np.float64],
    units: Sequence[str],
    *,
    independent: int,
    limits: tuple[float, float] | None,
    seed: int,
    draws: int,
) -> list[float] | None:
    """Return the bootstrap interval over `units`, or `interval_between` where it has no width."""
    ends = limits or (-inf, inf)
    sampled = bootstrap(values[:, None], units, seed=seed, draws=draws, limits=ends)
    low, high = float(sampled.low[0]), float(sampled.high[0])
    if low < high and isfinite(high - low):
        return rounded_all((low, high))
    return interval_between(limits, float(values.mean()), independent) if limits else None


def interval_between(limits: tuple[float, float], mean: float, n: int) -> list[float]:
    """Return Wilson's interval, rescaled to the limits of a scale.

    Equal values do not show how much other values would vary. Values between two limits vary most
    when all lie at the limits, and then Wilson's interval is valid.
    """
    least, span = limits[0], limits[1] - limits[0]
    low, high = (least + span * end for end in wilson(round((mean - least) / span * n), n))
    return rounded_all((min(low, mean), max(high, mean)))
