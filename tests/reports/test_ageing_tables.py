"""Ageing in reports: the curve on the page, the row of the heatmap, runs of older versions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from mnemoscope.reports import render_html, render_markdown
from mnemoscope.reports.ageing_tables import ageing_sections, cohort_sentence, shown_ageing
from mnemoscope.reports.heatmap import COHORT, heatmap
from mnemoscope.reports.tables import ChartPoint, CurveChart, Grid


def test_the_page_draws_the_curve_with_a_band_and_says_it_in_words(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(6).figures
    page = render_html.render(ageing_sections(figures, is_wide=True))
    [band] = re.findall(r'<polygon class="band" points="([^"]*)"', page)
    assert len(band.split()) == 2 * 6
    first = figures["ageing"]["composite"]["cohort"]["points"][0]["score"]
    assert f"7d: {first['mean']:.2f} [{first['ci95'][0]:.2f}, {first['ci95'][1]:.2f}]" in page
    document = render_markdown.render(ageing_sections(figures, picture="ageing.png"))
    assert "![composite of the cohort](ageing.png)" in document
    assert "<svg" not in document


def test_hostile_labels_stay_text() -> None:
    label = '"><script>alert(1)</script>'
    chart = CurveChart(label, [ChartPoint(1, label, 2.0, [1, 3])], 6.0, label, [])
    assert "<script" not in render_html.render([chart])
    assert render_html.render([CurveChart("empty", [], 6.0)]) == ""


def test_the_heatmap_has_a_row_of_the_same_questions(make_history: Callable[..., Any]) -> None:
    figures = make_history(4).figures
    [grid] = [block for block in heatmap(figures, "x", width=120) if isinstance(block, Grid)]
    [row] = [row for row in grid.rows if row and row.name == COHORT]
    points = figures["ageing"]["composite"]["cohort"]["points"]
    assert [cell.text for cell in row.cells if cell] == [
        f"{point['score']['mean']:.2f}" for point in points
    ]


def test_failures_are_told_with_their_bounds(make_history: Callable[..., Any]) -> None:
    figures = make_history(3, failed=frozenset({(2, 0)})).figures
    document = render_markdown.render(ageing_sections(figures))
    assert "2 failed at one of them and are left out" in document
    assert "| checkpoint | days | cohort | bounds |" in document


def test_a_run_of_an_older_version_has_no_section(make_history: Callable[..., Any]) -> None:
    figures = {name: own for name, own in make_history(3).figures.items() if name != "ageing"}
    assert ageing_sections(figures) == []  # type: ignore[arg-type]
    assert not any(
        row and row.name == COHORT
        for block in heatmap(figures, "x")  # type: ignore[arg-type]
        if isinstance(block, Grid)
        for row in block.rows
    )


def test_the_sentence_names_the_questions_both_ends_and_the_interval(
    make_history: Callable[..., Any],
) -> None:
    aged = shown_ageing(make_history(3).figures)
    assert aged is not None
    sentence = cohort_sentence(aged)
    assert sentence.startswith("16 questions are asked at every checkpoint: composite")
    assert re.search(r"a change of -\d\.\d\d \[", sentence)
