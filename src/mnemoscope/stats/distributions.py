"""Tails and quantiles of the normal and of Student's t, without scipy."""

from __future__ import annotations

from math import erfc, exp, isnan, lgamma, log, log1p, pi, sqrt
from statistics import NormalDist

TINY = 1e-300
"""Replaces a zero denominator in a continued fraction."""


def two_sided_p(z: float) -> float:
    """2 (1 - Φ(|z|)), without the cancellation that turns small values into zero."""
    return erfc(abs(z) / sqrt(2))


def normal_quantile(probability: float) -> float:
    return NormalDist().inv_cdf(probability)


def t_tail(t: float, freedom: float) -> float:
    """P(T > t) = I_x(ν/2, 1/2) / 2 with x = ν / (ν + t²) for t > 0 (DLMF 8.17)."""
    if isnan(t):
        return t
    if t < 0:
        return 1 - t_tail(-t, freedom)
    ratio = t * t / freedom
    if ratio == 0:
        return 0.5
    if 1 / ratio == 0:
        return 0.0
    # Both arguments are computed directly: 1 - x would lose the digits of a small one.
    inside, outside = 1 / (1 + ratio), 1 / (1 + 1 / ratio)
    log_beta = lgamma(freedom / 2) + lgamma(0.5) - lgamma(freedom / 2 + 0.5)
    logs = freedom / 2 * -log1p(ratio) + 0.5 * -log1p(1 / ratio) - log_beta
    if inside < (freedom / 2 + 1) / (freedom / 2 + 2.5):
        return exp(logs) * _beta_fraction(inside, freedom / 2, 0.5) / freedom
    return 0.5 - exp(logs) * _beta_fraction(outside, 0.5, freedom / 2)


def t_quantile(tail: float, freedom: float) -> float:
    """Return the t with P(T > t) = `tail`, for tails up to 0.5.

    Newton's method starts at the normal quantile, which is lower. The tail is convex and falling,
    so the steps approach the root from below.
    """
    t = max(normal_quantile(1 - tail), 0.0)
    while True:
        step = (t_tail(t, freedom) - tail) / _t_density(t, freedom)
        if step <= 1e-14 * max(t, 1.0):
            return t
        t += step


def _t_density(t: float, freedom: float) -> float:
    scale = lgamma((freedom + 1) / 2) - lgamma(freedom / 2) - 0.5 * log(freedom * pi)
    return exp(scale - (freedom + 1) / 2 * log1p(t * t / freedom))


def _beta_fraction(x: float, a: float, b: float) -> float:
    """The continued fraction of I_x(a, b) (DLMF 8.17.22), by Lentz's method."""
    c, d = 1.0, 1 / ((1 - (a + b) * x / (a + 1)) or TINY)
    value, m = d, 1
    while True:
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / ((1 + term * d) or TINY)
            c = (1 + term / c) or TINY
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            return value
        m += 1


def chi_square_quantile(probability: float, freedom: float) -> float:
    """Return the x with P(χ² <= x) = `probability`, by bisection."""
    low, high = 0.0, freedom + 1.0
    while _chi_square_cdf(high, freedom) < probability:
        high *= 2
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        if _chi_square_cdf(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _chi_square_cdf(x: float, freedom: float) -> float:
    """The regularised incomplete gamma function P(ν/2, x/2) by its series (DLMF 8.11.4)."""
    shape, half = freedom / 2, x / 2
    if half <= 0:
        return 0.0
    term = total = 1 / shape
    step = shape
    while term > total * 1e-16:
        step += 1
        term *= half / step
        total += term
    return min(1.0, total * exp(shape * log(half) - half - lgamma(shape)))
