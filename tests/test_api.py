"""The Python API: its functions, and that the command line gives the same figures."""

from __future__ import annotations

import inspect
import json
import logging
import os
import runpy
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import partial
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope import api
from mnemoscope._store.errors import MissingData, RunConflict, UsageError
from mnemoscope.api import ProgressUpdate
from mnemoscope.cli.app import invoke
from mnemoscope.datasets import open_dataset
from mnemoscope.datasets.strata import Strata
from mnemoscope.results import Results

REPOSITORY = Path(__file__).resolve().parent.parent
STRATA = REPOSITORY / "examples" / "strata"
FILES = ("metrics.json", "trials.jsonl", "questions.jsonl", "report.md")


class Newest:
    """Recalls the newest memories."""

    def __init__(self, most: int = 5) -> None:
        self.most = most

    def remember(self, memories: Sequence[ms.Memory]) -> None:
        self.ids = [memory.id for memory in memories]

    def recall(self, query: ms.Query, k: int) -> list[str]:
        return self.ids[::-1][: min(self.most, k)]


class Shared(Newest):
    """An object that is reset for each scenario."""

    def reset(self, scope: str) -> None:
        self.ids = []


class Slow(Newest):
    def recall(self, query: ms.Query, k: int) -> list[str]:
        time.sleep(0.02)
        return super().recall(query, k)


def nothing(query: ms.Query, k: int) -> list[str]:
    return []


def run(systems: object, out: Path, **more: object) -> Results:
    arguments = {"data": STRATA, "out": out, "baselines": False, "progress": False, **more}
    return ms.run("strata", systems=systems, **arguments)  # type: ignore[arg-type]


def figures_of(folder: Path) -> dict[str, dict[str, object]]:
    """System to everything in its metrics.json."""
    return {
        file.parent.name: json.loads(file.read_text()) for file in folder.glob("*/metrics.json")
    }


# A notebook.


