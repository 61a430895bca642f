"""Measure: trials in, figures with intervals out.

A figure is the mean over the questions that were fairly put; where some were not, bounds say what
it would be had every failure been wrong. Means of proportions get Wilson intervals, other means a
bootstrap that resamples whole clusters of questions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import isfinite
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope.metrics import (
    BUDGETS,
    best_score,
    dedupe,
    is_vacuous,
    merged_positions,
    metric_names,
    metric_of,
    recall_within,
    relevant_positions,
    score,
    score_by_chance,
    score_merged,
)
from mnemoscope.stats import bootstrap, wilson
from mnemoscope.types import FAILED, Ingestion, Receipt, Trial

Floats = NDArray[np.float64]

KS = (1, 3, 5, 10, 20, 25, 50)
MRR_CUTS = (10,)
SEED = 42
DRAWS = 2_000
"""Enough for the ends of a 95 % interval: their Monte Carlo error is 3 % of its half-width."""
UNIT = (0.0, 1.0)
"""No metric leaves it."""
_FEW_CLUSTERS = 5
_DIGITS = 10
"""Enough that no figure is rounded twice on its way to four digits."""


class Depth(msgspec.Struct, frozen=True):
    """How far down rankings go, and therefore which figures can be computed at all."""

    returned: int
    recorded: int = 0
    """Depth of first ranks that somebody else's file records beyond its rankings; 0 for none."""

    @property
    def names(self) -> tuple[str, ...]:
        names = metric_names(*_cutoffs(self.returned))
        return (*names, f"mrr@{self.recorded}") if self.recorded else names

    def values(self, trial: Trial) -> list[float]:
        """Every metric of one trial that has evidence, in the order of the names."""
        values = list(_score(trial, *_cutoffs(self.returned)).values())
        if self.recorded:
            values.append(1 / trial.first_rank if trial.first_rank else 0.0)
        return values

    def chances(self, trial: Trial) -> tuple[float, ...]:
        """What a random order of the pool would score; NaN where the pool is not known."""
        if not trial.pool:
            return (np.nan,) * len(self.names)
        grades = tuple(trial.grades.get(id, 1) for id in trial.evidence) if trial.grades else ()
        total = len(set(trial.evidence))
        return _chances(trial.pool, trial.reachable, total, grades, self.returned, self.recorded)

    def ceilings(self, trial: Trial) -> tuple[float, ...]:
        """The best that any ranking could score: recall@1 of two memories is 0.5 at most."""
        grades = tuple(sorted((trial.grades.get(id, 1) for id in trial.evidence), reverse=True))
        return _ceilings(trial.reachable, grades, self.returned, self.recorded)


class Table:
    """The values of the questions that count: one row each, one column a metric."""

    def __init__(self, trials: Sequence[Trial], depth: Depth, seed: int) -> None:
        self.seed = seed
        self.trials = [trial for trial in trials if trial.status not in FAILED]
        self.names = depth.names
        self.values = self._matrix([depth.values(trial) for trial in self.trials])
        self.chances = self._matrix([depth.chances(trial) for trial in self.trials])
        self.ceilings = self._matrix([depth.ceilings(trial) for trial in self.trials])
        self.pools = np.array([trial.pool for trial in self.trials])
        self.clusters = np.array([trial.cluster for trial in self.trials])
        self.categories = np.array([trial.category for trial in self.trials])

    def _matrix(self, rows: Sequence[Sequence[float]]) -> Floats:
        return np.array(rows, dtype=np.float64).reshape(len(rows), len(self.names))

    def figures(self, rows: NDArray[np.bool_], failed: int) -> dict[str, dict[str, Any]]:
        """Metric name to mean, n, interval and chance, over the chosen rows."""
        if not rows.any():
            return {}
        values = self.values[rows]
        chances = self.chances[rows].mean(axis=0).tolist()
        ceilings = self.ceilings[rows].mean(axis=0).tolist()
        pool = int(np.median(self.pools[rows]))
        clusters = self.clusters[rows].tolist()
        sampled = bootstrap(values, clusters, seed=self.seed, draws=DRAWS, limits=UNIT)
        return {
            name: _figure(name, values[:, i], (low, high), chances[i], ceilings[i], pool, failed)
            for i, (name, low, high) in enumerate(
                zip(self.names, sampled.low, sampled.high, strict=True)
            )
        }


