"""Wilson against scipy; the bootstrap against a naive loop and against what it should do."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats import Interval, bootstrap, wilson
from mnemoscope.stats import intervals as module

Floats = NDArray[np.float64]


@settings(deadline=None)
@given(st.integers(1, 3000), st.floats(0, 1), st.sampled_from([0.8, 0.95, 0.99]))
def test_wilson_agrees_with_scipy(n: int, share: float, confidence: float) -> None:
    from scipy.stats import binomtest

    successes = round(share * n)
    expected = binomtest(successes, n).proportion_ci(confidence, method="wilson")
    assert wilson(successes, n, confidence) == pytest.approx(tuple(expected), abs=1e-12)


def test_wilson_of_81_in_263_as_newcombe_printed_it() -> None:
    # Newcombe, Statistics in Medicine 17 (1998), table I, method 3.
    low, high = wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_wilson_ends_exactly_at_the_ends() -> None:
    assert wilson(0, 10).low == 0
    assert wilson(10, 10).high == 1
    assert wilson(0, 0) == Interval(0, 1)


@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (0, -1)])
def test_wilson_refuses_counts_that_are_not_a_proportion(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        wilson(successes, n)


@pytest.mark.parametrize("confidence", [0, 1, 95])
def test_an_invalid_confidence_is_refused(confidence: float) -> None:
    with pytest.raises(ValueError, match="between 0 and 1"):
        wilson(1, 2, confidence)
    with pytest.raises(ValueError, match="between 0 and 1"):
        bootstrap([[1.0]], ["a"], seed=1, confidence=confidence)


def clustered_sample(
    seed: int, clusters: int, each: int, spread: float
) -> tuple[Floats, list[str]]:
    random = np.random.default_rng(seed)
    shared = random.normal(0, spread, size=(clusters, 1, 2))
    values = (shared + random.normal(0, 1, size=(clusters, each, 2))).reshape(-1, 2)
    return values, [f"c{n}" for n in range(clusters) for _ in range(each)]


def naive_bootstrap(values: Floats, clusters: list[str], draws: int, seed: int) -> Floats:
    """Draws x columns, by gathering the rows of whole drawn clusters and averaging them."""
    random = np.random.default_rng(seed)
    rows = [np.flatnonzero(np.array(clusters) == label) for label in sorted(set(clusters))]
    means = [
        np.nanmean(values[np.concatenate([rows[n] for n in picked])], axis=0)
        for picked in (random.integers(len(rows), size=len(rows)) for _ in range(draws))
    ]
    return np.array(means)


def widened(mean: Floats, ends: Floats, units: int) -> Floats:
    """The ends of a percentile interval, moved as far out as Student's t is from the normal."""
    from scipy.stats import norm, t

    factor = t.ppf(0.975, units - 1) / norm.ppf(0.975)
    moved: Floats = mean + (ends - mean) * factor * np.sqrt(units / (units - 1))
    return moved


def uneven_sample() -> tuple[Floats, list[str]]:
    random = np.random.default_rng(5)
    clusters = [f"c{n}" for n in range(12) for _ in range(1 + n % 5)]
    dice = random.permutation(len(clusters))
    values = random.gamma(2.0, size=(len(clusters), 3))
    values[random.random(values.shape) < 0.2] = np.nan
    return values, [clusters[n] for n in dice]


def test_the_same_draws_as_a_naive_loop_give_the_same_interval() -> None:
    values, clusters = uneven_sample()
    got = bootstrap(values, clusters, seed=11, draws=400)
    # Both draw the clusters of one resample after those of the one before, from one stream.
    ends = np.quantile(naive_bootstrap(values, clusters, 400, 11), [0.025, 0.975], axis=0)
    np.testing.assert_allclose(got.mean, np.nanmean(values, axis=0))
    np.testing.assert_allclose([got.low, got.high], widened(got.mean, ends, units=12))


def test_the_block_size_does_not_change_the_result(monkeypatch: pytest.MonkeyPatch) -> None:
    values, clusters = uneven_sample()
    whole = bootstrap(values, clusters, seed=2, draws=100)
    monkeypatch.setattr(module, "BLOCK", 7 * len(set(clusters)))
    np.testing.assert_allclose(bootstrap(values, clusters, seed=2, draws=100)[:3], whole[:3])


def test_the_same_seed_gives_the_same_interval() -> None:
    values, clusters = uneven_sample()
    first, again = (bootstrap(values, clusters, seed=3, draws=200) for _ in range(2))
    other = bootstrap(values, clusters, seed=4, draws=200)
    assert np.array_equal(first.low, again.low)
    assert np.array_equal(first.high, again.high)
    assert not np.array_equal(first.low, other.low)


