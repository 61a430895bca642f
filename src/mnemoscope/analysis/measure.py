"""Compute metrics.json: the figures of a run's rankings, with intervals.

A figure is the mean over the measured questions. If some questions failed, bounds give the mean
with every failure counted as wrong. The intervals allow for questions of one conversation not being
independent.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache
from math import isfinite
from types import MappingProxyType
from typing import NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope.analysis.change_scores import ChangeScores
from mnemoscope.analysis.credit import (
    Credit,
    CreditFigures,
    credit_figures,
    credited,
    hit_places,
    is_plain,
    takes_places,
    tokens_of_places,
)
from mnemoscope.analysis.disclosure_rates import DisclosureFigures
from mnemoscope.analysis.estimates import (
    Estimate,
    IntervalKind,
    interval_kind,
    intervals_of_means,
    rounded,
    rounded_all,
)
from mnemoscope.analysis.list_ends import Bounds, continued, left_over, may_go_on
from mnemoscope.metrics import (
    BUDGETS,
    best_score,
    dedupe,
    is_vacuous,
    merged_positions,
    metric_names,
    metric_of,
    recall_within,
    recalls_of_places,
    relevant_positions,
    score,
    score_by_chance,
    score_merged,
    score_unordered,
)
from mnemoscope.metrics.value_table import value_table
from mnemoscope.types import FAILED, Ingestion, Trial

Floats = NDArray[np.float64]
_Key = TypeVar("_Key")

KS = (1, 3, 5, 10, 20, 25, 50)
MRR_CUTS = (10,)
_COSTED = 10
"""The hits whose tokens `tokens@10` counts."""


class Figure(TypedDict):
    """A metric over n questions."""

    mean: float
    n: int
    ci95: list[float]
    chance: float | None
    """The expected score of a random ranking; None where it is unknown."""
    lift: float | None
    ceiling: float
    vacuous: NotRequired[bool]
    bounds: NotRequired[list[float]]


class QuestionCounts(TypedDict):
    """How many questions were asked, have evidence, and were measured."""

    asked: int
    scorable: int
    measured: int
    clusters: int
    without_evidence: int
    coverage: float | None


class IngestionLoss(TypedDict):
    """How many memories, and how much of the evidence, the system took in."""

    memories: int
    rejected: int
    merged: int
    truncated: int
    scenarios_failed: int
    evidence_reached: float | None
    evidence_unreachable: int


ContextCost = TypedDict(
    "ContextCost", {"tokens@10": float, "recall_by_tokens": dict[str, Estimate]}, total=False
)
"""Recall within budgets of context tokens; empty where the text of a hit is not known."""


class Metrics(TypedDict):
    """The content of metrics.json without its `benchmark`."""

    questions: QuestionCounts
    statuses: dict[str, int]
    errors: dict[str, int]
    hits: dict[str, int]
    """Counts of returned, merged, repeated and unknown hits."""
    ingestion: IngestionLoss
    depth: int
    recorded_depth: int
    overall: dict[str, Figure]
    by_category: dict[str, dict[str, Figure]]
    context: ContextCost
    interval: IntervalKind
    """What the intervals are about; files of older versions, which had others, lack it."""
    few_clusters: NotRequired[list[str]]
    """Categories whose intervals are about these conversations only, unlike the overall ones."""
    withheld: NotRequired[dict[str, str]]
    """Categories of which no figure is given, because their questions break their rules."""
    credit: NotRequired[CreditFigures]
    """Missing where every hit is one memory that it names."""
    beyond_end: NotRequired[dict[str, Bounds]]
    """Metrics at a depth at which some lists have ended; `overall` does not have them."""
    disclosure: NotRequired[DisclosureFigures]
    """What was told where it may be, if questions were asked in rooms that may be told and in
    others."""
    change: NotRequired[ChangeScores]
    """The scores of the benchmark `change`."""


class Depth(msgspec.Struct, frozen=True):
    """The depth of the rankings, which decides which metrics can be computed."""

    returned: int
    recorded: int = 0
    """Depth of the first ranks that an imported file records beyond its rankings; 0 for none."""

    @property
    def names(self) -> tuple[str, ...]:
        names = metric_names(*_cutoffs(self.returned))
        return (*names, f"mrr@{self.recorded}") if self.recorded else names

    def values(self, trial: Trial, credit: Credit = "carried") -> Sequence[float]:
        """Compute every metric of one trial with evidence, in the order of `names`."""
        if not is_plain(trial):
            row: Sequence[float] = self._merged_values(trial, credit)
        else:
            ks, cuts = _cutoffs(self.returned)
            ranking = self._ranking(trial)
            row = tuple(
                score(ranking, trial.evidence, ks=ks, cuts=cuts, grades=trial.grades).values()
            )
        return (*row, _first(trial)) if self.recorded else row

    def all_values(
        self,
        trials: Sequence[Trial],
        credit: Credit = "carried",
        ranks: Sequence[Sequence[int]] | None = None,
    ) -> Floats:
        """Compute the values of many trials, one row each; plain ones with plain grades at once.

        `ranks` are the `evidence_ranks` of the trials, if they are known.
        """
        table = np.empty((len(trials), len(self.names)))
        together = [place for place, one in enumerate(trials) if is_plain(one) and not one.grades]
        for place in set(range(len(trials))).difference(together):
            table[place] = self.values(trials[place], credit)
        if together:
            plain = [trials[place] for place in together]
            found = map(evidence_ranks, plain) if ranks is None else (ranks[n] for n in together)
            # A system may return more hits than requested.
            deep = self.returned
            within = (
                tuple(own) if len(one.ranking) <= deep else tuple(n for n in own if n <= deep)
                for one, own in zip(plain, found, strict=True)
            )
            totals = (len(set(trial.evidence)) for trial in plain)
            values = value_table(within, totals, *_cutoffs(deep))
            table[together, : values.shape[1]] = values
            if self.recorded:
                table[together, -1] = list(map(_first, plain))
        return table

    def _ranking(self, trial: Trial) -> Sequence[str]:
        if len(trial.ranking) > self.returned:
            return dedupe(trial.ranking)[: self.returned]
        return trial.ranking

    def _merged_values(self, trial: Trial, credit: Credit) -> tuple[float, ...]:
        ks, cuts = _cutoffs(self.returned)
        ranking = self._ranking(trial)
        if takes_places(trial):
            hits = hit_places(trial, ranking, credit)
            found = score_unordered(hits, trial.evidence, ks=ks, cuts=cuts, grades=trial.grades)
        else:  # each hit is one memory, listed with what it is a part of
            merged = _credited(trial, dedupe(ranking))
            found = score_merged(merged, trial.evidence, ks=ks, cuts=cuts, grades=trial.grades)
        return tuple(found.values())

    def highest(self, trial: Trial) -> Sequence[float]:
        """Compute every metric with the best end that the trial's list could have.

        A metric of the whole ranking, such as map, is about the list as it is.
        """
        values = self.values(trial)
        if trial.cut is None:
            return values
        best = self.values(continued(trial))
        whole = [getattr(metric_of(name), "at", "") == "all" for name in self.names]
        return [own if at else top for own, top, at in zip(values, best, whole, strict=True)]

    def chances(self, trial: Trial) -> tuple[float, ...]:
        """Return the expected scores of a random ranking; NaN where the pool is unknown."""
        return self._chances(_chance_key(trial))

    def _chances(self, key: _ChanceKey) -> tuple[float, ...]:
        if not key.pool:
            return (np.nan,) * len(self.names)
        return _chances(*key, self.returned, self.recorded)

    def ceilings(self, trial: Trial) -> tuple[float, ...]:
        """Return the best possible scores; recall@1 with two evidence memories is at most 0.5."""
        return self._ceilings(_ceiling_key(trial))

    def _ceilings(self, key: _CeilingKey) -> tuple[float, ...]:
        best = _ceilings(*key, self.returned)
        return (*best, float(key.reachable > 0)) if self.recorded else best

    def all_chances(self, trials: Sequence[Trial]) -> Floats:
        """Return the `chances` of many trials, one row each."""
        return _shared_rows(map(_chance_key, trials), self._chances, len(self.names))

    def all_ceilings(self, trials: Sequence[Trial]) -> Floats:
        """Return the `ceilings` of many trials, one row each."""
        return _shared_rows(map(_ceiling_key, trials), self._ceilings, len(self.names))


class _ChanceKey(NamedTuple):
    """What the chances of a trial depend on."""

    pool: int
    reachable: int
    total: int
    grades: tuple[int, ...]


class _CeilingKey(NamedTuple):
    """What the ceilings of a trial depend on."""

    grades: tuple[int, ...]
    reachable: int


def _chance_key(trial: Trial) -> _ChanceKey:
    grades = tuple([trial.grades.get(id, 1) for id in trial.evidence]) if trial.grades else ()
    return _ChanceKey(trial.pool, trial.reachable, len(set(trial.evidence)), grades)


def _ceiling_key(trial: Trial) -> _CeilingKey:
    if not trial.grades:
        return _CeilingKey((1,) * len(trial.evidence), trial.reachable)
    grades = sorted((trial.grades.get(id, 1) for id in trial.evidence), reverse=True)
    return _CeilingKey(tuple(grades), trial.reachable)


def _shared_rows(
    keys: Iterable[_Key], row: Callable[[_Key], tuple[float, ...]], width: int
) -> Floats:
    """The row of each key; a row that several keys share is computed once."""
    known: dict[_Key, int] = {}
    places = [known.setdefault(key, len(known)) for key in keys]
    return np.array(list(map(row, known))).reshape(-1, width)[places]


def _first(trial: Trial) -> float:
    """The reciprocal of the first rank that an imported file records."""
    return 1 / trial.first_rank if trial.first_rank else 0.0


class Table:
    """The values of the measured questions: one row a question, one column a metric."""

    def __init__(
        self, trials: Sequence[Trial], depth: Depth, ranks: Mapping[int, Sequence[int]]
    ) -> None:
        self.trials = [trial for trial in trials if trial.status not in FAILED]
        self.names = depth.names
        self.ranks = [
            ranks[id(trial)] if id(trial) in ranks else evidence_ranks(trial)
            for trial in self.trials
        ]
        """The ranks of the evidence of each question."""
        self.values = depth.all_values(self.trials, ranks=self.ranks)
        self.chances = depth.all_chances(self.trials)
        self.ceilings = depth.all_ceilings(self.trials)
        self.highest = self.values.copy()
        for place, trial in enumerate(self.trials):
            if trial.cut is not None:
                self.highest[place] = depth.highest(trial)
        self.is_known = (self.highest == self.values).all(axis=0)
        self.pools = np.array([trial.pool for trial in self.trials])
        self.clusters = np.array([trial.cluster for trial in self.trials])
        self.categories = np.array([trial.category for trial in self.trials])

    def figures(self, rows: NDArray[np.bool_], failed: int) -> dict[str, Figure]:
        """Compute the figure of every metric over the chosen rows."""
        if not rows.any():
            return {}
        values = self.values[rows]
        chances = self.chances[rows].mean(axis=0).tolist()
        ceilings = self.ceilings[rows].mean(axis=0).tolist()
        pool = int(np.median(self.pools[rows]))
        clusters = self.clusters[rows].tolist()
        intervals = intervals_of_means(values, clusters)
        totals = np.ascontiguousarray(values.T).sum(axis=1).tolist()
        n = len(values)
        return {
            name: _figure(name, n, totals[i], intervals[i], chances[i], ceilings[i], pool, failed)
            for i, name in enumerate(self.names)
            if self.is_known[i]
        }

    def clusters_of(self, category: str) -> int:
        """Return how many clusters have questions of a category."""
        return len(set(self.clusters[self.categories == category].tolist()))

    def beyond_end(self, failed: int) -> dict[str, Bounds]:
        """Compute the bounds of every metric that depends on hits after the end of a list."""
        low = self.values.sum(axis=0) / max(1, len(self.trials) + failed)
        return {
            name: {
                "bounds": rounded_all((low[i], self.highest[:, i].mean())),
                "n": len(self.trials),
                "cut": int((self.highest[:, i] > self.values[:, i]).sum()),
            }
            for i, name in enumerate(self.names)
            if not self.is_known[i]
        }


def _repeated(trial: Trial) -> int:
    """Count the hits of a ranking that were in it before."""
    return len(trial.ranking) - len(set(trial.ranking))


def measure(
    trials: Sequence[Trial],
    ingestions: Iterable[Ingestion],
    depth: Depth,
    ranks: Mapping[int, Sequence[int]] = MappingProxyType({}),
    withheld: Mapping[str, str] = MappingProxyType({}),
) -> Metrics:
    """Compute the content of metrics.json.

    `ranks` has the `evidence_ranks` of trials, by the identity of the object, that are known.
    `withheld` are the categories of which no figure is given, and why.
    """
    scorable = [trial for trial in trials if trial.evidence]
    failed = Counter(trial.category for trial in scorable if trial.status in FAILED)
    table = Table(scorable, depth, ranks)
    repeated = sum(map(_repeated, trials))
    everything = np.ones(len(table.trials), dtype=bool)
    categories = sorted({trial.category for trial in scorable} - {"", *withheld})
    beyond = table.beyond_end(failed.total())
    clusters = len(set(table.clusters.tolist()))
    figures: Metrics = {
        "questions": {
            "asked": len(trials),
            "scorable": len(scorable),
            "measured": len(table.trials),
            "clusters": clusters,
            "without_evidence": len(trials) - len(scorable),
            "coverage": rounded(len(table.trials) / len(scorable)) if scorable else None,
        },
        "statuses": dict(sorted(Counter(str(trial.status) for trial in trials).items())),
        "errors": dict(Counter(t.error for t in trials if t.error).most_common(3)),
        "hits": {
            "returned": sum(len(trial.ranking) for trial in trials),
            "merged": sum(len(trial.sources) for trial in trials),
            "duplicates": repeated,
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
        "context": context(table, depth.returned, are_distinct=not repeated),
        "interval": interval_kind(clusters),
    }
    if few := [
        category
        for category, own in figures["by_category"].items()
        if own and interval_kind(table.clusters_of(category)) != figures["interval"]
    ]:
        figures["few_clusters"] = few
    if withheld:
        figures["withheld"] = dict(withheld)
    if any(map(takes_places, trials)):
        claimed = depth.all_values(table.trials, "claimed", table.ranks)
        figures["credit"] = credit_figures(table.trials, table.names, table.values, claimed)
    if beyond:
        figures["beyond_end"] = beyond
    return figures


def context(table: Table, depth: int, *, are_distinct: bool = False) -> ContextCost:
    """Compute recall within equal budgets of context tokens, instead of at equal k.

    A budget that is larger than a list which may go on gets bounds instead of a mean. With
    `are_distinct` it is known that no ranking repeats a hit.
    """
    trials = table.trials
    if not trials or any(len(trial.tokens) != len(trial.ranking) for trial in trials):
        return {}
    rows = _recalls_by_tokens(trials, table.ranks, are_distinct=are_distinct)
    best = rows.copy()
    for place, (trial, ranks) in enumerate(zip(trials, table.ranks, strict=True)):
        if is_plain(trial) and len(ranks) >= trial.reachable:
            continue  # the list has all the evidence that exists
        if left_over(trial) and may_go_on(trial, depth):
            ended = bisect_left(BUDGETS, sum(trial.tokens))
            best[place, ended:] = trial.reachable / len(set(trial.evidence))
    clusters = table.clusters.tolist()
    intervals = intervals_of_means(rows, clusters)
    curve: dict[str, Estimate] = {}
    for place, budget in enumerate(BUDGETS):
        mean = rounded(rows[:, place].mean())
        if (best[:, place] > rows[:, place]).any():
            bounds = [mean, rounded(best[:, place].mean())]
            curve[str(budget)] = {"mean": None, "n": len(rows), "ci95": None, "bounds": bounds}
        else:
            curve[str(budget)] = {"mean": mean, "n": len(rows), "ci95": intervals[place]}
    cost: ContextCost = {"recall_by_tokens": curve}
    if not any(len(trial.ranking) < _COSTED and may_go_on(trial, depth) for trial in trials):
        tokens = [tokens_of_places(trial, _COSTED) for trial in trials]
        cost = {"tokens@10": rounded(float(np.mean(tokens))), **cost}
    return cost


def _recalls_by_tokens(
    trials: Sequence[Trial], ranks: Sequence[Sequence[int]], *, are_distinct: bool
) -> Floats:
    """Compute recall within each budget, one row a trial; plain ones at once."""
    rows = np.empty((len(trials), len(BUDGETS)))
    together: list[int] = []
    for place, (trial, own) in enumerate(zip(trials, ranks, strict=True)):
        last = own[-1] if own else 0
        if is_plain(trial) and (are_distinct or last < 2 or len(set(trial.ranking[:last])) == last):
            together.append(place)
        else:
            hits = _credited(trial, trial.ranking)
            rows[place] = list(recall_within(trial.tokens, hits, trial.evidence).values())
    if together:
        plain = [trials[place] for place in together]
        rows[together] = recalls_of_places(
            [trial.tokens for trial in plain],
            [ranks[place] for place in together],
            [len(set(trial.evidence)) for trial in plain],
        )
    return rows


def ingestion_loss(trials: Sequence[Trial], ingestions: Iterable[Ingestion]) -> IngestionLoss:
    """Compute how many memories, and how much of the evidence, ingestion lost."""
    lines = list(ingestions)
    receipts = {line.scenario: line.receipt for line in lines}
    cited = sum(len(set(trial.evidence)) for trial in trials)
    kept = 0.0
    for trial in trials:
        if trial.status != "not-indexed":
            receipt, lost = receipts.get(trial.scenario), 0.0
            if receipt is not None and (receipt.rejected or receipt.truncated):
                lost = sum(
                    1.0 if id in receipt.rejected else 1 - receipt.truncated.get(id, 1.0)
                    for id in set(trial.evidence)
                )
            kept += trial.reachable - lost
    return {
        "memories": sum(line.memories for line in lines),
        "rejected": sum(len(line.receipt.rejected) for line in lines),
        "merged": sum(len(line.receipt.merged) for line in lines),
        "truncated": sum(len(line.receipt.truncated) for line in lines),
        "scenarios_failed": sum(bool(line.error) for line in lines),
        "evidence_reached": rounded(kept / cited) if cited else None,
        "evidence_unreachable": cited - sum(trial.reachable for trial in trials),
    }


def _figure(
    name: str,
    n: int,
    total: float,
    interval: list[float],
    chance: float,
    ceiling: float,
    pool: int,
    failed: int,
) -> Figure:
    metric = metric_of(name)
    assert metric is not None
    mean = total / n
    known = isfinite(chance)
    figure: Figure = {
        "mean": rounded(mean),
        "n": n,
        "ci95": interval,
        "chance": rounded(chance) if known else None,
        "lift": rounded(mean - chance) if known else None,
        "ceiling": rounded(ceiling),
    }
    if known and metric.at == "k":
        figure["vacuous"] = is_vacuous(int(name.partition("@")[2]), pool, chance)
    if failed:
        figure["bounds"] = rounded_all((total / (n + failed), mean))
    return figure


def withheld_note(reason: str) -> str:
    """Say why there is no figure of a category."""
    return f"withheld: {reason}"


def is_binary(values: Floats) -> bool:
    """Whether all values are 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def evidence_ranks(trial: Trial) -> Sequence[int]:
    """Return the ranks of the hits that carry evidence, with repeated hits removed."""
    if is_plain(trial):
        return relevant_positions(trial.ranking, trial.evidence)
    merged = _credited(trial, dedupe(trial.ranking))
    return [find.rank for find in merged_positions(merged, trial.evidence)]


def _credited(trial: Trial, ranking: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the memories that each hit carries."""
    if is_plain(trial):
        return [(id,) for id in ranking]
    return [credited(trial, id) for id in ranking]


@lru_cache
def _cutoffs(returned: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the k's, and the depths of mrr, that rankings of this depth allow."""
    cuts = {cut for cut in MRR_CUTS if cut < returned} | {returned}
    return tuple(k for k in KS if k <= returned), tuple(sorted(cuts))


@lru_cache(maxsize=65536)
def _ceilings(grades: tuple[int, ...], reachable: int, returned: int) -> tuple[float, ...]:
    ks, cuts = _cutoffs(returned)
    return tuple(best_score(grades, reachable, ks=ks, cuts=cuts).values())


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
