"""From p-values and intervals to words: Holm's correction, equivalence, the verdict.

Not significant is not the same. Equivalence has to be shown, against a band named beforehand.
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
    that running maximum a worse result could be corrected to a better p. NaN means that no test
    was possible: it counts for nothing in the family, and stays NaN.
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
