"""From trials to figures: small cases that were computed by hand."""

from __future__ import annotations

from math import log2
from typing import Any

import msgspec
import pytest

from mnemoscope.analysis.measure import Depth, evidence_ranks, measure
from mnemoscope.runner.pipeline import Ask
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Ingestion, Memory, Question, Receipt, Scenario, Status, Trial


def trial(
    evidence: str,
    ranking: str = "",
    *,
    status: Status = "answered",
    pool: int = 4,
    reachable: int | None = None,
    **more: Any,
) -> Trial:
    """A trial whose memories have letters for ids."""
    number = f"{evidence}-{ranking}-{status}"
    more = {"cluster": "s", "scenario": "s", "tokens": (1,) * len(ranking), **more}
    return Trial(
        question=number,
        status=status,
        evidence=tuple(evidence),
        ranking=tuple(ranking),
        pool=pool,
        reachable=len(evidence) if reachable is None else reachable,
        **more,
    )


FIRST = trial("a", "abc", category="easy")
LATE = trial("ab", "cab", category="hard")
MISSED = trial("d", "abc", category="hard")
FAILED = trial("a", status="error", category="hard")


def figures(*trials: Trial, depth: Depth = Depth(3)) -> dict[str, dict[str, Any]]:
    overall: Any = measure(trials, [], depth)["overall"]
    return dict(overall)


def means(*trials: Trial, depth: Depth = Depth(3)) -> dict[str, float]:
    return {name: figure["mean"] for name, figure in figures(*trials, depth=depth).items()}


def test_every_metric_is_the_mean_over_the_questions() -> None:
    two = 1 + 1 / log2(3)
    assert means(FIRST, LATE, MISSED) == pytest.approx(
        {
            "hit@1": 1 / 3,
            "recall@1": 1 / 3,
            "all@1": 1 / 3,
            "precision@1": 1 / 3,
            "ndcg@1": 1 / 3,
            "hit@3": 2 / 3,
            "recall@3": 2 / 3,
            "all@3": 2 / 3,
            "precision@3": (1 / 3 + 2 / 3 + 0) / 3,
            "ndcg@3": (1 + (1 / log2(3) + 1 / log2(4)) / two + 0) / 3,
            "mrr@3": (1 + 1 / 2 + 0) / 3,
            "map": (1 + (1 / 2 + 2 / 3) / 2 + 0) / 3,
        }
    )


@pytest.mark.parametrize("status", ["error", "timeout", "not-indexed"])
def test_failures_are_left_out_of_the_mean_and_wrong_in_the_lower_bound(status: Status) -> None:
    failed = msgspec.structs.replace(FAILED, status=status)
    measured = measure([FIRST, LATE, MISSED, failed], [], Depth(3))

    assert measured["questions"] == {
        "asked": 4,
        "scorable": 4,
        "measured": 3,
        "clusters": len({trial.cluster for trial in (FIRST, LATE, MISSED)}),
        "without_evidence": 0,
        "coverage": 0.75,
    }
    assert measured["overall"]["hit@1"]["n"] == 3
    assert measured["overall"]["hit@1"]["bounds"] == pytest.approx([1 / 4, 1 / 3])
    assert measured["overall"]["mrr@3"]["bounds"] == pytest.approx([1.5 / 4, 1.5 / 3])
    assert measured["statuses"] == {"answered": 3, status: 1}


def test_an_empty_answer_is_wrong_not_a_failure() -> None:
    figure = figures(FIRST, trial("a", status="empty"))["hit@1"]

    assert (figure["mean"], figure["n"]) == (0.5, 2)
    assert "bounds" not in figure


def test_bounds_of_a_category_use_its_own_failures_only() -> None:
    measured = measure([FIRST, LATE, MISSED, FAILED], [], Depth(3))["by_category"]

    assert list(measured) == ["easy", "hard"]
    assert measured["easy"]["hit@3"]["mean"] == 1
    assert "bounds" not in measured["easy"]["hit@3"]
    assert measured["hard"]["hit@3"]["mean"] == 0.5
    assert measured["hard"]["hit@3"]["bounds"] == pytest.approx([1 / 3, 1 / 2])


