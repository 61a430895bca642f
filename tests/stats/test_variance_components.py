"""Variance components of repeated runs: exact expectations, other implementations, coverage."""

from __future__ import annotations

import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from mnemoscope.stats.variance_components import (
    Design,
    RepeatComponents,
    expected_error,
    freedom,
    interval,
    judge_noise,
    purchases,
    repeated_mean,
    standard_error,
    variance_components,
)

Floats = NDArray[np.float64]
PLANTED = RepeatComponents(0.02, 0.05, 0.01, 0.004, 0.08)


def covariance(
    planted: RepeatComponents, clusters: NDArray[np.intp], cells: NDArray[np.intp], repeats: int
) -> Floats:
    """The covariance of the observed values; a cell is question × repeats + repeat."""
    question, repeat = cells // repeats, cells % repeats
    cluster = clusters[question]

    def same(codes: NDArray[np.intp]) -> Floats:
        return np.asarray(codes[:, None] == codes[None, :], dtype=np.float64)

    return (
        (planted.conversation or 0) * same(cluster)
        + planted.question * same(question)
        + planted.repeat * same(repeat)
        + (planted.repeat_by_conversation or 0) * same(cluster * repeats + repeat)
        + planted.residual * np.eye(len(cells))
    )


def drawn(
    planted: RepeatComponents, sizes: list[int], repeats: int, seed: int
) -> tuple[Floats, list[int]]:
    """A table of normal effects."""
    draw = np.random.default_rng(seed)
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    n = len(clusters)

    def effects(variance: float | None, *shape: int) -> Floats:
        return draw.normal(0.0, np.sqrt(variance or 0.0), shape)

    table = (
        0.5
        + effects(planted.conversation, len(sizes))[clusters][:, None]
        + effects(planted.question, n)[:, None]
        + effects(planted.repeat, repeats)[None, :]
        + effects(planted.repeat_by_conversation, len(sizes), repeats)[clusters]
        + effects(planted.residual, n, repeats)
    )
    return table, clusters.tolist()


@settings(max_examples=25)
@given(
    sizes=st.lists(st.integers(1, 4), min_size=2, max_size=5).filter(lambda own: max(own) > 1),
    repeats=st.integers(2, 4),
    missing=st.integers(0, 3),
    seed=st.integers(0, 10_000),
    planted=st.tuples(*[st.floats(0.01, 5.0)] * 5),
)
@example([1, 1, 1, 1, 2], 2, 3, 0, (1.0, 1.0, 1.0, 1.0, 1.0))
def test_the_estimates_are_unbiased_also_with_unequal_sizes_and_missing_values(
    sizes: list[int],
    repeats: int,
    missing: int,
    seed: int,
    planted: tuple[float, float, float, float, float],
) -> None:
    # Estimates are quadratic forms y'Ay, whose expectation is tr(A S) for the covariance S = L L':
    # the sum of the estimates of the columns of L.
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    draw = np.random.default_rng(seed)
    some = [q * repeats + r for q in range(len(clusters)) for r in range(repeats)]
    lost = [cell for cell in draw.permutation(some)[:missing] if cell % repeats]
    if sum(sizes) < 4:  # too few cells to lose some of them
        lost = []
    cells = np.array([cell for cell in some if cell not in lost])
    if len(set((cells % repeats).tolist())) < repeats:
        return
    root = np.linalg.cholesky(covariance(RepeatComponents(*planted), clusters, cells, repeats))
    found, own = np.zeros(5), clusters.tolist()
    for column in root.T:
        table = np.full(len(clusters) * repeats, np.nan)
        table[cells] = column
        parts = variance_components(table.reshape(-1, repeats), own)
        if parts.conversation is None:  # too much is lost to tell conversations from questions
            has = ~np.isnan(table.reshape(-1, repeats))
            pairs = combinations(range(len(own)), 2)
            assert parts.repeat_by_conversation is None
            alike = [(one, other) for one, other in pairs if own[one] == own[other]]
            assert all((has[one] & has[other]).sum() < 2 for one, other in alike)
            return
        found += [v or 0.0 for v in parts]

    assert found == pytest.approx(planted, rel=1e-6, abs=1e-8)


