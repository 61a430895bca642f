"""Power of the decision rule: golden values, scipy's noncentral t, simulated verdicts."""

from __future__ import annotations

from math import sqrt

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mnemoscope.stats.clustered import cluster_sums, critical_value, difference
from mnemoscope.stats.distributions import chi_square_quantile, t_quantile
from mnemoscope.stats.power import (
    Components,
    clusters_needed,
    components,
    detectable,
    endless_questions,
    noncentrality,
    power_of,
    simulated_power,
)

PARTS = Components(0.0004, 0.06)


@pytest.mark.parametrize(
    ("effect", "power"), [(1, 0.1459), (2, 0.4313), (2.8, 0.7033), (3, 0.7612), (4, 0.9437)]
)
def test_power_with_ten_equal_clusters(effect: float, power: float) -> None:
    assert power_of(effect, critical_value(0.05, [1] * 10), 9) == pytest.approx(power, abs=5e-5)


@given(st.integers(1, 200), st.floats(0.1, 6), st.floats(0, 8))
def test_power_is_the_noncentral_t(freedom: int, critical: float, effect: float) -> None:
    from scipy.stats import nct

    upper = nct.sf(critical, freedom, effect)
    lower = nct.cdf(-critical, freedom, effect)
    assume(np.isfinite(upper + lower))  # scipy gives NaN for some small tails
    assert power_of(effect, critical, freedom) == pytest.approx(upper + lower, abs=1e-8)


@pytest.mark.parametrize(
    ("groups", "factor"),
    [
        (5, 3.7611),
        (6, 3.5139),
        (8, 3.2698),
        (10, 3.1496),
        (15, 3.0133),
        (20, 2.9536),
        (30, 2.8987),
        (50, 2.8580),
    ],
)
def test_detectable_differences_in_standard_errors(groups: int, factor: float) -> None:
    critical = t_quantile(0.025, groups - 1)
    assert noncentrality(0.8, critical, groups - 1) == pytest.approx(factor, abs=5e-5)


@given(st.floats(0.01, 0.99), st.integers(1, 500))
def test_chi_square_quantiles(probability: float, freedom: int) -> None:
    from scipy.stats import chi2

    expected = chi2.ppf(probability, freedom)
    assert chi_square_quantile(probability, freedom) == pytest.approx(expected, rel=1e-8)


def test_the_detectable_difference_has_the_range_of_its_standard_error() -> None:
    values = np.random.default_rng(1).normal(0, 0.1, (200, 1))
    row = difference(cluster_sums(values, [str(i % 10) for i in range(200)]))
    found = detectable(row, row.critical())
    assert found.delta == pytest.approx(3.1496 * row.se, rel=1e-4)
    assert found.low / found.delta == pytest.approx(0.783, abs=5e-4)
    assert found.high / found.delta == pytest.approx(1.469, abs=5e-4)


@pytest.mark.parametrize(
    ("delta", "clustered", "unclustered"),
    [(0.005, 222, 97), (0.01, 57, 26), (0.02, 16, 9), (0.03, 9, 5)],
)
def test_conversations_needed(delta: float, clustered: int, unclustered: int) -> None:
    assert clusters_needed(delta, PARTS, 200) == clustered
    assert clusters_needed(delta, Components(0.0, 0.06), 200) == unclustered


def test_simulated_power_agrees_with_the_closed_form() -> None:
    closed = power_of(0.02 / sqrt((0.0004 + 0.06 / 200) / 10), t_quantile(0.025, 9), 9)
    assert closed == pytest.approx(0.5685, abs=5e-5)
    simulated = simulated_power([200] * 10, PARTS, 0.02)
    # The two imaginary questions cost half a point here; the standard error is 0.35 points.
    assert simulated.better == pytest.approx(0.566, abs=0.011)
    inside = simulated_power([200] * 10, PARTS, 0.02, band=0.03)
    assert inside.equivalent == pytest.approx(0.184, abs=0.01)
    assert inside.better + inside.equivalent + inside.worse <= 1


def test_components_recover_what_was_planted() -> None:
    random = np.random.default_rng(4)
    groups, size = 400, 25
    values = 0.3 * random.normal(size=(groups, 1)) + 0.7 * random.normal(size=(groups, size))
    found = components(
        cluster_sums(values.reshape(-1, 1), [str(i) for i in range(groups) for _ in range(size)])
    )
    assert found.between == pytest.approx(0.09, rel=0.15)
    assert found.within == pytest.approx(0.49, rel=0.05)


def test_one_question_in_each_cluster_has_no_variance_between() -> None:
    values = np.random.default_rng(4).normal(size=(50, 1))
    found = components(cluster_sums(values, [str(i) for i in range(50)]))
    assert found.between == 0
    assert found.within == pytest.approx(float(values.var(ddof=1)))


def test_more_questions_cannot_pass_the_variance_between_conversations() -> None:
    sizes = [200.0] * 10
    limit = endless_questions(sizes, PARTS, t_quantile(0.025, 9))
    assert limit == pytest.approx(3.1496 * sqrt(0.0004 / 10), rel=1e-4)