def test_a_category_in_which_all_failed_has_no_figures() -> None:
    measured = measure([FIRST, FAILED], [], Depth(3))

    assert measured["by_category"]["hard"] == {}
    assert measured["questions"]["coverage"] == 0.5


def test_questions_without_a_category_are_in_no_category() -> None:
    assert measure([trial("a", "a")], [], Depth(3))["by_category"] == {}


def test_questions_without_evidence_are_counted_and_left_out() -> None:
    unanswerable = trial("", "abc", category="easy")
    measured = measure([FIRST, unanswerable], [], Depth(3))

    assert measured["questions"]["asked"] == 2
    assert measured["questions"]["without_evidence"] == 1
    assert measured["questions"]["coverage"] == 1
    assert measured["overall"] == measure([FIRST], [], Depth(3))["overall"]


def test_nothing_measured_gives_no_figures_rather_than_zeros() -> None:
    assert measure([], [], Depth(3))["questions"]["coverage"] is None
    measured = measure([FAILED], [], Depth(3))
    assert measured["questions"]["coverage"] == 0
    assert measured["overall"] == {}
    assert measured["context"] == {}


def test_chance_is_that_of_a_random_order_averaged_over_the_questions() -> None:
    # One of four, and two of four: C(2, 1) / C(4, 3) draws of three hold both.
    measured = figures(FIRST, LATE)

    assert measured["hit@1"]["chance"] == pytest.approx((1 / 4 + 2 / 4) / 2)
    assert measured["recall@1"]["chance"] == pytest.approx((1 / 4 + 1 / 4) / 2)
    assert measured["all@3"]["chance"] == pytest.approx((3 / 4 + 2 / 4) / 2)
    assert measured["hit@1"]["lift"] == pytest.approx(1 / 2 - 3 / 8)
    first = figures(FIRST)
    assert first["mrr@3"]["chance"] == pytest.approx((1 + 1 / 2 + 1 / 3) / 4)


def test_without_a_known_pool_there_is_no_chance_and_no_metric_is_vacuous() -> None:
    figure = figures(trial("a", "a", pool=0))["hit@3"]

    assert figure["chance"] is figure["lift"] is None
    assert "vacuous" not in figure


def test_a_metric_is_vacuous_if_chance_is_high_or_k_covers_the_pool() -> None:
    measured = figures(trial("a", "a", pool=10), depth=Depth(20))

    assert {name for name, figure in measured.items() if figure.get("vacuous")} == {
        f"{kind}@{k}" for kind in ("hit", "recall", "all", "precision", "ndcg") for k in (10, 20)
    }
    assert measured["hit@5"]["chance"] == 0.5
    assert figures(trial("ab", "a", pool=10), depth=Depth(5))["hit@5"]["vacuous"]
    assert "vacuous" not in measured["mrr@20"]
    assert "vacuous" not in measured["map"]


def test_the_ceiling_is_the_best_that_any_ranking_could_score() -> None:
    both = {name: figure["ceiling"] for name, figure in figures(LATE).items()}
    assert both["recall@1"] == both["precision@1"] / 2 == 0.5
    assert both["all@1"] == 0
    assert both["precision@3"] == pytest.approx(2 / 3)
    assert both["recall@3"] == both["all@3"] == both["ndcg@3"] == both["mrr@3"] == both["map"] == 1


def test_evidence_that_is_not_in_the_pool_lowers_the_ceiling() -> None:
    one = figures(trial("az", "a", reachable=1))
    none = figures(trial("z", "a", reachable=0))

    assert one["hit@1"]["ceiling"] == one["mrr@3"]["ceiling"] == 1
    assert one["recall@3"]["ceiling"] == one["map"]["ceiling"] == 0.5
    assert one["all@3"]["ceiling"] == 0
    assert one["ndcg@3"]["ceiling"] == pytest.approx(1 / (1 + 1 / log2(3)))
    assert {figure["ceiling"] for figure in none.values()} == {0.0}