def measure(
    trials: Sequence[Trial], ingestions: Iterable[Ingestion], depth: Depth, seed: int = SEED
) -> dict[str, Any]:
    """Everything metrics.json holds."""
    scorable = [trial for trial in trials if trial.evidence]
    failed = Counter(trial.category for trial in scorable if trial.status in FAILED)
    table = Table(scorable, depth, seed)
    everything = np.ones(len(table.trials), dtype=bool)
    categories = sorted({trial.category for trial in scorable} - {""})
    return {
        "questions": {
            "asked": len(trials),
            "scorable": len(scorable),
            "measured": len(table.trials),
            "clusters": len(set(table.clusters.tolist())),
            "without_evidence": len(trials) - len(scorable),
            "coverage": _rounded(len(table.trials) / len(scorable)) if scorable else None,
        },
        "statuses": dict(sorted(Counter(trial.status for trial in trials).items())),
        "errors": _common_errors(trials),
        "hits": {
            "returned": sum(len(trial.ranking) for trial in trials),
            "merged": sum(len(trial.sources) for trial in trials),
            "duplicates": sum(len(t.ranking) - len(set(t.ranking)) for t in trials),
            "unknown_ids": sum(trial.unknown for trial in trials),
        },
        "ingestion": ingestion_loss(scorable, ingestions),
        "depth": depth.returned,
        "recorded_depth": depth.recorded,
        "overall": table.figures(everything, failed.total()),
        "by_category": {
            category: table.figures(table.categories == category, failed[category])
            for category in categories
        },
        "context": context(table),
    }


def few_clusters(clusters: int) -> list[str]:
    """What to say where hardly anything independent was measured."""
    if clusters == 1:
        return ["one cluster: intervals speak of its questions, and of no other's"]
    if 1 < clusters < _FEW_CLUSTERS:
        return [f"{clusters} clusters are few: how they differ is hardly known"]
    return []


def context(table: Table) -> dict[str, Any]:
    """What recall costs in context tokens: equal budgets instead of equal k."""
    if not table.trials:
        return {}
    rows = [
        list(recall_within(trial.tokens, _memories(trial), trial.evidence).values())
        for trial in table.trials
    ]
    clusters = table.clusters.tolist()
    sampled = bootstrap(rows, clusters, seed=table.seed, draws=DRAWS, limits=UNIT)
    tokens = [sum(trial.tokens[:10]) for trial in table.trials]
    return {
        "tokens@10": _rounded(float(np.mean(tokens))),
        "recall_by_tokens": {
            str(budget): {
                "mean": _rounded(sampled.mean[column]),
                "n": len(rows),
                "ci95": [_rounded(sampled.low[column]), _rounded(sampled.high[column])],
            }
            for column, budget in enumerate(BUDGETS)
        },
    }


def ingestion_loss(trials: Sequence[Trial], ingestions: Iterable[Ingestion]) -> dict[str, Any]:
    """How much of the memories, and of the evidence in particular, ever reached the index."""
    receipts: dict[str, Receipt] = {}
    counts = {"memories": 0, "rejected": 0, "merged": 0, "truncated": 0, "scenarios_failed": 0}
    for line in ingestions:
        receipts[line.scenario] = line.receipt
        counts["memories"] += line.memories
        counts["rejected"] += len(line.receipt.rejected)
        counts["merged"] += len(line.receipt.merged)
        counts["truncated"] += len(line.receipt.truncated)
        counts["scenarios_failed"] += bool(line.error)
    cited = sum(len(set(trial.evidence)) for trial in trials)
    kept = sum(_kept(trial, receipts.get(trial.scenario, Receipt())) for trial in trials)
    unreachable = cited - sum(trial.reachable for trial in trials)
    return {
        **counts,
        "evidence_reached": _rounded(kept / cited) if cited else None,
        "evidence_unreachable": unreachable,
    }