def test_a_balanced_design_gives_the_analysis_of_variance() -> None:
    table, clusters = drawn(PLANTED, [6] * 8, 5, seed=3)
    cube = table.reshape(8, 6, 5)
    c, m, n = cube.shape
    grand = cube.mean()
    by_c, by_q, by_r = cube.mean((1, 2)), cube.mean(2), cube.mean((0, 1))
    by_cr = cube.mean(1)
    ms_c = m * n * ((by_c - grand) ** 2).sum() / (c - 1)
    ms_q = n * ((by_q - by_c[:, None]) ** 2).sum() / (c * (m - 1))
    ms_r = c * m * ((by_r - grand) ** 2).sum() / (n - 1)
    ms_cr = m * ((by_cr - by_c[:, None] - by_r + grand) ** 2).sum() / ((c - 1) * (n - 1))
    rest = cube - by_q[:, :, None] - by_cr[:, None, :] + by_c[:, None, None]
    ms_e = (rest**2).sum() / (c * (m - 1) * (n - 1))

    found = variance_components(table, clusters)

    assert tuple(found) == pytest.approx(
        (
            (ms_c - ms_q - ms_cr + ms_e) / (m * n),
            (ms_q - ms_e) / n,
            (ms_r - ms_cr) / (c * m),
            (ms_cr - ms_e) / m,
            ms_e,
        )
    )
    total = standard_error(repeated_mean(table, clusters)) ** 2
    assert total == pytest.approx((ms_c + ms_r - ms_cr) / (c * m * n))


