"""From numbers to words: equivalence within a band, and the verdict on a difference.

Not significant is not the same. Equivalence has to be shown, against a band named beforehand.
"""

from __future__ import annotations

from math import inf, nan
from typing import Literal, NamedTuple

from mnemoscope.stats.distributions import t_tail
from mnemoscope.stats.intervals import Interval

Verdict = Literal["better", "worse", "equivalent", "cannot tell"]


class Equivalence(NamedTuple):
    """Two one-sided tests: that the difference is above -band, and that it is below band."""

    p_low: float
    p_high: float
    equivalent: bool


def tost(delta: float, se: float, band: float, n: int, *, alpha: float = 0.05) -> Equivalence:
    """Two one-sided t-tests (Schuirmann 1987) of a mean of n independent differences.

    Equivalent iff both p are below alpha, which is: iff the 1 - 2 alpha interval (90 %) lies
    inside the band. Of clustered differences n is the number of clusters.
    """
    _named(band)
    if se < 0:
        raise ValueError(f"a standard error cannot be {se}")
    if n < 2:
        return Equivalence(nan, nan, False)
    p_low, p_high = (t_tail(_ratio(room, se), n - 1) for room in (delta + band, band - delta))
    return Equivalence(p_low, p_high, p_low < alpha and p_high < alpha)


def equivalent(interval90: Interval, band: float) -> bool:
    """The same decision on any 90 % interval, such as a bootstrap's: does it lie within ±band?"""
    return -_named(band) < interval90.low and interval90.high < band


def verdict(
    delta_interval95: Interval,
    p_corrected: float,
    interval90: Interval | None = None,
    band: float | None = None,
    alpha: float = 0.05,
) -> Verdict:
    """What may be said of a difference whose positive values are the better ones.

    Better or worse needs both a corrected p below alpha and an interval beside zero: a test that
    knows no clusters shall not overrule an interval that does. Equivalent needs the 90 % interval
    inside a named band. A difference that is certain, but within the band, is still called by its
    direction. NaN decides nothing.
    """
    if p_corrected < alpha and delta_interval95.low > 0:
        return "better"
    if p_corrected < alpha and delta_interval95.high < 0:
        return "worse"
    if band is not None and interval90 is not None and equivalent(interval90, band):
        return "equivalent"
    return "cannot tell"


def _named(band: float) -> float:
    if not band > 0:
        raise ValueError(f"a band of equivalence must be above 0, got {band}")
    return band


def _ratio(room: float, se: float) -> float:
    if se:
        return room / se
    return inf if room > 0 else -inf
