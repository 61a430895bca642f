"""The table of metrics, plug-ins included, and their columns in metrics.json.

A metric is a file with one class and a line in this table, or an entry point of another package in
the group `mnemoscope.metrics`. Reports, comparisons and gates take the metrics from here.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import Entry, Registry
from mnemoscope.metrics.metric import Metric

METRICS = Registry(
    "metric",
    {
        "hit": Entry("mnemoscope.metrics.hit:HitRate", "any evidence in the top k"),
        "recall": Entry("mnemoscope.metrics.recall:Recall", "fraction of the evidence found"),
        "all": Entry("mnemoscope.metrics.all_evidence:AllEvidence", "all evidence in the top k"),
        "precision": Entry("mnemoscope.metrics.precision:Precision", "fraction that is relevant"),
        "ndcg": Entry("mnemoscope.metrics.ndcg:NDCG", "discounted gain against the ideal"),
        "mrr": Entry("mnemoscope.metrics.reciprocal_rank:ReciprocalRank", "1 / rank of the first"),
        "map": Entry("mnemoscope.metrics.average_precision:AveragePrecision", "mean precision"),
    },
    group="mnemoscope.metrics",
)
PRIMARY = "recall@10"
"""The metric that is shown where a run has only one figure."""


class MetricAt(NamedTuple):
    """A metric at one cut-off: one column of metrics.json."""

    metric: Metric
    k: int
    name: str


@lru_cache
def installed_metrics() -> dict[str, Metric]:
    """Return all metrics by name, built-ins first; a plug-in that cannot be loaded is left out."""
    found: dict[str, Metric] = {}
    for name in METRICS.names():
        try:
            loaded = METRICS.get(name)
            metric = loaded() if isinstance(loaded, type) else loaded
            if not isinstance(metric, Metric) or metric.name != name:
                raise UsageError(
                    f"the metric {name!r} must be a subclass of mnemoscope.metrics.Metric with "
                    "that name"
                )
            found[name] = metric
        except UsageError as error:
            if name in METRICS.builtin:
                raise
            warnings.warn(f"the metric {name!r} is left out: {error}", stacklevel=2)
    return found


def is_builtin(name: str) -> bool:
    """Whether `name` or `name@k` is a column of a built-in metric."""
    return name.partition("@")[0] in METRICS.builtin


def metric_of(name: str) -> Metric | None:
    """Return the metric of a column; None if it is not installed."""
    return installed_metrics().get(name.partition("@")[0])


@lru_cache
def metric_columns(ks: tuple[int, ...], cuts: tuple[int, ...]) -> tuple[MetricAt, ...]:
    """Return the columns in the order of metrics.json: by k, then by cut, then whole rankings.

    Columns of plug-ins follow those of the built-ins.
    """
    for name, depths in (("ks", ks), ("cuts", cuts)):
        if any(depth < 1 for depth in depths) or len(set(depths)) < len(depths):
            raise ValueError(f"{name} must be distinct positive numbers, got {depths}")
    deepest = max((*ks, *cuts), default=0)
    return tuple(
        MetricAt(metric, k, metric.name if at == "all" else f"{metric.name}@{k}")
        for own in (True, False)
        for at, depths in (("k", ks), ("depth", cuts), ("all", (deepest,)))
        for k in depths
        for metric in installed_metrics().values()
        if metric.at == at and (metric.name in METRICS.builtin) is own
    )


@lru_cache
def metrics_at(
    ks: tuple[int, ...], cuts: tuple[int, ...]
) -> tuple[tuple[int, str, tuple[Metric, ...]], ...]:
    """Return the columns in groups of consecutive ones that see the same top k."""
    groups = groupby(metric_columns(ks, cuts), lambda one: (one.k, one.metric.at))
    return tuple((k, at, tuple(column.metric for column in own)) for (k, at), own in groups)


@lru_cache
def metric_names(ks: tuple[int, ...], cuts: tuple[int, ...]) -> tuple[str, ...]:
    """Return the names of the columns."""
    return tuple(column.name for column in metric_columns(ks, cuts))


def headline(names: Sequence[str]) -> list[str]:
    """Return the columns among `names` that summary tables show, in their order."""
    shown: list[str] = []
    for metric in sorted(installed_metrics().values(), key=lambda metric: metric.rank):
        if metric.headline == "deepest":
            shown += [name for name in names if name.startswith(f"{metric.name}@")][-1:]
        else:
            shown += [name for k in metric.headline if (name := f"{metric.name}@{k}") in names]
    return shown
