"""A package of its own adds a dataset, a judge, a system and a metric by entry points alone.

It is installed into a folder of its own, without network, and found because the folder is on the
path. Nothing in `src` knows its names.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).resolve().parent
PACKAGE = HERE / "mnemoscope-extras"
MODULES = PACKAGE / "src" / "mnemoscope_extras"
SOURCE = HERE.parents[1] / "src"
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def extras(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The package, installed as pip installs it."""
    folder = tmp_path_factory.mktemp("extras")
    source = shutil.copytree(PACKAGE, folder / "source")
    options = ("--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    install = ("pip", "install", *options, "--target", folder / "site", source)
    subprocess.run([sys.executable, "-m", *install], check=True)
    return folder / "site"


DRIVER = """
import json, os, sys
import mnemoscope.analysis.compare, mnemoscope.api, mnemoscope.cli.run, mnemoscope.cli.show_runs
import mnemoscope.datasets.personas, mnemoscope.judges.exam_store, mnemoscope.readers.extractive
import mnemoscope.reports.run_report, mnemoscope.reports.run_tables, mnemoscope.runner.run
from mnemoscope.cli import main
for line in sys.stdin:
    order = json.loads(line)
    child = os.fork()
    if child == 0:
        os.environ.update(order["environment"])
        for file, name in enumerate(order["said"], 1):
            os.dup2(os.open(name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), file)
        sys.argv = ["mnemoscope", *order["arguments"]]
        main()
        os._exit(0)
    _, status = os.waitpid(child, 0)
    os.write(1, b"%d\\n" % os.waitstatus_to_exitcode(status))
"""


@pytest.fixture(scope="module")
def mnemo(extras: Path) -> Iterator[Run]:
    """The command, with the package on the path; it must end as said.

    Commands are forked from one process, which imported Mnemoscope and nothing of the package.
    """
    said = [str(extras.parent / name) for name in ("stdout", "stderr")]
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER],
        env={**os.environ, "PYTHONPATH": f"{extras}{os.pathsep}{SOURCE}", "COLUMNS": "200"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as driver:
        assert driver.stdin is not None and driver.stdout is not None

        def run(*arguments: str | Path, code: int = 0) -> subprocess.CompletedProcess[str]:
            own = ("MNEMOSCOPE_DATA_HOME", "MNEMOSCOPE_PLUGINS")
            order = {
                "arguments": [str(argument) for argument in arguments],
                "environment": {name: os.environ[name] for name in own if name in os.environ},
                "said": said,
            }
            print(json.dumps(order), file=driver.stdin, flush=True)
            assert driver.stdout is not None
            ended = int(driver.stdout.readline())
            out, err = (Path(name).read_text(encoding="utf-8") for name in said)
            assert ended == code, err
            return subprocess.CompletedProcess(arguments, ended, out, err)

        yield run
        driver.stdin.close()


@pytest.fixture(scope="module")
def beam(shared_data: Callable[[str], Path]) -> Path:
    return shared_data("beam")


@pytest.fixture(scope="module")
def runs(mnemo: Run, beam: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two chats, the package's system and one of ours, answered and judged by its judge."""
    folder = tmp_path_factory.mktemp("runs")
    options = ("--data", beam, "--scenarios", "2", "--reader", "extractive", "--out", folder)
    mnemo(
        "run", "beam-chats", "-s", "word-count", "-s", "bm25", "--judge", "covered-items", *options
    )
    return folder


def content(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_each_part_is_as_short_as_promised() -> None:
    lines = {path.stem: len(path.read_text().splitlines()) for path in MODULES.glob("*.py")}
    assert lines["beam"] <= 90
    assert lines["covered_items"] <= 40
    assert lines["f1_at_k"] <= 30
    assert lines["word_count"] <= 30


def test_no_module_of_ours_names_them() -> None:
    for path in SOURCE.rglob("*.py"):
        text = path.read_text(encoding="utf-8").lower()
        assert not any(name in text for name in ('"beam-chats"', "covered-items", "word-count")), (
            path
        )


def test_the_lists_show_them(mnemo: Run) -> None:
    [beam] = [
        one
        for one in json.loads(mnemo("datasets", "list", "--json").stdout)
        if one["name"] == "beam-chats"
    ]
    assert beam["summary"] == "20 long chats, 400 questions about ten abilities"
    assert beam["licence"] == "CC BY-SA 4.0"
    judges = {one["name"]: one for one in json.loads(mnemo("judges", "list", "--json").stdout)}
    assert judges["covered-items"]["options"] == {"share": "0.5"}
    assert "word-count" in mnemo("systems", "list").stdout
    assert "f1@k" in mnemo("metrics", "list").stdout


def test_without_plugins_they_are_not_there(mnemo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MNEMOSCOPE_PLUGINS", "0")
    assert "unknown dataset 'beam-chats'" in mnemo("datasets", "check", "beam-chats", code=2).stderr


def test_all_twenty_chats_are_read_and_none_leaks_its_evidence(mnemo: Run, beam: Path) -> None:
    checked = json.loads(mnemo("datasets", "check", "beam-chats", "--data", beam, "--json").stdout)
    # As counted in the facts, on the publisher's files.
    assert checked["counts"] == {
        "memories": 5732,
        "questions": 400,
        "questions with evidence": 355,
    }
    assert checked["findings"] == {"evidence marker cut off": 2199}
    assert checked["problems"] == []


def test_a_file_that_is_not_the_pinned_one_fails_its_check(
    mnemo: Run, beam: Path, tmp_path: Path
) -> None:
    unpacked = lzma.decompress((beam / "beam_100K.tar.xz").read_bytes())
    archive = tmp_path / "beam.tar"
    archive.write_bytes(unpacked + b"\0")
    told = mnemo("datasets", "check", "beam-chats", "--data", archive, code=1)
    assert "is not the pinned" in told.stderr


@pytest.mark.parametrize(
    ("kind", "name"), [("systems", "word-count"), ("metrics", "f1"), ("judges", "covered-items")]
)
def test_each_passes_the_check_of_its_kind(mnemo: Run, kind: str, name: str) -> None:
    mnemo(kind, "check", name)


def test_a_run_is_recorded_on_the_judges_own_scale(runs: Path) -> None:
    manifest = content(runs / "word-count" / "manifest.json")
    assert manifest["identity"]["benchmark"]["name"] == "beam-chats"
    assert manifest["identity"]["judge"]["scale"] == {
        "name": "covered-items",
        "low": 0,
        "high": 10,
        "passing": 5,
    }
    answers = content(runs / "oracle" / "answers.json")
    assert "sat no exam on beam-chats" in answers["withheld"]
    figures = answers["raw"]["figures"]
    assert (figures["scale"], figures["metric"]) == ("mean", "covered-items")
    assert 1 < figures["all"]["mean"] <= 10
    low, high = figures["all"]["ci95"]
    assert 0 <= low < figures["all"]["mean"] < high <= 10


def test_the_metric_stands_beside_ours(mnemo: Run, runs: Path) -> None:
    metrics = content(runs / "word-count" / "metrics.json")
    assert metrics["questions"]["measured"] == 36
    f1, precision, recall = (
        metrics["overall"][f"{name}@10"]["mean"] for name in ("f1", "precision", "recall")
    )
    assert precision < f1 < recall
    assert 0 < metrics["overall"]["f1@10"]["chance"] < f1
    assert metrics["overall"]["f1@10"]["ci95"][0] < f1 < metrics["overall"]["f1@10"]["ci95"][1]
    for report in (runs / "word-count" / "report.md", runs / "summary.md"):
        assert "f1@10" in report.read_text(encoding="utf-8")
    assert "f1@10" in mnemo("report", runs).stdout


def test_five_points_of_ten_are_a_right_answer(runs: Path) -> None:
    lines = (runs / "bm25" / "questions.jsonl").read_text(encoding="utf-8").splitlines()
    told = [one for one in map(json.loads, lines) if one["expects"] == "answer"]
    assert {one["verdict"]["value"] >= 5 for one in told} == {True, False}
    assert {"failure" in one for one in told if one["verdict"]["value"] >= 5} == {False}
    assert {"failure" in one for one in told if one["verdict"]["value"] < 5} == {True}


def test_reports_and_summary_call_the_scale_by_its_name(mnemo: Run, runs: Path) -> None:
    for report in (runs / "word-count" / "report.md", runs / "summary.md"):
        text = report.read_text(encoding="utf-8")
        assert "covered-items" in text and "beam-chats" in text
    shown = mnemo("report", runs, "--full").stdout
    assert "covered-items by category" in shown
    assert "word-count" in shown


def test_compare_and_gate_know_the_scale(mnemo: Run, runs: Path) -> None:
    told = mnemo("compare", runs / "word-count", runs / "oracle", "--json").stdout
    compared = json.loads(told)
    assert "covered-items" in json.dumps(compared)
    assert "f1@10" in json.dumps(compared)
    drop = ("--max-drop", "f1@10=0.05")
    mnemo("gate", runs / "oracle", "--baseline", runs / "word-count", *drop)
    mnemo("gate", runs / "word-count", "--baseline", runs / "oracle", *drop, code=1)


def test_answers_on_two_scales_are_not_compared(
    mnemo: Run, runs: Path, beam: Path, tmp_path: Path
) -> None:
    again = tmp_path / "f1"
    mnemo("judge", runs / "bm25", "--judge", "f1", "--data", beam, "--out", again)
    told = mnemo("compare", runs / "bm25", again / "bm25", code=0)
    assert "judged by different judges" in told.stdout + told.stderr


def test_its_judge_judges_saved_answers_again(
    mnemo: Run, runs: Path, beam: Path, tmp_path: Path
) -> None:
    again = tmp_path / "strict"
    strict = ("--judge", "covered-items,share=0.9")
    mnemo("judge", runs / "oracle", *strict, "--data", beam, "--out", again)
    strictly, before = (
        content(folder / "oracle" / "answers.json")["raw"]["figures"]["answerable"]["mean"]
        for folder in (again, runs)
    )
    assert strictly < before


def test_a_dataset_with_answers_needs_no_judge_to_be_named(
    mnemo: Run, beam: Path, tmp_path: Path
) -> None:
    options = ("--data", beam, "--scenarios", "1", "--questions", "5", "--no-arms")
    mnemo(
        "run",
        "beam-chats",
        "-s",
        "word-count",
        "--reader",
        "extractive",
        *options,
        "--out",
        tmp_path,
    )
    assert content(tmp_path / "word-count" / "answers.json")["judge"] == "covered-items"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (
            ("run", "locomo", "--judge", "covered-items"),
            "the covered-items judge needs a rubric for each question; locomo has none",
        ),
        (("run", "beam-chats", "--judge", "ledger"), "beam-chats has no ledger"),
        (
            ("run", "beam-chats", "--judge", "covered-items", "--appellate-judge", "exact"),
            "covered-items and exact have different scales",
        ),
    ],
)
def test_judges_are_refused_where_they_cannot_judge(
    mnemo: Run,
    shared_data: Callable[[str], Path],
    arguments: tuple[str, ...],
    told: str,
    tmp_path: Path,
) -> None:
    data = shared_data(arguments[1].removesuffix("-chats"))
    given = ("-s", "word-count", "--reader", "extractive", "--data", data, "--out", tmp_path)
    assert told in " ".join(mnemo(*arguments, *given, code=2).stderr.split())


def test_the_python_api_takes_them_by_name(extras: Path, beam: Path, tmp_path: Path) -> None:
    script = f"""
import mnemoscope as ms
results = ms.run("beam-chats", systems=["word-count"], data={str(beam)!r}, out={str(tmp_path)!r},
                 scenarios=1, questions=8, reader="extractive", judge="covered-items")
rows = results.to_frame().to_dict("records") if hasattr(results.to_frame(), "to_dict") else (
    results.to_frame().rows)
print(sorted({{row["metric"] for row in rows}}))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "PYTHONPATH": f"{extras}{os.pathsep}{SOURCE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "'f1@10'" in done.stdout and "'covered-items'" in done.stdout
