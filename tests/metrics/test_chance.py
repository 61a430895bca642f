"""Chance, compared with all rankings of tiny pools, with random rankings, and at its limits."""

from __future__ import annotations

import random
from itertools import permutations
from math import comb
from statistics import fmean

import pytest

from mnemoscope.metrics import is_vacuous, metric_names, score, score_by_chance

KS = (1, 2, 3, 10)
CUTS = (2, 10)


def evidence(reachable: int, total: int) -> list[str]:
    return [f"m{n}" if n < reachable else f"lost{n}" for n in range(total)]


def over_all_rankings(
    pool: int, reachable: int, total: int, depth: int, grades: dict[str, int] | None = None
) -> dict[str, float]:
    wanted = evidence(reachable, total)
    scores = [
        score(order[:depth], wanted, ks=KS, cuts=CUTS, grades=grades)
        for order in permutations([f"m{n}" for n in range(pool)])
    ]
    return {name: fmean(got[name] for got in scores) for name in metric_names(KS, CUTS)}


@pytest.mark.parametrize("depth", [0, 1, 3, 5, 100])
@pytest.mark.parametrize(
    ("pool", "reachable", "total"),
    [(1, 1, 1), (1, 0, 2), (4, 1, 1), (5, 2, 2), (5, 2, 4), (5, 5, 5), (6, 3, 3), (6, 0, 1)],
)
def test_is_the_mean_over_all_rankings(pool: int, reachable: int, total: int, depth: int) -> None:
    got = score_by_chance(pool, reachable, total, ks=KS, cuts=CUTS, depth=depth)
    assert list(got) == list(metric_names(KS, CUTS))
    assert got == pytest.approx(over_all_rankings(pool, reachable, total, depth), abs=1e-12)


def test_is_the_mean_over_all_rankings_of_graded_evidence() -> None:
    grades = {"m0": 3, "m1": 1, "m2": 1}
    got = score_by_chance(6, 3, 3, ks=KS, cuts=CUTS, depth=4, grades=list(grades.values()))
    assert got == pytest.approx(over_all_rankings(6, 3, 3, 4, grades), abs=1e-12)
    assert got["ndcg@1"] == pytest.approx(3 / 6 * (5 / 3) / 3)


def test_agrees_with_random_rankings_of_a_pool_too_large_to_enumerate() -> None:
    dice = random.Random(3)
    pool = [f"m{n}" for n in range(60)]
    wanted = evidence(4, 5)
    throws = 20_000
    scores = [score(dice.sample(pool, 20), wanted, ks=KS, cuts=CUTS) for _ in range(throws)]
    expected = score_by_chance(60, 4, 5, ks=KS, cuts=CUTS, depth=20)
    for name, value in expected.items():
        thrown = [got[name] for got in scores]
        mean = fmean(thrown)
        error = (fmean((x - mean) ** 2 for x in thrown) / throws) ** 0.5
        assert mean == pytest.approx(value, abs=4 * error + 1e-12), name


def test_is_hypergeometric_in_a_pool_of_a_million() -> None:
    pool, reachable = 10**6, 7
    got = score_by_chance(pool, reachable, reachable, ks=(10, 1000), cuts=(10,), depth=pool)
    for k in (10, 1000):
        missed = comb(pool - reachable, k) / comb(pool, k)
        every = comb(pool - reachable, k - reachable) / comb(pool, k)
        assert got[f"hit@{k}"] == pytest.approx(1 - missed, rel=1e-9)
        assert got[f"recall@{k}"] == pytest.approx(k / pool)
        assert got[f"all@{k}"] == pytest.approx(every, rel=1e-9)
    assert 0 < got["map"] < 1e-3


def test_the_whole_pool_contains_all_evidence() -> None:
    got = score_by_chance(10, 2, 2, ks=KS, cuts=CUTS, depth=10)
    assert (got["hit@10"], got["recall@10"], got["all@10"]) == (1, 1, 1)


def test_unreachable_evidence_is_never_all_found() -> None:
    got = score_by_chance(10, 2, 3, ks=KS, cuts=CUTS, depth=10)
    assert got["recall@10"] == pytest.approx(2 / 3)
    assert got["all@10"] == 0


def test_a_caller_may_change_the_result() -> None:
    first = score_by_chance(9, 2, 2, ks=KS, cuts=CUTS, depth=9)
    kept = dict(first)
    first.clear()
    assert score_by_chance(9, 2, 2, ks=KS, cuts=CUTS, depth=9) == kept


@pytest.mark.parametrize(
    ("pool", "reachable", "total", "depth"),
    [(5, 3, 2, 5), (2, 3, 3, 5), (5, 0, 0, 5), (5, -1, 2, 5), (5, 1, 2, -1)],
)
def test_impossible_pools_are_refused(pool: int, reachable: int, total: int, depth: int) -> None:
    with pytest.raises(ValueError, match="impossible pool"):
        score_by_chance(pool, reachable, total, ks=KS, cuts=CUTS, depth=depth)


def test_the_number_of_grades_must_match_the_evidence() -> None:
    with pytest.raises(ValueError, match="2 grades for 3 evidence ids"):
        score_by_chance(9, 2, 3, ks=KS, cuts=CUTS, depth=9, grades=[1, 2])


@pytest.mark.parametrize(
    ("k", "pool", "chance", "vacuous"),
    [(10, 10, 0.1, True), (9, 10, 0.5, False), (9, 10, 0.51, True), (11, 10, 0.0, True)],
)
def test_a_measure_is_vacuous_if_k_reaches_the_pool_or_chance_is_high(
    k: int, pool: int, chance: float, vacuous: bool
) -> None:
    assert is_vacuous(k, pool, chance) is vacuous
