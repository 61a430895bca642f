"""Figures on LoCoMo through the engine, and other people's published figures through `score`.

Published figures: ../shared/spec/retrieval-protocol.md §1.1 and §1.6 (measured on pgmnemo's own
raw_retrievals.jsonl), and trec_eval's out.test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets import dataset_info, open_dataset
from mnemoscope.runner.run import run
from mnemoscope.runner.score_rankings import rule_changes, score
from mnemoscope.systems.loader import plan

Shared = Callable[[str], Path]
Figures = dict[str, dict[str, Any]]
DEPTHS = (1, 3, 5, 10, 20, 25, 50)


def measured(run: RunDirectory) -> dict[str, Any]:
    metrics: dict[str, Any] = json.loads((run.path / "metrics.json").read_text())
    return metrics


def figures_of(
    data: Path, out: Path, systems: tuple[str, ...], **options: str
) -> dict[str, Figures]:
    dataset = open_dataset("locomo", data, options)
    runs = run(dataset, [plan(Spec.parse(system)) for system in systems], out)
    return {one.label: measured(one)["overall"] for one in runs}


@pytest.fixture(scope="module", autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One that no test has opened in this process: SQLite does not survive a fork."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MNEMOSCOPE_CACHE", str(tmp_path_factory.mktemp("golden-cache")))
        yield


@pytest.fixture(scope="module")
def sessions(locomo_runs: dict[str, RunDirectory]) -> dict[str, Figures]:
    return {name: measured(one)["overall"] for name, one in locomo_runs.items()}


@pytest.fixture(scope="module")
def turns(shared_data: Shared, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Figures]:
    out = tmp_path_factory.mktemp("turns")
    return figures_of(shared_data("locomo"), out, ("bm25", "random", "oracle"), granularity="turn")


def test_1982_questions_are_measured(
    sessions: dict[str, Figures], turns: dict[str, Figures]
) -> None:
    for figures in (*sessions.values(), *turns.values()):
        assert {figure["n"] for figure in figures.values()} == {1_982}


@pytest.mark.parametrize(("system", "least"), [("bm25", 0.915), ("hybrid", 0.93)])
def test_sessions_are_recalled_at_least_this_well(
    sessions: dict[str, Figures], system: str, least: float
) -> None:
    assert sessions[system]["recall@10"]["mean"] >= least


def test_the_interval_of_a_proportion_allows_for_the_conversations(
    sessions: dict[str, Figures],
) -> None:
    """decision-engine.md §4; Wilson's interval over single questions is [0.948, 0.966]."""
    assert sessions["bm25"]["hit@10"]["mean"] == pytest.approx(0.9581, abs=5e-5)
    assert sessions["bm25"]["hit@10"]["ci95"] == pytest.approx([0.9432, 0.9692], abs=5e-5)


def test_turns_are_recalled_at_least_this_well(turns: dict[str, Figures]) -> None:
    assert turns["bm25"]["recall@10"]["mean"] >= 0.57


@pytest.mark.parametrize("granularity", ["sessions", "turns"])
def test_the_oracle_reaches_the_ceiling_of_every_metric(
    request: pytest.FixtureRequest, granularity: str
) -> None:
    figures: Figures = request.getfixturevalue(granularity)["oracle"]
    assert len(figures) > 30
    for name, figure in figures.items():
        assert figure["mean"] == pytest.approx(figure["ceiling"], abs=1e-9), name
    # The most evidence a question has is 15 sessions or 19 turns, so twenty hits hold it all.
    perfect = [f"{name}@{k}" for name in ("hit", "ndcg") for k in DEPTHS]
    perfect += [f"{name}@{k}" for name in ("recall", "all") for k in DEPTHS if k >= 20]
    for name in (*perfect, "mrr@10", "mrr@50", "map"):
        assert figures[name]["mean"] == pytest.approx(1, abs=1e-9), name
    assert figures["recall@1"]["mean"] < 1


