"""Detectable differences as measured before, power against simulation, clusters by hand."""

from __future__ import annotations

from math import nan, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.stats import (
    effective_n,
    mdd_mcnemar,
    mdd_paired,
    mdd_unpaired,
    power_paired,
    power_unpaired,
)

DRAWS = 200_000
"""Leave a simulated share a standard error of 0.1 percentage points."""


@pytest.mark.parametrize(
    ("n", "unpaired", "paired"), [(1540, 4.0, 2.3), (500, 7.1, 4.0), (96, 16.2, 9.0)]
)
def test_the_measured_table_comes_out(n: int, unpaired: float, paired: float) -> None:
    # trust.md, "What no peer has" 1: rates near 0.8, and 10 % discordance.
    assert round(100 * mdd_unpaired(0.8, n, n), 1) == unpaired
    assert round(100 * mdd_mcnemar(0.1, n), 1) == paired


@given(st.floats(0.001, 1), st.integers(2, 5000), st.floats(0.55, 0.99))
def test_the_detectable_difference_is_detected_as_often_as_asked(
    sd: float, n: int, power: float
) -> None:
    # Rejections on the wrong side, which the difference leaves out, add next to nothing.
    found = power_paired(mdd_paired(sd, n, power=power), sd, n)
    assert found == pytest.approx(power, abs=1e-4)


@given(st.integers(300, 5000), st.integers(300, 5000))
def test_around_its_rate_the_unpaired_difference_is_detected_as_often_as_asked(
    n1: int, n2: int
) -> None:
    delta = mdd_unpaired(0.6, n1, n2)
    assert power_unpaired(0.6 - delta / 2, 0.6 + delta / 2, n1, n2) == pytest.approx(0.8, abs=0.02)


def test_power_without_a_difference_is_alpha() -> None:
    assert power_paired(0, 0.3, 100, alpha=0.05) == pytest.approx(0.05)
    assert power_unpaired(0.4, 0.4, 100, 300, alpha=0.01) == pytest.approx(0.01)


def test_without_noise_every_difference_shows() -> None:
    assert power_paired(0.1, 0, 5) == 1
    assert power_paired(0, 0, 5) == 0
    assert mdd_paired(0, 5) == 0


@pytest.mark.parametrize(
    ("p1", "p2", "n1", "n2"),
    [(0.80, 0.84, 1540, 1540), (0.80, 0.87, 500, 500), (0.50, 0.58, 400, 900)],
)
def test_the_unpaired_power_is_the_simulated_one(p1: float, p2: float, n1: int, n2: int) -> None:
    random = np.random.default_rng(1)
    k1, k2 = random.binomial(n1, p1, DRAWS), random.binomial(n2, p2, DRAWS)
    pooled = (k1 + k2) / (n1 + n2)
    z = (k2 / n2 - k1 / n1) / np.sqrt(pooled * (1 - pooled) * (1 / n1 + 1 / n2))
    assert power_unpaired(p1, p2, n1, n2) == pytest.approx(np.mean(np.abs(z) > 1.96), abs=0.01)


@pytest.mark.parametrize(("delta", "n"), [(0.10, 200), (0.05, 500), (0.025, 1540)])
def test_the_paired_power_is_the_simulated_one(delta: float, n: int) -> None:
    # The mean of n normal differences and its estimated error, without drawing all n.
    random, sd = np.random.default_rng(2), 0.4
    mean = random.normal(delta, sd / sqrt(n), DRAWS)
    error = sd * np.sqrt(random.chisquare(n - 1, DRAWS) / (n - 1) / n)
    simulated = np.mean(np.abs(mean / error) > 1.96)
    assert power_paired(delta, sd, n) == pytest.approx(simulated, abs=0.01)


def test_the_detectable_difference_of_hits_is_detected_as_often_as_asked() -> None:
    n, discordance = 1540, 0.1
    delta = mdd_mcnemar(discordance, n)
    odds = [(discordance + delta) / 2, (discordance - delta) / 2, 1 - discordance]
    gained, lost, _ = np.random.default_rng(3).multinomial(n, odds, size=DRAWS).T
    simulated = np.mean(np.abs(gained - lost) / np.sqrt(gained + lost) > 1.96)
    assert simulated == pytest.approx(0.8, abs=0.01)


def test_clusters_of_one_mind_are_worth_one_value_each() -> None:
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
def test_where_the_correlation_cannot_be_known_every_value_counts(labels: list[str]) -> None:
    assert effective_n([1, 0, 1, 1], labels) == 4
    assert effective_n([1, 1, 1, 1], ["a", "a", "b", "b"]) == 4
    assert effective_n([nan], ["a"]) == 0


def test_senseless_requests_are_refused() -> None:
    with pytest.raises(ValueError, match="no proportion"):
        mdd_unpaired(1.5, 10, 10)
    with pytest.raises(ValueError, match="no proportion"):
        mdd_mcnemar(-0.1, 10)
    with pytest.raises(ValueError, match="detect nothing"):
        mdd_paired(0.1, 0)
    with pytest.raises(ValueError, match="standard deviation"):
        power_paired(0.1, -1, 10)
    with pytest.raises(ValueError, match="power must"):
        mdd_paired(0.1, 10, power=1)
    with pytest.raises(ValueError, match="alpha must"):
        power_paired(0.1, 0.1, 10, alpha=0)
    with pytest.raises(ValueError, match="one list"):
        effective_n([1.0, 2.0], ["a"])
