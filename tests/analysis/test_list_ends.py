"""Nothing is known after the end of a list: bounds instead of points, no tokens without texts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.aggregates import gate
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.measure import Depth, measure
from mnemoscope.analysis.verify import verify
from mnemoscope.datasets import open_dataset
from mnemoscope.reports.run_report import report
from mnemoscope.reports.run_view import RunView, caveats
from mnemoscope.runner.score_rankings import score
from mnemoscope.types import Trial


def trial(ranking: str, evidence: str, **changes: Any) -> Trial:
    """One trial; every letter is a memory of ten tokens in a pool of 26."""
    known: dict[str, Any] = {
        "pool": 26,
        "reachable": len(evidence),
        "tokens": (10,) * len(ranking),
        "cluster": f"c{ranking}{evidence}",
        **changes,
    }
    return Trial("s", ranking + evidence, "answered", "", evidence=tuple(evidence),
                 ranking=tuple(ranking), **known)  # fmt: skip


def test_a_list_that_a_file_cuts_gives_bounds_and_leaves_overall() -> None:
    whole, cut = trial("abcdefghij", "j"), trial("klm", "z", cut=3)

    found = measure([whole, cut], [], Depth(10))

    assert set(found["overall"]) >= {"recall@1", "recall@3", "hit@3"}
    assert "recall@5" not in found["overall"]
    assert found["beyond_end"]["recall@5"] == {"bounds": [0.0, 0.5], "n": 2, "cut": 1}
    assert found["beyond_end"]["recall@10"]["bounds"] == [0.5, 1.0]
    # The best end of the list has the evidence at rank 4.
    assert found["beyond_end"]["mrr@10"]["bounds"] == [0.05, pytest.approx(0.175)]


def test_a_cut_list_that_has_all_its_evidence_gives_points() -> None:
    found = measure([trial("abcdefghij", "j"), trial("klm", "k", cut=3)], [], Depth(10))

    assert "beyond_end" not in found
    assert found["overall"]["recall@10"]["mean"] == 1.0


def test_the_truth_lies_between_the_bounds_whatever_the_list_would_have_been() -> None:
    cut = trial("abc", "xy", cut=3)

    found = measure([cut], [], Depth(10))

    for rest in ("xydefgh", "defghxy", "dxefghy", "defghij"):
        true = measure([trial("abc" + rest, "xy")], [], Depth(10))["overall"]
        for name, own in found["beyond_end"].items():
            assert own["bounds"][0] <= true[name]["mean"] <= own["bounds"][1], (name, rest)


def test_a_system_that_returned_fewer_hits_than_asked_for_has_no_more() -> None:
    found = measure([trial("abc", "z")], [], Depth(10))

    assert "beyond_end" not in found
    assert found["context"]["recall_by_tokens"]["32768"]["mean"] == 0.0
    assert found["context"]["tokens@10"] == 30.0


def test_a_budget_beyond_a_list_that_was_cut_by_its_depth_gives_bounds() -> None:
    found = measure([trial("abcdefghij", "z")], [], Depth(10))["context"]["recall_by_tokens"]

    assert found["256"] == {"mean": None, "n": 1, "ci95": None, "bounds": [0.0, 1.0]}


def test_a_budget_that_ends_within_the_list_gives_a_point() -> None:
    long = trial("abcdefghij", "z", tokens=(60,) * 10)

    found = measure([long], [], Depth(10))["context"]["recall_by_tokens"]

    assert [found["256"]["mean"], found["512"]["mean"]] == [0.0, 0.0]
    assert found["1024"]["mean"] is None


def test_tokens_at_ten_needs_ten_hits_or_the_end_of_the_memories() -> None:
    assert "tokens@10" not in measure([trial("abcde", "a")], [], Depth(5))["context"]
    everything = trial("abcde", "a", pool=5)
    assert measure([everything], [], Depth(5))["context"]["tokens@10"] == 50.0


def test_a_hit_without_a_known_text_gives_no_figures_by_tokens() -> None:
    assert measure([trial("abc", "a", tokens=())], [], Depth(10))["context"] == {}


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    corpus = [{"id": n, "content": f"memory number {n} of thirty"} for n in range(1, 31)]
    queries = [{"query_id": f"q{n}", "text": f"{n}?", "stratum": "exact"} for n in (1, 2, 3)]
    judged = [{"query_id": f"q{n}", "relevant_ids": [n]} for n in (1, 2, 3)]
    for name, lines in (("corpus", corpus), ("queries", queries), ("qrels", judged)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def _scored(data: Path, name: str, **lists: list[int]) -> Any:
    lines = [{"question": q, "ranking": [f"{n}" for n in own]} for q, own in lists.items()]
    file = data.parent / f"{name}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return score(open_dataset("strata", data), file, data.parent / name)


def test_a_file_with_lists_of_different_lengths_is_not_read_beyond_their_ends(data: Path) -> None:
    run = _scored(data, "mine", q1=[*range(1, 21)], q2=[9, 8, 7], q3=[*range(1, 11)])
    other = _scored(data, "other", q1=[*range(1, 21)], q2=[2, 9, 8], q3=[*range(1, 11)])

    view = RunView.of(run)

    assert view.metrics["beyond_end"]["recall@10"]["bounds"] == [0.6666666667, 1.0]
    assert "recall@3" in view.metrics["overall"]
    assert any("recall@10 lies between 0.667 and 1.000" in line for line in caveats(view))
    with pytest.raises(UsageError, match=r"no metric 'recall@10': some lists end before"):
        compare(run, other, metrics=["recall@10"])
    assert {row.metric for row in compare(run, other).rows}.isdisjoint({"recall@5", "recall@10"})
    with pytest.raises(UsageError, match=r"no metric 'recall@10': some lists end before"):
        gate(run, other.path, {"recall@10": 0.0})
    assert verify(run).gate("figures").passed


def test_a_file_that_states_the_depth_of_its_lists_gives_points(data: Path) -> None:
    file = data.parent / "r.jsonl"
    lists: dict[str, list[str]] = {"q1": ["9"], "q2": ["2"], "q3": []}
    lines = [{"question": q, "ranking": own, "depth": 10} for q, own in lists.items()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    run = score(open_dataset("strata", data), file, data.parent / "run")

    metrics = RunView.of(run).metrics
    assert "beyond_end" not in metrics
    assert metrics["overall"]["recall@10"]["mean"] == pytest.approx(1 / 3)


def test_merged_hits_of_a_file_and_unknown_ids_give_no_tokens(data: Path) -> None:
    file = data.parent / "r.jsonl"
    line = {"question": "q1", "ranking": ["m"], "sources": {"m": ["1", "2"]}, "depth": 10}
    file.write_text(json.dumps(line) + "\n")

    view = RunView.of(score(open_dataset("strata", data), file, data.parent / "run"))

    assert view.metrics["context"] == {}
    assert "no figures by tokens: the texts of the hits are not known" in caveats(view)
    assert report(view)


def test_trec_documents_have_no_tokens(tmp_path: Path) -> None:
    (tmp_path / "qrels.txt").write_text("t1 0 A 1\nt1 0 B 0\nt2 0 A 1\n")
    (tmp_path / "run.txt").write_text("t1 Q0 A 1 2 me\nt1 Q0 B 2 1 me\nt2 Q0 B 1 1 me\n")

    dataset = open_dataset("trec", tmp_path / "qrels.txt")
    run = score(dataset, tmp_path / "run.txt", tmp_path / "out", format="trec")

    metrics = RunView.of(run).metrics
    assert metrics["context"] == {}
    # The list of t2 ends after one document, that of t1 after two.
    assert metrics["overall"]["hit@1"]["mean"] == 0.5
    assert metrics["beyond_end"]["mrr@2"]["bounds"] == [0.5, 0.75]


def test_a_stated_depth_makes_shorter_lists_complete(data: Path) -> None:
    file = data.parent / "r.jsonl"
    lists = {"q1": ["9", "8"], "q2": ["2"], "q3": ["7"]}
    lines = [{"question": q, "ranking": own} for q, own in lists.items()]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    dataset = open_dataset("strata", data)

    metrics = RunView.of(score(dataset, file, data.parent / "run", depth=10)).metrics

    assert "beyond_end" not in metrics
    assert metrics["overall"]["recall@10"]["mean"] == pytest.approx(1 / 3)
    with pytest.raises(UsageError, match="--depth 1: the file has lists of 2 hits"):
        score(dataset, file, data.parent / "other", depth=1)
