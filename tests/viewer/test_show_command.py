"""`mnemoscope show`: one question of a run in eighty columns, and the questions that it missed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from tests.viewer.viewed_runs import LONG

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.cli.app import invoke
from mnemoscope.cli.console import out


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(out, "_width", 80)


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> str:
    assert invoke(["show", *map(str, arguments)]) == 0
    return capsys.readouterr().out


def test_a_question_has_evidence_hits_answer_and_verdict(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded / "locomo" / "lexical"
    text = shown(capsys, run, "conv-1/q1", "--data", recorded.parent / "locomo10.json")
    found = ms.show(run, "conv-1/q1", data=recorded.parent / "locomo10.json").details
    flat = " ".join(text.split())
    assert found.text in flat and found.reference in flat
    for one in found.evidence:
        assert one.id in flat and one.memory is not None
    first = found.hits[0]
    assert first.memory is not None and first.score is not None
    assert f"1 {first.score:.4g} {first.kind} {first.id}" in flat
    assert "verdict" in flat and "Recalled:" in flat
    assert max(map(len, text.splitlines())) <= 80


def test_a_part_of_an_id_is_enough_if_only_one_has_it(recorded: Path) -> None:
    run = recorded / "locomo" / "lexical"
    assert ms.show(run, "V-1/Q1").details.id == "conv-1/q1"
    with pytest.raises(UsageError, match="5 questions have 'q1' in their id"):
        ms.show(run, "q1")
    with pytest.raises(UsageError, match="did you mean 'conv-1/q1'"):
        ms.show(run, "conv-1/q1x")


def test_without_the_dataset_texts_are_those_of_the_page_and_else_ids(
    recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "luck"
    shutil.copytree(recorded / "locomo" / "luck", copy)
    first = ms.show(copy, "conv-1/q1").details.hits[0].memory
    assert first is not None and first.text in " ".join(shown(capsys, copy, "conv-1/q1").split())
    RunDirectory(copy).write_files({"report.html": None})
    assert "the texts of memories are not shown" in shown(capsys, copy, "conv-1/q1")


def test_the_json_is_the_whole_record(recorded: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(shown(capsys, recorded / "locomo" / "lexical", "conv-1/q1", "--json"))
    assert found["id"] == "conv-1/q1"
    assert {"evidence", "hits", "answer", "verdict", "metrics"} <= found.keys()


def test_long_texts_are_cut_unless_all_is_asked_for(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded / "locomo" / "lexical"
    assert len(shown(capsys, run, "conv-0/q1")) < 20_000
    assert len(shown(capsys, run, "conv-0/q1", "--full")) > len(LONG)


def test_control_characters_and_markup_do_nothing(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = recorded.parent / "locomo10.json"
    for id in ("conv-0/q0", "conv-0/q2", "conv-0/q3"):
        text = shown(capsys, recorded / "locomo" / "broken", id, "--data", data)
        assert "\x1b" not in text and "\u202e" not in text


def test_a_checkpoint_is_chosen_and_the_last_is_the_default(recorded: Path) -> None:
    run = recorded / "personas" / "bm25"
    assert ms.show(run, "tester-q001").details.checkpoint == "full"
    assert ms.show(run, "tester-q001", checkpoint="6d").details.checkpoint == "6d"
    with pytest.raises(UsageError, match="is not asked at checkpoint '8d'"):
        ms.show(run, "tester-q001", checkpoint="8d")
    with pytest.raises(UsageError, match="has no checkpoints"):
        ms.show(recorded / "locomo" / "luck", "conv-1/q1", checkpoint="6d")


def test_missed_questions_are_listed_with_status_category_and_best_rank(
    recorded: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = recorded / "locomo" / "broken"
    missed = ms.show_failed(run)
    expected = [row for row in ms.load(run).runs[0].question_rows() if row.failure]
    assert missed.rows == expected and len(missed) == len(expected) > 5
    text = shown(capsys, run, "--failed", "--limit", 3)
    assert f"missed {len(expected)} of {missed.asked} questions, 3 shown" in text
    assert text.count("conv-") >= 3
    assert max(map(len, text.splitlines())) <= 80
    every = json.loads(shown(capsys, run, "--failed", "--json"))
    assert [one["question"] for one in every] == [row.question for row in expected]
    assert {one["status"] for one in every} >= {"error"}


def test_missed_questions_of_one_category(recorded: Path) -> None:
    run = recorded / "locomo" / "luck"
    by_key, by_name = (ms.show_failed(run, category=one) for one in ("1", "multi-hop"))
    assert by_key.rows == by_name.rows and {row.category for row in by_key.rows} == {"1"}
    with pytest.raises(UsageError, match="no category 'multi-hip'; did you mean 'multi-hop'"):
        ms.show_failed(run, category="multi-hip")
    with pytest.raises(UsageError, match="this run has multi-hop, "):
        ms.show_failed(run, category="xyz")


def test_results_have_a_frame_and_escaped_html(recorded: Path) -> None:
    missed = ms.show_failed(recorded / "locomo" / "broken")
    assert len(missed.to_frame()) == len(missed)
    found = ms.show(recorded / "locomo" / "broken", "conv-0/q3")
    for html in (missed._repr_html_(), found._repr_html_()):
        assert "<script" not in html and "<img" not in html
    assert repr(found).startswith("conv-0/q3 by broken: error")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["locomo"], "give the id of a question"),
        (["locomo", "q1", "--failed"], "either a question or --failed"),
        (["locomo", "q1"], "contains 3 runs; name one of them"),
        (["locomo/luck", "q1", "--category", "1"], "--category belongs to --failed"),
        (["locomo/luck", "--failed", "--limit", "0"], "--limit 0"),
        (["no"], "give the id of a question"),
        (["no", "q1"], "no such file or folder"),
    ],
)
def test_wrong_arguments_are_explained(
    recorded: Path,
    arguments: list[str],
    expected: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(recorded)
    assert invoke(["show", *arguments]) == 2
    assert expected in " ".join(capsys.readouterr().err.split())
