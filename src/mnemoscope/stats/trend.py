"""The trend of a measure: a least-squares line with intervals."""

from __future__ import annotations

from math import nan, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.distributions import t_quantile, t_tail


class Trend(NamedTuple):
    """A least-squares line with intervals; p is None for fewer than three points."""

    intercept: float
    slope: float
    slope_low: float
    slope_high: float
    intercept_low: float
    intercept_high: float
    p: float | None
    """Two-sided p of the hypothesis that the slope is zero."""
    n: int


def linear_trend(x: ArrayLike, y: ArrayLike, confidence: float = 0.95) -> Trend:
    """Ordinary least squares, with t intervals of n - 2 degrees of freedom.

    slope = Sxy / Sxx with error s / sqrt(Sxx), intercept = ȳ - slope x̄ with error
    s sqrt(1/n + x̄²/Sxx), s² = Σ residual² / (n - 2). Points with a NaN are left out. Two points
    give a line without intervals; one point, or points that all have the same x, give NaN.
    """
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    across, up = np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if across.ndim != 1 or across.shape != up.shape:
        raise ValueError(f"x and y must be two lists of one length: {across.shape}, {up.shape}")
    valued = ~(np.isnan(across) | np.isnan(up))
    across, up = across[valued], up[valued]
    n = len(across)
    if n < 2 or np.ptp(across) == 0:
        return Trend(nan, nan, nan, nan, nan, nan, None, n)
    centre, height = float(across.mean()), float(up.mean())
    sxx = float(((across - centre) ** 2).sum())
    slope = float(((across - centre) * (up - height)).sum()) / sxx
    intercept = height - slope * centre
    if n < 3:
        return Trend(intercept, slope, nan, nan, nan, nan, None, n)
    residuals = up - height - slope * (across - centre)
    error = sqrt(float((residuals**2).sum()) / (n - 2) / sxx)
    p = 2 * t_tail(abs(slope) / error, n - 2) if error else float(slope == 0)
    reach = t_quantile((1 - confidence) / 2, n - 2)
    half = reach * error
    lift = half * sqrt(sxx / n + centre * centre)
    return Trend(
        intercept,
        slope,
        slope - half,
        slope + half,
        intercept - lift,
        intercept + lift,
        p,
        n,
    )
