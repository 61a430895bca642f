"""The summary of milliseconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.metrics import Latency, summarise_latency


def test_an_empty_sample_has_no_summary() -> None:
    assert summarise_latency([]) is None


def test_one_recall_is_every_percentile() -> None:
    assert summarise_latency([12.5]) == Latency(1, 12.5, 12.5, 12.5, 12.5, 12.5)


def test_percentiles_lie_between_neighbours() -> None:
    assert summarise_latency(iter([4.0, 1.0, 3.0, 2.0])) == pytest.approx(
        Latency(n=4, mean=2.5, p50=2.5, p95=3.85, p99=3.97, max=4.0)
    )


def test_a_percentile_that_falls_on_a_value_is_that_value() -> None:
    got = summarise_latency(float(n) for n in range(101))
    assert got == Latency(n=101, mean=50.0, p50=50.0, p95=95.0, p99=99.0, max=100.0)


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=50))
def test_agrees_with_numpy(sample: list[float]) -> None:
    expected = (len(sample), np.mean(sample), *np.percentile(sample, [50, 95, 99]), max(sample))
    assert summarise_latency(sample) == pytest.approx(expected)
