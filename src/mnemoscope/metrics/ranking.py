"""Score one ranked list of memory ids, with pure functions.

Only the rank counts, not the system's scores. Evidence that the pool does not contain counts in
every denominator. Plain Python finds the ranks faster than numpy; values of many rankings are
computed at once (`value_table`).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import compress, count, repeat
from math import log2, nan
from typing import Literal, NamedTuple, TypeVar

from mnemoscope.metrics.installed import metric_columns, metric_names, metrics_at
from mnemoscope.metrics.metric import RandomTopK, TopK
from mnemoscope.metrics.ndcg import ideal_gains

T = TypeVar("T", bound=Hashable)

VACUOUS_CHANCE = 0.5
_FEW = 3


class Find(NamedTuple):
    """A position with evidence that no earlier position has."""

    rank: int
    evidence: frozenset[str]


def dedupe(ranking: Iterable[T]) -> list[T]:
    """Remove repetitions: the first occurrence stays, and later hits move up."""
    return list(dict.fromkeys(ranking))


def relevant_positions(ranking: Sequence[str], evidence: Collection[str]) -> tuple[int, ...]:
    """Return the ranks of the evidence, from 1, after repetitions are removed."""
    found = frozenset(evidence).intersection(ranking)
    if not found:
        return ()
    # The cost of scoring is here: few ids are looked up one by one, and only the hits before the
    # last evidence can move it up.
    if len(found) == 1:
        [id_] = found
        place = ranking.index(id_)
        if place < 2 or len(set(ranking[:place])) == place:
            return (place + 1,)
    elif len(found) <= _FEW:
        places = sorted(map(ranking.index, found))
        if len(set(ranking[: places[-1]])) == places[-1]:
            return tuple([place + 1 for place in places])
    else:
        ranks = tuple(compress(count(1), map(found.__contains__, ranking)))
        if len(set(ranking[: ranks[-1]])) == ranks[-1]:
            return ranks
    return tuple(compress(count(1), map(found.__contains__, dict.fromkeys(ranking))))


def merged_positions(hits: Iterable[Collection[str]], evidence: Collection[str]) -> list[Find]:
    """Return the positions with new evidence, for hits made from several memories each.

    A hit whose sources all appeared earlier keeps its rank, because a reader is shown both texts.
    Remove repeated hits by their id first.
    """
    missing = set(evidence)
    finds = []
    for rank, sources in enumerate(hits, 1):
        if missing.isdisjoint(sources):
            continue
        fresh = missing.intersection(sources)
        missing -= fresh
        finds.append(Find(rank, frozenset(fresh)))
        if not missing:
            break
    return finds


def score(
    ranking: Sequence[str],
    evidence: Collection[str],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    grades: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Compute all metrics of one ranking in which every hit is one memory.

    Evidence without a grade counts 1; grades of other ids are ignored.
    """
    wanted = frozenset(evidence)
    positions = relevant_positions(ranking, wanted)
    values = graded_values(ranking, wanted, grades or {}, positions, ks=ks, cuts=cuts)
    return dict(zip(metric_names(ks, cuts), values, strict=True))


def score_all(
    rankings: Iterable[Sequence[str]],
    evidence: Iterable[Collection[str]],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    grades: Iterable[Mapping[str, int]] | None = None,
) -> list[tuple[float, ...]]:
    """Compute all metrics of many rankings in which every hit is one memory.

    Each ranking gets one tuple in the order of `metric_names`; `grades` are as in `score`.
    """
    from mnemoscope.metrics.value_table import shared_rows  # numpy is slow to import

    wanted = list(map(frozenset, evidence))
    lists = list(rankings)
    if len(lists) != len(wanted):
        raise ValueError(f"{len(lists)} rankings, but evidence of {len(wanted)} questions")
    found = list(map(relevant_positions, lists, wanted))
    shared = shared_rows(found, map(len, wanted), ks, cuts)
    distinct = list(map(tuple, shared.rows.tolist()))
    rows = [distinct[place] for place in shared.places]
    for place, grade in enumerate(() if grades is None else grades):
        if grade:
            rows[place] = graded_values(
                lists[place], wanted[place], grade, found[place], ks=ks, cuts=cuts
            )
    return rows


def graded_values(
    ranking: Sequence[str],
    wanted: frozenset[str],
    grades: Mapping[str, int],
    positions: tuple[int, ...],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
) -> tuple[float, ...]:
    """Compute the values of one ranking whose evidence is at these ranks."""
    gains = once = (1,) * len(positions)
    every: tuple[int, ...] = (1,) * len(wanted)
    if grades:
        gains = tuple(grades.get(id_, 1) for id_ in dedupe(ranking) if id_ in wanted)
        every = tuple(grades.get(id_, 1) for id_ in wanted)
    return values_at(positions, once, gains, every, ks, cuts)


