"""Holm's correction, and the verdict on a difference.

A difference that is not significant is not evidence of equivalence. Equivalence is tested against
a band that is chosen beforehand.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.intervals import Floats, Interval

Verdict = Literal["better", "worse", "equivalent", "cannot tell"]


def holm(p_values: ArrayLike) -> Floats:
    """Holm's step-down p-values (Scand. J. Statist. 6, 1979), in the order given.

    The i-th smallest of m becomes the largest of (m - j + 1) p_j for j <= i, at most 1. Without
    this running maximum a larger p could be corrected to a smaller one. NaN means that there was no
    test: it does not count in the family, and stays NaN.
    """
    given = np.asarray(p_values, dtype=np.float64)
    if given.ndim != 1:
        raise ValueError(f"p-values must be one list, got shape {given.shape}")
    tested = np.flatnonzero(~np.isnan(given))
    if np.any((given[tested] < 0) | (given[tested] > 1)):
        raise ValueError("p-values must lie between 0 and 1")
    ascending = tested[np.argsort(given[tested], kind="stable")]
    scaled = given[ascending] * np.arange(len(ascending), 0, -1)
    corrected = np.full(given.shape, np.nan)
    corrected[ascending] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return corrected


def verdict_of(interval: Interval | tuple[float, float], band: float | None = None) -> Verdict:
    """Return the verdict that an interval gives on a difference whose positive values are better.

    Equivalent needs the whole interval inside ±band, which is two one-sided tests at half of its
    alpha each; it comes first, so that a difference which is real but does not matter is called
    equivalent. As long as the interval holds the truth, no verdict is false. With NaN the verdict
    is "cannot tell".
    """
    low, high = interval
    if band is not None:
        if not band > 0:
            raise ValueError(f"a band of equivalence must be above 0, got {band}")
        if low >= -band and high <= band:
            return "equivalent"
    if low > 0:
        return "better"
    return "worse" if high < 0 else "cannot tell"
