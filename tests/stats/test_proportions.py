"""The z-test and Cohen's h against statsmodels, scipy and a published table."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.stats import cohens_h, effect_label, holm, two_proportion_z, wilson

sizes = st.integers(1, 3000)
shares = st.floats(0, 1)


@settings(deadline=None)
@given(sizes, shares, sizes, shares)
def test_the_weighted_z_is_that_of_statsmodels(n1: int, a: float, n2: int, b: float) -> None:
    from statsmodels.stats.proportion import proportions_ztest

    k1, k2 = round(a * n1), round(b * n2)
    got = two_proportion_z(k1 / n1, n1, k2 / n2, n2, pool="weighted")
    if 0 < k1 + k2 < n1 + n2:
        z, p = proportions_ztest([k2, k1], [n2, n1])
        assert (got.z, got.p) == pytest.approx((z, p), rel=1e-9, abs=1e-12)
    else:
        assert (got.z, got.p) == (0, 1)


@given(sizes, shares, shares)
def test_both_pools_agree_when_the_samples_are_equally_large(n: int, a: float, b: float) -> None:
    seed, weighted = (two_proportion_z(a, n, b, n, pool=pool) for pool in ("seed", "weighted"))
    assert seed == pytest.approx(weighted, rel=1e-9, abs=1e-9)


def test_the_pools_differ_if_the_samples_differ_in_size() -> None:
    # By hand: pools 0.7 and (80 + 600) / 1100, the same delta.
    seed = two_proportion_z(0.8, 100, 0.6, 1000, pool="seed")
    weighted = two_proportion_z(0.8, 100, 0.6, 1000, pool="weighted")
    assert seed.z == pytest.approx(-0.2 / (0.7 * 0.3 * 0.011) ** 0.5)
    assert weighted.z == pytest.approx(-0.2 / (680 / 1100 * 420 / 1100 * 0.011) ** 0.5)
    assert seed.delta == weighted.delta == pytest.approx(-0.2)


@pytest.mark.parametrize("rate", [0.0, 1.0])
def test_rates_without_spread_do_not_differ(rate: float) -> None:
    for n in (1, 3, 7, 49):
        assert two_proportion_z(rate, 10, rate, n, pool="weighted") == (0, 0, 1)
        assert two_proportion_z(rate, 10, rate, n, pool="seed") == (0, 0, 1)


def test_an_empty_sample_allows_no_test() -> None:
    assert all(isnan(x) for x in two_proportion_z(0.5, 10, nan, 0, pool="seed"))


@pytest.mark.parametrize(("rate", "n"), [(1.2, 5), (-0.1, 5), (nan, 5), (0.5, -1)])
def test_rates_that_are_not_proportions_are_refused(rate: float, n: int) -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        two_proportion_z(0.5, 5, rate, n, pool="seed")


# pgmnemo's committed comparison of LoCoMo v0.2.1 and v0.3.0, n = 1982 in both. z and p come from
# the printed means: from counts rounded to whole questions recall@50 would give z = 0.00.
PUBLISHED = [
    ("recall@5", 0.6623, 0.6640, 0.11, 0.9098, 0.004),
    ("recall@10", 0.7951, 0.7994, 0.34, 0.7364, 0.011),
    ("recall@25", 0.9623, 0.9641, 0.30, 0.7634, 0.010),
    ("recall@50", 0.9993, 0.9996, 0.40, 0.6871, 0.013),
    ("mrr", 0.5480, 0.5569, 0.56, 0.5731, 0.018),
]


@pytest.mark.parametrize(("metric", "base", "cand", "z", "p", "h"), PUBLISHED)
def test_the_published_table_comes_out(
    metric: str, base: float, cand: float, z: float, p: float, h: float
) -> None:
    for pool in ("seed", "weighted"):
        got = two_proportion_z(base, 1982, cand, 1982, pool=pool)
        assert (round(got.z, 2), round(got.p, 4)) == (z, p), metric
    assert round(cohens_h(base, cand), 3) == h


def test_a_whole_published_report_comes_out() -> None:
    # retrieval-protocol.md §1.5, v0.2.1 to v0.4.0; the fifth metric, recall@50, was the weakest.
    pairs = [(0.6623, 0.7247), (0.7951, 0.8409), (0.9623, 0.9724), (0.5480, 0.6365)]
    tests = [two_proportion_z(a, 1982, b, 1982, pool="weighted") for a, b in pairs]
    corrected = holm([*(test.p for test in tests), 1.0])
    assert (round(tests[1].z, 2), round(tests[1].p, 4)) == (3.74, 0.0002)
    assert round(tests[3].z, 2) == 5.67
    assert round(corrected[1], 4) == 0.0006
    assert round(corrected[2], 4) == 0.1472
    assert round(cohens_h(*pairs[1]), 3) == 0.119
    low, high = wilson(round(0.7951 * 1982), 1982)
    assert (round(low, 4), round(high, 4)) == (0.7768, 0.8123)


@settings(deadline=None)
@given(shares, shares)
def test_cohens_h_is_that_of_statsmodels_with_the_later_rate_first(a: float, b: float) -> None:
    from statsmodels.stats.proportion import proportion_effectsize

    assert cohens_h(a, b) == pytest.approx(proportion_effectsize(b, a), abs=1e-12)


def test_cohens_h_of_nan_is_nan_and_of_an_impossible_rate_refused() -> None:
    assert isnan(cohens_h(0.5, nan))
    with pytest.raises(ValueError, match="not a proportion"):
        cohens_h(0.5, 1.5)


@pytest.mark.parametrize(
    ("h", "label"),
    [(0.0, "small"), (-0.19, "small"), (0.2, "medium"), (-0.5, "medium"), (0.51, "large")],
)
def test_effects_are_labelled_by_their_size_alone(h: float, label: str) -> None:
    assert effect_label(h) == label


def test_an_effect_of_nan_has_no_label() -> None:
    with pytest.raises(ValueError, match="no label"):
        effect_label(nan)


def test_wilson_covers_as_often_as_its_confidence() -> None:
    # At n = 500 and p = 0.8 the exact coverage is 95.0 %.
    hits = np.random.default_rng(20260511).binomial(500, 0.8, size=2000)
    bounds = {int(k): wilson(int(k), 500) for k in np.unique(hits)}
    covered = np.mean([bounds[int(k)].low <= 0.8 <= bounds[int(k)].high for k in hits])
    assert 0.94 <= covered <= 0.96
