"""Summarise how long recalls took, in milliseconds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Latency(NamedTuple):
    """A summary in milliseconds; percentiles interpolate linearly between neighbours."""

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


def summarise_latency(milliseconds: Iterable[float]) -> Latency | None:
    """Summarise a sample; None if it is empty."""
    ordered = sorted(milliseconds)
    if not ordered:
        return None
    return Latency(
        n=len(ordered),
        mean=sum(ordered) / len(ordered),
        p50=_percentile(ordered, 50),
        p95=_percentile(ordered, 95),
        p99=_percentile(ordered, 99),
        max=ordered[-1],
    )


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Compute a percentile of Hyndman and Fan's type 7, the default of numpy and R."""
    # Integers until the last step, so that a percentile at a value is exactly that value.
    below, remainder = divmod(percent * (len(ordered) - 1), 100)
    if not remainder:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    return low + (high - low) * remainder / 100
