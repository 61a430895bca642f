"""Hits that take several places: compared with all orders of small rankings, and with chance."""

from __future__ import annotations

from itertools import permutations, product
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.metrics import (
    HitPlaces,
    Metric,
    installed_metrics,
    score,
    score_by_chance,
    score_unordered,
)
from mnemoscope.metrics.hit import HitRate

KS = (1, 2, 3, 5)
CUTS = (2, 5)
DEPTH = 5
_groups = st.lists(st.integers(1, 4), min_size=1, max_size=4).filter(lambda n: sum(n) <= 7)


def over_all_orders(
    groups: list[list[str]], evidence: set[str], grades: dict[str, int] | None
) -> dict[str, float]:
    """The mean over all orders within each group, counted one by one."""
    scores = []
    for orders in product(*map(permutations, groups)):
        ranking = [id for order in orders for id in order][:DEPTH]
        scores.append(score(ranking, evidence, ks=KS, cuts=CUTS, grades=grades))
    return {name: fmean(got[name] for got in scores) for name in scores[0]}


@settings(max_examples=60, deadline=None)
@given(_groups, st.data())
def test_each_metric_is_its_mean_over_all_orders(sizes: list[int], data: st.DataObject) -> None:
    ids = iter("abcdefg")
    groups = [[next(ids) for _ in range(size)] for size in sizes]
    pool = [id for group in groups for id in group]
    evidence = data.draw(st.sets(st.sampled_from([*pool, "lost"]), min_size=1, max_size=4))
    drawn = st.dictionaries(st.sampled_from(sorted(evidence)), st.integers(1, 3))
    grades = data.draw(st.one_of(st.none(), drawn))
    hits = [HitPlaces(group, len(group)) for group in groups]
    got = score_unordered(hits, evidence, ks=KS, cuts=CUTS, grades=grades)
    assert got == pytest.approx(over_all_orders(groups, evidence, grades), abs=1e-12)


@pytest.mark.parametrize(("pool", "reachable", "total"), [(30, 1, 1), (30, 3, 4), (400, 5, 5)])
def test_everything_in_one_hit_scores_exactly_chance(pool: int, reachable: int, total: int) -> None:
    memories = [f"m{n}" for n in range(pool)]
    evidence = [*memories[:reachable], *(f"lost{n}" for n in range(total - reachable))]
    got = score_unordered([HitPlaces(memories, pool)], evidence, ks=(1, 5, 10), cuts=(10, 20))
    chance = score_by_chance(pool, reachable, total, ks=(1, 5, 10), cuts=(10, 20), depth=20)
    assert got == pytest.approx(chance, abs=1e-12)


def test_a_hit_without_credit_keeps_its_places() -> None:
    hits = [HitPlaces((), 2), HitPlaces(("a",), 1)]
    got = score_unordered(hits, {"a"}, ks=KS, cuts=CUTS)
    assert got["recall@2"] == 0 and got["recall@3"] == 1
    assert got["mrr@5"] == pytest.approx(1 / 3)


def test_evidence_that_an_earlier_hit_has_is_not_credited_again() -> None:
    hits = [HitPlaces(("a",), 1), HitPlaces(("a", "b"), 2)]
    got = score_unordered(hits, {"a", "b"}, ks=KS, cuts=CUTS)
    assert got["recall@1"] == 0.5
    assert got["recall@2"] == pytest.approx(0.75)
    assert got["recall@3"] == 1


def test_a_hit_takes_at_least_a_place_for_each_evidence_it_is_credited_with() -> None:
    got = score_unordered([HitPlaces(("a", "b"), 1)], {"a", "b"}, ks=KS, cuts=CUTS)
    assert got["recall@1"] == 0.5


def test_a_metric_without_a_closed_form_is_sampled_near_the_truth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(HitRate, "expectation", Metric.expectation)
    hits = [HitPlaces("abcdefgh", 8)]
    got = score_unordered(hits, {"a"}, ks=KS, cuts=CUTS)
    assert got["hit@2"] == pytest.approx(2 / 8, abs=4 * 0.016)
    assert got == score_unordered(hits, {"a"}, ks=KS, cuts=CUTS), "the draw is seeded"


def test_every_built_in_metric_has_a_closed_form() -> None:
    groups = score_unordered([HitPlaces("ab", 2)], {"a"}, ks=(1,), cuts=(1,))
    assert groups["recall@1"] == 0.5
    for metric in installed_metrics().values():
        if type(metric).__module__.startswith("mnemoscope.metrics."):
            assert type(metric).expectation is not Metric.expectation, metric.name


def test_a_question_without_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        score_unordered([HitPlaces("a", 1)], (), ks=KS, cuts=CUTS)
