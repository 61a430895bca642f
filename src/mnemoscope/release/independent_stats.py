"""A second implementation of the key statistics, as plain as can be.

Standard library only, and nothing of ours: no shared line with what it is there to check. It
reads rankings from raw_retrievals.jsonl; of the journal it takes labels alone (which questions
share a cluster, graded evidence), never a result.
"""

from __future__ import annotations

import json
import random
from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import asin, comb, exp, isnan, lgamma, log, log2, nan, pi, sqrt
from pathlib import Path
from typing import Any, NamedTuple

FAILED = ("error", "timeout", "not-indexed")
Z = 1.959963984540054


class Asked(NamedTuple):
    """One question of one run."""

    category: str
    cluster: str
    evidence: dict[str, int]
    """Each with its grade."""
    hits: list[set[str]]
    """The memories behind each hit, best first, repeated hits removed."""


def read(folder: Path) -> dict[str, Asked]:
    """The questions that have evidence and were fairly put."""
    labels: dict[str, dict[str, Any]] = {}
    for line in _lines(folder / "trials.jsonl"):
        if line["phase"] == "recall":
            labels[line["question"]] = {k: line.get(k) for k in ("cluster", "grades")}
    asked = {}
    for line in _lines(folder / "raw_retrievals.jsonl"):
        if not line["evidence"] or line["status"] in FAILED:
            continue
        label = labels.get(line["question"], {})
        grades, sources = label.get("grades") or {}, line.get("sources") or {}
        hits, seen = [], set()
        for hit in line["ranking"]:
            if hit not in seen:
                seen.add(hit)
                hits.append(set(sources.get(hit, [hit])))
        asked[line["question"]] = Asked(
            line["category"],
            label.get("cluster") or line["scenario"],
            {id: grades.get(id, 1) for id in line["evidence"]},
            hits,
        )
    return asked


def value(metric: str, asked: Asked) -> float:
    """One metric of one question."""
    kind, _, cut = metric.partition("@")
    k = int(cut)
    missing = set(asked.evidence)
    found, useful, gain, first = 0, 0, 0.0, 0
    for rank, memories in enumerate(asked.hits[:k], 1):
        fresh = missing & memories
        if fresh:
            missing -= fresh
            found += len(fresh)
            useful += 1
            gain += sum(asked.evidence[id] for id in fresh) / log2(rank + 1)
            first = first or rank
    total = len(asked.evidence)
    grades = sorted(asked.evidence.values(), reverse=True)
    ideal = sum(grade / log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))
    return {
        "hit": float(found > 0),
        "recall": found / total,
        "all": float(found == total),
        "precision": useful / k,
        "ndcg": min(1.0, gain / ideal),
        "mrr": 1 / first if first else 0.0,
    }[kind]


def mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


def spread(values: Sequence[float]) -> float:
    centre = mean(values)
    if len(values) < 2:
        return 0.0
    return sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))


def mcnemar(gained: int, lost: int) -> float:
    """In whole numbers, so that nothing can round."""
    n = gained + lost
    tail = sum(comb(n, i) for i in range(min(gained, lost) + 1))
    return 1.0 if 2 * tail >= 2**n else 2 * tail / 2**n


def t_test(deltas: Sequence[float]) -> float:
    """Two-sided p of the paired t."""
    if not any(deltas):
        return 1.0
    sd = spread(deltas)
    if len(deltas) < 2 or sd <= 1e-12 * abs(mean(deltas)):
        return nan
    return t_tails(abs(mean(deltas)) / (sd / sqrt(len(deltas))), len(deltas) - 1)


def t_tails(t: float, freedom: int, steps: int = 4_000) -> float:
    """What lies beyond -t and t, by adding up Student's density between them (Simpson's rule)."""
    scale = exp(lgamma((freedom + 1) / 2) - lgamma(freedom / 2)) / sqrt(freedom * pi)

    def density(x: float) -> float:
        return scale * exp(-(freedom + 1) / 2 * log(1 + x * x / freedom))

    width = t / steps
    inner = sum((4 if i % 2 else 2) * density(i * width) for i in range(1, steps))
    return max(0.0, 1 - 2 * (density(0) + inner + density(t)) * width / 3)


@lru_cache
def widening(units: int) -> float:
    """By how much a percentile interval of few units is widened: t sqrt(k / (k - 1)) / z."""
    if units < 2:
        return 1.0
    low, high = 1.0, 20.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if t_tails(middle, units - 1, 1_000) > 0.05 else (low, middle)
    return low * sqrt(units / (units - 1)) / Z


def sign_flips(deltas: Sequence[float], draws: int, dice: random.Random) -> float:
    """How often random signs give as large a sum."""
    moved = [delta for delta in deltas if delta]
    observed = abs(sum(moved)) - 1e-9
    hits = 0
    for _ in range(draws):
        bits = dice.getrandbits(len(moved) or 1)
        total = 0.0
        for delta in moved:
            total += delta if bits & 1 else -delta
            bits >>= 1
        hits += abs(total) >= observed
    return (1 + hits) / (1 + draws)


def resampled(
    deltas: Sequence[float], clusters: Sequence[str], draws: int, dice: random.Random
) -> list[float]:
    """Means of samples of whole clusters, drawn with replacement; of rows where there is one."""
    groups: dict[str, list[float]] = {}
    alone = len(set(clusters)) == 1
    for number, (delta, cluster) in enumerate(zip(deltas, clusters, strict=True)):
        groups.setdefault(str(number) if alone else cluster, []).append(delta)
    units = [(sum(group), len(group)) for group in groups.values()]
    means = []
    for _ in range(draws):
        picks = dice.choices(units, k=len(units))
        means.append(sum(s for s, _ in picks) / sum(n for _, n in picks))
    return means


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    tested = sorted((p, name) for name, p in p_values.items() if not isnan(p))
    corrected, highest = dict.fromkeys(p_values, nan), 0.0
    for rank, (p, name) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        corrected[name] = highest
    return corrected


def cohens_h(before: float, after: float) -> float:
    return 2 * (asin(sqrt(after)) - asin(sqrt(before)))


def wilson_error(rate: float, n: int, bound: float) -> float:
    """How far a bound is from solving Wilson's equation (rate - x)² = z² x (1 - x) / n."""
    return abs((rate - bound) ** 2 - Z**2 * bound * (1 - bound) / n)


def _lines(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]
