"""A second implementation of the key statistics, with ir_measures and scipy.

It does not import our code, so that it shares no line with the code that it checks. It implements
only what neither library has: hits that combine several memories, the variance between clusters,
Cohen's h. It reads rankings from raw_retrievals.jsonl; from the journal it takes only labels
(clusters, graded evidence).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from math import asin, exp, inf, log2, pi, sin, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import ir_measures
import numpy as np
import scipy  # imports a part of itself when it is first used
from numpy.typing import NDArray

FEW_CLUSTERS, MANY_CLUSTERS = 5, 50
FEW_QUESTIONS = 30
FAILED = ("error", "timeout", "not-indexed")
_MEASURES = {
    "hit": ir_measures.Success,
    "recall": ir_measures.R,
    "precision": ir_measures.P,
    "ndcg": ir_measures.nDCG,
    "mrr": ir_measures.RR,
}


class MeasuredQuestion(NamedTuple):
    """One question of one run."""

    category: str
    cluster: str
    evidence: dict[str, int]
    """Evidence ids with their grades."""
    hits: list[set[str]]
    """The memories that each hit is credited with, best first, repeated hits removed."""
    places: tuple[int, ...] = ()
    """How many places each hit takes in the ranking; empty if each takes one."""


def read(folder: Path) -> dict[str, MeasuredQuestion]:
    """The questions that have evidence and were measured."""
    labels: dict[str, dict[str, Any]] = {}
    for line in _lines(folder / "trials.jsonl"):
        if line["phase"] == "recall":
            labels[line["question"]] = {k: line.get(k) for k in ("cluster", "grades", "pool")}
    asked = {}
    for line in _lines(folder / "raw_retrievals.jsonl"):
        if not line["evidence"] or line["status"] in FAILED:
            continue
        label = labels.get(line["question"], {})
        grades = label.get("grades") or {}
        hits, places = _hits(line, bool(label.get("pool")))
        asked[line["question"]] = MeasuredQuestion(
            line["category"],
            label.get("cluster") or line["scenario"],
            {id: grades.get(id, 1) for id in line["evidence"]},
            hits,
            places,
        )
    return asked


def _hits(line: Mapping[str, Any], pooled: bool) -> tuple[list[set[str]], tuple[int, ...]]:
    """What each hit of a ranking is credited with, and how many places it takes."""
    sources, carried = line.get("sources") or {}, line.get("carried") or {}
    hits: list[set[str]] = []
    places: list[int] = []
    for hit in dict.fromkeys(line["ranking"]):
        named = dict.fromkeys(sources.get(hit, [hit]))
        credit = set(carried.get(hit, named))
        if hit in (line.get("ordered") or ()):
            hits += [{one} & credit for one in named]
            places += [1] * len(named)
            continue
        size = len(named if hit in sources else carried.get(hit, named))
        if hit in sources and not pooled:  # memories are parts, listed with what they belong to
            size = 1
        hits.append(credit)
        places.append((line.get("places") or {}).get(hit, max(1, size)))
    return hits, () if set(places) <= {1} else tuple(places)


def values(
    metrics: Iterable[str], asked: Mapping[str, MeasuredQuestion]
) -> dict[str, dict[str, float]]:
    """Each metric to its value for each question."""
    names = list(dict.fromkeys(metrics))
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    qrels, run = {}, {}
    for question, one in asked.items():
        memories = [memory for hit in one.hits for memory in hit]
        if not one.places and len(memories) == len(one.hits) == len(set(memories)):
            qrels[question] = one.evidence
            # Strictly falling scores keep our order: the libraries see no ties.
            run[question] = {memory: -rank for rank, memory in enumerate(memories)}
        else:
            for name in names:
                found[name][question] = merged_value(name, one)
    if not qrels:
        return found
    for name in names:
        kind, _, cut = name.partition("@")
        measure = _MEASURES["recall" if kind == "all" else kind] @ int(cut)
        for one_value in ir_measures.iter_calc([measure], qrels, run):
            value = one_value.value
            found[name][one_value.query_id] = float(value == 1) if kind == "all" else value
    return found


def merged_value(metric: str, asked: MeasuredQuestion) -> float:
    """One metric of a question whose hits combine several memories, which libraries lack."""
    kind, _, cut = metric.partition("@")
    if asked.places:
        return _mean_over_orders(kind, int(cut), asked)
    k, missing, total = int(cut), set(asked.evidence), len(asked.evidence)
    useful, gain, first = 0, 0.0, 0
    for rank, memories in enumerate(asked.hits[:k], 1):
        if fresh := missing & memories:
            missing -= fresh
            useful += 1
            gain += sum(asked.evidence[id] for id in fresh) / log2(rank + 1)
            first = first or rank
    found = total - len(missing)
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


def _mean_over_orders(kind: str, k: int, asked: MeasuredQuestion) -> float:
    """One metric as its mean over all orders of the places of each hit."""
    groups, missing, before = [], set(asked.evidence), 0
    for memories, places in zip(asked.hits, asked.places, strict=True):
        fresh = missing & memories
        missing -= fresh
        size = max(places, len(fresh))
        groups.append((before, size, len(fresh), sum(asked.evidence[id] for id in fresh)))
        before += size

    def inside(start: int, size: int, rank: int) -> int:
        return min(size, max(0, rank - start))

    def none_before(rank: int) -> float:
        share = 1.0
        for start, size, own, _ in groups:
            share *= (
                scipy.stats.hypergeom.pmf(0, size, own, inside(start, size, rank)) if own else 1.0
            )
        return float(share)

    total = len(asked.evidence)
    found = sum(own * inside(start, size, k) / size for start, size, own, _ in groups)
    if kind in ("recall", "precision"):
        return found / (total if kind == "recall" else k)
    if kind == "hit":
        return 1 - none_before(k)
    if kind == "mrr":
        missed = [none_before(rank) for rank in range(k + 1)]
        return sum((missed[rank - 1] - missed[rank]) / rank for rank in range(1, k + 1))
    if kind == "all":
        every = 0.0 if missing else 1.0
        for start, size, own, _ in groups:
            every *= (
                scipy.stats.hypergeom.pmf(own, size, own, inside(start, size, k)) if own else 1.0
            )
        return float(every)
    grades = sorted(asked.evidence.values(), reverse=True)
    ideal = sum(grade / log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))
    gain = sum(
        grade / size / log2(start + place + 1)
        for start, size, _, grade in groups
        for place in range(1, inside(start, size, k) + 1)
    )
    return min(1.0, gain / ideal)


def effect_size(deltas: Sequence[float]) -> float:
    """d_z: the mean over the standard deviation of the differences."""
    spread = stdev(deltas) if len(deltas) > 1 else 0.0
    return fmean(deltas) / spread if spread else 0.0


def cohens_h(before: float, after: float) -> float:
    return 2 * (asin(sqrt(after)) - asin(sqrt(before)))


def clustered(
    deltas: Sequence[float], clusters: Sequence[str]
) -> tuple[float, NDArray[np.float64], NDArray[np.float64]]:
    """The standard error of the mean difference, and the sizes and means of the clusters.

    With fewer than five clusters the error is that of the questions within them. One gained and
    one lost question are added, so that it is never zero.
    """
    groups: dict[str, list[float]] = {}
    for cluster, delta in zip(clusters, deltas, strict=True):
        groups.setdefault(cluster, []).append(delta)
    n, count = len(deltas), len(groups)
    sizes = np.array([len(group) for group in groups.values()], dtype=float)
    means = np.array([fmean(group) for group in groups.values()])
    if count < FEW_CLUSTERS:
        inner = [len(group) * stdev(group) ** 2 for group in groups.values() if len(group) > 1]
        variance = sum(inner) / n**2
    else:
        # The residuals of a mean are added up in each cluster (Liang and Zeger 1986).
        centre = fmean(deltas)
        totals = [sum(delta - centre for delta in group) for group in groups.values()]
        variance = count / (count - 1) * sum(total**2 for total in totals) / n**2
    return sqrt(variance + 2 / n**2), sizes, means


def tail(statistic: float, sizes: NDArray[np.float64]) -> float:
    """Two-sided p of |t| over clusters of these sizes, by Imhof's integral."""
    count = len(sizes)
    if statistic == 0:
        return 1.0
    if count < FEW_CLUSTERS:
        n = sizes.sum()
        # The score test of few questions: the variance around zero, not around the mean.
        score = statistic / sqrt(1 + statistic**2 / n) if n < FEW_QUESTIONS else statistic
        return float(2 * scipy.stats.norm.sf(score))
    if len(set(sizes.tolist())) == 1:
        return float(2 * scipy.stats.t.sf(statistic, count - 1))
    weights = sizes / sizes.sum()
    centring = np.eye(count) - weights
    noise = count / (count - 1) * centring.T @ np.diag(weights**2) @ centring
    roots = scipy.linalg.eigvalsh(np.outer(weights, weights) - statistic**2 * noise)
    roots = roots / np.abs(roots).max()

    def integrand(log_u: float) -> float:
        u = exp(log_u)
        angle = float(np.arctan(roots * u).sum()) / 2
        return sin(angle) * exp(-float(np.log1p((roots * u) ** 2).sum()) / 4)

    area, _ = scipy.integrate.quad(integrand, -40, 40, limit=1000, epsabs=1e-12, epsrel=1e-12)
    return float(min(1.0, max(0.0, 0.5 + area / pi)))


