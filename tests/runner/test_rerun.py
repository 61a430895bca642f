"""Saved answers judged again and saved hits read again, where that is easily got wrong."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.cli.app import invoke


@pytest.fixture
def locomo(write_locomo: Callable[..., Path], tmp_path: Path) -> Path:
    return write_locomo(tmp_path / "locomo10.json", conversations=3, questions=10)


def run(data: Path, out: Path, *more: str) -> int:
    reader = "extractive,form=sentences"
    parts = ["--system", "bm25", "--no-arms", "--reader", reader, "--judge", "exact"]
    return invoke(["run", "locomo", "--data", str(data), "--out", str(out), *parts, *more])


def judged_again(data: Path, source: Path, out: Path, *more: str) -> int:
    again = ["judge", str(source), "--judge", "f1", "--data", str(data), "--out", str(out)]
    return invoke([*again, *more])


def content(path: Path) -> Any:
    return json.loads(path.read_text())


@pytest.mark.parametrize("parallelism", ["1", "4"])
def test_a_conversation_without_questions_does_not_shift_the_others(
    locomo: Path, tmp_path: Path, parallelism: str
) -> None:
    samples = content(locomo)
    samples[1]["qa"] = []
    locomo.write_text(json.dumps(samples))
    assert run(locomo, tmp_path / "out") == 0

    flags = ("--parallelism", parallelism)
    assert judged_again(locomo, tmp_path / "out/bm25", tmp_path / "f1", *flags) == 0

    statuses = content(tmp_path / "f1/bm25/metrics.json")["statuses"]
    assert statuses == content(tmp_path / "out/bm25/metrics.json")["statuses"]
    assert content(tmp_path / "f1/bm25/answers.json")["figures"]["counts"]["judged"] == 20


def test_bytes_do_not_depend_on_parallelism(locomo: Path, tmp_path: Path) -> None:
    assert run(locomo, tmp_path / "out") == 0
    for number in ("1", "8"):
        out = tmp_path / number
        assert judged_again(locomo, tmp_path / "out/bm25", out, "--parallelism", number) == 0

    one, many = (RunDirectory(tmp_path / number / "bm25") for number in ("1", "8"))
    assert one.trials_path.read_bytes() == many.trials_path.read_bytes()


def test_edited_answers_are_refused_as_the_source_of_a_judged_run(
    locomo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(locomo, tmp_path / "out", "--questions", "12") == 0
    assert judged_again(locomo, tmp_path / "out/bm25", tmp_path / "f1") == 0
    journal = tmp_path / "out/bm25/trials.jsonl"
    journal.write_bytes(journal.read_bytes().replace(b"garden", b"palace"))

    assert judged_again(locomo, tmp_path / "out/bm25", tmp_path / "f1") == 4
    assert f"{journal} was changed after the run" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--judge", "ledger"], "needs a simulated history"),
        (["--judge", "longmemeval,model=smollm2"], "supports no question type"),
        (["--judge", "rubric,model=smollm2", "--judge", "f1"], "cannot form a panel"),
        (["--judge", "f1", "--appellate-judge", "exact"], "have different scales"),
        (["--judge", "gpt-4o"], "without its provider"),
        (["--judge", "binary,model=openai:gpt-4o"], "needs OPENAI_API_KEY"),
        (["--judge", "opnai:gpt-4o"], "If a model is meant"),
        (["--judge", "f1", "--max-cost", "nan"], "more than 0"),
    ],
)
def test_an_unsuitable_judge_is_refused_before_anything_is_written(
    locomo: Path,
    tmp_path: Path,
    arguments: list[str],
    told: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert run(locomo, tmp_path / "out") == 0
    judge = ["judge", str(tmp_path / "out/bm25"), "--data", str(locomo)]

    assert invoke([*judge, "--out", str(tmp_path / "new"), *arguments]) == 2

    assert told in capsys.readouterr().err
    assert not list(tmp_path.glob("new/*/trials.jsonl"))


def test_saved_hits_are_not_read_by_the_system(
    locomo: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(locomo, tmp_path / "out") == 0

    again = ["answer", str(tmp_path / "out/bm25"), "--reader", "system", "--data", str(locomo)]
    assert invoke(again) == 2

    assert "name another reader" in capsys.readouterr().err
