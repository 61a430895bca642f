"""Runs with graded answers, and runs whose folders have the same name."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.exports.conftest import SmallRuns, ledger_in

import mnemoscope as ms
from mnemoscope.results import Results


@pytest.fixture(scope="module")
def answered(
    tmp_path_factory: pytest.TempPathFactory, write_locomo: Callable[..., Path]
) -> Results:
    folder = tmp_path_factory.mktemp("answered")
    data = write_locomo(folder / "locomo10.json", conversations=2, sessions=15, questions=5)
    with ledger_in(folder):
        return ms.run(
            "locomo",
            systems=["bm25", "recency"],
            data=data,
            reader="extractive",
            judge="f1",
            baselines=False,
            out=folder / "runs",
            progress=False,
        )


def test_tables_and_plots_show_the_grade_of_the_answers(answered: Results) -> None:
    figures = answered["bm25"].answers
    assert figures is not None
    metric, value = figures["figures"]["metric"], figures["figures"]["answerable"]["mean"]
    assert value is not None
    lines = answered.to_latex().splitlines()
    assert lines[lines.index(r"\toprule") + 1].endswith(rf"& mrr@50 & {metric} \\")
    [row] = [line for line in lines if line.startswith("bm25 & ")]
    assert row.endswith(rf"& {value:.3f} \\")
    assert f"| {metric} |" in answered.to_markdown(metrics=["recall@10", metric])
    drawn = ms.plot(answered, "intervals", metric=metric, format="svg").content.decode()
    assert f"{value:.3f}<" in drawn
    rows = json.loads(ms.export(answered, "json", metrics=[metric]).text)["rows"]
    assert {row["metric"] for row in rows} == {metric}


def test_runs_in_folders_of_the_same_name_are_told_apart(
    small_runs: SmallRuns, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    for folder, system in ((one, "bm25"), (two, "random")):
        folder.mkdir()
        (folder / "mine").symlink_to(small_runs.folder / system)
    runs = [one / "mine", two / "mine"]
    content = json.loads(ms.export(runs, "json", what="comparison").text)
    names = [run["system"] for run in content["runs"]]
    assert len(set(names)) == 2
    drawn = ms.plot(runs, "forest", format="svg").content.decode()
    assert f"{names[1]} against {names[0]}" in drawn
