"""Paired tests against scipy, statsmodels and enumeration; intervals by their coverage."""

from __future__ import annotations

from itertools import product
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats import (
    bootstrap,
    mcnemar_exact,
    paired_bootstrap,
    paired_t,
    permutation,
    wilcoxon,
)

Floats = NDArray[np.float64]
grades = st.integers(-6, 6).map(float)
reals = st.floats(-100, 100).map(lambda x: round(x, 6))


@settings(deadline=None)
@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_agrees_with_statsmodels(gained: int, lost: int) -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    expected = mcnemar([[7, lost], [gained, 3]], exact=True).pvalue if gained + lost else 1.0
    assert mcnemar_exact(gained, lost) == pytest.approx(expected, rel=1e-10)


def test_mcnemar_of_pgmnemos_own_files() -> None:
    # trust.md 4.10: v0.2.1 to v0.3.0 gained 49 and lost 36; v0.3.0 to v0.4.0 gained 77, lost 2.
    assert round(mcnemar_exact(49, 36), 2) == 0.19
    assert mcnemar_exact(77, 2) == pytest.approx(1e-20, rel=0.05)


def test_mcnemar_without_discordant_questions_finds_nothing() -> None:
    assert mcnemar_exact(0, 0) == 1
    with pytest.raises(ValueError, match="negative"):
        mcnemar_exact(-1, 3)


def test_mcnemar_of_a_million_is_still_a_p() -> None:
    assert mcnemar_exact(500_000, 500_000) == 1
    assert 0 < mcnemar_exact(501_000, 499_000) < 0.05


@settings(deadline=None)
@given(st.lists(reals, min_size=2, max_size=80))
def test_the_paired_t_agrees_with_scipy(deltas: list[float]) -> None:
    from scipy.stats import ttest_1samp

    assume(np.std(deltas) > 1e-6 * abs(np.mean(deltas)))
    expected = ttest_1samp(deltas, 0)
    got = paired_t(deltas)
    assert got.statistic == pytest.approx(expected.statistic, rel=1e-9)
    assert got.p == pytest.approx(expected.pvalue, rel=1e-7, abs=1e-300)


def test_differences_without_spread_allow_no_t() -> None:
    assert isnan(paired_t([0.1 + 0.2, 0.3, 0.3]).p)
    assert isnan(paired_t([0.5]).p)
    assert isnan(paired_t([]).p)
    assert paired_t([0, 0, 0]) == (0, 1)


@settings(deadline=None)
@given(st.lists(reals.filter(bool), min_size=1, max_size=50, unique_by=abs))
def test_wilcoxon_without_ties_agrees_with_scipys_exact_one(deltas: list[float]) -> None:
    from scipy.stats import wilcoxon as oracle

    assert wilcoxon(deltas) == pytest.approx(tuple(oracle(deltas, method="exact")), rel=1e-9)


@settings(deadline=None)
@given(st.lists(grades.filter(bool), min_size=51, max_size=200))
def test_wilcoxon_of_many_agrees_with_scipys_normal_one(deltas: list[float]) -> None:
    from scipy.stats import wilcoxon as oracle

    expected = oracle(deltas, method="asymptotic", correction=True)
    assert wilcoxon(deltas) == pytest.approx(tuple(expected), rel=1e-9)


@settings(deadline=None, max_examples=40)
@given(st.lists(grades.filter(bool), min_size=1, max_size=10))
def test_wilcoxon_with_ties_counts_out_all_signs(deltas: list[float]) -> None:
    from scipy.stats import rankdata

    ranks = rankdata(np.abs(deltas))
    sums = np.array([np.dot(signs, ranks) for signs in product((0, 1), repeat=len(deltas))])
    seen = ranks[np.array(deltas) > 0].sum()
    smaller = min(seen, ranks.sum() - seen)
    expected = min(1.0, 2 * float(np.mean(sums <= smaller)))
    assert wilcoxon(deltas) == pytest.approx((smaller, expected))


@given(st.integers(0, 25), st.integers(0, 25))
def test_wilcoxon_of_hits_is_mcnemar(gained: int, lost: int) -> None:
    deltas = [1.0] * gained + [-1.0] * lost + [0.0] * 5
    assert wilcoxon(deltas).p == pytest.approx(mcnemar_exact(gained, lost))


