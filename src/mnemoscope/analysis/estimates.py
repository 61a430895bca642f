"""Means and shares with their intervals, as the files of a run record them."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isfinite
from typing import NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mnemoscope.stats import bootstrap, wilson

SEED = 42
DRAWS = 2_000
"""Enough for the ends of a 95 % interval: their Monte Carlo error is 3 % of its half-width."""
_DIGITS = 10
"""Enough that no figure is rounded twice on its way to four digits."""


class Estimate(TypedDict):
    """A mean over n values; what failed or was not judged is missing, and not a zero."""

    mean: float | None
    n: int
    ci95: list[float] | None
    missing: NotRequired[int]
    bounds: NotRequired[list[float]]
    """What the mean would be, had all that is missing been worth nothing, and as it is."""


class Rate(TypedDict):
    """A share of n, with Wilson's interval."""

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
    """A proportion with what it is of and its interval; of nothing, None."""
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
    """The bootstrap's interval, drawing `units`; between limits one that is never without width."""
    ends = limits or (-inf, inf)
    sampled = bootstrap(values[:, None], units, seed=seed, draws=draws, limits=ends)
    low, high = float(sampled.low[0]), float(sampled.high[0])
    if low < high and isfinite(high - low):
        return rounded_all((low, high))
    return interval_between(limits, float(values.mean()), independent) if limits else None


def interval_between(limits: tuple[float, float], mean: float, n: int) -> list[float]:
    """Wilson's interval, stretched to the limits of a scale.

    Values that are all alike cannot say how much others would differ. Nothing between two limits
    spreads wider than the limits themselves do, and for these Wilson's interval holds.
    """
    least, span = limits[0], limits[1] - limits[0]
    low, high = (least + span * end for end in wilson(round((mean - least) / span * n), n))
    return rounded_all((min(low, mean), max(high, mean)))
