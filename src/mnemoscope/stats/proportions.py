"""Compare two proportions: the pooled z-test of the release process, and Cohen's h.

The test is for two separate samples. Use paired.py for versions that answered the same questions;
this is for published tables, which contain only rates and counts.
"""

from __future__ import annotations

from math import asin, isnan, nan, sqrt
from typing import Literal, NamedTuple

from mnemoscope.stats.distributions import two_sided_p

Effect = Literal["small", "medium", "large"]


class ZTest(NamedTuple):
    """The second rate minus the first, the same in standard errors, and its two-sided p."""

    delta: float
    z: float
    p: float


def two_proportion_z(
    p1: float, n1: int, p2: float, n2: int, *, pool: Literal["seed", "weighted"]
) -> ZTest:
    """z = (p2 - p1) / sqrt(q (1 - q) (1/n1 + 1/n2)), p = 2 (1 - Φ(|z|)).

    The pooled rate q is (p1 + p2) / 2 for "seed", as the release process writes it (§3.3), and
    (n1 p1 + n2 p2) / (n1 + n2) for "weighted", as its script and the textbooks compute it. They
    differ if n1 and n2 do. An empty sample gives NaN.
    """
    for rate, n in ((p1, n1), (p2, n2)):
        if n < 0 or (n and not 0 <= rate <= 1):
            raise ValueError(f"a rate of {rate} over {n} is not a proportion")
    if not n1 or not n2:
        return ZTest(nan, nan, nan)
    pooled = (p1 + p2) / 2 if pool == "seed" else (n1 * p1 + n2 * p2) / (n1 + n2)
    error = sqrt(pooled * max(0.0, 1 - pooled) * (1 / n1 + 1 / n2))
    # The error is 0 only if both rates are 0 or both are 1: then they do not differ.
    z = (p2 - p1) / error if error else 0.0
    return ZTest(p2 - p1, z, two_sided_p(z))


def cohens_h(p1: float, p2: float) -> float:
    """h = 2 asin(sqrt(p2)) - 2 asin(sqrt(p1)) (Cohen 1988, ch. 6): positive if p2 is larger."""
    for rate in (p1, p2):
        if rate < 0 or rate > 1:
            raise ValueError(f"{rate} is not a proportion")
    return 2 * asin(sqrt(p2)) - 2 * asin(sqrt(p1))


def effect_label(h: float) -> Effect:
    """The release process's labels of |h| (§3.5): below 0.2 small, to 0.5 medium, above large."""
    if isnan(h):
        raise ValueError("the effect is NaN and has no label")
    if abs(h) < 0.2:
        return "small"
    return "medium" if abs(h) <= 0.5 else "large"