def test_twelve_lines_compare_three_systems_and_the_cli_gives_the_same_figures(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = REPOSITORY / "examples" / "notebook_script.py"
    assert len(script.read_text().splitlines()) <= 12
    (tmp_path / "examples").symlink_to(REPOSITORY / "examples")
    monkeypatch.chdir(tmp_path)

    made = runpy.run_path(str(script))

    results = made["results"]
    assert list(results) == ["bm25", "dense", "hybrid", "random", "oracle"]
    assert {run.manifest.protocol["id"] for run in results.runs} == {
        "claude-memory-strata-1:own-data"
    }
    frame = made["figures"]
    assert {"system", "metric", "category", "n", "low", "high", "chance"} <= set(frame.columns)
    assert made["comparison"].verdict in ("better", "worse", "mixed", "equivalent", "cannot tell")
    assert 0 < len(made["missed"]) < 48
    assert "no evidence among the first 10 hits" in capsys.readouterr().out
    command = "run strata --data examples/strata --protocol claude-memory-strata-1 --out runs/cli"
    systems = [word for name in ("bm25", "dense", "hybrid") for word in ("--system", name)]
    assert invoke([*command.split(), *systems]) == 0
    assert figures_of(Path("runs/cli")) == figures_of(Path("runs/strata"))
    summary = json.loads((tmp_path / "runs/cli/summary.json").read_text())
    for row in results.figures():
        own = summary[row.system]
        scope = own["by_category"].get(row.category, own["overall"])
        assert (row.mean, [row.low, row.high]) == (
            scope[row.metric]["mean"],
            scope[row.metric]["ci95"],
        )


def test_importing_the_package_does_not_import_numpy() -> None:
    program = "import sys, mnemoscope as ms; ms.run; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_every_name_in_all_can_be_imported() -> None:
    for name in ms.__all__:
        assert getattr(ms, name) is not None
    assert set(dir(ms)) == set(ms.__all__)
    with pytest.raises(AttributeError, match="no attribute 'runn'"):
        ms.runn  # noqa: B018


def test_run_takes_the_options_of_the_command_line_with_the_same_defaults() -> None:
    given = inspect.signature(ms.run).parameters
    for field in fields(api.RunConfig):
        assert given[field.name].default == field.default, field.name
    described = api.RunConfig.__doc__ or ""
    assert all(f"    {field.name}\n" in described for field in fields(api.RunConfig))


# Systems.


@pytest.mark.parametrize(
    ("systems", "labels"),
    [
        ("bm25", ["bm25"]),
        (Newest, ["Newest"]),
        ([Newest, nothing], ["Newest", "nothing"]),
        ([Shared()], ["Shared"]),
        ([partial(Newest, most=2)], ["Newest"]),
        ({"mine": Newest, "other": "fts5"}, ["mine", "other"]),
        (["mine=recency", lambda query, k: []], ["mine", "lambda"]),
    ],
)
def test_systems_may_be_specs_classes_objects_and_functions(
    systems: object, labels: list[str], tmp_path: Path
) -> None:
    results = run(systems, tmp_path)
    assert list(results) == labels
    assert all(one.metrics["questions"]["measured"] == 48 for one in results.runs)
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == sorted(labels)


def test_a_class_is_identified_by_its_name_its_source_and_its_arguments(tmp_path: Path) -> None:
    results = run({"plain": Newest, "two": partial(Newest, most=2)}, tmp_path)
    known = [results[label].manifest.identity["system"] for label in ("plain", "two")]
    assert [one["spec"] for one in known] == [f"{__name__}:Newest"] * 2
    assert [one["arguments"] for one in known] == [{"most": 5}, {"most": 2}]
    assert known[0]["source_sha256"] == known[1]["source_sha256"]


@pytest.mark.parametrize(
    ("systems", "expected"),
    [
        ([], "name a system"),
        ([Newest, Newest], "Newest is given twice"),
        ({"bm25": Newest}, "bm25 is the name of a system"),
        ([Newest()], "needs reset"),
        ([object], "has no recall"),
        ("bm52", "did you mean 'bm25'"),
    ],
)
def test_systems_that_cannot_run_are_refused(
    systems: object, expected: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=expected):
        run(systems, tmp_path / "runs")
    assert not (tmp_path / "runs").exists()


MAIN = """
    import mnemoscope as ms

    class Mine:
        {attribute}
        def remember(self, memories): self.ids = [memory.id for memory in memories]
        def recall(self, query, k): return self.ids[:k]

    if __name__ == "__main__":
        results = ms.run("strata", systems=[Mine], data={data!r}, out="r", baselines=False)
        print(results["Mine"].manifest.identity["system"])
"""


def main_script(attribute: str = "size = 1") -> str:
    return textwrap.dedent(MAIN.format(attribute=attribute, data=str(STRATA)))


def python(*arguments: object, cwd: Path, text: str | None = None) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=cwd,
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout + done.stderr


def test_a_class_of_the_script_itself_is_identified_by_the_source_of_the_script(
    tmp_path: Path,
) -> None:
    (tmp_path / "mine.py").write_text(main_script())
    printed = python("mine.py", cwd=tmp_path)
    assert "'spec': '__main__:Mine'" in printed
    assert "'source_sha256'" in printed


def test_a_class_without_a_source_file_is_identified_by_its_code(tmp_path: Path) -> None:
    """In a notebook the same cell continues a run; an edited cell is another system."""
    first = python("-", cwd=tmp_path, text=main_script())
    assert "'code_sha256'" in first
    assert python("-", cwd=tmp_path, text="\n\n# moved\n" + main_script()) == first
    assert "contains another run" in python("-", cwd=tmp_path, text=main_script("size = 2"))


# Progress, interruption.


def test_progress_is_reported_to_a_callback(tmp_path: Path) -> None:
    seen: list[ProgressUpdate] = []
    run(["bm25", "recency"], tmp_path, progress=seen.append)
    assert {(one.benchmark, one.total) for one in seen} == {("strata", 2)}
    done = [one.done for one in seen]
    assert done == sorted(done)
    assert done[-1] == 2


def test_progress_is_counted_in_questions_with_the_time_left(tmp_path: Path) -> None:
    seen: list[ProgressUpdate] = []
    run([Slow, "recency"], tmp_path, progress=seen.append, workers=1)
    done = [one.questions for one in seen]
    assert done == sorted(done)
    last = seen[-1]
    assert (last.questions, last.questions_total, last.is_estimate) == (96, 96, False)
    assert last.seconds_left == 0
    assert any((one.seconds_left or 0) > 0 for one in seen)

    seen.clear()
    run([Slow, "recency"], tmp_path, progress=seen.append, workers=1)
    assert all(one.questions == 96 for one in seen), "recorded questions are done"


class Streamed(Strata):
    """A dataset that does not say how many scenarios it has."""

    expected_scenarios: int | None = None


def test_progress_of_a_dataset_of_unknown_size_counts_what_was_read(tmp_path: Path) -> None:
    seen: list[ProgressUpdate] = []
    ms.run(
        Streamed(STRATA),
        systems=[Slow],
        out=tmp_path,
        baselines=False,
        progress=seen.append,
        workers=1,
    )
    assert all(one.total is None and one.seconds_left is None for one in seen)
    assert 0 < seen[len(seen) // 2].questions < 48
    assert (seen[-1].questions, seen[-1].questions_total) == (48, 48)


def test_nothing_is_printed(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ms.run("strata", systems="bm25", data=STRATA, out=tmp_path)
    assert capfd.readouterr() == ("", "")


def test_an_interrupted_run_continues_and_gives_the_same_figures(tmp_path: Path) -> None:
    seen: list[float] = []

    def interrupt(at: ProgressUpdate) -> None:
        seen.append(at.done)
        if 0.5 < at.done < 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Slow, tmp_path / "broken", progress=interrupt, workers=1)
    own = tmp_path / "broken" / "Slow"
    assert json.loads((own / "manifest.json").read_text())["state"] == "interrupted"
    recorded = sum(len(file.read_bytes().splitlines()) for file in own.glob("units/*.trials.jsonl"))
    assert recorded > 10
    with pytest.raises(MissingData, match="no finished run"):
        ms.load(tmp_path / "broken")

    seen.clear()
    run(Slow, tmp_path / "broken", progress=lambda at: seen.append(at.done), workers=1)
    run(Slow, tmp_path / "whole", workers=1)
    for name in ("trials.jsonl", "metrics.json"):
        assert (own / name).read_bytes() == (tmp_path / "whole" / "Slow" / name).read_bytes()


def test_the_same_call_again_changes_nothing_and_another_is_refused(tmp_path: Path) -> None:
    before = {name: (run("bm25", tmp_path)["bm25"].path / name).read_bytes() for name in FILES}
    again = run("bm25", tmp_path)["bm25"]
    assert {name: (again.path / name).read_bytes() for name in FILES} == before
    with pytest.raises(RunConflict, match="depth: 50 → 5"):
        run("bm25", tmp_path, depth=5)


# The other functions.


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("api") / "runs"
    return ms.run("strata", systems=["bm25", "fts5"], data=STRATA, out=folder, progress=False)


def test_load_gives_what_run_gave(results: Results) -> None:
    loaded = ms.load(results.path)
    assert set(loaded) == set(results)
    assert sorted(loaded.figures()) == sorted(results.figures())
    assert [run.is_baseline for run in loaded.runs] == [False, False, True, True]
    assert list(ms.load(results["fts5"])) == ["fts5"]


def test_compare_takes_results_or_paths(results: Results, tmp_path: Path) -> None:
    found = ms.compare(results["oracle"], results["random"])
    assert (found.verdict, found.regressed) == ("worse", True)
    by_path = ms.compare(str(results["oracle"].path), results["random"].path)
    assert by_path.rows() == found.rows()
    means = ms.compare(results["oracle"].path / "metrics.json", results["random"])
    assert means.paired is None
    assert means.verdict == "worse"
    with pytest.raises(UsageError, match="no such file"):
        ms.compare(results["oracle"], tmp_path / "nowhere")


def test_gate_and_verify(results: Results) -> None:
    passed = ms.gate(results["bm25"], baseline=results["fts5"], max_drop={"recall@10": 1.0})
    assert passed.passed
    failed = ms.gate(results["random"], baseline=results["oracle"], max_drop={"recall@10": 0.1})
    assert [row.passed for row in failed.rows] == [False]
    assert ms.verify(results["bm25"], protocol="claude-memory-strata-1").status == "UNVERIFIED"


def test_score_turns_a_file_of_rankings_into_a_run(
    results: Results, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    scored = ms.score(
        results["bm25"].path / "raw_retrievals.jsonl", dataset="strata", data=str(STRATA)
    )
    assert scored.path == Path("runs/raw_retrievals")
    assert scored.metrics["overall"]["map"] == results["bm25"].metrics["overall"]["map"]
    assert scored.rule_changes == {}


def test_saved_hits_are_answered_and_saved_answers_judged_again(
    write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_locomo(tmp_path / "locomo.json", conversations=2, questions=6)
    first = ms.run("locomo", systems="bm25", data=data, out=tmp_path / "a", baselines=False)
    answered = ms.answer(first["bm25"], reader="extractive", judge="exact", data=data)
    assert answered.path == tmp_path / "a-extractive"
    judged = ms.judge(answered["bm25"].path, judge=["f1"], data=data, out=tmp_path / "b")
    metrics = {row.metric for row in judged.figures()}
    assert "f1" in metrics
    assert all(row.answer is not None for row in judged["bm25"].question_rows())


def test_report_writes_the_reports_again(results: Results) -> None:
    place = results["fts5"].path / "report.md"
    before = place.read_bytes()
    place.unlink()
    assert list(ms.report(results["fts5"].path)) == ["fts5"]
    assert place.read_bytes() == before
    assert results["fts5"].report == before.decode()


def test_personas_are_simulated_and_run_over_checkpoints(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    history = ms.simulate("executive-assistant", out=tmp_path / "histories", days=30)
    assert history == tmp_path / "histories" / "executive-assistant"
    with caplog.at_level(logging.WARNING, "mnemoscope"):
        results = ms.run(
            "personas",
            systems=[Newest],
            data=history.parent,
            out=tmp_path / "runs",
            baselines=False,
            heatmap_png=False,
            ranges="15d,30d",
        )
    assert "left out without --groups-enabled" in caplog.text
    rows = [row for row in results.figures() if row.metric == "composite"]
    assert {row.checkpoint for row in rows} == {"15d", "30d"}
    assert results["Newest"].manifest.identity["limits"]["recall"] == 30.0
    config = api.RunConfig(data=history.parent, heatmap_png=False)
    with ms.dry_run("personas", Newest, config, {"ranges": "15d,30d"}) as tried:
        assert tried["Newest"].manifest.checkpoints == ["15d"]
        assert not tried.failed_everywhere
    assert not tried.path.exists()


@pytest.mark.parametrize(
    "option",
    [
        {"lifecycle": "fork"},
        {"judge_memory_window": 1},
        {"compat": "recall-bench"},
        {"json_out": "result.json"},
        {"progress_jsonl": "p.jsonl"},
        {"profile": "bench.yaml"},
        {"skip_preflight": True},
    ],
)
def test_options_for_checkpoints_are_refused_on_other_benchmarks(
    option: dict[str, object], tmp_path: Path
) -> None:
    (tmp_path / "bench.yaml").write_text("run: {ranges: 30d}\n")
    if "profile" in option:
        option = {"profile": tmp_path / "bench.yaml"}
    with pytest.raises(UsageError, match="is for datasets with checkpoints"):
        run("bm25", tmp_path / "runs", **option)
    assert not (tmp_path / "runs").exists()


def test_an_open_dataset_can_be_run(tmp_path: Path) -> None:
    dataset = open_dataset("strata", STRATA)
    results = ms.run(dataset, systems="bm25", out=tmp_path / "r", baselines=False)
    assert results["bm25"].metrics["questions"]["asked"] == 48
    with pytest.raises(UsageError, match="its options cannot change"):
        ms.run(dataset, systems="bm25", out=tmp_path / "r", twins="expand")


def test_an_estimate_calls_no_model(write_locomo: Callable[..., Path], tmp_path: Path) -> None:
    data = write_locomo(tmp_path / "locomo.json", conversations=1, questions=4)
    config = api.RunConfig(data=data, reader="openai:gpt-4o-mini", judge=["f1"], baselines=False)
    os.environ.pop("OPENAI_API_KEY", None)
    found = ms.estimate("locomo", ["bm25"], config)
    assert [(one.system, one.phase, one.requests) for one in found.phases] == [
        ("bm25", "answer", 4)
    ]
    assert found.cost > 0
    assert found.unpriced == {}
