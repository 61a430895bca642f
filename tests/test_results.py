"""Results as rows, frames and HTML, with pandas and without."""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import MissingData
from mnemoscope.results import (
    FigureRow,
    Frame,
    QuestionRow,
    Results,
    RunResult,
    frame_of,
    html_table,
)

STRATA = Path(__file__).resolve().parent.parent / "examples" / "strata"
EVIL = "<script>alert('x')</script> & more"


class Breaks:
    """Fails on every second question, and recalls no memories for the others."""

    def remember(self, memories: object) -> None:
        self.asked = 0

    def recall(self, query: ms.Query, k: int) -> list[str]:
        if len(query.text) % 2:
            raise RuntimeError(EVIL)
        return []


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("results")
    return ms.run("strata", systems=["bm25", Breaks], data=STRATA, out=folder, progress=False)


@pytest.fixture
def _without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)


def test_a_frame_is_pandas_where_it_is_installed(results: Results) -> None:
    pandas = pytest.importorskip("pandas")
    frame = results.to_frame()
    assert isinstance(frame, pandas.DataFrame)
    assert list(frame.columns) == list(FigureRow._fields)
    own = frame[(frame.system == "bm25") & (frame.metric == "recall@10")]
    assert set(own.category) == {"overall", "exact", "paraphrase", "multihop"}
    assert ((own.low <= own["mean"]) & (own["mean"] <= own.high)).all()


@pytest.mark.usefixtures("_without_pandas")
def test_a_frame_is_a_small_table_without_pandas(results: Results, tmp_path: Path) -> None:
    frame = results.to_frame()
    assert isinstance(frame, Frame)
    assert frame.columns == list(FigureRow._fields)
    assert len(frame) == len(list(frame)) == len(frame.rows) == len(results.figures())
    assert set(frame["system"]) == {"bm25", "Breaks", "random", "oracle"}
    text = frame.to_csv()
    assert text is not None
    rows = list(csv.DictReader(io.StringIO(text)))
    assert len(rows) == len(frame)
    assert float(rows[0]["mean"]) == frame["mean"][0]
    assert frame.to_csv(tmp_path / "figures.csv") is None
    assert (tmp_path / "figures.csv").read_text() == text


def test_figures_are_those_of_metrics_json(results: Results) -> None:
    own = results["bm25"]
    recorded = own.directory.read_json("metrics.json")
    by_name = {(row.metric, row.category): row for row in own.figures()}
    figure, row = recorded["overall"]["recall@10"], by_name["recall@10", "overall"]
    assert (row.mean, [row.low, row.high]) == (figure["mean"], figure["ci95"])
    assert (row.chance, row.ceiling, row.n) == (figure["chance"], figure["ceiling"], 48)
    assert by_name["hit@1", "multihop"].mean == recorded["by_category"]["multihop"]["hit@1"]["mean"]
    assert own.metrics["overall"]["recall@10"]["lift"] == figure["lift"]
    assert own.metrics["questions"]["asked"] == 48
    assert results["oracle"].is_baseline
    assert not row.baseline


def test_questions_show_hits_ranks_and_status(results: Results) -> None:
    rows = {row.question: row for row in results["bm25"].question_rows()}
    assert len(rows) == 48
    row = rows["exact_001"]
    assert row.text == "exclusion constraints for the booking database"
    assert (row.evidence, row.hits[0], row.ranks) == (("101",), "101", (1,))
    assert (row.status, row.answer, row.verdict, row.failure) == ("answered", None, None, "")
    assert len(results.questions()) == 4 * 48


def test_failed_questions_have_a_reason(results: Results) -> None:
    broken = results["Breaks"].question_rows()
    assert len(results["Breaks"].failed()) == len(broken) == 48
    reasons = {row.status: row.failure for row in broken}
    assert reasons["error"] == f"error: RuntimeError: {EVIL}"
    assert reasons["empty"] == "no evidence among the first 10 hits"
    assert not len(results["oracle"].failed())
    assert len(results["bm25"].failed(k=1)) > len(results["bm25"].failed())


def test_judged_answers_fail_by_their_verdict(
    write_locomo: Callable[..., Path], tmp_path: Path
) -> None:
    data = write_locomo(tmp_path / "locomo.json", conversations=1, questions=8)
    options = {"reader": "extractive", "judge": "f1", "baselines": False}
    found = ms.run("locomo", systems="bm25", data=data, out=tmp_path / "r", **options)  # type: ignore[arg-type]
    for row in found["bm25"].question_rows():
        assert row.verdict is not None
        assert bool(row.failure) == (row.verdict < 0.5)
    [figure] = [r for r in found.figures() if (r.metric, r.category) == ("f1", "overall")]
    assert figure.mean is not None and figure.low is not None and figure.low <= figure.mean


def test_html_escapes_every_text(results: Results, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for shown in (
        html_table([EVIL], [[EVIL]]),
        Frame([EVIL], [[EVIL], [(EVIL,)]])._repr_html_(),
        results["Breaks"].failed()._repr_html_(),
        ms.compare(results["bm25"], results["oracle"])._repr_html_(),
        results._repr_html_(),
        results["bm25"]._repr_html_(),
    ):
        assert "<script" not in shown
        assert shown.count("<table>") == 1
    assert "&lt;script&gt;" in results["Breaks"].failed()._repr_html_()


def test_a_notebook_shows_the_headline_of_each_system(results: Results) -> None:
    shown = results._repr_html_()
    figure = results["bm25"].metrics["overall"]["recall@10"]
    assert f"{figure['mean']:.3f}" in shown and f"{figure['ci95'][1]:.3f}" in shown
    assert "oracle (baseline)" in shown
    assert repr(results).startswith("Results of bm25, Breaks, random, oracle at ")


def test_long_frames_show_their_beginning() -> None:
    frame = Frame(["n"], [[n] for n in range(1_000)])
    assert frame._repr_html_().endswith("<p>and 800 more rows</p>")
    assert repr(frame) == "Frame of 1000 rows: n"


def test_results_are_a_mapping_by_label(results: Results) -> None:
    assert set(results) == {"bm25", "Breaks", "random", "oracle"}
    assert len(results) == 4
    assert results["bm25"] is results.runs[0]
    with pytest.raises(KeyError, match="they have bm25, Breaks, random, oracle"):
        results["bm52"]


def test_a_folder_that_is_not_a_finished_run_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MissingData, match=r"it has no manifest\.json"):
        RunResult(tmp_path).metrics  # noqa: B018


def test_an_empty_frame_has_its_columns() -> None:
    assert list(frame_of(QuestionRow, []).columns) == list(QuestionRow._fields)
