"""Simultaneous intervals and groups of systems: golden values and properties."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats.clustered import ClusterSums, critical_value, difference
from mnemoscope.stats.families import bonferroni, max_t
from mnemoscope.stats.groups import Ranks, all_pairs, letters, moderated, rank_intervals

MEANS = np.array(
    [
        (0.02, 0.00, 0.05, 0.01, 0.03, 0.02),
        (0.03, 0.01, 0.04, 0.00, 0.05, 0.01),
        (0.01, 0.02, 0.03, 0.02, 0.01, 0.00),
    ]
).T


def table(means: NDArray[np.float64], size: float) -> ClusterSums:
    sizes = np.full(means.shape, size)
    return ClusterSums(sizes, means * size, means**2 * size)


def test_max_t_of_three_metrics() -> None:
    columns = table(MEANS, 60)
    rows = [difference(columns.column(place)) for place in range(3)]
    family = max_t(columns)
    assert family.critical(rows[0]) == pytest.approx(3.4547, abs=5e-5)
    assert [row.p for row in rows] == pytest.approx([0.0433, 0.0476, 0.0493], abs=5e-5)
    assert [family.p(row) for row in rows] == pytest.approx([0.1090, 0.1204, 0.1249], abs=2e-4)
    assert all(family.interval(row).low < 0 < family.interval(row).high for row in rows)
    assert max_t(columns, seed=1).critical(rows[0]) == pytest.approx(3.4591, abs=5e-5)


def test_identical_metrics_need_no_correction() -> None:
    columns = table(np.repeat(MEANS[:, :1], 3, axis=1), 60)
    row = difference(columns.column(0))
    assert max_t(columns).critical(row) == pytest.approx(2.5706, abs=0.03)


def test_metrics_without_any_difference_do_not_widen_the_others() -> None:
    columns = table(np.hstack([MEANS[:, :1], np.zeros((6, 4))]), 60)
    row = difference(columns.column(0))
    assert max_t(columns).critical(row) == pytest.approx(critical_value(0.05, [60] * 6))


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([6, 10, 60]), st.integers(2, 6))
def test_adjusted_p_and_simultaneous_interval_cannot_disagree(
    seed: int, groups: int, columns: int
) -> None:
    random = np.random.default_rng(seed)
    means = random.normal(0.02, 0.03, (groups, columns))
    whole = table(means, 50)
    family = max_t(whole, draws=1999)
    for place in range(columns):
        row = difference(whole.column(place))
        low, high = family.interval(row)
        assert (family.p(row) <= 0.05) == (low > 0 or high < 0)
        assert family.p(row) >= min(1.0, row.p) - 0.03


def test_fewer_than_five_clusters_are_corrected_by_bonferroni() -> None:
    columns = table(MEANS[:3], 60)
    row = difference(columns.column(0))
    family = max_t(columns)
    assert family.critical(row) == pytest.approx(row.critical(0.05 / 3))
    assert family.p(row) == pytest.approx(min(1.0, 3 * row.p))


def _four_systems() -> tuple[NDArray[np.float64], list[str]]:
    means = np.array(
        [
            [0.90, 0.85, 0.92, 0.88, 0.91, 0.86],
            [0.88, 0.86, 0.90, 0.84, 0.89, 0.88],
            [0.80, 0.78, 0.85, 0.79, 0.80, 0.82],
            [0.60, 0.62, 0.55, 0.65, 0.58, 0.60],
        ]
    ).T
    return np.repeat(means, 60, axis=0), [str(i) for i in range(6) for _ in range(60)]


def test_all_pairs_of_four_systems() -> None:
    pairs = {(one.first, one.second): one for one in all_pairs(*_four_systems())}
    expected = {
        (0, 1): (-0.0117, -0.0535, 0.0301),
        (0, 2): (-0.0800, -0.1266, -0.0334),
        (1, 2): (-0.0683, -0.1023, -0.0343),
        (2, 3): (-0.2067, -0.3047, -0.1086),
    }
    for key, golden in expected.items():
        one = pairs[key]
        assert (one.row.delta, *one.interval) == pytest.approx(golden, abs=5.1e-5)
    adjusted = [bonferroni(6).p(pairs[key].row) for key in ((0, 2), (1, 2), (2, 3))]
    assert adjusted == pytest.approx([0.0047, 0.0022, 0.0018], abs=5.1e-5)
    decided = [(one.first, one.second) for one in pairs.values() if one.decided]
    assert letters(4, decided, range(4)) == ["a", "a", "b", "c"]
    assert rank_intervals(4, decided) == [Ranks(1, 2), Ranks(1, 2), Ranks(3, 3), Ranks(4, 4)]


def test_letters_of_overlapping_groups() -> None:
    decided = [(0, 2), (0, 3), (0, 4), (1, 3), (1, 4), (2, 4)]
    assert letters(5, decided, range(5)) == ["a", "ab", "bc", "cd", "d"]
    ranks = [(1, 2), (1, 3), (2, 4), (3, 5), (4, 5)]
    assert rank_intervals(5, decided) == [Ranks(*pair) for pair in ranks]


@settings(max_examples=100)
@given(
    st.integers(1, 9).flatmap(
        lambda k: st.tuples(
            st.just(k), st.sets(st.sampled_from([*combinations(range(k), 2), (0, 0)]))
        )
    )
)
def test_systems_share_a_letter_if_and_only_if_they_are_not_told_apart(
    drawn: tuple[int, set[tuple[int, int]]],
) -> None:
    count, chosen = drawn
    decided = chosen - {(0, 0)}
    found = letters(count, decided, range(count))
    for i, j in combinations(range(count), 2):
        assert bool(set(found[i]) & set(found[j])) == ((i, j) not in decided)
    assert all(found)


def test_ten_similar_clusters_use_the_moderated_variance() -> None:
    """Its critical value is smaller than Bonferroni's, so more pairs are decided."""
    random = np.random.default_rng(2)
    values = np.repeat(random.normal(0.5, 0.05, (10, 20)), 20, axis=0)
    clusters = [str(i) for i in range(10) for _ in range(20)]
    pairs = all_pairs(values, clusters)
    reach = (pairs[0].interval.high - pairs[0].interval.low) / 2 / pairs[0].row.se
    assert 3.7 < reach < 4.1 < critical_value(0.05 / 190, [20] * 10)


