"""The ranking measures against trec_eval's own output, pytrec_eval and ranx."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import pytest
import pytrec_eval
from hypothesis import given
from hypothesis import strategies as st

from mnemoscope.metrics import dedupe, score

TREC_KS = (5, 10, 15, 20, 30, 100, 200, 500, 1000)
KS = (1, 3, 5, 10)
TREC_NAMES = {
    "hit": "success_{}",
    "recall": "recall_{}",
    "precision": "P_{}",
    "ndcg": "ndcg_cut_{}",
}
RANX_NAMES = {
    "hit": "hit_rate@{}",
    "recall": "recall@{}",
    "precision": "precision@{}",
    "ndcg": "ndcg@{}",
}

ids = st.sampled_from([f"m{n}" for n in range(25)])
rankings = st.lists(ids, min_size=1, max_size=40)
graded_evidence = st.dictionaries(
    ids | st.just("not in the pool"), st.integers(1, 3), min_size=1, max_size=8
)


def by_trec_order(scores: dict[str, float]) -> list[str]:
    """trec_eval ignores the rank column: by score, ties by document id, both descending."""
    return sorted(scores, key=lambda id_: (scores[id_], id_), reverse=True)


def falling_scores(ranking: list[str]) -> dict[str, float]:
    return {id_: float(len(ranking) - n) for n, id_ in enumerate(ranking)}


def pytrec(run: dict[str, float], grades: dict[str, int]) -> dict[str, float]:
    depths = ",".join(map(str, KS))
    names = {f"{name}.{depths}" for name in ("success", "recall", "P", "ndcg_cut")}
    evaluator = pytrec_eval.RelevanceEvaluator({"q": grades}, names | {"map", "recip_rank"})
    result: dict[str, float] = evaluator.evaluate({"q": run})["q"]
    return result


def in_trec_names(got: dict[str, float], ks: tuple[int, ...], cut: int) -> dict[str, float]:
    at_k = {trec.format(k): got[f"{ours}@{k}"] for ours, trec in TREC_NAMES.items() for k in ks}
    return at_k | {"map": got["map"], "recip_rank": got[f"mrr@{cut}"]}


def trec_expectations(file: Path) -> dict[str, dict[str, str]]:
    expected: dict[str, dict[str, str]] = defaultdict(dict)
    for line in file.read_text().splitlines():
        name, query, value = line.split()
        expected[query][name] = value
    return expected


@pytest.fixture(scope="module")
def trec_test(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("trec_eval")


@pytest.fixture(scope="module")
def trec_scores(trec_test: Path) -> dict[str, dict[str, float]]:
    """Our measures of trec_eval's own test run, in its names."""
    relevant: dict[str, set[str]] = defaultdict(set)
    for line in (trec_test / "qrels.test").read_text().splitlines():
        query, _, document, grade = line.split()
        if int(grade) > 0:
            relevant[query].add(document)
    run: dict[str, dict[str, float]] = defaultdict(dict)
    for line in (trec_test / "results.test").read_text().splitlines():
        query, _, document, _, value, _ = line.split()
        run[query][document] = float(value)
    return {
        query: in_trec_names(
            score(by_trec_order(found), relevant[query], ks=(1, *TREC_KS), cuts=(1000,)),
            (1, *TREC_KS),
            1000,
        )
        for query, found in run.items()
    }


def test_every_query_as_trec_eval_prints_it(
    trec_test: Path, trec_scores: dict[str, dict[str, float]]
) -> None:
    expected = trec_expectations(trec_test / "out.test.aq")
    compared = 0
    for query, got in trec_scores.items():
        shared = got.keys() & expected[query].keys()
        assert {n: f"{got[n]:.4f}" for n in shared} == {n: expected[query][n] for n in shared}
        compared += len(shared)
    # map, recip_rank, three successes, and P, recall and ndcg_cut at nine depths.
    assert compared == 3 * (2 + 3 + 3 * 9)


@pytest.mark.parametrize(("file", "measures"), [("out.test", 11), ("out.test.a", 32)])
def test_the_mean_over_queries_as_trec_eval_prints_it(
    trec_test: Path, trec_scores: dict[str, dict[str, float]], file: str, measures: int
) -> None:
    expected = trec_expectations(trec_test / file)["all"]
    shared = next(iter(trec_scores.values())).keys() & expected.keys()
    means = {n: sum(got[n] for got in trec_scores.values()) / len(trec_scores) for n in shared}
    assert {n: f"{mean:.4f}" for n, mean in means.items()} == {n: expected[n] for n in shared}
    assert len(shared) == measures


@given(rankings, graded_evidence, st.booleans())
def test_agrees_with_pytrec_eval_on_our_order(
    ranking: list[str], grades: dict[str, int], binary: bool
) -> None:
    if binary:
        grades = dict.fromkeys(grades, 1)
    got = score(ranking, grades, ks=KS, cuts=(1000,), grades=grades)
    expected = pytrec(falling_scores(dedupe(ranking)), grades)
    assert in_trec_names(got, KS, 1000) == pytest.approx(expected, abs=1e-9)


@given(st.dictionaries(ids, st.sampled_from([0.0, 0.5, 1.0]), min_size=1), graded_evidence)
def test_ties_in_trec_order_agree_with_pytrec_eval_on_tied_scores(
    tied: dict[str, float], grades: dict[str, int]
) -> None:
    got = score(by_trec_order(tied), grades, ks=KS, cuts=(1000,), grades=grades)
    assert in_trec_names(got, KS, 1000) == pytest.approx(pytrec(tied, grades), abs=1e-9)


@given(rankings, graded_evidence, st.integers(1, 12))
def test_a_cut_reciprocal_rank_is_that_of_the_cut_ranking(
    ranking: list[str], grades: dict[str, int], cut: int
) -> None:
    got = score(ranking, grades, ks=(1,), cuts=(cut,))
    expected = pytrec(falling_scores(dedupe(ranking)[:cut]), grades)
    assert got[f"mrr@{cut}"] == pytest.approx(expected["recip_rank"])


@pytest.mark.filterwarnings("ignore")
def test_agrees_with_ranx_on_our_order() -> None:
    from ranx import Qrels, Run, evaluate

    dice = random.Random(7)
    pool = [f"m{n}" for n in range(30)]
    rankings = {f"q{n}": dice.choices(pool, k=dice.randint(1, 40)) for n in range(200)}
    grades = {
        query: {id_: dice.randint(1, 3) for id_ in dice.sample([*pool, "lost"], k=4)}
        for query in rankings
    }
    run = {query: falling_scores(dedupe(ranking)) for query, ranking in rankings.items()}
    names = {f"{ours}@{k}": ranx.format(k) for ours, ranx in RANX_NAMES.items() for k in KS}
    names |= {"mrr@5": "mrr@5", "map": "map"}

    theirs = Run(run)
    evaluate(Qrels(grades), theirs, list(names.values()), save_results_in_run=True)

    for query, ranking in rankings.items():
        got = score(ranking, grades[query], ks=KS, cuts=(5,), grades=grades[query])
        expected = {ours: theirs.scores[name][query] for ours, name in names.items()}
        assert {name: got[name] for name in names} == pytest.approx(expected), query