def test_grades_weigh_the_gain_and_its_ceiling() -> None:
    # The pool lacks one of the two; it may be either, so the ceiling takes the better to be there.
    graded = trial("ab", "ba", reachable=1, grades={"a": 3, "b": 1})
    figure = figures(graded)["ndcg@3"]

    ideal = 3 + 1 / log2(3)
    assert figure["mean"] == pytest.approx((1 + 3 / log2(3)) / ideal)
    assert figure["ceiling"] == pytest.approx(3 / ideal)


def test_evidence_that_a_dataset_cites_twice_counts_once() -> None:
    pool = TrialBuilder(Scenario("s", (Memory("a", "text"),), ()))
    twice = pool.trial(Ask("", Question("q", "where?", evidence=("a", "a"), grades={"a": 2})))

    assert twice.evidence == ("a",)
    assert figures(twice)["recall@1"]["chance"] == 1


def test_proportions_get_wilson_s_interval() -> None:
    # Wilson's interval of 1 in 3, as R's prop.test(1, 3, correct = FALSE) gives it.
    interval = figures(FIRST, LATE, MISSED)["hit@1"]["ci95"]

    assert interval == pytest.approx([0.0615, 0.7923], abs=5e-5)


def test_the_interval_of_a_mean_comes_from_whole_clusters() -> None:
    alike = [
        trial("ab", ranking, cluster=cluster)
        for cluster in "stuvwx"
        for ranking in ("acd", "cde")
        for _ in range(10)
    ]
    apart = [
        trial("ab", ranking, cluster=cluster)
        for cluster, ranking in zip("stuvwx", ("acd", "cde") * 3, strict=True)
        for _ in range(20)
    ]
    (low, high), (lower, higher) = (
        figures(*trials)["recall@3"]["ci95"] for trials in (alike, apart)
    )

    # The questions vary as much in both, the conversations only in the second.
    assert lower < low < 0.25 < high < higher
    assert higher - lower > 3 * (high - low) > 0


@pytest.mark.parametrize(("clusters", "kind"), [(4, "these conversations only"), (5, "clustered")])
def test_the_file_says_once_what_its_intervals_are_about(clusters: int, kind: str) -> None:
    trials = [trial("a", "ab", cluster=str(n % clusters), category="x") for n in range(20)]
    rare = [trial("a", "ab", cluster="0", category="rare") for _ in range(3)]

    assert measure(trials, [], Depth(3))["interval"] == kind
    few = measure([*trials, *rare], [], Depth(3)).get("few_clusters", [])
    assert few == (["rare"] if kind == "clustered" else [])


def test_a_figure_that_is_right_everywhere_has_an_interval_with_width() -> None:
    trials = [trial("a", "abc", cluster=str(n % 5)) for n in range(250)]

    for name, figure in figures(*trials).items():
        assert figure["ci95"][0] < figure["ci95"][1], name
    assert figures(*trials)["hit@3"]["ci95"] == pytest.approx([0.9701, 1.0], abs=5e-5)


def test_hits_count_repetitions_and_unknown_ids_of_all_trials() -> None:
    unanswerable = trial("", "aab", unknown=2)
    hits = measure([trial("a", "aba", unknown=1), unanswerable], [], Depth(3))["hits"]

    assert (hits["returned"], hits["duplicates"], hits["unknown_ids"]) == (6, 2, 3)


def test_a_hit_made_of_memories_counts_as_all_their_evidence() -> None:
    merged = trial("ab", "xy", sources={"x": ("c",), "y": ("a", "b")})

    assert evidence_ranks(merged) == [2]
    assert means(merged)["recall@3"] == 1
    assert means(merged)["mrr@3"] == 0.5


