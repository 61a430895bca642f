"""Detectable differences as measured before and by simulation, clusters by hand."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm

from mnemoscope.stats import effective_n, mdd_mcnemar, mdd_paired

DRAWS = 200_000
"""Leave a simulated share a standard error of 0.1 percentage points."""


@pytest.mark.parametrize(("n", "paired"), [(1540, 2.3), (500, 4.0), (96, 9.0)])
def test_the_measured_table_comes_out(n: int, paired: float) -> None:
    # trust.md, "What no peer has" 1: 10 % discordance.
    assert round(100 * mdd_mcnemar(0.1, n), 1) == paired


@given(st.floats(0.001, 1), st.integers(2, 5000), st.floats(0.55, 0.99))
def test_the_detectable_difference_is_detected_as_often_as_asked(
    sd: float, n: int, power: float
) -> None:
    shift = mdd_paired(sd, n, power=power) / (sd / sqrt(n))
    # Rejections on the wrong side, which the difference leaves out, add next to nothing.
    assert norm.sf(1.959964 - shift) == pytest.approx(power, abs=1e-4)


@pytest.mark.parametrize("n", [200, 500, 1540])
def test_the_t_test_detects_it_as_often_as_asked(n: int) -> None:
    # The mean of n normal differences and its estimated error, without drawing all n.
    random, sd = np.random.default_rng(2), 0.4
    mean = random.normal(mdd_paired(sd, n), sd / sqrt(n), DRAWS)
    error = sd * np.sqrt(random.chisquare(n - 1, DRAWS) / (n - 1) / n)
    assert np.mean(np.abs(mean / error) > 1.96) == pytest.approx(0.8, abs=0.01)


def test_without_noise_every_difference_is_detectable() -> None:
    assert mdd_paired(0, 5) == 0


def test_the_detectable_difference_of_hits_is_detected_as_often_as_asked() -> None:
    n, discordance = 1540, 0.1
    delta = mdd_mcnemar(discordance, n)
    odds = [(discordance + delta) / 2, (discordance - delta) / 2, 1 - discordance]
    gained, lost, _ = np.random.default_rng(3).multinomial(n, odds, size=DRAWS).T
    simulated = np.mean(np.abs(gained - lost) / np.sqrt(gained + lost) > 1.96)
    assert simulated == pytest.approx(0.8, abs=0.01)


def test_clusters_of_equal_values_count_as_one_value_each() -> None:
    values = [0.0] * 10 + [1.0] * 10 + [0.5] * 10
    labels = ["a"] * 10 + ["b"] * 10 + ["c"] * 10
    assert effective_n(values, labels) == pytest.approx(3)


def test_the_design_effect_by_hand() -> None:
    # Sizes 2 and 3: m = 13/5, m0 = 2.4, means 1 and 3, W = (2 + 2)/3, B = 2·1.2² + 3·0.8² = 4.8.
    correlation = (4.8 - 4 / 3) / (4.8 + 1.4 * 4 / 3)
    got = effective_n([0, 2, nan, 2, 3, 4], ["a", "a", "a", "b", "b", "b"])
    assert got == pytest.approx(5 / (1 + 1.6 * correlation))


def test_the_effective_size_predicts_the_variance_of_the_mean() -> None:
    random = np.random.default_rng(4)
    shared = random.normal(0, 0.5, size=(2000, 40, 1))
    values = (shared + random.normal(size=(2000, 40, 25))).reshape(2000, -1)
    labels = [str(n // 25) for n in range(1000)]
    found = np.mean([effective_n(row, labels) for row in values[:200]])
    # The true one is 1000 / (1 + 24 · 0.25/1.25), and so is the spread of 2,000 means.
    assert found == pytest.approx(1000 / (1 + 24 * 0.2), rel=0.05)
    assert values.var() / values.mean(axis=1).var() == pytest.approx(found, rel=0.1)


@given(st.lists(st.floats(-10, 10), min_size=1, max_size=40), st.integers(1, 8))
def test_clusters_never_make_a_sample_larger(values: list[float], k: int) -> None:
    labels = [str(n % k) for n in range(len(values))]
    assert 0 < effective_n(values, labels) <= len(values) * (1 + 1e-9)


@pytest.mark.parametrize("labels", [["a"] * 4, ["a", "b", "c", "d"]])
def test_if_the_correlation_is_unknown_every_value_counts(labels: list[str]) -> None:
    assert effective_n([1, 0, 1, 1], labels) == 4
    assert effective_n([1, 1, 1, 1], ["a", "a", "b", "b"]) == 4
    assert effective_n([nan], ["a"]) == 0


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="not a proportion"):
        mdd_mcnemar(-0.1, 10)
    with pytest.raises(ValueError, match="sample size must be positive"):
        mdd_paired(0.1, 0)
    with pytest.raises(ValueError, match="standard deviation"):
        mdd_paired(-1, 10)
    with pytest.raises(ValueError, match="power must"):
        mdd_paired(0.1, 10, power=1)
    with pytest.raises(ValueError, match="alpha must"):
        mdd_paired(0.1, 10, alpha=0)
    with pytest.raises(ValueError, match="one list"):
        effective_n([1.0, 2.0], ["a"])
