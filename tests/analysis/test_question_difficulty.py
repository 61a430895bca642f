"""`mnemoscope questions`: what several systems find, and what several names must not vouch for."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mnemoscope import api
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.pairing import NotComparable
from mnemoscope.analysis.question_difficulty import _item_rest, analyse_questions
from mnemoscope.cli.app import invoke

Make = Callable[..., RunDirectory]
N = 40


def hits(good: int) -> list[bool]:
    return [number < good for number in range(N)]


def test_questions_that_none_all_and_some_find(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n)) for n in (10, 20, 30)]

    found = analyse_questions(runs)

    assert (len(found.all_find), len(found.none_find), len(found.separating)) == (10, 10, 20)
    by_id = {one.question: one for one in found.items}
    assert by_id["q15"].difficulty == pytest.approx(2 / 3)
    assert by_id["q15"].found_by == ("s20", "s30")
    assert by_id["q15"].discrimination is None
    assert "3 independent systems are too few for discrimination" in found.notes[-1]


def test_a_system_under_two_names_has_one_vote(make_run: Make, tmp_path: Path) -> None:
    # Misses rank the same memory first: with three votes it would be a candidate.
    runs = [make_run(tmp_path / name, hits(10)) for name in ("mine", "twin", "third")]
    runs.append(make_run(tmp_path / "other", hits(40)))

    found = analyse_questions(runs)

    assert found.votes == [["mine", "twin", "third"], ["other"]]
    assert found.candidates == []
    assert any("have one vote: mine; twin; third" in note for note in found.notes)
    by_id = {one.question: one for one in found.items}
    assert by_id["q20"].difficulty == 0.5


def test_independent_systems_that_agree_outside_the_labels_give_candidates(
    make_run: Make, tmp_path: Path
) -> None:
    runs = [make_run(tmp_path / f"s{n}", hits(n)) for n in (0, 10, 20)]

    found = analyse_questions(runs, agree=3)

    missed = {f"q{n}" for n in range(20, N)}
    assert {one.question for one in found.candidates} == missed
    assert all(one.memory not in one.evidence and one.votes == 3 for one in found.candidates)
    assert found.expected_candidates < 1


def test_systems_that_do_not_read_the_question_do_not_count(make_run: Make, tmp_path: Path) -> None:
    runs = [make_run(tmp_path / name, hits(10)) for name in ("random", "oracle", "mine")]

    with pytest.raises(NotComparable, match="at least two systems"):
        analyse_questions(runs)


def test_discrimination_is_the_item_rest_correlation() -> None:
    random = np.random.default_rng(5)
    values = (random.random((30, 9)) < np.linspace(0.2, 0.9, 9)).astype(float)
    values[0] = 1.0

    found = _item_rest(values)

    assert found[0] is None
    for row in range(1, 30):
        if values[row].std():
            rest = np.delete(values, row, axis=0).mean(axis=0)
            assert found[row] == pytest.approx(np.corrcoef(values[row], rest)[0, 1])


def test_the_command_prints_and_writes(
    make_run: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for n in (10, 20, 30):
        make_run(tmp_path / "runs" / f"s{n}", hits(n))
    table, page = tmp_path / "q.csv", tmp_path / "q.md"
    files = ["--csv", str(table), "--markdown", str(page)]

    assert invoke(["questions", str(tmp_path / "runs"), *files, "--limit", "3"]) == 0
    shown = capsys.readouterr().out
    assert "all find 10, none finds 10, 20 separate them" in " ".join(shown.split())
    assert max(map(len, shown.splitlines())) <= 80
    rows = list(csv.DictReader(table.open()))
    assert len(rows) == N and rows[15]["found_by"] == "s20; s30"
    assert "What of" in page.read_text()
    assert invoke(["questions", str(tmp_path / "runs"), "--category", "odd", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["questions"] == N // 2


@pytest.mark.parametrize(
    "arguments",
    [["--metric", "recall@10"], ["--category", "none"], ["--agree", "1"], ["--top", "0"]],
)
def test_wrong_options_are_refused(make_run: Make, tmp_path: Path, arguments: list[str]) -> None:
    for n in (10, 20):
        make_run(tmp_path / "runs" / f"s{n}", hits(n))

    assert invoke(["questions", str(tmp_path / "runs"), *arguments]) == 2


def test_memory_texts_come_from_the_dataset_of_the_runs_only(
    write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_locomo(tmp_path / "locomo10.json", conversations=2, questions=6)
    runs = api.run(
        "locomo", systems=["bm25", "fts5"], data=data, out=tmp_path / "r", baselines=False
    )

    found = api.questions(runs, data=data)

    ids = {id for one in found.analysis.items for id in one.evidence}
    assert ids <= found.memories.keys()
    other = write_locomo(tmp_path / "other.json", conversations=2, questions=6, seed=9)
    assert invoke(["questions", str(tmp_path / "r"), "--data", str(other)]) != 0
