"""Many tests at once: Holm's correction, which keeps the chance of any false claim at alpha."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.intervals import Floats


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
