"""Holm's correction, the equivalence test, and the verdict on a difference.

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


def equivalent(interval90: Interval, band: float) -> bool:
    """Whether a 90 % interval, such as a bootstrap's, lies within ±band (Schuirmann 1987)."""
    if not band > 0:
        raise ValueError(f"a band of equivalence must be above 0, got {band}")
    return -band < interval90.low and interval90.high < band


def verdict(
    delta_interval95: Interval,
    p_corrected: float,
    interval90: Interval | None = None,
    band: float | None = None,
    alpha: float = 0.05,
) -> Verdict:
    """Return the verdict on a difference whose positive values are better.

    Better and worse need both a corrected p below alpha and an interval that excludes zero, because
    the tests ignore clusters and the interval does not. Equivalent needs the 90 % interval inside
    the band. A significant difference within the band is better or worse, not equivalent. With NaN
    the verdict is "cannot tell".
    """
    if p_corrected < alpha and delta_interval95.low > 0:
        return "better"
    if p_corrected < alpha and delta_interval95.high < 0:
        return "worse"
    if band is not None and interval90 is not None and equivalent(interval90, band):
        return "equivalent"
    return "cannot tell"
