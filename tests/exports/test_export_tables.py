"""CSV, JSON, Parquet and Markdown of runs: the same values, with their status and caveats."""

from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from shutil import copytree
from typing import Any, get_args

import jsonschema
import pytest
from tests.conftest import REPOSITORY
from tests.exports.conftest import HOSTILE, SmallRuns

import mnemoscope as ms
from mnemoscope._store.errors import EditedRun, MissingExtra, UsageError
from mnemoscope.analysis.compare import NotComparable
from mnemoscope.cli.app import EDITED, USAGE, invoke
from mnemoscope.exports.data_tables import DataTable, csv_file, export_schema
from mnemoscope.exports.export_caveats import RunStatus
from mnemoscope.exports.export_formats import ExportContent, ExportFormat
from mnemoscope.exports.exported_files import ExportedFiles, file_names
from mnemoscope.results import FigureRow, QuestionRow
from mnemoscope.results.export_results import ROW_KINDS

SCHEMA = REPOSITORY / "docs" / "schemas" / "export.json"
TEXTS = ("system", "metric", "category", "checkpoint", "group")


@pytest.fixture
def pandas() -> Any:
    """Imported for the tests that use it: every fork shares the memory that it takes."""
    return pytest.importorskip("pandas")


def test_csv_of_figures_is_the_frame(small_runs: SmallRuns, tmp_path: Path, pandas: Any) -> None:
    made = ms.export(small_runs.folder, "csv", out=tmp_path / "figures.csv")
    unknown = {name: [""] for name in FigureRow._fields if name not in TEXTS}
    read = pandas.read_csv(made.written[0], keep_default_na=False, na_values=unknown)
    assert set(read.pop("status")) == {"UNVERIFIED"}
    expected = ms.load(small_runs.folder).to_frame()
    pandas.testing.assert_frame_equal(read, expected, check_exact=True, check_dtype=False)
    assert {"bm25", HOSTILE, "Quiet", "random", "oracle"} == set(read.system)


def test_csv_keeps_spreadsheets_from_running_texts_as_formulas(
    small_runs: SmallRuns, pandas: Any
) -> None:
    row = small_runs.results["bm25"].question_rows()[0]
    evil = row._replace(text='=HYPERLINK("http://x")', answer="@x")
    status = RunStatus(row.system, "UNVERIFIED", (), "", "")
    made = csv_file(DataTable("questions", "locomo", QuestionRow, [evil], [status], []))
    [read] = pandas.read_csv(io.BytesIO(made)).to_dict("records")
    assert read["text"] == "'" + evil.text
    assert read["answer"] == "'@x"
    assert json.loads(read["hits"]) == list(row.hits)


def test_the_status_of_a_question_is_not_that_of_its_run(small_runs: SmallRuns) -> None:
    made = ms.export(small_runs.results, "json", what="questions").text
    found = {(row["status"], row["run_status"]) for row in json.loads(made)["rows"]}
    assert {("answered", "UNVERIFIED"), ("error", "UNVERIFIED")} <= found
    head = ms.export(small_runs.results, "csv", what="questions").text.partition("\n")[0]
    assert len(set(head.split(","))) == len(head.split(","))


@pytest.mark.parametrize("what", ["figures", "questions", "rankings", "comparison"])
def test_json_follows_its_schema(small_runs: SmallRuns, what: ExportContent) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    content = json.loads(ms.export(small_runs.results, "json", what=what).text)
    assert content["rows"]
    del content["rows"][50:]
    validator = jsonschema.Draft202012Validator(schema)
    validator.validate(content)
    content["rows"][0]["more"] = 1
    assert not validator.is_valid(content)
    assert {run["system"] for run in content["runs"]} >= {"bm25", HOSTILE}
    assert content["runs"][0]["status"] == "UNVERIFIED"
    assert any("UNVERIFIED" in line for line in content["caveats"])


def test_the_schema_in_the_documentation_is_current() -> None:
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == export_schema(ROW_KINDS)