def test_moderated_variances_are_between_mean_and_a_fit_by_system() -> None:
    """The fit by general least squares instead of sums over systems."""
    first, second = np.triu_indices(6, 1)
    variances = np.random.default_rng(3).gamma(3, size=(2, 15))
    fits = np.zeros((15, 6))
    fits[np.arange(15), first] = fits[np.arange(15), second] = 1
    table = np.zeros((2, 6, 6))
    table[:, first, second] = table[:, second, first] = variances
    found = moderated(table, 9)[:, first, second]
    for own, used in zip(variances, found, strict=True):
        fitted = np.maximum(fits @ np.linalg.lstsq(fits, own)[0], 0)
        assert used == pytest.approx((7 * own.mean() + 7 * fitted + 9 * own) / 23)


def test_the_pairs_of_a_variable_system_are_not_understated() -> None:
    """Shrinking towards the mean alone gives them 0.64 of their variance here."""
    spreads = np.append(np.ones(19), 3.0) ** 2
    table = spreads[:, None] + spreads
    np.fill_diagonal(table, 0)
    assert moderated(table, 9)[0, 19] > 0.75 * table[0, 19]


def test_two_systems_have_the_exact_interval_of_their_difference() -> None:
    random = np.random.default_rng(4)
    clusters = [str(place) for place, size in enumerate([30, 20, 25, 40] * 3) for _ in range(size)]
    (pair,) = all_pairs(random.random((len(clusters), 2)), clusters)
    assert pair.interval == pair.row.interval(critical_value(0.05, pair.row.sizes))
