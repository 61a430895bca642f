"""What each measure would be worth by luck: its exact expectation for a random ranking.

The ranking is a uniformly random order of the pool, cut at the depth the system was asked for.
No simulation and no large binomials: the cost is linear in the depth, whatever the pool.
"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache
from itertools import accumulate

from mnemoscope.metrics.ranking import (
    graded_ideal_gains,
    ideal_gains,
    metric_names,
)

VACUOUS_CHANCE = 0.5


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
    """The expected measures when `depth` of `pool` memories are drawn in random order.

    `reachable` of the `total` evidence ids are in the pool. `grades` are those of all the
    evidence; which of it is reachable is not asked, so each drawn one gains their mean.
    """
    expected = dict(
        zip(metric_names(ks, cuts), _expected(pool, reachable, total, ks, cuts, depth), strict=True)
    )
    if grades:
        if len(grades) != total:
            raise ValueError(f"{len(grades)} grades for {total} evidence ids")
        deepest = max(ks, default=0)
        binary, graded = ideal_gains(deepest), graded_ideal_gains(grades, deepest)
        mean = sum(grades) / total
        for k in ks:
            n = min(total, k)
            expected[f"ndcg@{k}"] *= mean * binary[n] / graded[n]
    return expected


def is_vacuous(k: int, pool: int, chance: float) -> bool:
    """Whether a measure at k says nothing here: all is returned, or luck alone does well."""
    return k >= pool or chance > VACUOUS_CHANCE


@lru_cache(maxsize=65536)
def _expected(
    pool: int,
    reachable: int,
    total: int,
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
    depth: int,
) -> tuple[float, ...]:
    if not 0 <= reachable <= min(pool, total) or total < 1 or depth < 0:
        raise ValueError(
            f"impossible pool: {reachable} of {total} evidence ids among {pool} memories, "
            f"returned to depth {depth}"
        )
    if reachable == 0:
        return (0.0,) * len(metric_names(ks, cuts))
    returned = min(depth, pool)
    density = reachable / pool
    missed = _missed(pool, reachable, min(returned, max((*ks, *cuts), default=0)))
    # P(first evidence at rank r) = P(none before r) x P(evidence at r | none before).
    first = (missed[r - 1] * reachable / (pool - r + 1) / r for r in range(1, len(missed)))
    reciprocal = list(accumulate(first, initial=0.0))
    ideal = ideal_gains(max(ks, default=0))
    values: list[float] = []
    for k in ks:
        n = min(k, returned)
        values += (
            1 - missed[n],
            n * density / total,
            _all_drawn(pool, reachable, n) if reachable == total else 0.0,
            n * density / k,
            density * ideal[n] / ideal[min(total, k)],
        )
    values += [reciprocal[min(cut, returned)] for cut in cuts]
    values.append(_average_precision(pool, reachable, total, returned))
    return tuple(values)


def _missed(pool: int, reachable: int, depth: int) -> list[float]:
    """The probability that the first n ranks hold no evidence, for n from 0 to depth."""
    missed = [1.0]
    for drawn in range(depth):
        missed.append(missed[-1] * max(0.0, 1 - reachable / (pool - drawn)))
    return missed


def _all_drawn(pool: int, reachable: int, drawn: int) -> float:
    """C(pool - reachable, drawn - reachable) / C(pool, drawn), as a product of small ratios."""
    probability = 1.0
    for taken in range(reachable):
        if taken >= drawn or not probability:
            return 0.0
        probability *= (drawn - taken) / (pool - taken)
    return probability


def _average_precision(pool: int, reachable: int, total: int, returned: int) -> float:
    """Sum over ranks r of P(r is relevant) x E[relevant up to r | r is relevant] / r / total.

    The other r - 1 ranks hold (r - 1) x (reachable - 1) / (pool - 1) evidence on average, so
    the sum over r needs only the harmonic number of `returned`.
    """
    harmonic = _harmonic(returned)
    others = (reachable - 1) / (pool - 1) if pool > 1 else 0.0
    return reachable / pool / total * (harmonic + (returned - harmonic) * others)


@lru_cache(maxsize=1024)
def _harmonic(n: int) -> float:
    return sum(1 / rank for rank in range(1, n + 1))