def score_merged(
    hits: Sequence[Collection[str]],
    evidence: Collection[str],
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    grades: Mapping[str, int] | None = None,
) -> dict[str, float]:
    """Compute all metrics of one ranking whose hits may be made from several memories each.

    A position is relevant if it has new evidence. Recall and `all` count every new id at it, and
    its gain is the sum of their grades.
    """
    wanted = frozenset(evidence)
    finds = merged_positions(hits, wanted)
    grade = {id_: grades.get(id_, 1) if grades else 1 for id_ in wanted}
    values = values_at(
        tuple(find.rank for find in finds),
        tuple(len(find.evidence) for find in finds),
        tuple(sum(grade[id_] for id_ in find.evidence) for find in finds),
        tuple(grade.values()),
        ks,
        cuts,
    )
    return dict(zip(metric_names(ks, cuts), values, strict=True))


def best_score(
    grades: tuple[int, ...], reachable: int, *, ks: tuple[int, ...], cuts: tuple[int, ...]
) -> dict[str, float]:
    """Compute the ceiling of all metrics from the grades of the evidence, best first.

    The best ranking starts with the first `reachable` of them, in that order.
    """
    places, once = tuple(range(1, reachable + 1)), (1,) * reachable
    values = values_at(places, once, grades[:reachable], grades, ks, cuts, "ceiling")
    return dict(zip(metric_names(ks, cuts), values, strict=True))


def score_by_chance(
    pool: int,
    reachable: int,
    total: int,
    *,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    depth: int,
    grades: Collection[int] = (),
) -> dict[str, float]:
    """Compute the exact expectation of all metrics for `depth` of `pool` memories in random order.

    `reachable` of the `total` evidence ids are in the pool. `grades` are those of all the
    evidence; it is not known which of it is reachable, so each drawn id gains the mean grade. A
    metric whose expectation is unknown gets NaN. The cost is linear in the deepest k.
    """
    if not 0 <= reachable <= min(pool, total) or total < 1 or depth < 0:
        raise ValueError(
            f"impossible pool: {reachable} of {total} evidence ids among {pool} memories, "
            f"returned to depth {depth}"
        )
    if grades and len(grades) != total:
        raise ValueError(f"{len(grades)} grades for {total} evidence ids")
    if not reachable:
        return dict.fromkeys(metric_names(ks, cuts), 0.0)
    returned = min(depth, pool)
    ideals = ideal_gains(tuple(grades) or (1,) * total)
    mean_grade = sum(grades) / total if grades else 1.0
    missed = [1.0]
    for drawn in range(min(returned, max((*ks, *cuts), default=0))):
        missed.append(missed[-1] * max(0.0, 1 - reachable / (pool - drawn)))
    expected: dict[str, float] = {}
    for column in metric_columns(ks, cuts):
        k = depth if column.metric.at == "all" else column.k
        about = (pool, reachable, total, mean_grade, ideals[min(total, k)], missed)
        chance = column.metric.chance(RandomTopK(k, min(k, returned), *about))
        expected[column.name] = nan if chance is None else chance
    return expected


def is_vacuous(k: int, pool: int, chance: float) -> bool:
    """Whether a metric at k is not informative: k reaches the pool, or chance is above 0.5."""
    return k >= pool or chance > VACUOUS_CHANCE


@lru_cache(maxsize=65536)
def values_at(
    positions: tuple[int, ...],
    fresh: tuple[int, ...],
    gains: tuple[int, ...],
    grades: tuple[int, ...],
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    what: Literal["value", "ceiling"] = "value",
) -> tuple[float, ...]:
    """Compute the values of all columns from the ranks with new evidence.

    `fresh` is the number of new ids at each rank, `gains` the sum of their grades, `grades` those
    of the whole evidence. Cached, because many questions have their evidence at the same ranks.
    """
    if not grades:
        raise ValueError("a question without evidence cannot be scored; leave it out")
    ideals, total = ideal_gains(grades), len(grades)
    found, gained, precisions = [0], [0.0], [0.0]
    for nth, (rank, new, gain) in enumerate(zip(positions, fresh, gains, strict=True), 1):
        found.append(found[-1] + new)
        gained.append(gained[-1] + gain / log2(rank + 1))
        precisions.append(precisions[-1] + new * nth / rank)
    values: list[float] = []
    for k, at, metrics in metrics_at(ks, cuts):
        n = len(positions) if at == "all" else bisect_right(positions, k)
        if not n:
            values += repeat(0.0, len(metrics))
            continue
        ideal = ideals[min(total, k)]
        top = TopK(k, n, found[n], total, positions[0], gained[n], ideal, precisions[n])
        values += [getattr(metric, what)(top) for metric in metrics]
    return tuple(values)
