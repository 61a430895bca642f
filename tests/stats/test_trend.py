"""The line and its intervals, compared with scipy, and the results for too few points."""

from __future__ import annotations

from math import isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mnemoscope.stats import linear_trend

points = st.lists(
    st.tuples(st.integers(-500, 500), st.floats(-10, 10).map(lambda y: round(y, 3))),
    min_size=3,
    max_size=60,
)


@settings(deadline=None)
@given(points, st.sampled_from([0.8, 0.95, 0.99]))
def test_the_trend_agrees_with_scipy(pairs: list[tuple[int, float]], confidence: float) -> None:
    from scipy.stats import linregress, t

    x, y = np.array(pairs, dtype=float).T
    assume(np.ptp(x) > 0)
    expected = linregress(x, y)
    # Beyond, it takes the error from 1 - r², which then has few digits left.
    assume(abs(expected.rvalue) < 1 - 1e-6 and np.ptp(y) > 0)
    got = linear_trend(x, y, confidence)
    reach = t.ppf((1 + confidence) / 2, len(x) - 2)
    half, lift = reach * expected.stderr, reach * expected.intercept_stderr
    assert (got.slope, got.intercept) == pytest.approx((expected.slope, expected.intercept))
    assert got[2:6] == pytest.approx(
        (
            expected.slope - half,
            expected.slope + half,
            expected.intercept - lift,
            expected.intercept + lift,
        ),
        rel=1e-6,
        abs=1e-9,
    )
    assert got.p == pytest.approx(expected.pvalue, rel=1e-5, abs=1e-9)
    assert got.n == len(x)


def test_the_interval_of_the_slope_covers_as_often_as_its_confidence() -> None:
    random = np.random.default_rng(20260515)
    x = np.arange(12.0)
    trends = [linear_trend(x, 0.9 - 0.01 * x + random.normal(0, 0.05, 12)) for _ in range(2000)]
    assert 0.94 <= np.mean([t.slope_low <= -0.01 <= t.slope_high for t in trends]) <= 0.96


@pytest.mark.parametrize(("x", "y"), [([], []), ([1], [2]), ([3, 3, 3], [1, 2, 3])])
def test_no_line_without_two_different_x(x: list[float], y: list[float]) -> None:
    got = linear_trend(x, y)
    assert all(isnan(value) for value in got[:6])
    assert got.p is None
    assert got.n == len(x)


def test_two_points_give_a_line_without_intervals() -> None:
    got = linear_trend([0, 2], [1, 2])
    assert (got.intercept, got.slope) == (1, 0.5)
    assert all(isnan(value) for value in got[2:6])
    assert got.p is None


def test_points_on_a_line_have_p_zero_and_level_points_p_one() -> None:
    assert linear_trend([0, 1, 2], [1, 2, 3])[:7] == (1, 1, 1, 1, 1, 1, 0)
    assert linear_trend([0, 1, 2], [5, 5, 5])[:7] == (5, 0, 0, 0, 5, 5, 1)


def test_points_with_a_gap_are_left_out() -> None:
    x, y = [0, 1, nan, 3, 4], [1, 3, 2, nan, 4]
    assert linear_trend(x, y) == linear_trend([0, 1, 4], [1, 3, 4])


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="one length"):
        linear_trend([1, 2], [1])
    with pytest.raises(ValueError, match="between 0 and 1"):
        linear_trend([1, 2, 3], [1, 2, 3], confidence=95)
