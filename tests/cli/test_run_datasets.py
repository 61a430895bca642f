"""`run` with several datasets: one folder each, one summary over all, and `--fresh`."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from mnemoscope._store.deleted_runs import delete_runs
from mnemoscope._store.errors import RunConflict
from mnemoscope.analysis.forgetting import Forgetting
from mnemoscope.cli.app import invoke
from mnemoscope.reports.forgetting_tables import systems_tables
from mnemoscope.reports.render_terminal import render


@pytest.fixture
def data(write_locomo: Callable[..., Path], tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    for name in ("locomo", "longmemeval"):
        (folder / name).mkdir(parents=True)
    write_locomo(folder / "locomo/locomo10.json", conversations=2, questions=6)
    item = {
        "question_id": "one",
        "question_type": "single-session-user",
        "question": "Which degree?",
        "question_date": "2023/05/30 (Tue) 23:40",
        "answer": "Business",
        "answer_session_ids": ["answer_1"],
        "haystack_dates": ["2023/05/20 (Sat) 02:21", "2023/05/21 (Sun) 02:21"],
        "haystack_session_ids": ["answer_1", "other"],
        "haystack_sessions": [
            [{"role": "user", "content": "I study business", "has_answer": True}],
            [{"role": "user", "content": "I like tea"}],
        ],
    }
    (folder / "longmemeval/longmemeval_s.json").write_text(json.dumps([item]))
    return folder


def run(data: Path, out: Path, *more: str) -> int:
    flags = ["--system", "bm25", "--no-baselines", "--workers", "1", "--data", str(data)]
    return invoke(["run", "locomo", "longmemeval", *flags, "--out", str(out), *more])


def test_one_command_runs_datasets_and_summarises_them(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert run(data, out, "--granularity", "turn") == 0
    told = capsys.readouterr().out
    assert "All datasets" in told and "have no mean" in " ".join(told.split())
    rows = json.loads((out / "datasets.json").read_text())["rows"]
    assert [(row["dataset"], row["system"], row["figure"], row["n"]) for row in rows] == [
        ("locomo", "bm25", "recall@10", 12),
        ("longmemeval", "bm25", "recall@10", 1),
    ]
    assert (out / "locomo/bm25/report.md").exists() and (out / "longmemeval/summary.md").exists()
    options = json.loads((out / "locomo/bm25/manifest.json").read_text())["identity"]["benchmark"]
    assert options["options"]["granularity"] == "turn"


def test_a_mistake_in_the_last_dataset_is_found_before_the_first_runs(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (data / "longmemeval/longmemeval_s.json").unlink()
    (data / "longmemeval").rmdir()
    (data / "longmemeval").mkdir()
    assert run(data, tmp_path / "out") != 0
    assert not (tmp_path / "out/locomo").exists()
    assert run(data, tmp_path / "out", "--colour", "red") == 2
    assert "none of locomo, longmemeval has an option 'colour'" in capsys.readouterr().err
    assert invoke(["run", "locomo", "locomo", "--system", "bm25"]) == 2


def test_fresh_begins_again_and_other_folders_are_left_alone(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert run(data, out) == 0
    (out / "locomo/mine").mkdir()
    first = (out / "locomo/bm25/manifest.json").read_text()
    assert run(data, out) == 0  # nothing is run again
    assert json.loads(first)["attempt"] == _attempt(out)
    assert run(data, out, "--fresh") == 0
    assert _attempt(out) == json.loads(first)["attempt"] + 1  # the ledger remembers the first
    assert (out / "locomo/mine").is_dir()


def _attempt(out: Path) -> int:
    found: int = json.loads((out / "locomo/bm25/manifest.json").read_text())["attempt"]
    return found


def test_fresh_deletes_no_folder_that_is_not_a_run(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/thesis.txt").write_text("years of work")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/manifest.json").write_text("{}")
    (tmp_path / "link").symlink_to(tmp_path / "run")
    for label, told in (("notes", "is not a run"), ("link", "not a folder of its own")):
        with pytest.raises(RunConflict, match=told):
            delete_runs(tmp_path, ["run", label])
    with (tmp_path / "run/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(RunConflict, match="another process is writing"):
            delete_runs(tmp_path, ["run"])
    assert (tmp_path / "run").exists() and (tmp_path / "notes/thesis.txt").exists()
    assert delete_runs(tmp_path, ["run", "gone"]) == [tmp_path / "run"]
    assert not (tmp_path / "run").exists()


def test_the_table_of_forgetting_names_its_systems_at_80_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    estimate = {"mean": 0.345, "ci95": [0.3391, 0.3513], "n": 3600}
    part = {"n": 3600, "mean_rouge_l": estimate, "share_above_half": {"share": 0.13, "ci95": None}}
    score = {
        "before": {"forget": part, "retain": part},
        "after": {"forget": part, "retain": part},
        "leak": {"leaked": 1234, "n": 2000, "ci95": None},
        "forget_falls": None,
    }
    figures: Forgetting = {"score": score, "why": ""}  # type: ignore[typeddict-item]
    labels = ("a-long-system-name,weight=0.5", "bm25")
    console = Console(width=80, file=None, record=True)
    console.print(render(systems_tables([(label, figures, False) for label in labels])))
    lines = console.export_text().splitlines()
    assert all(len(line) <= 80 for line in lines)
    told = "\n".join(lines)
    assert "bm25" in told and "1,234" in told and "leaks" in told and "…" not in told
    assert told.count(".339–.351") == 8