def test_statsmodels_finds_the_same_components() -> None:
    mixed = pytest.importorskip("statsmodels.regression.mixed_linear_model")
    table, clusters = drawn(RepeatComponents(0.3, 0.2, 0.4, 0.1, 0.1), [4] * 5, 4, seed=2)
    question, repeat = (codes.ravel() for codes in np.indices(table.shape))
    cluster = np.array(clusters)[question]

    def dummies(codes: NDArray[np.intp]) -> Floats:
        return np.asarray(codes[:, None] == np.unique(codes)[None, :], dtype=np.float64)

    parts = {
        "1 conversation": dummies(cluster),
        "2 question": dummies(question),
        "3 repeat": dummies(repeat),
        "4 both": dummies(cluster * 4 + repeat),
    }
    spec = mixed.VCSpec(
        list(parts),
        [[[f"{name}{i}" for i in range(own.shape[1])]] for name, own in parts.items()],
        [[own] for own in parts.values()],
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = mixed.MixedLM(
            table.ravel(),
            np.ones((table.size, 1)),
            np.zeros(table.size),
            exog_re=np.zeros((table.size, 0)),
            exog_vc=spec,
        ).fit(reml=True)

    found = variance_components(table, clusters)

    assert all(own is not None and own > 0 for own in found), "else REML is another estimate"
    assert (*fitted.vcomp, fitted.scale) == pytest.approx(tuple(found), rel=0.01)


def test_five_repeats_recover_the_planted_components_within_ten_per_cent() -> None:
    # Five draws do not have the variance that they are drawn from, nor do 600 to a per cent: these
    # planted effects are scaled to have it. What is left is the error of the estimator.
    draw, (c, m, n) = np.random.default_rng(1), (600, 50, 5)

    def effects(variance: float | None, *shape: int) -> Floats:
        return draw.normal(0.0, np.sqrt(variance or 0.0), shape)

    def scaled(variance: float | None, size: int) -> Floats:
        own = draw.normal(size=size)
        return np.asarray((own - own.mean()) / own.std(ddof=1) * np.sqrt(variance or 0.0))

    cube = (
        scaled(PLANTED.conversation, c)[:, None, None]
        + effects(PLANTED.question, c, m, 1)
        + scaled(PLANTED.repeat, n)
        + effects(PLANTED.repeat_by_conversation, c, 1, n)
        + effects(PLANTED.residual, c, m, n)
    )

    found = variance_components(cube.reshape(-1, n), np.repeat(np.arange(c), m).tolist())

    assert tuple(found) == pytest.approx(tuple(PLANTED), rel=0.1)


@pytest.mark.parametrize("clusters", [[0] * 30, list(range(30))])
def test_conversations_that_cannot_be_told_from_questions_are_left_out(clusters: list[int]) -> None:
    table, _ = drawn(PLANTED, [1] * 30, 5, seed=4)

    found = variance_components(table, clusters)

    grand, by_q, by_r = table.mean(), table.mean(1), table.mean(0)
    ms_e = ((table - by_q[:, None] - by_r + grand) ** 2).sum() / (29 * 4)
    assert found.conversation is None and found.repeat_by_conversation is None
    assert found.question == pytest.approx(by_q.var(ddof=1) - ms_e / 5)
    assert found.repeat == pytest.approx(by_r.var(ddof=1) - ms_e / 30)
    assert found.residual == pytest.approx(ms_e)
    mean = repeated_mean(table, clusters)
    assert mean.cluster_freedom == 29, "questions are the units"


def test_repeats_without_any_difference_have_no_variance_between_them() -> None:
    values = np.random.default_rng(0).random(40)
    found = repeated_mean(np.tile(values[:, None], 5), [i // 4 for i in range(40)])

    assert found.components.repeat == pytest.approx(0, abs=1e-12)
    assert found.components.residual == pytest.approx(0, abs=1e-12)
    assert standard_error(found) == pytest.approx(found.cluster_variance**0.5)


@pytest.mark.parametrize(
    "planted",
    [
        PLANTED,
        RepeatComponents(0.0, 0.05, 0.0, 0.0, 0.08),
        RepeatComponents(0.001, 0.02, 0.02, 0.0, 0.05),
        RepeatComponents(0.02, 0.02, 0.0, 0.02, 0.05),
    ],
)
@pytest.mark.parametrize("sizes", [[10] * 10, [20, 15, 12, 10, 8, 8, 8, 7, 6, 6]])
def test_the_interval_holds_the_mean_of_the_population(
    planted: RepeatComponents, sizes: list[int]
) -> None:
    held, draws = 0, 200
    for seed in range(draws):
        low, high = interval(repeated_mean(*drawn(planted, sizes, 5, seed=seed)))
        held += low <= 0.5 <= high

    assert 0.92 <= held / draws <= 0.99


def test_an_interval_that_ignores_repeats_is_too_short() -> None:
    planted = RepeatComponents(0.001, 0.02, 0.02, 0.0, 0.05)
    held = 0
    for seed in range(200):
        found = repeated_mean(*drawn(planted, [10] * 10, 5, seed=seed))
        still = found._replace(components=found.components._replace(repeat=0.0))
        low, high = interval(still)
        held += low <= 0.5 <= high

    assert held / 200 < 0.6


def test_a_component_that_all_repeats_share_is_known_from_few_of_them() -> None:
    found = repeated_mean(*drawn(RepeatComponents(0.0, 0.01, 0.2, 0.0, 0.01), [10] * 40, 3, seed=5))

    assert freedom(found) == pytest.approx(2, abs=0.1), "three repeats"
    low, high = interval(found, limits=(0.0, 1.0))
    assert (low, high) == (0.0, 1.0), "the interval of three noisy repeats says almost nothing"


@given(
    planted=st.tuples(*[st.floats(0, 1)] * 5),
    conversations=st.integers(2, 50),
    each=st.integers(1, 50),
    repeats=st.integers(2, 20),
)
def test_more_of_anything_never_raises_the_expected_error(
    planted: tuple[float, float, float, float, float], conversations: int, each: int, repeats: int
) -> None:
    components = RepeatComponents(*planted)
    design = Design(conversations, conversations * each, repeats, 1 / conversations)
    now = expected_error(components, design)

    found = purchases(components, design)

    assert {one.what for one in found} == {"repeat", "conversation", "question"}
    assert all(before.error <= after.error for before, after in pairwise(found))
    for one in found:
        assert one.error <= now + 1e-12 and one.at_equal_cost <= now + 1e-12
    asked = {one.what: one.asked for one in found}
    assert asked == {
        "repeat": conversations * each,
        "conversation": each * repeats,
        "question": conversations * repeats,
    }


@pytest.mark.parametrize(
    ("components", "best"),
    [
        (RepeatComponents(0.0, 0.0, 0.1, 0.0, 0.0), "repeat"),
        (RepeatComponents(0.1, 0.0, 0.0, 0.0, 0.0), "conversation"),
        (RepeatComponents(0.0, 0.1, 0.0, 0.0, 0.0), "question"),
    ],
)
def test_the_largest_component_decides_what_to_buy(components: RepeatComponents, best: str) -> None:
    assert purchases(components, Design(10, 40, 5, 0.1))[0].what == best


def test_the_noise_of_a_judge_is_the_variance_of_its_verdicts_on_one_answer() -> None:
    assert judge_noise([], []) is None
    assert judge_noise([1.0, 0.0], ["a", "b"]) is None
    assert judge_noise([1.0, 0.0, 1.0, 1.0], ["a", "a", "b", "b"]) == (0.25, 2)
    draw = np.random.default_rng(1)
    answers = np.repeat(np.arange(4000), 5)
    levels = draw.random(4000)
    noisy = levels[answers] + draw.normal(0, 0.3, len(answers))
    found = judge_noise(noisy, answers.tolist())
    assert found is not None and found.variance == pytest.approx(0.09, rel=0.05)


@pytest.mark.parametrize(
    ("values", "clusters", "problem"),
    [
        ([[1.0, 2.0]], [0], "at least two"),
        ([[1.0], [2.0]], [0, 0], "at least two"),
        ([[1.0, 2.0], [3.0, 4.0]], [0], "a conversation for each"),
        ([[np.nan, np.nan], [3.0, 4.0]], [0, 0], "has no value"),
        ([[1.0, np.nan], [3.0, np.nan]], [0, 0], "has no value"),
    ],
)
def test_tables_without_two_of_each_are_refused(
    values: list[list[float]], clusters: list[int], problem: str
) -> None:
    with pytest.raises(ValueError, match=problem):
        variance_components(values, clusters)
