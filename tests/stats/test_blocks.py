"""Intervals of values in the order of time know that neighbours are alike."""

from __future__ import annotations

import numpy as np
import pytest

from mnemoscope.stats.blocks import mean_interval, percentile_intervals, share_interval


def test_a_stall_makes_the_interval_of_a_percentile_wide() -> None:
    rng = np.random.default_rng(3)
    values = rng.exponential(1.0, 1000)
    together = np.sort(values)  # the same values, in one long rise
    apart, joined = (percentile_intervals(list(one), [50])[0] for one in (values, together))
    assert apart is not None
    assert joined is not None
    assert apart.low < np.median(values) < apart.high
    assert joined.high - joined.low > 3 * (apart.high - apart.low)


def test_an_interval_needs_values_beyond_the_percentile() -> None:
    values = list(map(float, range(400)))
    assert [found is None for found in percentile_intervals(values, [50, 95, 99])] == [0, 0, 1]
    assert percentile_intervals(values[:39], [50]) == [None]


def test_the_interval_of_a_mean_is_students() -> None:
    # t(0.975, 3) = 3.182446; the standard error of 1, 2, 3, 4 is 0.6454972.
    found = mean_interval([1.0, 2.0, 3.0, 4.0])
    assert found is not None
    assert found == pytest.approx((2.5 - 3.182446 * 0.6454972, 2.5 + 3.182446 * 0.6454972))
    assert mean_interval([1.0]) is None


def test_failures_in_one_row_tell_less_than_the_same_number_apart() -> None:
    apart = share_interval([place % 10 == 0 for place in range(400)])
    together = share_interval([place < 40 for place in range(400)])
    assert apart is not None
    assert together is not None
    assert together.high - together.low > apart.high - apart.low
    assert share_interval([]) is None
