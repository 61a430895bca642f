"""Exponents of growth: the slope of log cost against log size, by least squares.

Two exponents are fitted over the upper two decades of sizes. *whole* is that of the cost as it was
measured. A cost that does not depend on the size, such as starting Python, makes it smaller. So
*grown* is that of the part that grows: the cost above that of the smallest run of the axis, against
the size above that of the smallest run. Costs that are hardly above it are left out: their
difference is mostly noise.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import log
from typing import NamedTuple

from mnemoscope.stats.trend import linear_trend

UPPER_RANGE = 100
"""Sizes of at least the largest one divided by this are fitted."""

FEWEST_SIZES = 3
"""An axis with fewer sizes has no plot, and its exponents have no interval."""
HARDLY_ABOVE = 1.1
"""The part that grows is fitted for costs of more than this times that of the smallest run."""


class Exponent(NamedTuple):
    """A fitted exponent with its 95 % interval, which fewer than three sizes do not have."""

    value: float
    low: float
    high: float
    points: int
    """How many sizes were fitted."""


class Growth(NamedTuple):
    """The two exponents of a cost; None where fewer than two sizes can be fitted."""

    whole: Exponent | None
    grown: Exponent | None


def growth(costs: Mapping[int, float]) -> Growth:
    """The exponents of the cost, given for each size."""
    smallest, largest = min(costs), max(costs)
    upper = {size: cost for size, cost in costs.items() if size * UPPER_RANGE >= largest}
    fixed, limit = costs[smallest], HARDLY_ABOVE * costs[smallest]
    above = {n - smallest: cost - fixed for n, cost in upper.items() if cost > limit}
    return Growth(exponent(upper), exponent(above))


def exponent(costs: Mapping[int, float]) -> Exponent | None:
    """The slope of the line through the logarithms."""
    if len(costs) < 2:
        return None
    sizes = tuple(sorted(costs))
    found = linear_trend([log(size) for size in sizes], [log(costs[size]) for size in sizes])
    return Exponent(found.slope, found.slope_low, found.slope_high, len(sizes))
