"""Equivalence against statsmodels, and each verdict when, and only when, it is entitled."""

from __future__ import annotations

from math import isnan, nan, sqrt

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mnemoscope.stats import Interval, equivalent, tost, verdict


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=60), st.floats(0.01, 1))
def test_tost_agrees_with_statsmodels(deltas: list[float], band: float) -> None:
    from statsmodels.stats.weightstats import DescrStatsW

    se = float(np.std(deltas, ddof=1)) / sqrt(len(deltas))
    assume(se > 1e-9)
    got = tost(float(np.mean(deltas)), se, band, len(deltas))
    p, low, high = DescrStatsW(deltas).ttost_mean(-band, band)
    assert (got.p_low, got.p_high) == pytest.approx((low[1], high[1]), rel=1e-7, abs=1e-12)
    assert got.equivalent == (p < 0.05)


@settings(deadline=None)
@given(st.floats(-0.1, 0.1), st.floats(0.001, 0.1), st.integers(2, 500))
def test_two_tests_and_the_ninety_percent_interval_decide_alike(
    delta: float, se: float, n: int
) -> None:
    from scipy.stats import t

    half = t.ppf(0.95, n - 1) * se
    interval = Interval(delta - half, delta + half)
    assume(min(abs(abs(x) - 0.05) for x in interval) > 1e-9)
    assert tost(delta, se, 0.05, n).equivalent == equivalent(interval, 0.05)


def test_identical_answers_are_equivalent_and_one_answer_shows_nothing() -> None:
    assert tost(0, 0, 0.01, 50) == (0, 0, True)
    assert tost(0.02, 0, 0.01, 50) == (0, 1, False)
    alone = tost(0, 0.1, 0.5, 1)
    assert isnan(alone.p_low)
    assert not alone.equivalent
    assert not tost(nan, nan, 0.5, 50).equivalent


@pytest.mark.parametrize("band", [0, -0.1, nan])
def test_a_band_must_have_a_width(band: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        tost(0, 0.1, band, 10)
    with pytest.raises(ValueError, match="above 0"):
        equivalent(Interval(-0.1, 0.1), band)


def test_a_negative_error_is_refused() -> None:
    with pytest.raises(ValueError, match="standard error"):
        tost(0, -0.1, 0.1, 10)


UP, DOWN, AROUND = Interval(0.01, 0.05), Interval(-0.05, -0.01), Interval(-0.01, 0.01)


@pytest.mark.parametrize(
    ("interval", "p", "narrow", "band", "expected"),
    [
        (UP, 0.01, UP, None, "better"),
        (DOWN, 0.01, DOWN, None, "worse"),
        (UP, 0.05, UP, None, "cannot tell"),
        (AROUND, 0.30, AROUND, None, "cannot tell"),
        (AROUND, 0.30, AROUND, 0.02, "equivalent"),
        (AROUND, 0.30, AROUND, 0.01, "cannot tell"),
        (AROUND, 0.30, None, 0.02, "cannot tell"),
        (UP, 0.01, UP, 0.10, "better"),
        (AROUND, 0.01, AROUND, None, "cannot tell"),
        (UP, nan, UP, None, "cannot tell"),
        (Interval(nan, nan), 0.01, Interval(nan, nan), 0.02, "cannot tell"),
    ],
)
def test_only_what_is_entitled_is_said(
    interval: Interval, p: float, narrow: Interval | None, band: float | None, expected: str
) -> None:
    assert verdict(interval, p, narrow, band) == expected


def test_a_stricter_alpha_withholds_the_claim() -> None:
    assert verdict(UP, 0.02, alpha=0.05) == "better"
    assert verdict(UP, 0.02, alpha=0.01) == "cannot tell"