def test_context_counts_the_evidence_that_fits_whole_into_each_budget() -> None:
    rising = trial("bc", "abc", tokens=(200, 100, 300))
    context = measure([rising, FAILED], [], Depth(10))["context"]

    assert context["tokens@10"] == 600
    by_budget = context["recall_by_tokens"]
    assert {budget: by_budget[budget]["mean"] for budget in ("256", "512", "1024")} == {
        "256": 0,
        "512": 0.5,
        "1024": 1,
    }
    assert {figure["n"] for figure in by_budget.values()} == {1}


def test_context_at_ten_is_the_tokens_of_the_first_ten_hits() -> None:
    long = trial("a", "bcdefghijklm", tokens=(10,) * 12, pool=20)

    assert measure([long, long], [], Depth(50))["context"]["tokens@10"] == 100


def test_evidence_reached_is_the_share_of_evidence_in_the_index() -> None:
    lines = [
        Ingestion("s", 10, Receipt(rejected={"a": "too long"}, truncated={"b": 0.25})),
        Ingestion("t", 5, Receipt(merged={"x": "y"})),
        Ingestion("u", 3, error="ValueError: too much"),
    ]
    trials = [
        trial("ab", "b"),
        trial("cd", "c", reachable=1),
        trial("ab", "a", scenario="t"),
        trial("a", status="not-indexed", scenario="u"),
    ]

    assert measure(trials, lines, Depth(3))["ingestion"] == {
        "memories": 18,
        "rejected": 1,
        "merged": 1,
        "truncated": 1,
        "scenarios_failed": 1,
        # Of seven, a was rejected and a quarter of b kept; d is not in the pool and, in u,
        # nothing was stored; c and, in t, a and b are there whole.
        "evidence_reached": pytest.approx((0 + 0.25 + 1 + 0 + 1 + 1 + 0) / 7),
        "evidence_unreachable": 1,
    }


def test_recorded_first_ranks_are_a_figure_of_their_own() -> None:
    deep = trial("a", "bcdefghijk", pool=100, first_rank=20)
    never = trial("a", "bcdefghijk", pool=100, first_rank=0)
    third = trial("a", "bcadefghij", pool=100, first_rank=3)
    measured = figures(deep, never, third, depth=Depth(10, 50))

    assert measured["mrr@10"]["mean"] == pytest.approx((0 + 0 + 1 / 3) / 3)
    assert measured["mrr@50"]["mean"] == pytest.approx((1 / 20 + 0 + 1 / 3) / 3)
    assert measured["mrr@10"]["chance"] == pytest.approx(sum(1 / r for r in range(1, 11)) / 100)
    assert measured["mrr@50"]["chance"] == pytest.approx(sum(1 / r for r in range(1, 51)) / 100)
    assert measured["mrr@50"]["ceiling"] == 1
    assert not [name for name in measured if name.endswith(("@20", "@25"))]
    assert [name for name in measured if name.endswith("@50")] == ["mrr@50"]


def test_no_metric_is_deeper_than_the_rankings() -> None:
    assert Depth(10).names[-2:] == ("mrr@10", "map")
    assert Depth(50).names[-3:] == ("mrr@10", "mrr@50", "map")
    assert {name.partition("@")[2] for name in Depth(7).names} == {"1", "3", "5", "7", ""}
    assert [name for name in Depth(7).names if name.endswith("@7")] == ["mrr@7"]


def test_the_same_trials_give_the_same_bytes() -> None:
    trials = [
        trial("ab", ranking, cluster=f"s{number // 3}", category="xy"[number % 2])
        for number, ranking in enumerate(["acd", "cda", "dca", "abc", "dcb"] * 6)
    ]

    first = msgspec.json.encode(measure(trials, [], Depth(3)))

    assert msgspec.json.encode(measure(list(trials), [], Depth(3))) == first
    # The order of the questions does not matter: nothing in an interval is random.
    again = measure(trials[::-1], [], Depth(3))["overall"]
    for name, figure in measure(trials, [], Depth(3))["overall"].items():
        assert again[name]["ci95"] == pytest.approx(figure["ci95"], abs=1e-8)
