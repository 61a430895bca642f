"""`mnemoscope new` writes packages that pass their checks unchanged."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from mnemoscope._store.errors import UsageError
from mnemoscope.cli.app import invoke
from mnemoscope.judges import ACCURACY, Case
from mnemoscope.judges.judge_check import check_judge
from mnemoscope.metrics import Metric, RandomTopK, TopK, check_metric, installed_metrics
from mnemoscope.templates import write_skeleton
from mnemoscope.types import Grade, Scenario


@pytest.mark.parametrize("kind", ["system", "dataset", "metric", "judge"])
def test_a_skeleton_passes_its_check_and_its_test_at_once(kind: str, tmp_path: Path) -> None:
    folder = tmp_path / "package"
    assert invoke(["new", kind, f"my-{kind}", "--out", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} >= {
        "pyproject.toml",
        f"my_{kind}.py",
        f"test_my_{kind}.py",
    }
    spec = f"my_{kind}:My{kind.capitalize()}"
    data = ["--data", "sample.jsonl"] if kind == "dataset" else []
    for command in (
        [sys.executable, "-m", "mnemoscope", f"{kind}s", "check", spec, *data],
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
    ):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


def test_a_folder_that_is_not_empty_and_a_bad_name_are_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("keep")
    with pytest.raises(UsageError, match="not empty"):
        write_skeleton("system", "mine", tmp_path / "mine")
    for name in ("My-System", "1st", "a--b", "../x"):
        with pytest.raises(UsageError, match="small letters"):
            write_skeleton("metric", name, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_every_built_in_metric_passes_the_check() -> None:
    for name, metric in installed_metrics().items():
        assert check_metric(metric) == [], name


class Wrong(Metric):
    """Its values do not match its declared chance and ceiling."""

    name = "wrong"
    interval = "proportion"

    def value(self, top: TopK) -> float:
        return float(top.found)

    def chance(self, top: RandomTopK) -> float:
        return 0.5

    def ceiling(self, best: TopK) -> float:
        return 1.0


def test_the_check_names_every_defect_of_a_metric() -> None:
    found = " | ".join(check_metric(Wrong()))
    assert "outside 0 to 1" in found
    assert "values other than 0 and 1" in found
    assert "above its ceiling 1.000" in found
    assert "chance() returns 0.5000" in found


class SameGrade:
    """Gives every answer the same grade, which is not on its scale."""

    scale = ACCURACY

    def begin(self, scenario: Scenario) -> None: ...

    def judge(self, case: Case) -> Grade:
        return Grade(2.0)


def test_the_check_names_every_defect_of_a_judge() -> None:
    found = " | ".join(check_judge(SameGrade()))
    assert "not on its scale" in found
    assert "does not get a better grade than a wrong answer" in found


@pytest.mark.parametrize("judge", ["exact", "f1", "rouge-l"])
def test_built_in_judges_without_a_model_pass_the_check(judge: str) -> None:
    assert invoke(["judges", "check", judge]) == 0