def test_wilcoxon_ignores_differences_in_the_last_bit() -> None:
    sixths = [1 / 2 - 1 / 3, 2 / 3 - 1 / 2, -(1 / 3 - 1 / 6), 0.1 + 0.2 - 0.3]
    assert len(set(map(abs, sixths))) > 2
    assert wilcoxon(sixths) == wilcoxon([1.0, 1.0, -1.0, 0.0])


@pytest.mark.parametrize("test", [paired_t, wilcoxon])
def test_missing_differences_are_left_out(test: type[object]) -> None:
    assert test([0.5, nan, -0.25, 0.75]) == test([0.5, -0.25, 0.75])  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="one list"):
        test([[0.5], [0.25]])  # type: ignore[call-arg]


def test_wilcoxon_of_an_empty_sample_is_nan_and_of_zeros_p_is_one() -> None:
    assert isnan(wilcoxon([]).p)
    assert wilcoxon([0, 0]) == (0, 1)


def enumerated(deltas: Floats, clusters: list[str]) -> list[float]:
    """A plain permutation test: flip the rows of each cluster, average, compare."""
    labels = sorted(set(clusters))
    means = []
    for signs in product((1, -1), repeat=len(labels)):
        sign = dict(zip(labels, signs, strict=True))
        rows = np.array([sign[label] for label in clusters])
        means.append(np.abs(np.nanmean(deltas * rows[:, None], axis=0)))
    observed = np.abs(np.nanmean(deltas, axis=0))
    return [float(p) for p in np.mean(np.array(means) >= observed - 1e-12, axis=0)]


def uneven(seed: int, clusters: int) -> tuple[Floats, list[str]]:
    random = np.random.default_rng(seed)
    labels = [f"c{n}" for n in range(clusters) for _ in range(1 + n % 3)]
    deltas = random.choice([-1.0, 0.0, 0.5, 1.0, nan], size=(len(labels), 4))
    deltas[0] = 1.0
    return deltas, [labels[n] for n in random.permutation(len(labels))]


@pytest.mark.parametrize("clusters", range(2, 9))
def test_few_clusters_are_permuted_exactly(clusters: int) -> None:
    deltas, labels = uneven(clusters, clusters)
    assert permutation(deltas, labels, seed=1).tolist() == enumerated(deltas, labels)


def test_ten_clusters_cannot_give_less_than_two_in_1024() -> None:
    deltas = np.ones((100, 1))
    assert permutation(deltas, [str(n % 10) for n in range(100)], seed=1)[0] == 2 / 1024


def test_many_clusters_come_close_to_the_exact_p() -> None:
    deltas, labels = uneven(3, 13)
    exact = enumerated(deltas, labels)
    np.testing.assert_allclose(permutation(deltas, labels, seed=1), exact, atol=0.02)


def test_random_flips_of_hits_come_close_to_mcnemar() -> None:
    deltas = np.array([[1.0]] * 49 + [[-1.0]] * 36 + [[0.0]] * 300)
    p = permutation(deltas, [str(n) for n in range(len(deltas))], seed=1)
    assert p[0] == pytest.approx(mcnemar_exact(49, 36), abs=0.015)


def test_a_random_p_is_never_zero_and_the_seed_decides_it() -> None:
    deltas, labels = np.full((60, 2), 1.0), [str(n) for n in range(60)]
    assert permutation(deltas, labels, seed=1, draws=999).tolist() == [1 / 1000, 1 / 1000]
    noisy = np.random.default_rng(1).normal(0.1, 1, size=(60, 3))
    first, again = (permutation(noisy, labels, seed=5) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.tolist() != permutation(noisy, labels, seed=6).tolist()


def test_one_cluster_falls_back_to_flipping_questions() -> None:
    deltas = np.array([[1.0], [1.0], [-1.0], [1.0]])
    assert permutation(deltas, ["only"] * 4, seed=1).tolist() == enumerated(deltas, list("abcd"))


def test_equal_systems_have_p_one_and_a_column_without_values_none() -> None:
    deltas = np.array([[0.0, nan]] * 40)
    for labels in (["a", "b"] * 20, [str(n) for n in range(40)]):
        p = permutation(deltas, labels, seed=1, draws=100)
        assert p[0] == 1
        assert isnan(p[1])


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="questions x measures"):
        permutation([1.0, 2.0], ["a", "b"], seed=1)
    with pytest.raises(ValueError, match="at least one draw"):
        permutation([[1.0]], ["a"], seed=1, draws=0)
    with pytest.raises(ValueError, match="same questions"):
        paired_bootstrap([[1.0]], [[1.0, 2.0]], ["a"], seed=1)


