"""The permutation test against scipy and enumeration; the bootstrap by its coverage."""

from __future__ import annotations

from itertools import product
from math import isnan, nan

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemoscope.stats import bootstrap, permutation

Floats = NDArray[np.float64]


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
    from scipy.stats import binomtest

    deltas = np.array([[1.0]] * 49 + [[-1.0]] * 36 + [[0.0]] * 300)
    p = permutation(deltas, [str(n) for n in range(len(deltas))], seed=1)
    assert p[0] == pytest.approx(binomtest(49, 85).pvalue, abs=0.015)


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


@pytest.mark.parametrize(("units", "draws"), [(500, 10_000), (500, 8_000), (500, 8_001), (13, 1)])
def test_the_number_of_draws_does_not_depend_on_the_block_size(units: int, draws: int) -> None:
    # 500 units make blocks of 8,000 draws. Where nothing differs every draw is as large as what
    # was observed, so that p is 1 only if exactly so many were drawn.
    labels = [str(n) for n in range(units)]
    got = permutation(np.zeros((units, 1)), labels, seed=1, draws=draws)
    assert got.tolist() == [1.0]


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


def test_the_bootstrap_of_differences_of_hits_covers_as_often_as_its_confidence() -> None:
    random = np.random.default_rng(20260514)
    # 10 % gained, 5 % lost, 60 % right and 25 % wrong both times.
    outcome = random.choice(4, p=[0.10, 0.05, 0.60, 0.25], size=(400, 2000))
    deltas = np.isin(outcome, [0, 2]).astype(float) - np.isin(outcome, [1, 2])
    got = bootstrap(deltas, [str(n) for n in range(400)], seed=1, draws=2000)
    assert 0.94 <= np.mean((got.low <= 0.05) & (got.high >= 0.05)) <= 0.96


def test_clusters_widen_the_interval_and_the_p() -> None:
    values = clustered(np.random.default_rng(3), 40, each=30, columns=20) + 0.1
    labels, singles = [str(n // 30) for n in range(1200)], [str(n) for n in range(1200)]
    wide = bootstrap(values, labels, seed=1, draws=1000)
    naive = bootstrap(values, singles, seed=1, draws=1000)
    assert np.all(wide.high - wide.low > 1.5 * (naive.high - naive.low))
    p_wide = permutation(values, labels, seed=1, draws=1000)
    assert np.all(p_wide >= permutation(values, singles, seed=1, draws=1000))
