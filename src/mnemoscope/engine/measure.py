"""Measure: trials in, figures with intervals out.

A figure is the mean over the questions that were fairly put; where some were not, bounds say what
it would be had every failure been wrong. Means of proportions get Wilson intervals, other means a
bootstrap that resamples whole clusters of questions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.core.nouns import FAILED, Ingestion, Receipt, RecordedHit, Trial
from mnemoscope.metrics import (
    BUDGETS,
    dedupe,
    is_vacuous,
    metric_names,
    recall_within,
    score,
    score_by_chance,
    score_merged,
)
from mnemoscope.statistics import bootstrap, wilson

KS = (1, 3, 5, 10, 20, 25, 50)
MRR_CUTS = (10,)
SEED = 42
_DIGITS = 10
"""Enough that no figure is rounded twice on its way to four digits."""
_PROPORTIONS = ("hit@", "all@")


class Depth(NamedTuple):
    """How far down rankings go, and therefore which figures can be computed at all."""

    returned: int
    recorded: int = 0
    """Depth of first ranks that somebody else's file records beyond its rankings; 0 for none."""

    @property
    def ks(self) -> tuple[int, ...]:
        return tuple(k for k in KS if k <= self.returned)

    @property
    def cuts(self) -> tuple[int, ...]:
        return tuple(sorted({cut for cut in MRR_CUTS if cut < self.returned} | {self.returned}))


class Measured(NamedTuple):
    """The values of the questions that count, in a table: one row each, one column a metric."""

    names: tuple[str, ...]
    values: NDArray[np.float64]
    chances: NDArray[np.float64]
    ceilings: NDArray[np.float64]
    clusters: list[str]
    pools: list[int]
    failed: int


def measure(
    trials: Sequence[Trial], ingestions: Iterable[Ingestion], depth: Depth
) -> dict[str, Any]:
    """Everything metrics.json holds."""
    scorable = [trial for trial in trials if trial.evidence]
    groups: dict[str, list[Trial]] = defaultdict(list)
    for trial in scorable:
        groups[trial.category].append(trial)
    answered = [trial for trial in scorable if trial.status not in FAILED]
    return {
        "questions": {
            "asked": len(trials),
            "scorable": len(scorable),
            "measured": len(answered),
            "without_evidence": len(trials) - len(scorable),
            "coverage": _rounded(len(answered) / len(scorable)) if scorable else None,
        },
        "statuses": dict(sorted(Counter(trial.status for trial in trials).items())),
        "hits": {
            "returned": sum(len(trial.hits) for trial in trials),
            "duplicates": sum(_duplicates(trial) for trial in trials),
            "unknown_ids": sum(trial.unknown for trial in trials),
        },
        "ingestion": ingestion_loss(scorable, ingestions),
        "depth": depth.returned,
        "overall": figures(scorable, depth),
        "by_category": {
            category: figures(own, depth) for category, own in sorted(groups.items()) if category
        },
        "context": context(answered),
    }


def values_of(trial: Trial, depth: Depth) -> dict[str, float]:
    """Every metric of one trial that has evidence."""
    scores = _score(trial, depth)
    if depth.recorded:
        rank = trial.first_rank
        scores[f"mrr@{depth.recorded}"] = 1 / rank if rank else 0.0
    return scores


def figures(trials: Sequence[Trial], depth: Depth) -> dict[str, dict[str, Any]]:
    """Metric name to mean, n, interval and chance."""
    table = _tabulate(trials, depth)
    if not len(table.values):
        return {}
    sampled = bootstrap(table.values, table.clusters, seed=SEED)
    return {
        name: _figure(table, column, name, (sampled.low[column], sampled.high[column]))
        for column, name in enumerate(table.names)
    }


def context(trials: Sequence[Trial]) -> dict[str, Any]:
    """What recall costs in context tokens: equal budgets instead of equal k."""
    rows = [
        list(
            recall_within(
                [h.tokens for h in t.hits], [_ids(h) for h in t.hits], t.evidence
            ).values()
        )
        for t in trials
    ]
    if not rows:
        return {}
    sampled = bootstrap(rows, [trial.cluster for trial in trials], seed=SEED)
    tokens = [sum(hit.tokens for hit in trial.hits[:10]) for trial in trials]
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
    kept = [
        0.0 if id in receipt.rejected else receipt.truncated.get(id, 1.0)
        for trial in trials
        if trial.status != "not-indexed"
        for receipt in (receipts.get(trial.scenario, Receipt()),)
        for id in trial.evidence
    ]
    reached = _rounded(sum(kept) / len(kept)) if kept else None
    cited = sum(len(set(trial.evidence)) for trial in trials)
    unreachable = cited - sum(trial.reachable for trial in trials)
    return {**counts, "evidence_reached": reached, "evidence_unreachable": unreachable}