def critical(alpha: float, sizes: NDArray[np.float64]) -> float:
    """The |t| that clusters of these sizes exceed with probability alpha; infinite if none do."""
    return _critical(alpha, tuple(sorted(sizes.tolist())))


@lru_cache
def _critical(alpha: float, sizes: tuple[float, ...]) -> float:
    if len(sizes) < FEW_CLUSTERS:
        z, n = float(scipy.stats.norm.isf(alpha / 2)), sum(sizes)
        if n >= FEW_QUESTIONS:
            return z
        return z / sqrt(1 - z**2 / n) if n > z**2 else inf
    start = float(scipy.stats.t.isf(alpha / 2, len(sizes) - 1))
    if len(set(sizes)) == 1:
        return start
    known = np.array(sizes)
    high = start
    while tail(high, known) > alpha:
        high *= 2
    return float(
        scipy.optimize.brentq(lambda t: tail(t, known) - alpha, start / 4, high, xtol=1e-11)
    )


def largest(
    means: NDArray[np.float64], sizes: NDArray[np.float64], draws: int, dice: np.random.Generator
) -> NDArray[np.float64]:
    """Simulated maxima of |t| over metrics that correlate as these cluster means do."""
    count, metrics = means.shape
    weights = sizes / sizes.sum()
    covariance = np.atleast_2d(np.cov(means.T, aweights=weights, ddof=0))
    scale = np.sqrt(np.diag(covariance))
    shrunk = 0.1 if 2 * metrics > count else 0.0
    correlation = (1 - shrunk) * covariance / np.outer(scale, scale) + shrunk * np.eye(metrics)
    drawn = scipy.stats.multivariate_normal(np.zeros(metrics), correlation, allow_singular=True)
    if count > MANY_CLUSTERS:
        values = np.abs(drawn.rvs(draws, random_state=dice).reshape(draws, metrics)).max(axis=1)
        return np.asarray(values / np.sqrt(dice.chisquare(count - 1, draws) / (count - 1)))
    sample = drawn.rvs(draws * count, random_state=dice).reshape(draws, count, metrics)
    centre = np.tensordot(sample, weights, axes=(1, 0))
    spread = np.tensordot((sample - centre[:, None]) ** 2, weights**2, axes=(1, 0))
    return np.asarray((np.abs(centre) / np.sqrt(count / (count - 1) * spread)).max(axis=1))


