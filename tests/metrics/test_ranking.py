"""The definitions of the ranking metrics, by examples and by properties."""

from __future__ import annotations

from math import log2

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.metrics import (
    Find,
    dedupe,
    merged_positions,
    metric_names,
    relevant_positions,
    score,
    score_all,
    score_merged,
    value_table,
)
from mnemoscope.metrics.metric import TopK
from mnemoscope.metrics.recall import Recall

KS = (1, 2, 5, 10)
CUTS = (3, 10)

ids = st.sampled_from([f"m{n}" for n in range(12)])
rankings = st.lists(ids, max_size=15)
evidences = st.sets(ids | st.just("not in the pool"), min_size=1, max_size=6)
merged = st.lists(st.lists(ids, min_size=1, max_size=4), max_size=10)


def measures(
    ranking: list[str], evidence: set[str], grades: dict[str, int] | None = None
) -> dict[str, float]:
    return score(ranking, evidence, ks=KS, cuts=CUTS, grades=grades)


def test_names_come_in_one_fixed_order() -> None:
    assert metric_names((1, 5), (10, 100)) == (
        *("hit@1", "recall@1", "all@1", "precision@1", "ndcg@1"),
        *("hit@5", "recall@5", "all@5", "precision@5", "ndcg@5"),
        *("mrr@10", "mrr@100", "map"),
    )


def test_both_scorers_return_the_names_in_that_order_even_for_an_empty_ranking() -> None:
    expected = list(metric_names(KS, CUTS))
    assert list(measures(["a"], {"a"})) == expected
    assert list(measures([], {"a"})) == expected
    assert list(score_merged([["a"]], {"a"}, ks=KS, cuts=CUTS)) == expected


@pytest.mark.parametrize(("ks", "cuts"), [((0,), (10,)), ((5, 5), (10,)), ((5,), (-1,))])
def test_invalid_depths_are_refused(ks: tuple[int, ...], cuts: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="distinct positive"):
        score(["a"], {"a"}, ks=ks, cuts=cuts)


def test_a_question_without_evidence_is_refused() -> None:
    with pytest.raises(ValueError, match="without evidence"):
        score(["a"], (), ks=KS, cuts=CUTS)
    with pytest.raises(ValueError, match="without evidence"):
        score_merged([["a"]], (), ks=KS, cuts=CUTS)


def test_two_pieces_of_evidence_at_ranks_2_and_4() -> None:
    got = measures(["x", "a", "y", "b"], {"a", "b", "lost"})
    ideal = 1 + 1 / log2(3) + 1 / log2(4)
    assert got == pytest.approx(
        {
            "hit@1": 0,
            "recall@1": 0,
            "all@1": 0,
            "precision@1": 0,
            "ndcg@1": 0,
            "hit@2": 1,
            "recall@2": 1 / 3,
            "all@2": 0,
            "precision@2": 1 / 2,
            "ndcg@2": (1 / log2(3)) / (1 + 1 / log2(3)),
            "hit@5": 1,
            "recall@5": 2 / 3,
            "all@5": 0,
            "precision@5": 2 / 5,
            "ndcg@5": (1 / log2(3) + 1 / log2(5)) / ideal,
            "hit@10": 1,
            "recall@10": 2 / 3,
            "all@10": 0,
            "precision@10": 2 / 10,
            "ndcg@10": (1 / log2(3) + 1 / log2(5)) / ideal,
            "mrr@3": 1 / 2,
            "mrr@10": 1 / 2,
            "map": (1 / 2 + 2 / 4) / 3,
        }
    )


def test_evidence_beyond_the_cut_has_no_reciprocal_rank() -> None:
    got = measures(["w", "x", "y", "a"], {"a"})
    assert (got["mrr@3"], got["mrr@10"]) == (0, 1 / 4)


def test_repetitions_are_removed_and_later_hits_move_up() -> None:
    assert dedupe(["x", "x", "a", "x", "b"]) == ["x", "a", "b"]
    assert relevant_positions(["x", "x", "a", "a", "b"], {"a", "b"}) == (2, 3)


def test_repeated_evidence_ids_count_once() -> None:
    assert score(["a"], ["a", "a"], ks=(1,), cuts=(1,))["recall@1"] == 1


def test_grades_weigh_the_gain_and_the_ideal_linearly() -> None:
    got = measures(["b", "a"], {"a", "b", "c"}, grades={"a": 3, "c": 2, "stranger": 9})
    assert got["ndcg@2"] == pytest.approx((1 + 3 / log2(3)) / (3 + 2 / log2(3)))
    assert got["ndcg@10"] == pytest.approx((1 + 3 / log2(3)) / (3 + 2 / log2(3) + 1 / log2(4)))


@pytest.mark.parametrize("grade", [0, -1])
def test_a_grade_that_is_not_positive_is_refused(grade: int) -> None:
    with pytest.raises(ValueError, match="must be positive"):
        measures(["a"], {"a", "b"}, grades={"a": 1, "b": grade})


def test_a_merged_hit_is_one_position_and_brings_all_its_evidence() -> None:
    hits = [["x"], ["a", "b"], ["b", "x"], ["b", "c"]]
    assert merged_positions(hits, {"a", "b", "c"}) == [
        Find(2, frozenset("ab")),
        Find(4, frozenset("c")),
    ]
    got = score_merged(hits, {"a", "b", "c"}, ks=(2, 4), cuts=(10,))
    assert got == pytest.approx(
        {
            "hit@2": 1,
            "recall@2": 2 / 3,
            "all@2": 0,
            "precision@2": 1 / 2,
            "ndcg@2": (2 / log2(3)) / (1 + 1 / log2(3)),
            "hit@4": 1,
            "recall@4": 1,
            "all@4": 1,
            "precision@4": 2 / 4,
            "ndcg@4": (2 / log2(3) + 1 / log2(5)) / (1 + 1 / log2(3) + 1 / log2(4)),
            "mrr@10": 1 / 2,
            "map": (2 * (1 / 2) + 2 / 4) / 3,
        }
    )