def _tabulate(trials: Sequence[Trial], depth: Depth) -> Measured:
    names = metric_names(depth.ks, depth.cuts)
    if depth.recorded:
        names = (*names, f"mrr@{depth.recorded}")
    counted = [trial for trial in trials if trial.status not in FAILED]
    rows = [list(values_of(trial, depth).values()) for trial in counted]
    return Measured(
        names,
        np.array(rows, dtype=np.float64).reshape(-1, len(names)),
        np.array([_chance(trial, depth) for trial in counted]).reshape(-1, len(names)),
        np.array([_ceiling(trial, depth) for trial in counted]).reshape(-1, len(names)),
        [trial.cluster for trial in counted],
        [trial.pool for trial in counted],
        len(trials) - len(counted),
    )


def _figure(
    table: Measured, column: int, name: str, sampled: tuple[float, float]
) -> dict[str, Any]:
    values = table.values[:, column]
    n = len(values)
    mean = float(values.mean())
    interval = sampled
    if name.startswith(_PROPORTIONS):
        interval = wilson(round(float(values.sum())), n)
    chance = float(table.chances[:, column].mean())
    figure: dict[str, Any] = {
        "mean": _rounded(mean),
        "n": n,
        "ci95": [_rounded(interval[0]), _rounded(interval[1])],
        "chance": _rounded(chance) if np.isfinite(chance) else None,
        "lift": _rounded(mean - chance) if np.isfinite(chance) else None,
        "ceiling": _rounded(table.ceilings[:, column].mean()),
    }
    kind, _, k = name.partition("@")
    if k and kind != "mrr" and np.isfinite(chance):
        vacuous = sum(is_vacuous(int(k), pool, chance) for pool in table.pools)
        figure["vacuous"] = vacuous > n / 2
    if table.failed:
        figure["bounds"] = [_rounded(float(values.sum()) / (n + table.failed)), _rounded(mean)]
    return figure


def _score(trial: Trial, depth: Depth) -> dict[str, float]:
    grades = trial.grades or None
    if any(hit.sources for hit in trial.hits):
        unique = {hit.id: hit for hit in reversed(trial.hits)}
        merged = [_ids(unique[id]) for id in dedupe(hit.id for hit in trial.hits)]
        return score_merged(merged, trial.evidence, ks=depth.ks, cuts=depth.cuts, grades=grades)
    ranking = [hit.id for hit in trial.hits]
    return score(ranking, trial.evidence, ks=depth.ks, cuts=depth.cuts, grades=grades)


def _chance(trial: Trial, depth: Depth) -> list[float]:
    if not trial.pool:
        return [np.nan] * (len(metric_names(depth.ks, depth.cuts)) + bool(depth.recorded))
    cuts = (*depth.cuts, depth.recorded) if depth.recorded else depth.cuts
    expected = score_by_chance(
        trial.pool,
        trial.reachable,
        len(trial.evidence),
        ks=depth.ks,
        cuts=cuts,
        depth=max(depth.returned, depth.recorded),
        grades=[trial.grades.get(id, 1) for id in trial.evidence] if trial.grades else (),
    )
    # A recorded first rank comes last in our table, after `map`.
    names = metric_names(depth.ks, depth.cuts)
    if depth.recorded:
        names = (*names, f"mrr@{depth.recorded}")
    return [expected[name] for name in names]


def _ceiling(trial: Trial, depth: Depth) -> tuple[float, ...]:
    """The best that any ranking could score: recall@1 of two memories is 0.5 at most."""
    if trial.grades:
        ideal = sorted(trial.evidence, key=lambda id: -trial.grades.get(id, 1))
        scores = score(ideal, ideal, ks=depth.ks, cuts=depth.cuts, grades=trial.grades)
        return tuple(scores.values()) + (1.0,) * bool(depth.recorded)
    return _binary_ceiling(trial.reachable, len(set(trial.evidence)), depth)


@lru_cache
def _binary_ceiling(reachable: int, total: int, depth: Depth) -> tuple[float, ...]:
    evidence = [str(number) for number in range(total)]
    scores = score(evidence[:reachable], evidence, ks=depth.ks, cuts=depth.cuts)
    return tuple(scores.values()) + (1.0,) * bool(depth.recorded)


def _ids(hit: RecordedHit) -> tuple[str, ...]:
    return hit.sources or (hit.id,)


def _duplicates(trial: Trial) -> int:
    return len(trial.hits) - len({hit.id for hit in trial.hits})


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
