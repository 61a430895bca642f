"""Rankings for other tools: ranx, ir_measures and trec_eval give our figures, and so do we."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.exports.conftest import HOSTILE, SmallRuns

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.measure import Depth
from mnemoscope.exports.document_rankings import (
    DocumentRankings,
    document_rankings,
    single_documents,
    trec_files,
)
from mnemoscope.results import RunResult
from mnemoscope.types import Trial

KS = (1, 3, 5, 10)


@pytest.fixture(params=["bm25", HOSTILE, "Quiet", "random"])
def run(small_runs: SmallRuns, request: pytest.FixtureRequest) -> RunResult:
    """Quiet fails on some questions and returns nothing for others."""
    return small_runs.results[request.param]


def ours(run: RunResult, name: str) -> float:
    return run.metrics["overall"][name]["mean"]


def test_ranx_computes_our_figures(run: RunResult) -> None:
    import ranx

    qrels, rankings = run.to_ranx()
    names = [f"{kind}@{k}" for kind in ("recall", "hit_rate", "ndcg", "precision") for k in KS]
    names += ["mrr@10", "mrr@50", "map"]
    found = ranx.evaluate(qrels, rankings, names)
    for name in names:
        expected = ours(run, name.replace("hit_rate", "hit"))
        assert found[name] == pytest.approx(expected, abs=1e-9), name
    assert rankings.name == run.label


def test_ir_measures_computes_our_figures(run: RunResult) -> None:
    import ir_measures
    from ir_measures import AP, RR, P, R, Success, nDCG

    kinds = {"recall": R, "hit": Success, "ndcg": nDCG, "precision": P}
    measures = {f"{name}@{k}": kind @ k for name, kind in kinds.items() for k in KS}
    measures |= {"mrr@10": RR @ 10, "map": AP}
    found = ir_measures.calc_aggregate(list(measures.values()), *run.to_ir_measures())
    for name, measure in measures.items():
        assert found[measure] == pytest.approx(ours(run, name), abs=1e-9), name


def test_trec_eval_computes_our_figures_from_the_files(run: RunResult, tmp_path: Path) -> None:
    import pytrec_eval

    qrels_file, run_file = run.to_trec(tmp_path)
    qrels: dict[str, dict[str, int]] = {}
    for line in qrels_file.read_text().splitlines():
        question, _, document, grade = line.split()
        qrels.setdefault(question, {})[document] = int(grade)
    rankings: dict[str, dict[str, float]] = {}
    for line in run_file.read_text().splitlines():
        question, _, document, rank, score, _ = line.split()
        # Strictly falling: no two documents tie, and the order is that of the ranks.
        assert float(score) < min(rankings.get(question, {"": 1e9}).values())
        rankings.setdefault(question, {})[document] = float(score)
        assert int(rank) == len(rankings[question])
    names = {"recall": "recall_{}", "hit": "success_{}", "ndcg": "ndcg_cut_{}", "precision": "P_{}"}
    wanted = {other.partition("_{")[0] for other in names.values()} | {"recip_rank", "map"}
    per_question = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(rankings)

    def mean(measure: str) -> float:
        return float(sum(own[measure] for own in per_question.values()) / len(per_question))

    for name, other in names.items():
        for k in (5, 10):  # at which trec_eval has all of them
            assert mean(other.format(k)) == pytest.approx(ours(run, f"{name}@{k}"), abs=1e-6), name
    assert mean("map") == pytest.approx(ours(run, "map"), abs=1e-6)
    deepest = [name for name in run.metrics["overall"] if name.startswith("mrr@")][-1]
    assert mean("recip_rank") == pytest.approx(ours(run, deepest), abs=1e-6)


@pytest.mark.parametrize("format", ["trec", "jsonl"])
def test_a_round_trip_through_score_is_equal(
    run: RunResult, small_runs: SmallRuns, tmp_path: Path, format: Any
) -> None:
    made = ms.export(run, format, what="rankings", out=tmp_path)
    file = next(one for one in made.written if one.suffix in (".run", ".jsonl"))
    again = ms.score(
        file,
        dataset="locomo",
        format=format,
        data=small_runs.data,
        depth=run.metrics["depth"],
        out=tmp_path / "scored",
    )
    assert again.metrics["overall"] == run.metrics["overall"]
    assert again.metrics["by_category"] == run.metrics["by_category"]
    assert again.metrics["questions"] == run.metrics["questions"]
    assert again.metrics["hits"]["unknown_ids"] == run.metrics["hits"]["unknown_ids"]


def test_the_exported_qrels_are_a_dataset(run: RunResult, tmp_path: Path) -> None:
    qrels, rankings = run.to_trec(tmp_path)
    again = ms.score(
        rankings,
        dataset="trec",
        data=qrels,
        format="trec",
        depth=run.metrics["depth"],
        out=tmp_path / "scored",
    )
    for name in ("recall@10", "hit@5", "ndcg@10", "mrr@10"):
        assert ours(again, name) == pytest.approx(ours(run, name), abs=1e-9)


def test_hits_that_are_no_single_memories_keep_their_figures_or_are_refused() -> None:
    depth = Depth(10)
    about: dict[str, Any] = {"scenario": "s", "question": "q", "status": "answered", "pool": 9}
    parts = Trial(
        **about,
        evidence=("day1", "day2"),
        reachable=2,
        ranking=("a", "b", "c", "d"),
        sources={"a": ("a", "day3"), "b": ("b", "day1"), "c": ("c", "day1"), "d": ("d", "day2")},
        places={"a": 1, "b": 1, "c": 1, "d": 1},
    )
    found = single_documents(parts, 10)
    assert found == ["no-new-evidence-1", "day1", "no-new-evidence-3", "day2"]
    plain = Trial(**about, evidence=parts.evidence, reachable=2, ranking=tuple(found))
    assert depth.values(plain) == pytest.approx(depth.values(parts))

    several = Trial(
        **about,
        evidence=("m1",),
        reachable=1,
        ranking=("x", "m1"),
        sources={"x": ("m2", "m3", "m4")},
    )
    spread = single_documents(several, 10)
    assert spread == [*(f"no-new-evidence-{place}" for place in (1, 2, 3)), "m1"]
    plain = Trial(**about, evidence=("m1",), reachable=1, ranking=tuple(spread))
    assert depth.values(plain) == pytest.approx(depth.values(several))

    combined = Trial(
        **about, evidence=("m2",), reachable=1, ranking=("x",), sources={"x": ("m1", "m2")}
    )
    assert single_documents(combined, 10) is None


class Merges:
    """Every hit is made from two memories."""

    def remember(self, memories: list[ms.Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: ms.Query, k: int) -> list[ms.Hit]:
        pairs = zip(self.ids[::2], self.ids[1::2], strict=False)
        return [ms.Hit(f"{one}+{other}", sources=(one, other)) for one, other in pairs]


def test_a_run_whose_hits_combine_memories_says_why_it_cannot_be_exported(
    small_runs: SmallRuns, tmp_path: Path
) -> None:
    made = ms.run(
        "locomo", systems=[Merges], data=small_runs.data, out=tmp_path / "runs", baselines=False
    )
    run = made["Merges"]
    for format in ("trec", "ranx", "ir-measures"):
        with pytest.raises(UsageError, match="credited with several memories"):
            ms.export(run, format, out=tmp_path / "x")
    [file] = ms.export(run, "jsonl", what="rankings", out=tmp_path / "rankings.jsonl").written
    again = ms.score(file, dataset="locomo", data=small_runs.data, out=tmp_path / "scored")
    assert again.metrics["overall"] == run.metrics["overall"]


def test_trec_files_refuse_ids_with_white_space() -> None:
    for id in ("a b", "", "a\tb"):
        found = DocumentRankings({"q": {"m": 1}}, {"q": [id]}, 10, 0, 0, 0)
        with pytest.raises(UsageError, match="white space"):
            trec_files(found, "x")


def test_ranx_reads_the_files(small_runs: SmallRuns, tmp_path: Path) -> None:
    import ranx

    run = small_runs.results["bm25"]
    made = ms.export(run, "ranx", out=tmp_path)
    qrels_file, run_file = sorted(map(str, made.written))
    qrels, rankings = ranx.Qrels.from_file(qrels_file), ranx.Run.from_file(run_file)
    assert ranx.evaluate(qrels, rankings, "recall@10") == pytest.approx(ours(run, "recall@10"))


def test_notes_say_what_was_left_out_and_what_stands_for_an_empty_list(
    small_runs: SmallRuns,
) -> None:
    run = small_runs.results["Quiet"]
    found = document_rankings(run.directory)
    asked = run.metrics["questions"]
    assert found.failed == asked["scorable"] - asked["measured"] > 0
    assert found.without_hits > 0
    said = " ".join(ms.export(run, "trec").caveats)
    assert "questions failed and are left out" in said
    assert "without hits have the document no-hits" in said


def test_the_shape_of_mteb(small_runs: SmallRuns) -> None:
    run = small_runs.results["Quiet"]
    content = json.loads(ms.export(run, "mteb").text)
    assert content["task_name"] == "locomo"
    assert content["mteb_version"] is None
    [scores] = content["scores"]["test"]
    assert scores["hf_subset"] == "default"
    assert scores["languages"] == ["eng-Latn"]
    assert scores["main_score"] == scores["recall_at_10"] == ours(run, "recall@10")
    assert scores["hit_rate_at_5"] == ours(run, "hit@5")
    assert scores[f"map_at_{run.metrics['depth']}"] == ours(run, "map")
    about = content["mnemoscope"]
    assert about["status"] == "UNVERIFIED"
    low, high = about["bounds"]["recall_at_10"]
    assert low < high == scores["main_score"]
    assert any("not measured" in line for line in about["caveats"])
