"""report.html as a file: the figures of report.md, the same bytes, part of what the seal covers."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

import mnemoscope as ms
from mnemoscope._store.errors import EditedRun
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope.reports import longitudinal_report, render_html, render_markdown
from mnemoscope.reports.run_report import report
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.tables import (
    Cell,
    Heading,
    Markup,
    Paragraph,
    ReportTable,
    document_table,
    interval_cell,
)
from mnemoscope.text.display import as_code, as_markdown


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, write_locomo: Callable[..., Path]) -> Path:
    folder = tmp_path_factory.mktemp("page")
    data = write_locomo(folder / "l.json", 2, 6, 10)
    options: dict[str, Any] = {"reader": "extractive", "judge": "f1", "baselines": False}
    return ms.run("locomo", systems="bm25", data=data, out=folder / "runs", **options).runs[0].path


class Tables(HTMLParser):
    """The texts of all cells, by row."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[list[str]] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.rows[-1][-1] += data


def test_the_tables_of_the_page_are_those_of_report_md(run: Path) -> None:
    blocks = report(RunView.of(RunDirectory(run)))
    parser = Tables()
    parser.feed((run / "report.html").read_text(encoding="utf-8"))
    tables = [block for block in blocks if isinstance(block, ReportTable)]
    assert len(tables) > 5
    for table in tables:
        for row in table.rows:
            texts = [cell.text if isinstance(cell, Cell) else str(cell) for cell in row]
            plain = [re.sub(r"^\*+|\*+$", "", text) for text in texts]
            assert [" ".join(text.split()) for text in plain] in parser.rows


def test_the_page_is_written_again_with_the_same_bytes_and_an_edit_is_found(run: Path) -> None:
    page, data = run / "report.html", run.parent.parent / "l.json"
    ms.report(run, data=data)  # each test has its own ledger of attempts, which the page tells
    before = page.read_bytes()
    ms.report(run, data=data)
    assert page.read_bytes() == before

    page.write_bytes(before + b"<p>VERIFIED</p>")
    with pytest.raises(EditedRun, match="mnemoscope report"):
        ms.load(run)
    ms.report(run, data=data)
    assert page.read_bytes() == before
    assert ms.load(run).runs


def test_without_the_dataset_a_page_keeps_its_texts_unless_it_was_edited(run: Path) -> None:
    page, data = run / "report.html", run.parent.parent / "l.json"
    ms.report(run, data=data)
    whole = page.read_bytes()
    ms.report(run)
    assert page.read_bytes() == whole

    page.write_bytes(whole + b" ")
    ms.report(run)
    assert page.stat().st_size < len(whole)
    ms.report(run, data=data)
    assert page.read_bytes() == whole


def test_the_page_asks_for_nothing_and_runs_only_its_own_script(run: Path) -> None:
    text = (run / "report.html").read_text(encoding="utf-8")
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)
    assert policy is not None
    assert "default-src 'none'" in policy[1]
    assert "unsafe" not in policy[1]
    assert not re.search(r"""(?:src|href)=["'](?!#)""", text)
    assert "http://" not in text and "https://" not in text
    assert text.count("<script") == 2
    assert " style=" not in text


def test_html_shows_every_text_as_it_is_and_marks_only_what_a_report_marked() -> None:
    evil = "<b>`x`</b> **y** &lt; \u202e\nz"
    shown = render_html.render(
        [
            Heading("A & B", 3),
            Paragraph(evil),
            Paragraph(Markup(f"system: {as_code('a`<i>`b')} and **{as_markdown('*<u>*')}**")),
            Paragraph("hidden", only="terminal"),
            document_table(["a|b"], [[evil]]),
        ]
    )
    escaped = "&lt;b&gt;`x`&lt;/b&gt; **y** &amp;lt; \\u202e z"
    assert f"<p>{escaped}</p>" in shown
    assert "<p>system: <code>a`&lt;i&gt;`b</code> and <strong>*&lt;u&gt;*</strong></p>" in shown
    assert "hidden" not in shown
    assert f">{escaped}</th>" in shown
    assert "<h3>A &amp; B</h3>" in shown


def test_a_bar_is_drawn_only_for_a_figure_between_nothing_and_the_best() -> None:
    drawn = render_html.render(
        [document_table(["a", "b"], [["x", interval_cell("0.5", 0.5, [0.25, 0.75], chance=0.1)]])]
    )
    assert 'class="interval" x="32.0"' in drawn
    assert 'width="56.0"' in drawn
    assert "chance" in drawn
    assert interval_cell("81 words", 81.0, [70.0, 90.0]).bar is None
    assert interval_cell("--", None, None).bar is None
    assert interval_cell("-0.1", -0.1, [-0.2, 0.1]).bar is None
    assert interval_cell("3", 3.0, [1.5, 4.5], best=6).bar == (0.5, 0.25, 0.75, None)


def test_a_long_text_is_cut_and_the_cut_is_told() -> None:
    shown = render_html.shown("y" * (render_html.MOST + 1_500))
    assert shown.endswith("y … (1,500 characters more)")
    assert len(shown) < render_html.MOST + 100


def test_a_heatmap_has_every_checkpoint_with_number_and_interval(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(40, unasked=frozenset({(0, 1)})).figures
    first = figures["checkpoints"][0]["categories"]["factual-recall"]
    judged = render_html.render(longitudinal_report.sections(figures, is_wide=True))
    interval = f"[{first['ci95'][0]:.2f}, {first['ci95'][1]:.2f}]"
    told = f"n {first['n']}, 95 % interval {interval}, hit@10 {first['hit@10']:.3f}"
    assert f'data-about="{told}">{first["mean"]:.1f}</td>' in judged
    assert 'class="hnone" data-about="nothing asked">--</td>' in judged
    # Besides the categories: all questions, the cohort, hallucination.
    assert judged.count("data-about") == 40 * (len(figures["categories"]) + 3)
    assert 'class="heat narrow"' in judged

    recalled = render_html.render(longitudinal_report.recall_sections(figures))
    assert recalled.count("data-about") == 40 * (len(figures["categories"]) + 1)
    assert f'data-about="asked {first["asked"]}">{first["hit@10"]:.2f}</td>' in recalled
    assert render_markdown.render(longitudinal_report.recall_sections(figures)).count("|") == 0
