"""A second implementation of the key statistics, with ir_measures and scipy.

It does not import our code, so that it shares no line with the code that it checks. It implements
only what neither library has: hits that combine several memories, Holm's correction, Cohen's h. It
reads rankings from raw_retrievals.jsonl; from the journal it takes only labels (clusters, graded
evidence).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import asin, isnan, log2, nan, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any, NamedTuple

import ir_measures
import numpy as np
from numpy.typing import NDArray
from scipy import stats

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
            share *= stats.hypergeom.pmf(0, size, own, inside(start, size, rank)) if own else 1.0
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
            every *= stats.hypergeom.pmf(own, size, own, inside(start, size, k)) if own else 1.0
        return float(every)
    grades = sorted(asked.evidence.values(), reverse=True)
    ideal = sum(grade / log2(rank + 1) for rank, grade in enumerate(grades[:k], 1))
    gain = sum(
        grade / size / log2(start + place + 1)
        for start, size, _, grade in groups
        for place in range(1, inside(start, size, k) + 1)
    )
    return min(1.0, gain / ideal)


def mcnemar(gained: int, lost: int) -> float:
    """Exact: a sign test of the questions that changed."""
    return float(stats.binomtest(gained, gained + lost).pvalue) if gained + lost else 1.0


def t_test(deltas: Sequence[float]) -> float:
    """Two-sided p of the paired t."""
    if not any(deltas):
        return 1.0
    if len(deltas) < 2 or stdev(deltas) <= 1e-12 * abs(fmean(deltas)):
        return nan
    return float(stats.ttest_1samp(deltas, 0).pvalue)


def effect_size(deltas: Sequence[float]) -> float:
    """d_z: the mean over the standard deviation of the differences."""
    spread = stdev(deltas) if len(deltas) > 1 else 0.0
    return fmean(deltas) / spread if spread else 0.0


def cohens_h(before: float, after: float) -> float:
    return 2 * (asin(sqrt(after)) - asin(sqrt(before)))


def widening(units: int) -> float:
    """The factor that widens a percentile interval of few units: t sqrt(k / (k - 1)) / z."""
    if units < 2:
        return 1.0
    t, z = stats.t.isf(0.025, units - 1), stats.norm.isf(0.025)
    return float(t * sqrt(units / (units - 1)) / z)


def sign_flips(deltas: Sequence[float], draws: int, dice: np.random.Generator) -> float:
    """The share of random signs that give at least as large a sum."""

    def size(moved: NDArray[np.float64], axis: int) -> Any:
        return np.abs(moved.sum(axis=axis))

    moved = [delta for delta in deltas if delta]
    tested = stats.permutation_test(
        (moved,),
        size,
        permutation_type="samples",
        alternative="greater",
        vectorized=True,
        n_resamples=draws,
        rng=dice,
    )
    return float(tested.pvalue)


def resampled(
    deltas: Sequence[float], clusters: Sequence[str], draws: int, dice: np.random.Generator
) -> NDArray[np.float64]:
    """Means of clusters drawn with replacement; of questions if there is one cluster."""
    names: Sequence[object] = clusters if len(set(clusters)) > 1 else range(len(deltas))
    groups: dict[object, list[float]] = {}
    for name, delta in zip(names, deltas, strict=True):
        groups.setdefault(name, []).append(delta)
    if len(groups) < 2:
        return np.full(draws, fmean(deltas))

    def ratio(sums: NDArray[np.float64], sizes: NDArray[np.float64], axis: int) -> Any:
        return sums.sum(axis=axis) / sizes.sum(axis=axis)

    totals = [sum(group) for group in groups.values()], [len(group) for group in groups.values()]
    found = stats.bootstrap(
        totals,
        ratio,
        paired=True,
        vectorized=True,
        n_resamples=draws,
        method="percentile",
        rng=dice,
    )
    drawn: NDArray[np.float64] = found.bootstrap_distribution
    return drawn


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    tested = sorted((p, name) for name, p in p_values.items() if not isnan(p))
    corrected, highest = dict.fromkeys(p_values, nan), 0.0
    for rank, (p, name) in enumerate(tested):
        highest = max(highest, min(1.0, p * (len(tested) - rank)))
        corrected[name] = highest
    return corrected


def wilson(hits: int, n: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a proportion."""
    low, high = stats.binomtest(hits, n).proportion_ci(0.95, method="wilson")
    return float(low), float(high)


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        yield from (json.loads(line) for line in file if line.strip())
