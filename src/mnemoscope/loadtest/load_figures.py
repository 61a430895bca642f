"""The figures of one step of a load test, with their intervals."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

from msgspec import Struct

from mnemoscope.loadtest.load_generator import Pattern, Request
from mnemoscope.loadtest.workload import Workload
from mnemoscope.loadtest.writers import WriteCounts
from mnemoscope.metrics import summarise_latency
from mnemoscope.stats.blocks import BLOCKS, mean_interval, percentile_intervals, share_interval
from mnemoscope.stats.clustered import cluster_sums, level

PERCENTS = (50, 95, 99)
_MOST_ERRORS = 3


class Estimated(Struct, frozen=True):
    """A figure and its 95 % interval; None where it cannot be known."""

    value: float | None
    ci95: tuple[float, float] | None = None


class LoadStep(Struct, frozen=True, kw_only=True):
    """The figures of one system under one pattern of requests; times are in milliseconds."""

    system: str
    loop: Literal["open", "closed"]
    clients: int
    rate: float | None
    """Requests that were due each second; None in a closed loop."""
    writers: int
    requests: int
    seconds: float
    latency_ms: dict[str, Estimated]
    """p50, p95, p99 and max, from the time at which a request was due."""
    sent_to_reply_ms: dict[str, float | None]
    """The same from the time at which it was sent: what a closed loop would report."""
    throughput: Estimated
    """Requests that were answered without an error, each second."""
    errors: Estimated
    """The share of requests that failed or were late."""
    error_texts: dict[str, int]
    """The most frequent errors."""
    unsent: int
    """Requests that were due, and were not sent before the step ended."""
    metric: str
    recall: Estimated
    """Of the answered requests."""
    written: WriteCounts | None
    note: str = ""
    """Why the step ended early."""

    def row(self) -> dict[str, Any]:
        """The figures of the step side by side."""
        plain = ("system", "loop", "clients", "rate", "writers", "requests", "seconds", "unsent")
        row: dict[str, Any] = {name: getattr(self, name) for name in plain}
        estimates = {f"{name}_ms": found for name, found in self.latency_ms.items()}
        estimates |= {"throughput": self.throughput, "errors": self.errors}
        for name, found in {**estimates, self.metric: self.recall}.items():
            row[name] = found.value
            row[f"{name}_low"], row[f"{name}_high"] = found.ci95 or (None, None)
        row["written"] = None if self.written is None else self.written.memories
        return row


def figures(
    system: str,
    pattern: Pattern,
    requests: Sequence[Request],
    workload: Workload,
    *,
    writers: int,
    written: WriteCounts | None,
    note: str = "",
) -> LoadStep:
    """Compute the figures of a step.

    Latencies are those of answered and of late requests. A request that failed at once is an error
    and no latency: it would make a failing system look fast.
    """
    timed = [one for one in requests if not one.error or one.late]
    answered = [one for one in requests if not one.error]
    seconds = max((one.done for one in requests), default=0.0)
    recalls = workload.recall([one.result for one in answered])
    errors = Counter(one.error for one in requests if one.error)
    return LoadStep(
        system=system,
        loop=pattern.loop,
        clients=pattern.clients,
        rate=pattern.rate,
        writers=writers,
        requests=len(requests),
        seconds=seconds,
        latency_ms=_percentiles([1000 * one.latency for one in timed]),
        sent_to_reply_ms={
            name: found.value
            for name, found in _percentiles(
                [1000 * (one.done - one.sent) for one in timed], intervals=False
            ).items()
        },
        throughput=_throughput(answered, seconds),
        errors=Estimated(
            errors.total() / len(requests) if requests else None,
            share_interval([bool(one.error) for one in requests]),
        ),
        error_texts=dict(errors.most_common(_MOST_ERRORS)),
        unsent=sum(one.late and one.sent == one.done for one in requests),
        metric=workload.metric,
        recall=_recall(recalls, [one.question for one in answered]),
        written=written,
        note=note,
    )


def _percentiles(milliseconds: Sequence[float], *, intervals: bool = True) -> dict[str, Estimated]:
    """p99 of fewer than 100 requests would be an interpolation towards the maximum: it is None."""
    found = summarise_latency(milliseconds)
    if found is None:
        return {name: Estimated(None) for name in ("p50", "p95", "p99", "max")}
    ends = percentile_intervals(milliseconds, PERCENTS) if intervals else [None] * len(PERCENTS)
    shown = {
        f"p{percent}": Estimated(getattr(found, f"p{percent}"), end)
        if found.n * (100 - percent) >= 100
        else Estimated(None)
        for percent, end in zip(PERCENTS, ends, strict=True)
    }
    return {**shown, "max": Estimated(found.max)}


def _throughput(answered: Sequence[Request], seconds: float) -> Estimated:
    if not seconds:
        return Estimated(None)
    spans = [0] * BLOCKS
    for one in answered:
        spans[min(BLOCKS - 1, int(BLOCKS * one.done / seconds))] += 1
    each = [count * BLOCKS / seconds for count in spans]
    interval = mean_interval(each) if len(answered) >= 2 * BLOCKS else None
    return Estimated(
        len(answered) / seconds, None if interval is None else (max(0.0, interval[0]), interval[1])
    )


def _recall(values: Sequence[float], questions: Sequence[str]) -> Estimated:
    """The mean over requests; those of one question are one cluster."""
    if not values:
        return Estimated(None)
    column = cluster_sums([[value] for value in values], questions)
    return Estimated(sum(values) / len(values), level(column))