@pytest.mark.parametrize(("units", "draws"), [(500, 10_000), (500, 8_000), (500, 8_001), (13, 1)])
def test_the_number_of_draws_does_not_depend_on_the_block_size(units: int, draws: int) -> None:
    # 500 units make blocks of 8,000 draws. Where nothing differs every draw is as large as what
    # was observed, so that p is 1 only if exactly so many were drawn.
    labels = [str(n) for n in range(units)]
    got = permutation(np.zeros((units, 1)), labels, seed=1, draws=draws)
    assert got.tolist() == [1.0]


def test_the_paired_bootstrap_is_the_bootstrap_of_the_differences() -> None:
    random = np.random.default_rng(1)
    base, cand = random.random((2, 50, 3))
    base[3, 1] = cand[9, 2] = nan
    labels = [str(n % 7) for n in range(50)]
    got = paired_bootstrap(base, cand, labels, seed=2, draws=300)
    expected = bootstrap(cand - base, labels, seed=2, draws=300)
    np.testing.assert_array_equal(got[:3], expected[:3])
    assert got.units == expected.units == 7
    narrow = paired_bootstrap(base, cand, labels, seed=2, draws=300, confidence=0.9)
    assert np.all(narrow.low > got.low)


def clustered(random: np.random.Generator, clusters: int, each: int, columns: int) -> Floats:
    """Rows of clusters around their own means, all around zero; every column a fresh sample."""
    shared = random.normal(0, 0.5, size=(clusters, 1, columns))
    return (shared + random.normal(size=(clusters, each, columns))).reshape(-1, columns)


def coverage(clusters: int) -> float:
    values = clustered(np.random.default_rng(20260513), clusters, each=5, columns=2000)
    labels = [str(n // 5) for n in range(len(values))]
    got = bootstrap(values, labels, seed=1, draws=2000)
    return float(np.mean((got.low <= 0) & (got.high >= 0)))


def test_the_clustered_bootstrap_covers_as_often_as_its_confidence() -> None:
    assert 0.94 <= coverage(clusters=120) <= 0.96


def test_ten_clusters_are_covered_as_often_as_the_confidence() -> None:
    # A plain percentile interval of k normal means covers P(|t_{k-1}| < 1.96 sqrt((k-1)/k)):
    # 90.4 % of ten. Widened as Student's t does, it covers what it says.
    assert 0.94 <= coverage(clusters=10) <= 0.96


def test_the_paired_bootstrap_of_hits_covers_as_often_as_its_confidence() -> None:
    random = np.random.default_rng(20260514)
    # 10 % gained, 5 % lost, 60 % right and 25 % wrong both times.
    outcome = random.choice(4, p=[0.10, 0.05, 0.60, 0.25], size=(400, 2000))
    base, cand = np.isin(outcome, [1, 2]), np.isin(outcome, [0, 2])
    labels = [str(n) for n in range(400)]
    got = paired_bootstrap(base, cand, labels, seed=1, draws=2000)
    assert 0.94 <= np.mean((got.low <= 0.05) & (got.high >= 0.05)) <= 0.96


def test_clusters_widen_the_interval_and_the_p() -> None:
    values = clustered(np.random.default_rng(3), 40, each=30, columns=20) + 0.1
    labels, singles = [str(n // 30) for n in range(1200)], [str(n) for n in range(1200)]
    zeros = np.zeros_like(values)
    wide = paired_bootstrap(zeros, values, labels, seed=1, draws=1000)
    naive = paired_bootstrap(zeros, values, singles, seed=1, draws=1000)
    assert np.all(wide.high - wide.low > 1.5 * (naive.high - naive.low))
    p_wide = permutation(values, labels, seed=1, draws=1000)
    assert np.all(p_wide >= permutation(values, singles, seed=1, draws=1000))
