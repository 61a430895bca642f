"""Holm and equivalence, compared with statsmodels, and the conditions of each verdict."""

from __future__ import annotations

from math import erfc, nan, sqrt
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats import Interval, holm, verdict_of

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=60)


@settings(deadline=None)
@given(p_values)
def test_holm_agrees_with_statsmodels(family: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    # It divides by 1 - p on the way, for an alpha that is not returned, and it collects garbage
    # at every call, which takes seconds in a process that has imported much.
    with np.errstate(all="ignore"), patch("gc.collect"):
        expected = multipletests(family, method="holm")[1]
    np.testing.assert_allclose(holm(family), expected, atol=1e-15)


def test_holm_by_hand() -> None:
    # 0.01 x 4, 0.03 x 2 over 0.02 x 3 = 0.06, then 0.9; the running maximum lifts the third.
    np.testing.assert_allclose(holm([0.03, 0.01, 0.9, 0.02]), [0.06, 0.04, 0.9, 0.06])
    np.testing.assert_allclose(holm([0.01, 0.02, 0.022]), [0.03, 0.04, 0.04])


def test_no_corrected_p_exceeds_one() -> None:
    assert holm([0.6, 0.7]).tolist() == [1, 1]


@given(p_values)
def test_a_smaller_p_never_becomes_the_larger_one(family: list[float]) -> None:
    corrected = holm(family)
    assert np.all(np.diff(corrected[np.argsort(family, kind="stable")]) >= 0)
    assert np.all(corrected >= family)


@given(p_values, st.data())
def test_nan_is_not_part_of_the_family(family: list[float], data: st.DataObject) -> None:
    places = data.draw(st.lists(st.integers(0, len(family)), max_size=5))
    with_gaps = np.insert(np.array(family), places, np.nan)
    corrected = holm(with_gaps)
    assert np.array_equal(np.isnan(corrected), np.isnan(with_gaps))
    assert corrected[~np.isnan(corrected)].tolist() == holm(family).tolist()


def test_an_empty_family_gives_an_empty_result() -> None:
    assert holm([]).shape == (0,)
    assert np.isnan(holm([np.nan])).all()


@pytest.mark.parametrize("family", [[1.1], [-0.1, 0.5], [[0.1, 0.2]]])
def test_invalid_p_values_are_refused(family: list[float]) -> None:
    with pytest.raises(ValueError, match="p-values must"):
        holm(family)


def null_families(correlation: float) -> NDArray[np.float64]:
    """2,000 families of twelve p-values without any effect behind them."""
    random = np.random.default_rng(20260512)
    shared, own = random.normal(size=(2000, 1)), random.normal(size=(2000, 12))
    z = correlation**0.5 * shared + (1 - correlation) ** 0.5 * own
    return np.array([[erfc(abs(x) / 2**0.5) for x in row] for row in z])


@pytest.mark.parametrize("correlation", [0.0, 0.5])
def test_a_family_without_effects_gives_a_false_claim_at_most_one_time_in_twenty(
    correlation: float,
) -> None:
    families = null_families(correlation)
    assert np.mean([np.any(holm(family) < 0.05) for family in families]) <= 0.05
    assert np.mean((families < 0.05).any(axis=1)) > 0.25


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=2, max_size=60), st.floats(0.01, 1))
def test_two_one_sided_tests_of_statsmodels_and_the_interval_decide_alike(
    deltas: list[float], band: float
) -> None:
    from scipy.stats import t
    from statsmodels.stats.weightstats import DescrStatsW

    mean, se = float(np.mean(deltas)), float(np.std(deltas, ddof=1)) / sqrt(len(deltas))
    assume(se > 1e-9)
    half = t.ppf(0.975, len(deltas) - 1) * se
    interval = Interval(mean - half, mean + half)
    assume(min(abs(abs(end) - band) for end in interval) > 1e-9)
    p, _, _ = DescrStatsW(deltas).ttost_mean(-band, band)
    assert (verdict_of(interval, band) == "equivalent") == (p < 0.025)


@pytest.mark.parametrize("band", [0, -0.1, nan])
def test_a_band_must_have_a_width(band: float) -> None:
    with pytest.raises(ValueError, match="above 0"):
        verdict_of(Interval(-0.1, 0.1), band)


UP, DOWN, AROUND = Interval(0.01, 0.05), Interval(-0.05, -0.01), Interval(-0.01, 0.01)


@pytest.mark.parametrize(
    ("interval", "band", "expected"),
    [
        (UP, None, "better"),
        (DOWN, None, "worse"),
        (AROUND, None, "cannot tell"),
        (AROUND, 0.02, "equivalent"),
        (AROUND, 0.01, "equivalent"),
        (AROUND, 0.009, "cannot tell"),
        (UP, 0.10, "equivalent"),
        (UP, 0.04, "better"),
        (DOWN, 0.04, "worse"),
        (Interval(0.0, 0.1), None, "cannot tell"),
        (Interval(-0.1, 0.0), None, "cannot tell"),
        (Interval(nan, nan), None, "cannot tell"),
        (Interval(nan, nan), 0.02, "cannot tell"),
    ],
)
def test_the_verdict_follows_from_interval_and_band(
    interval: Interval, band: float | None, expected: str
) -> None:
    assert verdict_of(interval, band) == expected


@given(st.floats(-1, 1), st.floats(0, 1), st.one_of(st.none(), st.floats(0.001, 1)))
def test_an_interval_that_holds_the_truth_gives_no_false_verdict(
    low: float, width: float, band: float | None
) -> None:
    interval = Interval(low, low + width)
    said = verdict_of(interval, band)
    for truth in interval:
        assert said != "better" or truth > 0
        assert said != "worse" or truth < 0
        assert said != "equivalent" or (band is not None and abs(truth) <= band)
