"""How long recalls took: the shape of a sample of milliseconds in six numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class Latency(NamedTuple):
    """A summary of milliseconds; percentiles interpolate linearly between neighbours."""

    n: int
    mean: float
    p50: float
    p95: float
    p99: float
    max: float


def summarise_latency(milliseconds: Iterable[float]) -> Latency | None:
    """The summary of a sample, or None if nothing was timed."""
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
    """Hyndman and Fan's type 7, the default of numpy and R."""
    # Whole numbers until the last step, so that a percentile on a value is that very value.
    below, remainder = divmod(percent * (len(ordered) - 1), 100)
    if not remainder:
        return ordered[below]
    low, high = ordered[below], ordered[below + 1]
    return low + (high - low) * remainder / 100