def test_no_system_is_above_the_ceiling(sessions: dict[str, Figures]) -> None:
    for figures in sessions.values():
        for name, figure in figures.items():
            assert figure["mean"] <= figure["ceiling"] + 1e-9, name


@pytest.mark.parametrize("granularity", ["sessions", "turns"])
@pytest.mark.parametrize("metric", ["recall@10", "hit@10", "mrr@50"])
def test_a_random_order_scores_what_chance_says(
    request: pytest.FixtureRequest, granularity: str, metric: str
) -> None:
    figure = request.getfixturevalue(granularity)["random"][metric]
    low, high = figure["ci95"]
    assert low <= figure["chance"] <= high
    assert 0 < low < high < 1


def test_chance_is_what_thirty_shuffles_gave(sessions: dict[str, Figures]) -> None:
    """retrieval-protocol.md §1.1: 0.370 / 0.423 / 0.164 on naive evidence, per conversation."""
    figures = sessions["random"]
    assert figures["recall@10"]["chance"] == pytest.approx(0.370, abs=0.005)
    assert figures["hit@10"]["chance"] == pytest.approx(0.423, abs=0.005)
    assert figures["mrr@50"]["chance"] == pytest.approx(0.164, abs=0.005)


# Somebody else's rankings.

PUBLISHED = {
    "v0.2.1_session_20260509": {
        "recall@5": 0.6623,
        "recall@10": 0.7951,
        "hit@10": 0.8391,
        "all@10": 0.7472,
        "mrr@10": 0.5385,
        "mrr@50": 0.5480,
    },
    "v0.3.0_session_20260513": {
        "recall@5": 0.6640,
        "recall@10": 0.7994,
        "hit@10": 0.8456,
        "all@10": 0.7482,
        "mrr@50": 0.5569,
    },
}


def scored(
    data: Path, dataset: str, rankings: Path, out: Path, *, compat: bool
) -> tuple[RunDirectory, dict[str, Any]]:
    options = dataset_info(dataset).published_rules["pgmnemo"].options if compat else {}
    found = score(
        open_dataset(dataset, data, options),
        rankings,
        out,
        format="pgmnemo",
        compat="pgmnemo" if compat else None,
    )
    return found, measured(found)


@pytest.mark.parametrize("version", PUBLISHED)
def test_what_pgmnemo_published_on_locomo_is_reproduced_by_its_own_rules(
    shared_data: Shared, tmp_path: Path, version: str
) -> None:
    file = shared_data("pgmnemo") / "locomo" / version / "raw_retrievals.jsonl"
    run, metrics = scored(shared_data("locomo"), "locomo", file, tmp_path / "run", compat=True)
    assert metrics["questions"]["measured"] == 1_982
    for name, published in PUBLISHED[version].items():
        assert round(metrics["overall"][name]["mean"], 4) == published, name
    theirs = json.loads((file.parent / "metrics.json").read_text())["overall"]
    assert theirs["recall@10"]["mean"] == round(metrics["overall"]["recall@10"]["mean"], 4)
    assert theirs["mrr"]["mean"] == round(metrics["overall"]["mrr@50"]["mean"], 4)
    assert any("pgmnemo's rules" in note for note in run.manifest().notes)
    if version.startswith("v0.3.0"):  # decision-engine.md §4
        assert metrics["overall"]["hit@10"]["ci95"] == pytest.approx([0.8034, 0.8801], abs=5e-5)


def test_the_file_keeps_ten_hits_so_nothing_deeper_is_claimed(
    shared_data: Shared, tmp_path: Path
) -> None:
    file = shared_data("pgmnemo/locomo/v0.2.1_session_20260509/raw_retrievals.jsonl")
    run, metrics = scored(shared_data("locomo"), "locomo", file, tmp_path / "run", compat=True)
    assert metrics["depth"] == 10
    assert not {"recall@20", "recall@25", "recall@50", "ndcg@20"} & set(metrics["overall"])
    assert metrics["overall"]["recall@10"]["chance"] is None  # the pool is not known
    assert any(note.startswith("mrr@50 is computed from the first ranks") for note in notes(run))


