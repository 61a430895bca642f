"""Check a metric: its values, its expectation for random rankings, and its ceiling."""

from __future__ import annotations

import random
from math import log2, sqrt

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK

_POOL, _EVIDENCE, _KS = 30, 3, (1, 5, 10)
_DRAWS = 4000
_ERRORS = 4.5
"""Allowed standard errors between chance and the mean of random rankings: one false alarm in
100,000 checks."""


def check_metric(metric: Metric) -> list[str]:
    """Return the metric's faults, one sentence each; empty if all checks pass."""
    problems: dict[str, None] = {}
    draw = random.Random(1)
    for k in _KS:
        values = []
        for _ in range(_DRAWS):
            ranks = sorted(draw.sample(range(1, _POOL + 1), _EVIDENCE))
            inside = [rank for rank in ranks if metric.at == "all" or rank <= k]
            values.append(metric.value(_top(k, inside)) if inside else 0.0)
        places = _EVIDENCE if metric.at == "all" else min(k, _EVIDENCE)
        best = metric.ceiling(_top(k, list(range(1, places + 1))))
        column = metric.name if metric.at == "all" else f"{metric.name}@{k}"
        if not all(0 <= value <= 1 for value in values):
            problems[f"{column} has values outside 0 to 1"] = None
        if metric.interval == "proportion" and set(values) - {0.0, 1.0}:
            problems[f"{column} is declared a proportion but has values other than 0 and 1"] = None
        if max(values) > best + 1e-9:
            problems[f"{column} is {max(values):.3f}, above its ceiling {best:.3f}"] = None
        if (chance := metric.chance(_random(k, metric.at == "all"))) is None:
            continue
        mean = sum(values) / _DRAWS
        spread = sqrt(sum((value - mean) ** 2 for value in values)) / _DRAWS
        if abs(mean - chance) > _ERRORS * spread + 1e-9:
            problems[
                f"{column}: chance() returns {chance:.4f}, but {_DRAWS:,} random rankings have a "
                f"mean of {mean:.4f}"
            ] = None
    if not (type(metric).__doc__ or "").strip() or type(metric).__doc__ == Metric.__doc__:
        problems["the class has no docstring; write the metric's definition there"] = None
    return list(problems)


def _top(k: int, ranks: list[int]) -> TopK:
    gain = sum(1 / log2(rank + 1) for rank in ranks)
    precisions = sum(nth / rank for nth, rank in enumerate(ranks, 1))
    found = len(ranks)
    return TopK(k, found, found, _EVIDENCE, ranks[0], gain, _ideal(k), precisions)


def _random(k: int, whole: bool) -> RandomTopK:
    missed = [1.0]
    for drawn in range(_POOL if whole else min(k, _POOL)):
        missed.append(missed[-1] * max(0.0, 1 - _EVIDENCE / (_POOL - drawn)))
    depth = _POOL if whole else k
    return RandomTopK(depth, depth, _POOL, _EVIDENCE, _EVIDENCE, 1.0, _ideal(depth), missed)


def _ideal(k: int) -> float:
    return sum(1 / log2(rank + 1) for rank in range(1, min(k, _EVIDENCE) + 1))
