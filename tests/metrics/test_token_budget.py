"""Recall within a token budget."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.metrics import (
    BUDGETS,
    recall_within,
    recalls_of_places,
    relevant_positions,
)

ids = st.sampled_from("abcdefgh")
shown = st.lists(st.tuples(st.integers(0, 60), st.sets(ids, min_size=1, max_size=3)), max_size=12)
evidences = st.sets(ids | st.just("lost"), min_size=1, max_size=5)


def test_a_hit_counts_when_it_fits_with_all_before_it() -> None:
    got = recall_within([100, 156, 256], [["a"], ["x"], ["b"]], ["a", "b"], (99, 100, 511, 512))
    assert got == {
        "recall@99tokens": 0,
        "recall@100tokens": 0.5,
        "recall@511tokens": 0.5,
        "recall@512tokens": 1,
    }


def test_the_first_hit_that_does_not_fit_ends_the_context() -> None:
    got = recall_within([10, 500, 1], [["x"], ["y"], ["a"]], ["a"], (256, 511))
    assert list(got.values()) == [0, 1]


def test_a_repeated_hit_is_paid_for_again() -> None:
    assert recall_within([60, 60, 60], [["x"], ["x"], ["a"]], ["a"], (120, 180)) == {
        "recall@120tokens": 0,
        "recall@180tokens": 1,
    }


def test_a_merged_hit_brings_all_its_evidence_once() -> None:
    got = recall_within([5, 5], [["a", "b"], ["b", "c"]], ["a", "b", "c", "lost"], (5, 10))
    assert list(got.values()) == [0.5, 0.75]


def test_the_usual_budgets_double_from_256_to_32768() -> None:
    assert [2**n for n in range(8, 16)] == list(BUDGETS)
    names = list(recall_within([1], [["a"]], ["a"]))
    assert names == [f"recall@{budget}tokens" for budget in BUDGETS]


def test_nothing_recalled_is_worth_nothing() -> None:
    assert set(recall_within([], [], ["a"]).values()) == {0}


@given(shown, evidences, st.integers(0, 400))
def test_is_the_recall_of_the_longest_beginning_that_fits(
    hits: list[tuple[int, set[str]]], evidence: set[str], budget: int
) -> None:
    seen: set[str] = set()
    left = budget
    for cost, sources in hits:
        left -= cost
        if left < 0:
            break
        seen |= sources
    got = recall_within([c for c, _ in hits], [s for _, s in hits], evidence, (budget,))
    assert got[f"recall@{budget}tokens"] == len(seen & evidence) / len(evidence)


@given(
    st.lists(st.tuples(st.permutations("abcdef"), st.sets(st.sampled_from("adfxy"), min_size=1)))
)
def test_many_rankings_at_once_have_the_values_of_each_alone(
    asked: list[tuple[list[str], set[str]]],
) -> None:
    tokens = [[100 * (place + ord(id)) for place, id in enumerate(own)] for own, _ in asked]
    ranks = [relevant_positions(*one) for one in asked]
    found = recalls_of_places(tokens, ranks, [len(wanted) for _, wanted in asked])
    for row, spent, (ranking, wanted) in zip(found, tokens, asked, strict=True):
        alone = recall_within(spent, [{id} for id in ranking], wanted)
        assert row.tolist() == list(alone.values())


def test_bad_input_is_refused() -> None:
    with pytest.raises(ValueError, match="fewer than 0"):
        recalls_of_places([[], [3, -1]], [(), (1,)], [1, 1])
    with pytest.raises(ValueError, match="without evidence"):
        recall_within([1], [["a"]], [])
    with pytest.raises(ValueError, match="2 token counts for 1 hits"):
        recall_within([1, 2], [["a"]], ["a"])
    with pytest.raises(ValueError, match="fewer than 0 tokens"):
        recall_within([-1], [["a"]], ["a"])
