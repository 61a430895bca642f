"""docs/discrimination.md is what its command writes, and its figures find what is planted."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from mnemoscope.types import Trial

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))
import discrimination as command
from discrimination_data import (
    BenchmarkFigures,
    Reference,
    ShownSystem,
    benchmarks,
    full_context,
)
from discrimination_figures import dead_questions, smallest_differences, spread
from discrimination_page import page

DATA = Path(__file__).parents[1] / "docs" / "discrimination"
FOUND = benchmarks(DATA)


def test_the_page_is_what_its_command_writes() -> None:
    assert (DATA.parent / "discrimination.md").read_text(encoding="utf-8") == page(FOUND)


@pytest.mark.parametrize("one", FOUND, ids=lambda one: one.title)
def test_the_figures_of_a_benchmark_agree(one: BenchmarkFigures) -> None:
    means = [own.mean for own in one.systems]
    assert means == sorted(means, reverse=True)
    assert one.spread.highest == pytest.approx(means[0], abs=1e-5)
    assert one.spread.lowest == pytest.approx(means[-1], abs=1e-5)
    assert one.pairs == len(means) * (len(means) - 1) // 2
    assert 0 <= one.apart <= one.pairs
    assert one.dead.none + one.dead.full <= one.dead.equal + 1e-9 <= 1 + 1e-9
    assert one.references["oracle"].mean >= means[0]
    shown: list[ShownSystem | Reference] = [*one.systems, *one.references.values()]
    assert all(own.ci95[0] <= own.mean <= own.ci95[1] for own in shown)


def test_planted_dead_questions_are_counted() -> None:
    oracle = np.array([1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    values = np.array(
        [
            *[[0.0, 0.0, 0.0]] * 2,  # nobody
            *[[1.0, 1.0, 1.0]] * 1,  # all of them
            [0.5, 0.5, 0.5],  # all that ten hits can hold
            [0.5, 0.5, 0.5],  # half, though more could be found
            *[[1.0, 0.0, 1.0]] * 5,
        ]
    )
    found = dead_questions(values, oracle)
    assert (found.none, found.full, found.equal) == pytest.approx((0.2, 0.2, 0.5))


@pytest.mark.parametrize(("best", "saturation"), [(1.0, 1.0), (0.55, 0.5), (0.1, 0.0)])
def test_planted_saturation_is_found(best: float, saturation: float) -> None:
    values = np.column_stack([np.full(20, best), np.full(20, 0.1)])
    found = spread(values, oracle=1.0, chance=0.1)
    assert found.saturation == pytest.approx(saturation)
    assert found.width == pytest.approx(best - 0.1)


def test_without_a_way_from_chance_to_the_oracle_there_is_no_saturation() -> None:
    assert spread(np.ones((4, 2)), oracle=1.0, chance=1.0).saturation is None


def test_more_questions_find_smaller_differences() -> None:
    random = np.random.default_rng(7)
    clusters = [str(number % 20) for number in range(4_000)]
    values = (random.random((4_000, 3)) < 0.5).astype(float)
    many = smallest_differences(values, clusters)
    few = smallest_differences(values[:400], clusters[:400])
    assert many is not None and few is not None
    assert many.least <= many.median <= many.most
    assert few.median == pytest.approx(many.median * np.sqrt(10), rel=0.35)


def test_one_system_has_no_difference() -> None:
    assert smallest_differences(np.ones((5, 1)), list("abcde")) is None


def test_full_context_is_estimated_from_a_random_sample() -> None:
    trial = Trial(
        "s", "q", "answered", evidence=("a", "b"), pool=100, reachable=1, ranking=("a", "c"),
        tokens=(20, 40),
    )  # fmt: skip
    unmeasured = Trial("s", "r", "answered", pool=900, ranking=("a",), tokens=(1,))
    found = full_context([trial, unmeasured])
    assert (found.memories, found.tokens, found.evidence) == (100, 3_000, 0.5)


def test_the_command_writes_page_and_plot(tmp_path: Path) -> None:
    data = tmp_path / "discrimination"
    data.mkdir()
    for file in DATA.glob("*.json"):
        (data / file.name).write_bytes(file.read_bytes())
    assert command.main(["--data", str(data), "page"]) == 0
    assert (tmp_path / "discrimination.md").read_text() == page(FOUND)
    assert (tmp_path / "img" / "discrimination.png").read_bytes().startswith(b"\x89PNG")