def notes(run: RunDirectory) -> list[str]:
    return run.manifest().notes


def test_what_the_rules_change_is_reported_metric_by_metric(
    shared_data: Shared, tmp_path: Path
) -> None:
    file = shared_data("pgmnemo/locomo/v0.2.1_session_20260509/raw_retrievals.jsonl")
    locomo = shared_data("locomo")
    theirs = scored(locomo, "locomo", file, tmp_path / "theirs", compat=True)[1]
    sound = scored(locomo, "locomo", file, tmp_path / "sound", compat=False)[1]
    changes = rule_changes(theirs, sound)
    assert set(changes) == set(theirs["overall"])
    for name, change in changes.items():
        assert change["compat"] == theirs["overall"][name]["mean"]
        assert change["sound"] == sound["overall"][name]["mean"]
        gained = change["sound"] - change["compat"]
        assert change["difference"] == pytest.approx(gained, abs=1e-6)
    # Measured: repairing six questions and counting repeated labels once gives three
    # ten-thousandths more.
    assert round(changes["recall@10"]["sound"], 4) == 0.7954
    assert round(changes["recall@10"]["difference"], 4) == 0.0003


ABSENT = "gpt4_7a0daae1"


def test_a_published_longmemeval_run_is_scored_on_the_499_we_have(
    shared_data: Shared, tmp_path: Path
) -> None:
    file = shared_data("pgmnemo/longmemeval/v0.2.1_pgmnemo_proper_20260509/raw_retrievals.jsonl")
    data = shared_data("longmemeval")
    run, metrics = scored(data, "longmemeval", file, tmp_path / "run", compat=True)
    rows = [row for row in map(json.loads, file.open()) if row["qid"] != ABSENT]
    hits = [set(row["retrieved_top10"]) & set(row["ground_truth"]) for row in rows]
    recall = [len(own) / len(row["ground_truth"]) for own, row in zip(hits, rows, strict=True)]
    overall = metrics["overall"]
    assert metrics["questions"]["measured"] == len(rows) == 499
    assert overall["recall@10"]["mean"] == pytest.approx(sum(recall) / 499, abs=1e-9)
    assert overall["hit@10"]["mean"] == pytest.approx(sum(map(bool, hits)) / 499, abs=1e-9)
    assert round(overall["recall@10"]["mean"], 3) == 0.933
    said = "\n".join(notes(run))
    assert "1 rankings are for questions that are not in the dataset" in said
    assert "is not the pinned file: sha256 b6060898fa74… instead of d6f21ea9d60a…" in said


def test_trec_evals_own_test_gets_trec_evals_own_numbers(
    shared_data: Shared, tmp_path: Path
) -> None:
    folder = shared_data("trec_eval")
    dataset = open_dataset("trec", folder / "qrels.test")
    run = score(dataset, folder / "results.test", tmp_path / "run", format="trec")
    metrics = measured(run)
    overall = metrics["overall"]
    assert metrics["depth"] == 500
    ours = {
        "map": overall["map"]["mean"],
        "P_5": overall["precision@5"]["mean"],
        "P_10": overall["precision@10"]["mean"],
        "P_20": overall["precision@20"]["mean"],
        "recip_rank": overall["mrr@500"]["mean"],
    }
    expected = {"map": 0.1785, "P_10": 0.3000, "recip_rank": 0.4064}
    lines = (folder / "out.test").read_text().splitlines()
    published = {name: value for name, topic, value in map(str.split, lines) if topic == "all"}
    for name, value in ours.items():
        assert f"{value:.4f}" == published[name], name
    assert {name: round(ours[name], 4) for name in expected} == expected