def test_parquet_has_the_types_and_the_caveats(small_runs: SmallRuns, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    for what in ("figures", "rankings"):
        place = tmp_path / f"{what}.parquet"
        made = ms.export(small_runs.folder, "parquet", what=what, out=place)
        table = parquet.read_table(place)
        rows = json.loads(ms.export(small_runs.folder, "json", what=what).text)["rows"]
        assert table.to_pylist() == rows
        about = json.loads(table.schema.metadata[b"mnemoscope"])
        assert about["caveats"] == list(made.caveats)
        assert about["runs"][0]["status"] == "UNVERIFIED"


def test_parquet_names_the_extra_that_it_needs(
    small_runs: SmallRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingExtra, match=r"mnemoscope\[parquet\]"):
        ms.export(small_runs.folder, "parquet")


def test_figures_carry_bounds_of_failed_questions(small_runs: SmallRuns) -> None:
    rows = json.loads(ms.export(small_runs.results, "json", metrics=["hit@10"]).text)["rows"]
    assert {row["metric"] for row in rows} == {"hit@10"}
    [own] = [r for r in rows if (r["system"], r["category"]) == ("Quiet", "overall")]
    assert own["lowest"] < own["mean"] == own["highest"]


def test_markdown_has_groups_intervals_and_caveats(small_runs: SmallRuns) -> None:
    text = ms.load(small_runs.folder).to_markdown(metrics=["recall@5", "recall@10"])
    assert "| system | group | ranks | recall@5 | recall@10 |" in text
    assert "UNVERIFIED" in text
    assert "questions were not measured" in text
    assert "\\`" in text  # of the hostile label


def test_a_comparison_of_two_runs_has_metrics_and_one_of_more_has_pairs(
    small_runs: SmallRuns,
) -> None:
    pair = [small_runs.folder / "bm25", small_runs.folder / "random"]
    content = json.loads(ms.export(pair, "json", what="comparison").text)
    assert {row["role"] for row in content["rows"]} == {"primary", "secondary", "category"}
    content = json.loads(ms.export(small_runs.folder, "json", what="comparison").text)
    assert {row["first"] for row in content["rows"]} >= {"bm25"}
    with pytest.raises(UsageError, match="at least two runs"):
        ms.export(pair[0], "csv", what="comparison")


@pytest.mark.parametrize("format", get_args(ExportFormat))
def test_what_a_format_cannot_hold_is_said_in_one_sentence(
    small_runs: SmallRuns, format: ExportFormat
) -> None:
    refused = {
        "latex": ("questions", "rankings"),
        "markdown": ("questions", "rankings"),
        "trec": ("figures", "questions", "comparison"),
        "ranx": ("figures", "questions", "comparison"),
        "ir-measures": ("figures", "questions", "comparison"),
        "mteb": ("questions", "rankings", "comparison"),
    }
    for what in refused.get(format, ()):
        with pytest.raises(UsageError, match="export csv"):
            ms.export(small_runs.folder, format, what=what)  # type: ignore[arg-type]


def test_unknown_metrics_and_other_benchmarks_are_refused(
    small_runs: SmallRuns, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="no metric 'speed'"):
        ms.export(small_runs.folder, "csv", metrics=["speed"])
    with pytest.raises(UsageError, match="no metric 'speed'"):
        ms.export(small_runs.folder, "latex", metrics=["speed"])
    data = REPOSITORY / "examples" / "strata"
    other = ms.run("strata", systems=["bm25"], data=data, out=tmp_path / "s", baselines=False)
    both = [small_runs.results["bm25"], other["bm25"]]
    with pytest.raises(UsageError, match="several benchmarks"):
        ms.export(both, "csv")
    with pytest.raises((UsageError, NotComparable)):
        ms.plot(both, "forest")


def test_an_edited_run_is_refused_with_its_exit_code(small_runs: SmallRuns, tmp_path: Path) -> None:
    copytree(small_runs.folder / "bm25", tmp_path / "bm25")
    figures = tmp_path / "bm25" / "metrics.json"
    figures.write_text(figures.read_text().replace("0.", "0.9", 1))
    run = str(tmp_path / "bm25")
    for format in ("csv", "latex", "trec", "mteb"):
        out = tmp_path / f"out-{format}"
        assert invoke(["export", run, "--format", format, "--out", str(out)]) == EDITED
        assert not out.exists()
    assert invoke(["plot", run, "--out", str(tmp_path / "x.png")]) == EDITED
    assert not (tmp_path / "x.png").exists()
    with pytest.raises(EditedRun):
        ms.export(run, "json")


def test_nothing_is_written_into_a_run_directory(small_runs: SmallRuns) -> None:
    run = small_runs.folder / "bm25"
    for out in (run / "table.tex", run):
        assert invoke(["export", str(run), "--format", "latex", "--out", str(out)]) == USAGE
    assert invoke(["plot", str(run), "--out", str(run / "plot.png")]) == USAGE
    assert ms.load(run)["bm25"].metrics


def test_the_command_prints_one_text_and_needs_a_place_for_more(
    small_runs: SmallRuns, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = str(small_runs.folder / "bm25")
    assert invoke(["export", run, "--format", "csv"]) == 0
    printed, told = capfd.readouterr()
    assert printed.startswith("system,metric,category")
    assert "note: UNVERIFIED" in told
    assert invoke(["export", run, "--format", "trec"]) == USAGE
    assert "give --out" in capfd.readouterr().err
    assert invoke(["export", run, "--format", "trec", "--out", str(tmp_path / "t")]) == 0
    assert {one.name for one in (tmp_path / "t").iterdir()} == {"bm25.qrels", "bm25.run"}
    assert invoke(["export", "--format", "csv"]) == USAGE


def test_a_terminal_gets_no_control_characters(
    small_runs: SmallRuns, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    text = ExportedFiles({"x.csv": b"a\x1b[31m\n"})
    monkeypatch.setattr("mnemoscope.api.export", lambda *_, **__: text)
    monkeypatch.setattr(sys, "stdout", Terminal())
    assert invoke(["export", str(small_runs.folder), "--format", "csv"]) == 0
    assert isinstance(sys.stdout, Terminal)
    assert sys.stdout.getvalue() == "a\\x1b[31m\n"


def test_names_of_files_are_safe_and_differ() -> None:
    names = file_names(["../../etc/x", HOSTILE, "A", "a", "..", "a"])
    assert len({name.lower() for name in names}) == len(names)
    assert all(name and "/" not in name and not name.startswith(".") for name in names)
