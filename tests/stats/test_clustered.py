"""The decision rule's mathematics: golden values, properties, and agreement with scipy."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats.clustered import (
    ClusterSums,
    beyond_these,
    cluster_sums,
    critical_value,
    difference,
    level,
    levels,
    tail,
)

LOCOMO = [197, 105, 193, 260, 242, 158, 190, 239, 196, 202]


def column(
    sums: Sequence[float], sizes: Sequence[float], squares: Sequence[float] | None = None
) -> ClusterSums:
    parts = (sizes, sums, squares if squares is not None else np.square(sums))
    return ClusterSums(*(np.array(part, dtype=float)[:, None] for part in parts))


@pytest.mark.parametrize(
    ("sizes", "at_05", "at_01", "p"),
    [
        ([1] * 10, 2.2622, 3.2498, 0.0339),
        ([1] * 469, 1.9650, 2.5864, 0.0128),
        (LOCOMO, 2.3022, 3.3186, 0.0365),
        ([50, 40, 30, 20, 10], 3.2423, 5.4591, 0.0967),
        ([30, 20, 10], 5.0048, 11.4801, 0.1668),
        ([400, 60, 30, 20, 10], 7.9755, 13.6229, 0.4750),
    ],
)
def test_critical_values_and_tails(
    sizes: list[float], at_05: float, at_01: float, p: float
) -> None:
    assert critical_value(0.05, sizes) == pytest.approx(at_05, abs=5e-5)
    assert critical_value(0.01, sizes) == pytest.approx(at_01, abs=5e-5)
    assert tail(2.5, sizes) == pytest.approx(p, abs=5e-5)


def test_the_critical_value_is_where_the_tail_has_its_level() -> None:
    random = Random(1)
    for _ in range(60):
        sizes = [random.randint(15, 30) for _ in range(random.randint(5, 12))]
        assert tail(critical_value(0.05, sizes), sizes) == pytest.approx(0.05, abs=1e-10)
    # Here false position converges from one side: the other end of the bracket stays far away.
    sizes = [17, 17, 19, 21, 22, 22, 23, 29, 30]
    assert tail(critical_value(0.05, sizes), sizes) == pytest.approx(0.05, abs=1e-10)


def test_small_levels_of_locomo() -> None:
    assert critical_value(0.05 / 19, LOCOMO) == pytest.approx(4.2080, abs=5e-5)
    assert critical_value(0.05 / 190, LOCOMO) == pytest.approx(5.9416, abs=5e-5)


@pytest.mark.parametrize(
    ("sums", "sizes", "expected"),
    [
        ((4, 2, 5, 1, 3), [50] * 5, (0.0600, 0.0152, 0.0170, 0.0177, 0.1023)),
        ((4, 2, 5, 1, 3), [50, 40, 30, 20, 10], (0.1000, 0.0294, 0.0439, 0.0046, 0.1954)),
        ([0] * 10, LOCOMO, (0, 0.0007, 1, -0.0016, 0.0016)),
        ([0] * 469, [1] * 469, (0, 0.0030, 1, -0.0059, 0.0059)),
        ([1] * 6 + [0] * 4, [100] * 10, (0.0060, 0.0022, 0.0215, 0.0011, 0.0109)),
        ([1] * 5 + [0] * 5, [100] * 10, (0.0050, 0.0022, 0.0480, 0.0001, 0.0099)),
        (
            [1] * 9 + [-1] * 2 + [0] * 458,
            [1] * 469,
            (0.0149, 0.0077, 0.0521, -0.0001, 0.0300),
        ),
        ((7, 2, 6, 11, 10, 7, 6, 20, 4, 2), LOCOMO, (0.0378, 0.0070, 0.0005, 0.0216, 0.0541)),
        (
            (2.5333, 0.25, -0.6667, -0.05, 1.1071, 0.4738, 4.0333, -0.75, -1.9679, 4.9167),
            LOCOMO,
            (0.0050, 0.0036, 0.2067, -0.0033, 0.0133),
        ),
    ],
)
def test_differences(
    sums: Sequence[float], sizes: Sequence[float], expected: tuple[float, ...]
) -> None:
    row = difference(column(sums, sizes))
    found = (row.delta, row.se, row.p, *row.interval(row.critical()))
    assert found == pytest.approx(expected, abs=5.1e-5)


@pytest.mark.parametrize(
    ("sums", "squares", "sizes", "expected"),
    [
        ((6, -1), (10, 5), (60, 30), (0.0556, 0.0454, -0.0334, 0.1445, 0.2211)),
        ((5,), (9,), (150,), (0.0333, 0.0220, -0.0098, 0.0765, 0.1298)),
    ],
)
def test_fewer_than_five_clusters_speak_of_these_only(
    sums: Sequence[float],
    squares: Sequence[float],
    sizes: Sequence[float],
    expected: tuple[float, ...],
) -> None:
    row = difference(column(sums, sizes, squares))
    found = (row.delta, row.se, *row.interval(row.critical()), row.p)
    assert row.these_only
    assert found == pytest.approx(expected, abs=5.1e-5)


def test_few_questions_find_no_more_than_the_exact_sign_test() -> None:
    """Every number of gained and lost questions of one cluster with fewer than thirty."""
    from scipy.stats import binomtest  # large, and every process collects this file

    found = 0
    for n in range(1, 30):
        for gained in range(n + 1):
            for lost in range(n - gained + 1):
                row = difference(column([gained - lost], [n], [gained + lost]))
                low, high = row.interval(row.critical())
                is_found = low > 0 or high < 0
                found += is_found
                assert is_found == (row.p < 0.05)
                assert high - low <= 4 * row.span + 1e-9
                if is_found:
                    exact = binomtest(gained, gained + lost).pvalue
                    assert exact < 0.06, (n, gained, lost)
                if n < 6:
                    assert not is_found
    assert found > 1000


def test_more_questions_have_the_normal_quantile() -> None:
    row = difference(column([9], [30], [9]))
    assert row.critical() == pytest.approx(1.95996, abs=1e-5)
    assert difference(column([9], [29], [9])).critical() == pytest.approx(
        1.959964 / np.sqrt(1 - 1.959964**2 / 29)
    )


def test_two_to_four_clusters_also_have_an_interval_for_others() -> None:
    few = column((6, -1), (60, 30), (10, 5))
    low, high = beyond_these(few) or (0.0, 0.0)
    row = difference(few)
    assert high - low > 3 * row.critical() * row.se
    assert beyond_these(column((5,), (150,), (9,))) is None
    assert beyond_these(column([1] * 5, [10] * 5)) is None


@pytest.mark.parametrize(
    ("sums", "sizes", "squares", "expected"),
    [
        ((40, 35, 45, 38, 42), [50] * 5, 200, (0.6907, 0.8775)),
        ((45, 30, 27, 15, 6), [50, 40, 30, 20, 10], 123, (0.6376, 0.9219)),
        (LOCOMO, LOCOMO, 1982, (0.9973, 1)),
        ([1] * 469, [1] * 469, 469, (0.9918, 1)),
        ([0] * 5, [50] * 5, 0, (0, 0.0299)),
        ((30.5, 28, 33.5, 25, 31), [50] * 5, 130.25, (0.5104, 0.6688)),
    ],
)
def test_levels(
    sums: Sequence[float], sizes: Sequence[float], squares: float, expected: tuple[float, float]
) -> None:
    spread = [squares / len(sizes)] * len(sizes)
    assert level(column(sums, sizes, spread)) == pytest.approx(expected, abs=5.1e-5)


def test_a_level_of_another_scale_is_the_same_level_rescaled() -> None:
    values = np.random.default_rng(3).integers(0, 2, (200, 1)).astype(float)
    clusters = [f"c{i % 8}" for i in range(200)]
    plain = level(cluster_sums(values, clusters))
    scaled = level(cluster_sums(values * 6 - 1, clusters), (-1.0, 5.0))
    assert scaled == pytest.approx([end * 6 - 1 for end in plain], abs=1e-9)


@given(st.integers(2, 60), st.floats(0.05, 12))
def test_equal_sizes_give_students_t(groups: int, statistic: float) -> None:
    from scipy.stats import t

    student = 2 * t.sf(statistic, groups - 1)
    assert tail(statistic, [7] * groups) == pytest.approx(student, rel=1e-9)


@settings(max_examples=40)
@given(st.integers(3, 30), st.floats(0.3, 6), st.integers(1, 400))
def test_almost_equal_sizes_are_close_to_students_t(
    groups: int, statistic: float, size: int
) -> None:
    """The integral of unequal sizes has no seam where the closed form of equal ones begins."""
    from scipy.stats import t

    sizes = [1000.0 * size] * (groups - 1) + [1000.0 * size + 1e-6]
    student = 2 * t.sf(statistic, groups - 1)
    assert tail(statistic, sizes) == pytest.approx(student, abs=1e-6)


def test_the_tail_of_unequal_sizes_agrees_with_simulation() -> None:
    """A second implementation: simulated clusters, the statistic computed as it is defined."""
    sizes = np.array([400, 60, 30, 20, 10], dtype=float)
    weights = sizes / sizes.sum()
    means = np.random.default_rng(8).standard_normal((200_000, 5))
    theta = means @ weights
    variance = 5 / 4 * ((weights * (means - theta[:, None])) ** 2).sum(axis=1)
    for statistic in (1.0, 2.5, 7.9755):
        share = float((np.abs(theta) >= statistic * np.sqrt(variance)).mean())
        assert tail(statistic, sizes.tolist()) == pytest.approx(share, abs=0.005)


tables = st.lists(
    st.tuples(st.integers(0, 11), st.sampled_from([-1.0, -0.5, 0.0, 0.0, 0.5, 1.0])),
    min_size=12,
    max_size=80,
)


@settings(max_examples=60)
@given(tables, st.sampled_from([0.2, 0.05, 0.01]))
def test_p_and_interval_cannot_disagree(table: list[tuple[int, float]], alpha: float) -> None:
    row = difference(cluster_sums([[d] for _, d in table], [str(c) for c, _ in table]))
    low, high = row.interval(row.critical(alpha))
    if abs(row.p - alpha) > 1e-7:
        assert (row.p < alpha) == (low > 0 or high < 0)
    assert low < high


@settings(max_examples=60)
@given(tables, st.randoms(use_true_random=False))
def test_order_and_names_do_not_matter_and_swapping_mirrors(
    table: list[tuple[int, float]], random: Random
) -> None:
    row = difference(cluster_sums([[d] for _, d in table], [str(c) for c, _ in table]))
    shuffled = list(table)
    random.shuffle(shuffled)
    again = difference(cluster_sums([[d] for _, d in shuffled], [f"x{9 * c}" for c, _ in shuffled]))
    assert again.interval(again.critical()) == pytest.approx(row.interval(row.critical()), abs=1e-9)
    mirrored = difference(cluster_sums([[-d] for _, d in table], [str(c) for c, _ in table]))
    low, high = row.interval(row.critical())
    assert mirrored.interval(mirrored.critical()) == pytest.approx((-high, -low), abs=1e-9)


@given(st.integers(1, 12), st.sampled_from([0.0, 0.3, 1.0]))
def test_no_interval_has_zero_width(groups: int, value: float) -> None:
    clusters = [str(i % groups) for i in range(24)]
    low, high = level(cluster_sums([[value]] * 24, clusters))
    assert 0 <= low < high <= 1
    row = difference(cluster_sums([[0.0]] * 24, clusters))
    assert row.se > 0


def test_the_variance_is_statsmodels_cluster_robust_variance() -> None:
    """Ordinary least squares on a constant with clustered errors, with the factor G / (G - 1)."""
    from statsmodels.regression.linear_model import OLS

    random = np.random.default_rng(5)
    clusters = np.repeat(np.arange(9), random.integers(5, 60, 9))
    values = random.normal(size=len(clusters)) + 0.4 * random.normal(size=9)[clusters]
    n, groups = len(values), 9
    fit = OLS(values, np.ones(n)).fit(
        cov_type="cluster", cov_kwds={"groups": clusters, "use_correction": True}
    )
    # statsmodels also multiplies by (n - 1) / (n - 1), which is 1 for a constant alone.
    row = difference(cluster_sums(values[:, None], [str(c) for c in clusters]))
    dummies = 2 / n**2
    assert row.se**2 - dummies == pytest.approx(float(fit.bse[0]) ** 2, rel=1e-9)
    assert row.clusters == groups


def test_a_question_without_a_value_is_left_out() -> None:
    values = np.array([[1.0, 0.0], [np.nan, 1.0], [0.0, 1.0], [1.0, np.nan]])
    table = cluster_sums(values, ["a", "b", "a", "c"])
    assert table.column(0).sizes[:, 0].tolist() == [2, 1]
    assert table.column(1).sums[:, 0].tolist() == [1, 1]


@pytest.mark.parametrize("values", [np.empty((0, 1)), np.ones(3), np.ones((2, 1))])
def test_wrong_shapes_are_refused(values: NDArray[np.float64]) -> None:
    with pytest.raises(ValueError, match="questions x measures"):
        cluster_sums(values, ["a", "b", "c"])


def test_one_cluster_has_no_critical_value() -> None:
    with pytest.raises(ValueError, match="one cluster"):
        critical_value(0.05, [3])
    with pytest.raises(ValueError, match="one cluster"):
        tail(2.0, [3])


@pytest.mark.parametrize("groups", [1, 4, 5, 23])
def test_all_columns_at_once_have_the_bits_of_each_alone(groups: int) -> None:
    draw = np.random.default_rng(groups)
    clusters = [f"c{place}" for place in draw.integers(groups, size=300)]
    values = np.column_stack(
        [draw.random(300), draw.integers(2, size=300), np.ones(300), np.zeros(300)]
    )
    sums = cluster_sums(values, clusters)
    alone = [level(sums.column(place), (-1.0, 2.0)) for place in range(4)]
    assert levels(sums, (-1.0, 2.0)) == alone
