"""A sample of questions: drawn with the seed, or of each category in proportion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.base import Dataset
from mnemoscope.datasets.subset import Draw, part_of


@pytest.fixture(scope="module")
def locomo(shared_data: Callable[[str], Path]) -> Dataset:
    return open_dataset("locomo", shared_data("locomo"), {"adversarial": False})


def _ids(whole: Dataset, questions: int, seed: int = 7, draw: Draw = "category") -> list[str]:
    part = part_of(whole, None, questions, seed, draw)
    return [question.id for scenario in part.scenarios() for question in scenario.questions]


def test_each_category_has_its_share(locomo: Dataset) -> None:
    part = part_of(locomo, None, 160, 7, "category")
    asked = [question for scenario in part.scenarios() for question in scenario.questions]
    whole = Counter(q.category for scenario in locomo.scenarios() for q in scenario.questions)
    for category, number in Counter(question.category for question in asked).items():
        assert abs(number - 160 * whole[category] / whole.total()) < 1
    assert len(asked) == 160
    assert part.options["questions_draw"] == "category"


def test_the_draw_depends_on_the_seed_alone_and_larger_draws_contain_smaller_ones(
    locomo: Dataset,
) -> None:
    assert _ids(locomo, 60) == _ids(locomo, 60)
    assert _ids(locomo, 60) != _ids(locomo, 60, seed=8)
    assert len(set(_ids(locomo, 60)) - set(_ids(locomo, 160))) == 0
    assert set(_ids(locomo, 60)) != set(_ids(locomo, 60, draw="random"))


def test_more_questions_than_there_are_takes_all(locomo: Dataset) -> None:
    assert len(_ids(locomo, 9_999)) == 1_540


def test_a_plain_sample_is_recorded_as_before(locomo: Dataset) -> None:
    assert "questions_draw" not in part_of(locomo, None, 60, 7).options


def test_drawing_by_category_needs_a_number(locomo: Dataset) -> None:
    with pytest.raises(UsageError, match="--draw category needs --questions N"):
        part_of(locomo, None, None, 7, "category")
