"""Means and proportions with 95 % intervals, in the form of a run's JSON files.

Questions about one conversation are not independent, so every interval of a run's figure is
computed here, from the sums of its clusters.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NotRequired, TypedDict

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnemoscope.stats.clustered import (
    FEW_CLUSTERS,
    ClusterSums,
    Interval,
    cluster_sums,
    difference,
    level,
    levels,
)

UNIT = (0.0, 1.0)
"""The limits of a proportion, and of every metric of a ranking."""
_DIGITS = 10
"""Enough digits that rounding to four later is not rounding twice."""
_END_DIGITS = 8
"""Fewer for the ends of an interval: their last digits depend on the machine's linear algebra."""

IntervalKind = Literal["clustered", "these conversations only"]
"""What the intervals of a file are about: conversations like these, or these alone."""


class Estimate(TypedDict):
    """A mean over n values; failed and unjudged questions are `missing`, not zeros."""

    mean: float | None
    n: int
    ci95: list[float] | None
    missing: NotRequired[int]
    bounds: NotRequired[list[float]]
    """The mean if every missing value were the worst, and if every one were the best."""
    withheld: NotRequired[str]
    """Why the figure may not be shown."""


class Rate(TypedDict):
    """A proportion of n."""

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


def interval_kind(clusters: int) -> IntervalKind:
    """Return what intervals over so many clusters are about."""
    return "clustered" if clusters >= FEW_CLUSTERS else "these conversations only"


def few_clusters(clusters: int) -> list[str]:
    """Return a caveat if the intervals say nothing of other conversations."""
    if not 0 < clusters < FEW_CLUSTERS:
        return []
    if clusters == 1:
        return ["one conversation: the interval does not generalise to others"]
    return [
        f"only {clusters} conversations: the intervals are about these conversations only and do "
        f"not generalise to others (at least {FEW_CLUSTERS} are needed)"
    ]


def rate(hits: Sequence[bool], clusters: Sequence[str]) -> Rate:
    """Return the share of hits with its interval; None without values."""
    n, count = len(hits), sum(hits)
    if not n:
        return {"rate": None, "count": 0, "n": 0, "ci95": None}
    interval = interval_of_mean(np.array(hits, dtype=np.float64), clusters)
    return {"rate": rounded(count / n), "count": count, "n": n, "ci95": interval}


def rate_with_missing(hits: Sequence[tuple[bool | None, str]]) -> Rate:
    """Return the share of hits among those that are known, each with its cluster.

    The bounds are the share if every missing one were no hit, and if every one were one.
    """
    known = [(hit, cluster) for hit, cluster in hits if hit is not None]
    found = rate([hit for hit, _ in known], [cluster for _, cluster in known])
    if missing := len(hits) - len(known):
        found["missing"] = missing
        ends = (found["count"] / len(hits), (found["count"] + missing) / len(hits))
        found["bounds"] = rounded_all(ends)
    return found


def interval_of_mean(
    values: NDArray[np.float64],
    clusters: Sequence[str],
    *,
    limits: tuple[float, float] = UNIT,
    questions: Collection[str] | None = None,
) -> list[float]:
    """Return the 95 % interval of the mean of values between two limits.

    `questions` names the question of each value where one is asked at several checkpoints: the
    values of one question are not independent and count as one.
    """
    return intervals_of_means(values[:, None], clusters, limits=limits, questions=questions)[0]


def intervals_of_means(
    values: ArrayLike,
    clusters: Sequence[str],
    *,
    limits: tuple[float, float] = UNIT,
    questions: Collection[str] | None = None,
) -> list[list[float]]:
    """Return the 95 % interval of the mean of every column; rows are questions."""
    sums = cluster_sums(values, clusters)
    if questions is not None:
        share = len(set(questions)) / len(questions)
        sums = ClusterSums(*(part * share for part in sums))
    if sums.sizes.all():
        found = levels(sums, limits)
    else:
        found = [level(sums.column(place), limits) for place in range(sums.sums.shape[1])]
    return [[round(end, _END_DIGITS) for end in ends] for ends in found]


_LEAST_RANGE = 1e-150
"""The square of a smaller range is 0 in floating point, as if all values were equal."""


def interval_of_unbounded(
    values: NDArray[np.float64], clusters: Sequence[str]
) -> list[float] | None:
    """Return the 95 % interval of a mean without limits, such as a number of words.

    Its range is that of the values; if all are equal, they do not show how others would vary.
    """
    span = float(np.ptp(values))
    if not span > _LEAST_RANGE:
        return None
    found = difference(cluster_sums(values[:, None], clusters), span)
    return [round(end, _END_DIGITS) for end in found.interval(found.critical())]


def interval_of_difference(column: ClusterSums) -> list[float]:
    """Return the 95 % interval of a mean difference between values from 0 to 1."""
    found = difference(column)
    return interval_of_change(found.interval(found.critical()), 1.0)


def interval_of_change(interval: Interval, limit: float) -> list[float]:
    """Return the interval of a change that lies between minus the limit and the limit."""
    return [round(min(limit, max(-limit, end)), _END_DIGITS) for end in interval]
