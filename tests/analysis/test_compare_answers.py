"""Two runs whose answers the same judge judged: paired, question by question."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from math import sqrt
from pathlib import Path

import numpy as np
import pytest
from tests.passed_exams import every_judge_passes

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import encode_lines
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.analysis.compare import compare
from mnemoscope.analysis.question_records import records_of
from mnemoscope.cli.app import invoke
from mnemoscope.types import Verdict


@pytest.fixture(scope="module")
def answered(write_locomo: Callable[..., Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    data = write_locomo(folder / "locomo10.json", conversations=3, questions=20)
    for judge in ("f1", "exact"):
        parts = ["--system", "bm25", "--system", "recency", "--reader", "extractive"]
        place = ["--data", str(data), "--out", str(folder / judge), "--no-arms"]
        with pytest.MonkeyPatch.context() as patch:
            every_judge_passes(patch)
            assert invoke(["run", "locomo", *parts, "--judge", judge, *place]) == 0
    return folder


def grades(run: RunDirectory) -> dict[str, float]:
    asked = {line["id"] for line in run.questions() if line["expects"] == "answer"}
    verdicts = [line for line in run.journal() if isinstance(line, Verdict)]
    return {v.question: v.grade.value for v in verdicts if v.grade and v.question in asked}


def test_grades_are_compared_in_pairs_as_a_secondary_metric(answered: Path) -> None:
    from scipy.stats import norm

    base, cand = (RunDirectory(answered / "f1" / name) for name in ("bm25", "recency"))

    row = compare(base, cand).row("f1")

    before, after = grades(base), grades(cand)
    questions = sorted(before)
    deltas = np.array([after[q] - before[q] for q in questions])
    of = {record.question.id: record.scenario for record in records_of(base)}
    clusters = [of[q] for q in questions]
    # Three conversations: the variance within them, normal, Bonferroni over the secondaries.
    variance = sum(
        len(own) * own.var(ddof=1)
        for name in set(clusters)
        if len(own := deltas[[one == name for one in clusters]]) > 1
    )
    se = sqrt(variance + 2) / len(deltas)
    tests = sum(one.role == "secondary" for one in compare(base, cand).rows)
    expected = min(1.0, tests * 2 * norm.sf(abs(deltas.mean()) / se))
    assert row.n == len(questions)
    assert row.delta == pytest.approx(sum(after.values()) / row.n - sum(before.values()) / row.n)
    assert (row.role, row.these_only, row.clusters) == ("secondary", True, 3)
    assert row.p == pytest.approx(expected)


def test_right_and_wrong_are_counted(answered: Path) -> None:
    base, cand = (RunDirectory(answered / "exact" / name) for name in ("bm25", "recency"))

    row = compare(base, cand, metrics=["accuracy"], by_category=False).row("accuracy")

    before, after = grades(base), grades(cand)
    assert row.effect_name == "h"
    assert row.gained == sum(after[q] > before[q] for q in before)
    assert row.lost == sum(after[q] < before[q] for q in before)


def test_answers_of_different_judges_are_not_compared_and_a_note_says_why(answered: Path) -> None:
    found = compare(RunDirectory(answered / "f1/bm25"), RunDirectory(answered / "exact/recency"))

    assert not [row for row in found.rows if row.metric in ("f1", "accuracy")]
    assert any("judged by different judges" in note for note in found.notes)
    with pytest.raises(UsageError, match="no metric 'f1'"):
        compare(
            RunDirectory(answered / "f1/bm25"),
            RunDirectory(answered / "exact/recency"),
            metrics=["f1"],
        )


def test_answers_without_a_grade_are_left_out_and_counted(answered: Path, tmp_path: Path) -> None:
    shutil.copytree(answered / "f1", tmp_path / "f1")
    base, cand = (RunDirectory(tmp_path / "f1" / name) for name in ("bm25", "recency"))
    asked = {line["id"] for line in cand.questions() if line["expects"] == "answer"}
    lines = list(cand.journal())
    dropped = next(x for x in lines if isinstance(x, Verdict) and x.question in asked)
    cand.trials_path.write_bytes(encode_lines([x for x in lines if x is not dropped]))
    note = "1 questions have no grade in one of the runs; f1 leaves them out"

    assert note in compare(base, cand).notes
    assert note in compare(cand, base).notes
    whole = compare(*(RunDirectory(answered / "f1" / name) for name in ("bm25", "recency")))
    assert not [note for note in whole.notes if "no grade" in note]
    assert compare(base, cand).row("f1").n == whole.row("f1").n - 1


def test_the_command_shows_the_row(answered: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    runs = [str(answered / "f1" / name) for name in ("bm25", "recency")]

    assert invoke(["compare", *runs, "--json"]) in (0, 1)

    rows = json.loads(capsys.readouterr().out)["rows"]
    assert "f1" in {row["metric"] for row in rows}
