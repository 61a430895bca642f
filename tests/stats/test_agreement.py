"""Kappa against statsmodels and scipy's bootstrap; the split of variance against a simulation."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats import cohens_kappa

Floats = NDArray[np.float64]
labelled = st.lists(
    st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=100
).filter(lambda pairs: len({label for pair in pairs for label in pair}) > 1)


@settings(deadline=None)
@given(labelled)
def test_kappa_agrees_with_statsmodels(pairs: list[tuple[int, int]]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa as oracle

    table = np.zeros((7, 7))
    for a, b in pairs:
        table[a, b] += 1
    expected = oracle(table, return_results=False)
    got = cohens_kappa([a for a, _ in pairs], [b for _, b in pairs], seed=1, draws=10)
    assert got.kappa == pytest.approx(expected, abs=1e-12)


def test_labels_may_be_anything_with_a_name() -> None:
    a = ["right", "wrong", None, True, "right"]
    b = ["right", "wrong", None, "right", "right"]
    # Agreement 4/5, by chance (2·3 + 1 + 1 + 0) / 25.
    assert cohens_kappa(a, b, seed=1).kappa == pytest.approx((4 / 5 - 8 / 25) / (1 - 8 / 25))


def test_perfect_agreement_is_one_even_on_a_single_label() -> None:
    assert cohens_kappa(["x", "y"], ["x", "y"], seed=1) == (1, 1, 1, 2)
    assert cohens_kappa(["x"] * 3, ["x"] * 3, seed=1) == (1, 1, 1, 3)
    assert cohens_kappa(["x"] * 3, ["y"] * 3, seed=1).kappa == 0


def test_of_nothing_there_is_no_kappa() -> None:
    assert isnan(cohens_kappa([], [], seed=1).kappa)


def raters(random: np.random.Generator, n: int) -> tuple[list[int], list[int]]:
    """Two noisy views of the same truth, of which 60 % is 1; each errs one time in ten."""
    truth = random.random(n) < 0.6
    a, b = (truth ^ (random.random(n) < 0.1) for _ in range(2))
    return a.astype(int).tolist(), b.astype(int).tolist()


def test_the_interval_is_that_of_scipys_bootstrap() -> None:
    from scipy.stats import bootstrap

    a, b = raters(np.random.default_rng(1), 300)

    def kappa(x: Floats, y: Floats, axis: int = -1) -> Floats:
        observed, p, q = (x == y).mean(axis=axis), x.mean(axis=axis), y.mean(axis=axis)
        chance = p * q + (1 - p) * (1 - q)
        return np.asarray((observed - chance) / (1 - chance))

    expected = bootstrap(
        (np.array(a), np.array(b)),
        kappa,
        paired=True,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(2),
    ).confidence_interval
    got = cohens_kappa(a, b, seed=3)
    assert (got.low, got.high) == pytest.approx(tuple(expected), abs=0.01)


def test_the_interval_covers_about_as_often_as_it_says() -> None:
    random = np.random.default_rng(20260516)
    chance = 0.58**2 + 0.42**2  # 0.6 · 0.9 + 0.4 · 0.1 of the labels are 1
    true = (0.82 - chance) / (1 - chance)
    found = [cohens_kappa(*raters(random, 300), seed=n, draws=1000) for n in range(1000)]
    assert 0.93 <= np.mean([k.low <= true <= k.high for k in found]) <= 0.96


def test_the_seed_decides_the_interval() -> None:
    a, b = raters(np.random.default_rng(4), 100)
    assert cohens_kappa(a, b, seed=1) == cohens_kappa(a, b, seed=1)
    assert cohens_kappa(a, b, seed=1) != cohens_kappa(a, b, seed=2)


def test_invalid_arguments_are_refused() -> None:
    with pytest.raises(ValueError, match="same items"):
        cohens_kappa([1], [1, 2], seed=1)
    with pytest.raises(ValueError, match="between 0 and 1"):
        cohens_kappa([1], [1], seed=1, confidence=95)
    with pytest.raises(ValueError, match="at least one draw"):
        cohens_kappa([1], [1], seed=1, draws=0)