def level(values: Sequence[float], clusters: Sequence[str]) -> tuple[float, float]:
    """The 95 % interval of a mean between 0 and 1, from questions and from their clusters.

    The hull of two Wilson intervals: one with as many questions as the variance of the questions
    is worth, and, from five clusters on, one with that of the clusters and their critical value.
    """
    groups: dict[str, list[float]] = {}
    for name, value in zip(clusters, values, strict=True):
        groups.setdefault(name, []).append(value)
    sizes = np.array([len(group) for group in groups.values()], dtype=float)
    n, mean, z = len(values), fmean(values), float(scipy.stats.norm.ppf(0.975))
    enough = len(groups) >= FEW_CLUSTERS
    wide = critical(0.05, sizes) if enough else z
    if mean in (0.0, 1.0):
        return _wilson(mean, n, wide)
    noise, spread = mean * (1 - mean), float(np.var(values))
    n_questions = n * noise / spread if spread > 1e-12 else float(n)
    low, high = _wilson(mean, n_questions, z)
    if enough:
        off = sum((sum(group) - mean * len(group)) ** 2 for group in groups.values())
        variance = off * len(groups) / (len(groups) - 1) / n**2
        n_clusters = noise / variance if variance > 1e-15 else n_questions
        other = _wilson(mean, n_clusters, wide)
        low, high = min(low, other[0]), max(high, other[1])
    return low, high


def _wilson(mean: float, n: float, critical: float) -> tuple[float, float]:
    """The roots p of (mean - p)² = critical² p (1 - p) / n, Wilson's own definition."""
    k = critical**2 / n
    low, high = sorted(np.roots([1 + k, -(2 * mean + k), mean**2]).real)
    return float(max(0.0, low)), float(min(1.0, high))


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