def test_a_merged_hit_weighs_the_sum_of_its_grades() -> None:
    got = score_merged([["x"], ["a", "b"]], {"a", "b"}, ks=(2,), cuts=(2,), grades={"a": 3})
    assert got["ndcg@2"] == pytest.approx((4 / log2(3)) / (3 + 1 / log2(3)))


def test_a_merged_hit_never_scores_better_than_perfect() -> None:
    got = score_merged([["a", "b", "c"]], {"a", "b", "c"}, ks=(1, 3), cuts=(1,))
    assert (got["ndcg@1"], got["ndcg@3"], got["map"]) == (1, 1, 1)


def test_merged_hits_from_the_same_memories_keep_their_ranks() -> None:
    assert merged_positions([["x"], ["x"], ["a"]], {"a"}) == [Find(3, frozenset("a"))]


@given(rankings, evidences)
def test_merged_hits_of_one_memory_each_score_as_plain_ones(
    ranking: list[str], evidence: set[str]
) -> None:
    unique = dedupe(ranking)
    singles = [[id_] for id_ in unique]
    assert score_merged(singles, evidence, ks=KS, cuts=CUTS) == measures(unique, evidence)


@given(rankings, evidences)
def test_a_ranking_scores_the_same_without_repetitions(
    ranking: list[str], evidence: set[str]
) -> None:
    grades = {id_: 1 + int(id_[1:]) % 3 for id_ in evidence if id_.startswith("m")}
    assert measures(ranking, evidence, grades) == measures(dedupe(ranking), evidence, grades)


@given(rankings, evidences)
def test_equal_grades_score_as_none(ranking: list[str], evidence: set[str]) -> None:
    graded = measures(ranking, evidence, dict.fromkeys(evidence, 7))
    assert graded == pytest.approx(measures(ranking, evidence))


@given(rankings, evidences)
def test_properties_of_plain_rankings(ranking: list[str], evidence: set[str]) -> None:
    check_laws(measures(ranking, evidence))


@given(merged, evidences)
def test_properties_of_merged_rankings(hits: list[list[str]], evidence: set[str]) -> None:
    check_laws(score_merged(hits, evidence, ks=KS, cuts=CUTS))


def check_laws(got: dict[str, float]) -> None:
    assert all(0 <= value <= 1 for value in got.values()), "every measure lies in [0, 1]"
    for k in KS:
        assert got[f"all@{k}"] <= got[f"recall@{k}"] <= got[f"hit@{k}"]
        assert got[f"precision@{k}"] <= got[f"hit@{k}"]
        assert bool(got[f"ndcg@{k}"]) == bool(got[f"hit@{k}"])
    for kind in ("hit", "recall", "all"):
        curve = [got[f"{kind}@{k}"] for k in KS]
        assert curve == sorted(curve), f"{kind} never falls as k grows"
    assert got["mrr@3"] <= got["mrr@10"] <= got["hit@10"]
    assert got["mrr@10"] >= got["hit@1"]


@given(st.lists(ids, min_size=1, max_size=10, unique=True), st.data())
def test_the_evidence_first_is_perfect(ranking: list[str], data: st.DataObject) -> None:
    evidence = set(ranking[: data.draw(st.integers(1, len(ranking)))])
    got = measures(ranking, evidence)
    assert got["map"] == got["mrr@3"] == got["all@10"] == 1
    assert [got[f"ndcg@{k}"] for k in KS] == [1] * len(KS)


@given(rankings, evidences)
def test_the_ranks_of_evidence_are_those_among_distinct_hits(
    ranking: list[str], evidence: set[str]
) -> None:
    expected = [rank for rank, id_ in enumerate(dedupe(ranking), 1) if id_ in evidence]
    assert list(relevant_positions(ranking, evidence)) == expected


@given(st.lists(st.tuples(rankings, st.lists(ids, min_size=1, max_size=4), st.booleans())))
def test_many_rankings_score_as_each_of_them_alone(
    questions: list[tuple[list[str], list[str], bool]],
) -> None:
    """Evidence ids may repeat in a list: questions with as many ids may have fewer memories."""
    grades = [dict.fromkeys(own[:1], 2) if graded else {} for _, own, graded in questions]
    got = score_all(
        [ranking for ranking, _, _ in questions],
        [own for _, own, _ in questions],
        ks=KS,
        cuts=CUTS,
        grades=grades,
    )
    alone = [
        tuple(measures(ranking, set(own), grade).values())
        for (ranking, own, _), grade in zip(questions, grades, strict=True)
    ]
    assert got == alone


def test_rankings_without_evidence_for_each_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rankings, but evidence of 1"):
        score_all([["a"], ["b"]], [["a"]], ks=KS, cuts=CUTS)


def test_a_subclass_that_overrides_value_alone_is_computed_by_its_value() -> None:
    """The table of many rankings must not use the `values` of the class that it extends."""

    class Half(Recall):
        def value(self, top: TopK) -> float:
            return 0.5

    assert not value_table._computes_many(Half)
    assert value_table._computes_many(Recall)
