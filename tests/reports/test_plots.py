"""Plots: what their texts say, their sizes and fonts, and that the same run gives the same file."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from struct import unpack
from typing import Any, get_args
from xml.etree import ElementTree

import msgspec
import pytest
from tests.conftest import REPOSITORY
from tests.exports.conftest import ledger_in

import mnemoscope as ms
from mnemoscope._store.errors import UsageError
from mnemoscope.cli.app import USAGE, invoke
from mnemoscope.judges import exam as exams
from mnemoscope.judges.plain_judges import Exact
from mnemoscope.reports import run_plots
from mnemoscope.reports.plot_style import (
    THEMES,
    WIDTHS,
    Look,
    Picture,
    PlotKind,
    format_of,
    short,
    style_of,
)
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.summary_plot import summary_picture
from mnemoscope.results import Results

HOSTILE = "_$x^2$ <script>alert(1)&amp;\u202e" + "x" * 60
SVG = Look(format="svg")
KINDS = ("intervals", "forest", "k", "tokens", "latency")


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("plots") / "runs"
    data = REPOSITORY / "examples" / "strata"
    with ledger_in(folder.parent):
        ms.run("strata", systems=["bm25", "recency", "fts5"], data=data, out=folder, progress=False)
    (folder / "recency").rename(folder / HOSTILE)
    return ms.load(folder)


@pytest.fixture(scope="module")
def views(results: Results) -> list[RunView]:
    return [RunView.of(run.directory) for run in results.runs]


def texts(picture: Picture) -> list[str]:
    """The text nodes of an SVG file."""
    root = ElementTree.fromstring(picture.content)
    return [
        "".join(node.itertext()) for node in root.iter() if node.tag.endswith(("}text", "}tspan"))
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_labels_and_values_are_texts_of_the_drawing(results: Results, kind: PlotKind) -> None:
    said = texts(ms.plot(results, kind, format="svg"))
    assert any("fts5" in one for one in said)
    assert any(one.startswith("_$x^2$ <") and "…" in one for one in said)
    assert not any(len(one) > 120 for one in said)
    assert any("UNVERIFIED" in one for one in said)


def test_intervals_have_values_and_letters(results: Results) -> None:
    said = texts(ms.plot(results, "intervals", format="svg"))
    groups = results.groups
    assert groups is not None
    for one in groups.systems:
        mean = results[one.system].metrics["overall"]["recall@10"]["mean"]
        assert f"{mean:.3f}  {one.letters}" in said
    assert "chance" in said
    oracle = results["oracle"].metrics["overall"]["recall@10"]["mean"]
    assert f"{oracle:.3f}" in said


def test_a_forest_of_systems_has_the_differences_of_compare_many(results: Results) -> None:
    said = texts(ms.plot(results, "forest", reference="fts5", format="svg"))
    for row in ms.compare_many(results).rows():
        if "fts5" in (row.first, row.second):
            delta = row.delta if row.second == "fts5" else -row.delta
            shown = f"{delta:+.3f}".replace("-", "−")
            baseline = "random" in (row.first, row.second)
            assert any(one.startswith(shown) for one in said) is not baseline
    with pytest.raises(UsageError, match="--reference nobody"):
        ms.plot(results, "forest", reference="nobody")


def test_a_forest_of_two_runs_has_the_verdict_of_compare(results: Results) -> None:
    pair = [results["bm25"], results["random"]]
    said = texts(ms.plot(pair, "forest", format="svg"))
    found = ms.compare(*pair, by_category=False)
    for row in found.rows():
        [one] = [one for one in said if one.startswith(f"{row.delta:+.3f}".replace("-", "−"))][:1]
        assert row.verdict in one or row.metric != "recall@10"
    assert any("Square: the primary metric" in one for one in said)


def test_every_format_has_the_size_of_a_column_or_a_page(results: Results) -> None:
    pair = [results["bm25"], results["random"]]
    for width, inches in WIDTHS.items():
        png = ms.plot(pair, "k", width=width).content
        assert unpack(">I", png[16:20])[0] == round(200 * inches)
        pdf = ms.plot(pair, "k", width=width, format="pdf").content
        box = re.search(rb"/MediaBox \[ 0 0 ([\d.]+) ", pdf)
        assert box is not None
        assert float(box[1]) == pytest.approx(72 * inches, abs=0.1)


def test_a_pdf_embeds_its_fonts_as_truetype(results: Results) -> None:
    pdf = ms.plot([results["bm25"], results["random"]], "intervals", format="pdf").content
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, flags=re.DOTALL)
    unpacked = pdf + b"".join(_inflated(one) for one in streams)
    assert b"/FontFile2" in unpacked
    assert b"/Type3" not in unpacked
    assert b"/CreationDate" not in unpacked


def _inflated(stream: bytes) -> bytes:
    try:
        return zlib.decompress(stream)
    except zlib.error:
        return b""


@pytest.mark.parametrize("format", ["png", "svg"])
def test_the_same_runs_give_the_same_bytes_without_dates(results: Results, format: Any) -> None:
    first, second = (ms.plot(results, "intervals", format=format).content for _ in range(2))
    assert first == second
    if format == "svg":
        about = ElementTree.fromstring(first).attrib
        assert (about["role"], about["aria-label"]) == ("img", "strata: recall@10")
    assert not re.search(rb"20[23]\d-\d\d-\d\d|matplotlib v", first)


def test_the_users_settings_of_matplotlib_do_not_matter(results: Results) -> None:
    import matplotlib

    before = ms.plot(results, "k", format="svg").content
    with matplotlib.rc_context({"font.size": 30, "text.parse_math": True, "axes.grid": True}):
        assert ms.plot(results, "k", format="svg").content == before
    dark = ms.plot(results, "k", theme="dark", format="svg").content
    assert THEMES["dark"].paper.encode() in dark
    assert THEMES["dark"].paper.encode() not in before


def test_ageing_shows_the_checkpoints(
    views: Sequence[RunView], make_history: Callable[..., Any]
) -> None:
    figures: Any = {**make_history(4).figures, "errors": {}}
    aged = [replace(views[0], label="mine", longitudinal=figures)]
    said = texts(run_plots.ageing_plot(aged, "", SVG, []))
    cohort = "mean composite of the same questions, 0 to 6"
    assert {"7", "14", "21", "28", "mine", cohort} <= set(said)
    old: Any = {name: own for name, own in figures.items() if name != "ageing"}
    before = [replace(aged[0], longitudinal=old)]
    for shown, metric in ((aged, "composite"), (before, "")):
        assert "mean composite, 0 to 6" in texts(run_plots.ageing_plot(shown, metric, SVG, []))
    with pytest.raises(UsageError, match="no question was judged at every checkpoint"):
        run_plots.ageing_plot(before, "cohort", SVG, [])
    said = texts(run_plots.ageing_plot(aged, "hallucination", SVG, []))
    assert "hallucination rate" in said
    with pytest.raises(UsageError, match="composite, recall_quality"):
        run_plots.ageing_plot(aged, "recall@10", SVG, [])
    with pytest.raises(UsageError, match="runs with checkpoints"):
        run_plots.ageing_plot(views, "", SVG, [])
    assert "composite of 6 at 28d" in texts(summary_picture(aged, "x", SVG))


def test_the_exam_of_a_judge_is_drawn_with_its_limits(views: Sequence[RunView]) -> None:
    result = msgspec.to_builtins(exams.take(Exact(), exams.load_probes()))
    assert not result["passed"]
    identity = {**views[0].manifest.identity, "judge": {"spec": "exact"}}
    about = msgspec.structs.replace(views[0].manifest, identity=identity, exams={"exact": result})
    said = texts(run_plots.judge_plot([replace(views[0], manifest=about)], SVG, []))
    wrong = result["false_reject"]
    assert f"{wrong['count']} of {wrong['of']}" in said
    assert {"accepts wrong answers", "right paraphrase", "exact failed its exam."} <= set(said)
    with pytest.raises(UsageError, match="have no judge"):
        run_plots.judge_plot(views, SVG, [])
    without = msgspec.structs.replace(about, exams={})
    with pytest.raises(UsageError, match="judges exam SPEC"):
        run_plots.judge_plot([replace(views[0], manifest=without)], SVG, [])


def test_the_svg_of_report_is_a_drawing_of_its_figures(
    results: Results, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "report.svg"
    assert invoke(["report", str(results.path), "--svg", str(place)]) == 0
    capsys.readouterr()
    said = texts(Picture(place.read_bytes(), "svg"))
    for run in results.runs:
        for name in ("recall@5", "ndcg@10"):
            value = f"{run.metrics['overall'][name]['mean']:.3f}"
            assert any(one.startswith(value) for one in said)
    assert {"recall@5", "recall@10, exact", "recall@10, multihop"} <= set(said)
    assert b"<script" not in place.read_bytes()
    assert b"rich-terminal" not in place.read_bytes()


def test_systems_differ_by_more_than_colour() -> None:
    for theme in THEMES.values():
        styles = [style_of(place, theme, is_baseline=False) for place in range(7)]
        assert len({one["color"] for one in styles}) == 7
        assert len({(one["marker"], str(one["linestyle"])) for one in styles}) == 7
        for one in (theme.text, theme.faint):
            assert _contrast(one, theme.paper) >= 4.5


def _contrast(one: str, other: str) -> float:
    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4 for v in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((light(one), light(other)))
    return (high + 0.05) / (low + 0.05)


def test_labels_are_cut_in_the_middle_and_formats_follow_the_ending() -> None:
    assert short("a" * 20 + "b" * 20, 11) == "aaaaaa…bbbb"
    assert short("a\nb\x1b", 20) == "a b\\x1b"
    assert format_of("x.SVG") == "svg"
    with pytest.raises(UsageError, match=r"\.png, \.svg or \.pdf"):
        format_of("x.gif")
    assert set(KINDS) < set(get_args(PlotKind))


def test_the_command_writes_the_file_and_a_notebook_shows_it(
    results: Results, tmp_path: Path
) -> None:
    run = str(results.path)
    place = tmp_path / "new" / "k.svg"
    assert invoke(["plot", run, "--kind", "k", "--metric", "hit", "--out", str(place)]) == 0
    assert "hit@k" in texts(Picture(place.read_bytes(), "svg"))
    assert invoke(["plot", run, "--kind", "k", "--metric", "mrr@10", "--out", str(place)]) == USAGE
    assert invoke(["plot", run, "--kind", "ageing", "--out", str(place)]) == USAGE
    assert invoke(["plot", run, "--out", "x.gif"]) == USAGE
    shown = ms.plot(results["bm25"], "latency", title="")
    assert shown._repr_png_() == shown.content
    assert shown._repr_svg_() is None


def test_commands_do_not_import_matplotlib_before_they_draw() -> None:
    code = "import sys, mnemoscope.cli.plot; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
