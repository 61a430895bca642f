"""The parts of a change: they add up exactly, and planted effects come back."""

from __future__ import annotations

from fractions import Fraction
from statistics import mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mnemoscope.stats.score_change import PARTS, ScoreSplit, split_change

BEST = 6
KEYS = st.integers(0, 14)
TIMES = st.dictionaries(KEYS, st.integers(0, BEST), min_size=1)


def split(
    first: dict[int, int],
    last: dict[int, int],
    expired: set[int] = frozenset(),  # type: ignore[assignment]
    successors: set[int] = frozenset(),  # type: ignore[assignment]
) -> ScoreSplit:
    found = split_change(first, last, expired, successors)
    assert found is not None
    return found


@given(TIMES, TIMES, st.sets(KEYS), st.sets(KEYS))
def test_the_parts_add_up_exactly_to_the_change_of_the_mean(
    first: dict[int, int], last: dict[int, int], expired: set[int], successors: set[int]
) -> None:
    found = split(first, last, expired, successors)
    exact = Fraction(sum(last.values()), len(last)) - Fraction(sum(first.values()), len(first))
    assert found.part("total") == exact
    if first.keys() & last.keys():
        assert sum(found.part(part) for part in PARTS) == exact


@settings(max_examples=50)
@given(TIMES, TIMES, st.sets(KEYS), st.sets(KEYS))
def test_every_part_lies_in_its_interval(
    first: dict[int, int], last: dict[int, int], expired: set[int], successors: set[int]
) -> None:
    found = split(first, last, expired, successors)
    if not first.keys() & last.keys():
        return
    clusters = {key: f"c{key % 7}" for key in (*first, *last)}
    for part in ("total", *PARTS):
        interval = found.interval(part, clusters, BEST)
        if interval is None:
            assert found.part(part) == 0
        else:
            assert interval.low < float(found.part(part)) < interval.high


@given(TIMES, TIMES, st.sets(KEYS))
def test_bounds_hold_whatever_the_missing_values_are(
    first: dict[int, int], last: dict[int, int], missing: set[int]
) -> None:
    known = {key: None if key in missing else value for key, value in last.items()}
    found = split_change(first, known, set(), set())
    assert found is not None
    for part in ("total", "interference"):
        low, high = found.bounds(part, BEST)
        assert low <= split(first, last).part(part) <= high


def test_interference_is_the_mean_change_of_the_same_questions() -> None:
    found = split({1: 6, 2: 6, 3: 1}, {1: 5, 2: 2, 4: 6})
    assert found.part("interference") == mean([-1, -4])
    assert found.part("supersession") == 0
    assert found.interval("supersession", {}, BEST) is None


def test_supersession_is_what_replaced_questions_lose_beyond_interference() -> None:
    # Half of the questions are replaced; they lose four points, the same questions lose one.
    first = dict.fromkeys(range(10), 6) | dict.fromkeys(range(10, 20), 6)
    last = dict.fromkeys(range(10), 5) | dict.fromkeys(range(20, 30), 2)
    found = split(first, last, set(range(10, 20)), set(range(20, 30)))
    assert found.part("total") == Fraction(-5, 2)
    assert found.part("interference") == -1
    assert found.part("supersession") == Fraction(-3, 2)  # half of -4 - -1
    assert found.part("composition") == 0


def test_composition_is_the_effect_of_harder_new_questions() -> None:
    first = dict.fromkeys(range(10), 6)
    last = dict.fromkeys(range(10), 6) | dict.fromkeys(range(10, 40), 2)
    found = split(first, last)
    assert found.part("interference") == 0
    assert found.part("composition") == found.part("total") == -3


def test_without_common_questions_only_the_total_is_defined() -> None:
    found = split({1: 6}, {2: 2})
    assert found.part("total") == -4
    assert found.size("same", is_last=True) == 0
    assert split_change({}, {1: 1}, set(), set()) is None


@pytest.mark.parametrize("part", ["interference", "supersession", "composition"])
def test_intervals_cover_the_planted_effect(part: str) -> None:
    """Clusters with levels of their own: most intervals contain the truth, and not zero."""
    random = np.random.default_rng(7)
    truth = {"interference": -0.5, "supersession": -0.4, "composition": -0.25}
    covered = told = 0
    trials = 150
    for _ in range(trials):
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        expired, successors, clusters = set(), set(), {}
        for cluster in range(20):
            own = int(random.integers(-1, 2))  # the cluster's questions are easier or harder
            for number in range(8):
                key = 100 * cluster + number
                score = 4 + own + int(random.integers(-1, 2))
                lost = int(random.random() < 0.5)
                clusters[key] = f"c{cluster}"
                if number < 4:  # the same
                    first[key], last[key] = score, score - lost
                elif number < 6:  # replaced: loses 1.6 points more
                    first[key] = score
                    expired.add(key)
                    new = key + 50
                    clusters[new] = f"c{cluster}"
                    successors.add(new)
                    last[new] = score - lost - int(random.random() < 0.6) - 1
                else:  # new questions, one point harder
                    last[key] = score - lost - 1
        found = split_change(first, last, expired, successors)
        assert found is not None
        interval = found.interval(part, clusters, BEST)  # type: ignore[arg-type]
        assert interval is not None
        covered += interval.low <= truth[part] <= interval.high
        told += interval.high < 0
    assert covered >= 0.9 * trials
    assert told >= 0.9 * trials