def _kept(trial: Trial, receipt: Receipt) -> float:
    """How much of a question's evidence the system holds, in memories."""
    if trial.status == "not-indexed":
        return 0.0
    lost = sum(
        1.0 if id in receipt.rejected else 1 - receipt.truncated.get(id, 1.0)
        for id in set(trial.evidence)
    )
    return trial.reachable - lost


def _figure(
    name: str,
    values: Floats,
    interval: tuple[float, float],
    chance: float,
    ceiling: float,
    pool: int,
    failed: int,
) -> dict[str, Any]:
    n = len(values)
    mean = float(values.mean())
    metric = metric_of(name)
    assert metric is not None
    if metric.interval == "proportion":
        interval = wilson(round(float(values.sum())), n)
    known = isfinite(chance)
    figure: dict[str, Any] = {
        "mean": _rounded(mean),
        "n": n,
        "ci95": [_rounded(interval[0]), _rounded(interval[1])],
        "chance": _rounded(chance) if known else None,
        "lift": _rounded(mean - chance) if known else None,
        "ceiling": _rounded(ceiling),
    }
    if known and metric.at == "k":
        figure["vacuous"] = is_vacuous(int(name.partition("@")[2]), pool, chance)
    if failed:
        figure["bounds"] = [_rounded(float(values.sum()) / (n + failed)), _rounded(mean)]
    return figure


def _common_errors(trials: Sequence[Trial]) -> dict[str, int]:
    """What failed trials say most often."""
    return dict(Counter(trial.error for trial in trials if trial.error).most_common(3))


def _score(trial: Trial, ks: tuple[int, ...], cuts: tuple[int, ...]) -> dict[str, float]:
    grades = trial.grades or None
    ranking: Sequence[str] = trial.ranking
    if len(ranking) > cuts[-1]:  # a system may return more than it was asked for
        ranking = dedupe(ranking)[: cuts[-1]]
    if trial.sources:
        merged = [trial.sources.get(id, (id,)) for id in dedupe(ranking)]
        return score_merged(merged, trial.evidence, ks=ks, cuts=cuts, grades=grades)
    return score(ranking, trial.evidence, ks=ks, cuts=cuts, grades=grades)


def evidence_ranks(trial: Trial) -> Sequence[int]:
    """Where the evidence stands in the ranking, repetitions removed."""
    if trial.sources:
        merged = [trial.sources.get(id, (id,)) for id in dedupe(trial.ranking)]
        return [find.rank for find in merged_positions(merged, trial.evidence)]
    return relevant_positions(trial.ranking, trial.evidence)


def _memories(trial: Trial) -> list[tuple[str, ...]]:
    """The memories behind each hit."""
    return [trial.sources.get(id, (id,)) for id in trial.ranking]


@lru_cache
def _cutoffs(returned: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The k's, and the depths for mrr, that rankings of this depth allow."""
    cuts = {cut for cut in MRR_CUTS if cut < returned} | {returned}
    return tuple(k for k in KS if k <= returned), tuple(sorted(cuts))


@lru_cache(maxsize=65536)
def _chances(
    pool: int, reachable: int, total: int, grades: tuple[int, ...], returned: int, recorded: int
) -> tuple[float, ...]:
    ks, cuts = _cutoffs(returned)
    about = (pool, reachable, total)
    expected = score_by_chance(*about, ks=ks, cuts=cuts, depth=returned, grades=grades)
    if not recorded:
        return tuple(expected.values())
    beyond = score_by_chance(*about, ks=(), cuts=(recorded,), depth=recorded)
    return (*expected.values(), beyond[f"mrr@{recorded}"])


@lru_cache(maxsize=65536)
def _ceilings(
    reachable: int, grades: tuple[int, ...], returned: int, recorded: int
) -> tuple[float, ...]:
    ks, cuts = _cutoffs(returned)
    best = best_score(grades, reachable, ks=ks, cuts=cuts)
    return (*best.values(), float(reachable > 0)) if recorded else tuple(best.values())


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