def test_clusters_widen_the_interval_when_their_rows_agree() -> None:
    values, clusters = clustered_sample(1, clusters=20, each=25, spread=1.0)
    singles = [str(n) for n in range(len(values))]
    clustered = bootstrap(values, clusters, seed=1, draws=2000)
    naive = bootstrap(values, singles, seed=1, draws=2000)
    assert np.all(clustered.high - clustered.low > 2 * (naive.high - naive.low))
    assert (clustered.units, naive.units) == (20, 500)


def test_the_interval_of_independent_rows_is_that_of_the_normal_theory() -> None:
    values, _ = clustered_sample(2, clusters=1, each=800, spread=0.0)
    got = bootstrap(values, [str(n) for n in range(800)], seed=1)
    half = 1.96 * values.std(axis=0) / np.sqrt(800)
    np.testing.assert_allclose(got.high - got.mean, half, rtol=0.08)
    np.testing.assert_allclose(got.mean - got.low, half, rtol=0.08)


def test_the_interval_covers_the_true_mean_about_as_often_as_its_confidence() -> None:
    covered: list[bool] = []
    for seed in range(200):
        values, clusters = clustered_sample(seed, clusters=30, each=4, spread=1.0)
        got = bootstrap(values, clusters, seed=seed, draws=400)
        covered.extend((got.low <= 0) & (got.high >= 0))
    # One that ignored the clusters would cover about 78 %.
    assert 0.92 <= np.mean(covered) <= 0.98


def test_one_cluster_falls_back_to_drawing_rows() -> None:
    values, _ = uneven_sample()
    lone = bootstrap(values, ["only"] * len(values), seed=1, draws=300)
    assert lone.units == len(values)
    assert np.all(lone.low < lone.mean)
    assert np.all(lone.mean < lone.high)


def test_missing_cells_are_left_out_of_sums_and_counts() -> None:
    values = [[1.0, 1.0], [0.0, np.nan], [1.0, np.nan], [0.0, 0.0]]
    got = bootstrap(values, ["a", "b", "c", "d"], seed=1, draws=500)
    assert got.mean.tolist() == [0.5, 0.5]
    # Some draws hold neither valued row; they say nothing about the column.
    ends = widened(got.mean[1:], np.array([[0.0], [1.0]]), units=4)
    np.testing.assert_allclose([got.low[1:], got.high[1:]], ends)


def test_a_column_without_values_has_no_mean() -> None:
    got = bootstrap([[1.0, np.nan], [0.0, np.nan]], ["a", "b"], seed=1, draws=50)
    assert np.isnan([got.mean[1], got.low[1], got.high[1]]).all()
    assert got.mean[0] == 0.5


def test_a_wider_confidence_gives_a_wider_interval() -> None:
    values, clusters = uneven_sample()
    narrow = bootstrap(values, clusters, seed=1, draws=500, confidence=0.5)
    wide = bootstrap(values, clusters, seed=1, draws=500, confidence=0.95)
    assert np.all(wide.low < narrow.low)
    assert np.all(narrow.high < wide.high)


def test_no_interval_leaves_the_limits() -> None:
    values, clusters = [[0.1], [0.9]], ["a", "b"]
    free = bootstrap(values, clusters, seed=1, draws=200)
    held = bootstrap(values, clusters, seed=1, draws=200, limits=(0.0, 1.0))
    assert free.low[0] < 0
    assert free.high[0] > 1
    assert (held.low[0], held.high[0]) == (0.0, 1.0)


def test_the_interval_of_one_value_is_the_limits() -> None:
    values = [[0.4, 0.4], [np.nan, 0.6], [np.nan, 0.5]]
    got = bootstrap(values, ["a", "b", "c"], seed=1, draws=200, limits=(0.0, 1.0))
    assert (got.mean[0], got.low[0], got.high[0]) == (0.4, 0.0, 1.0)
    assert 0 < got.low[1] < got.high[1] < 1


@pytest.mark.parametrize(
    ("values", "clusters"), [([1.0, 2.0], ["a", "b"]), ([[1.0]], ["a", "b"]), ([], [])]
)
def test_a_table_that_does_not_fit_its_clusters_is_refused(
    values: list[float], clusters: list[str]
) -> None:
    with pytest.raises(ValueError, match="questions x measures"):
        bootstrap(values, clusters, seed=1)


def test_one_draw_is_enough_for_an_interval_of_no_width() -> None:
    got = bootstrap([[0.0], [1.0], [1.0]], ["a", "b", "c"], seed=1, draws=1)
    assert got.low == got.high
    assert got.mean[0] == pytest.approx(2 / 3)


def test_no_draws_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one draw"):
        bootstrap([[1.0]], ["a"], seed=1, draws=0)
