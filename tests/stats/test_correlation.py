"""Correlations against scipy, and their intervals against figures computed by hand."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.stats import pearson, spearman


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)), min_size=3, max_size=30))
def test_spearman_agrees_with_scipy(pairs: list[tuple[int, int]]) -> None:
    from scipy.stats import spearmanr

    x, y = ([float(pair[side]) for pair in pairs] for side in (0, 1))
    found = spearman(x, y)
    if len(set(x)) < 2 or len(set(y)) < 2:
        assert isnan(found.r)
    else:
        assert found.r == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)
        if found.ci95:
            assert found.ci95.low <= found.r <= found.ci95.high


def test_fishers_interval_of_a_correlation() -> None:
    # r = 0.5 of 28 points: tanh(atanh 0.5 ± 1.96 / 5) = [0.1558, 0.7351], computed by hand.
    x = np.linspace(-1, 1, 28)
    noise = np.where(np.arange(28) % 4 < 2, 1.0, -1.0)
    noise -= x * (noise @ x) / (x @ x) + noise.mean()
    noise -= noise.mean()
    noise -= x * (noise @ x) / (x @ x)
    y = 0.5 * x / np.sqrt(x @ x) + np.sqrt(0.75) * noise / np.sqrt(noise @ noise)
    found = pearson(x.tolist(), y.tolist())
    assert found.r == pytest.approx(0.5, abs=1e-6)
    assert found.ci95 == pytest.approx([0.1558, 0.7351], abs=1e-3)


def test_bonett_and_wrights_interval_is_wider_than_fishers() -> None:
    x, y = [1.0, 2, 3, 4, 5, 6], [2.0, 1, 4, 3, 6, 5]
    ranks, values = spearman(x, y), pearson(x, y)
    assert ranks.r == values.r == pytest.approx(29 / 35)
    assert ranks.ci95 is not None and values.ci95 is not None
    assert ranks.ci95.low < values.ci95.low < values.ci95.high < ranks.ci95.high


@pytest.mark.parametrize(
    ("x", "y", "r"), [([1.0, 2], [1.0, 2], None), ([1.0, 1, 1], [1.0, 2, 3], None)]
)
def test_too_few_points_or_points_that_do_not_vary_have_no_correlation(
    x: list[float], y: list[float], r: None
) -> None:
    assert isnan(pearson(x, y).r)
    assert pearson(x, y).ci95 is r


def test_points_on_a_line_have_no_interval() -> None:
    assert pearson([1.0, 2, 3, 4], [2.0, 4, 6, 8]) == (1.0, None, 4)
    assert pearson([1.0, 2, 4], [2.0, 1, 3]).ci95 is None
