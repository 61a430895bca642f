"""The heatmap in the terminal: each cell is a number or a gap, and hidden columns are counted."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from io import StringIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from mnemoscope.reports.heatmap import SystemHeatmap, elide, heatmap, systems_heatmap
from mnemoscope.reports.render_terminal import render
from mnemoscope.reports.run_view import same_days
from mnemoscope.reports.tables import FAIR, GOOD, POOR, Block, ink, percent, ramp
from mnemoscope.types import CORE_CATEGORIES, GROUP_CATEGORIES


def plain(drawn: Sequence[Block], width: int = 80) -> str:
    console = Console(width=width, file=StringIO(), no_color=True)
    with console.capture() as captured:
        console.print(render(drawn))
    return captured.get()


def coloured(drawn: Sequence[Block]) -> str:
    console = Console(width=80, file=StringIO(), force_terminal=True, color_system="truecolor")
    with console.capture() as captured:
        console.print(render(drawn))
    return captured.get()


def row(text: str, name: str) -> list[str]:
    line = next(line for line in text.splitlines() if line.strip().startswith(name + " "))
    return line.strip().removeprefix(name).split()


@given(st.integers(0, 300), st.integers(0, 40))
def test_columns_shown_and_left_out_are_all_columns(count: int, fit: int) -> None:
    head, tail = elide(count, fit)
    shown = [*head, *tail]
    assert shown == sorted(set(shown))
    room = max(fit, 3)
    if count <= room:
        assert shown == list(range(count))
        assert not tail
    else:
        assert len(shown) == room - 1
        assert (shown[0], shown[-1]) == (0, count - 1)


@pytest.mark.parametrize("count", [1, 4, 7, 8, 30, 143])
@pytest.mark.parametrize("width", [60, 80, 120])
def test_it_fits_the_width_and_says_how_many_are_left_out(
    make_history: Callable[..., Any], count: int, width: int
) -> None:
    text = plain(heatmap(make_history(count).figures, "bm25 · ada", width=width), width)
    heads = row(text, "OVERALL")
    shown = [cell for cell in heads if cell != "…"]
    hidden = re.search(r"… (\d+) of (\d+) checkpoints left out", text)
    assert max(len(line) for line in text.splitlines()) <= width
    assert len(shown) + (int(hidden[1]) if hidden else 0) == count
    assert (hidden is not None) == ("…" in heads)
    assert re.search(rf"\b{7 * count}d", text), "the last checkpoint is always there"


def test_two_dashes_mark_exactly_the_cells_without_judged_answers(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(
        4, unasked=frozenset({(0, 3), (1, 3), (2, 6)}), failed=frozenset({(1, 5)})
    ).figures
    text = plain(heatmap(figures, "bm25"))
    for name in CORE_CATEGORIES:
        cells = row(text, name)
        means = [point["categories"][name]["mean"] for point in figures["checkpoints"]]
        assert cells == ["--" if mean is None else f"{mean:.1f}" for mean in means]
    assert "asked, none judged" in text
    assert "2 of 58 questions failed" in text


def test_overall_has_two_digits_and_hallucination_is_a_percentage(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(3).figures
    text = plain(heatmap(figures, "bm25"))
    points = figures["checkpoints"]
    assert row(text, "OVERALL") == [f"{point['overall']['mean']:.2f}" for point in points]
    rates = [percent(point["hallucination"]["rate"]) for point in points]
    assert row(text, "hallucination") == rates


def test_group_rows_come_with_group_questions(make_history: Callable[..., Any]) -> None:
    assert GROUP_CATEGORIES[0] not in plain(heatmap(make_history(2).figures, "bm25"))
    both = make_history(2, categories=(*CORE_CATEGORIES, *GROUP_CATEGORIES)).figures
    assert len(row(plain(heatmap(both, "bm25")), GROUP_CATEGORIES[0])) == 2


def test_cells_are_coloured_if_the_terminal_has_colours(make_history: Callable[..., Any]) -> None:
    drawn = coloured(heatmap(make_history(2).figures, "bm25"))
    assert "48;2;" in drawn
    assert "48;2;" not in plain(heatmap(make_history(2).figures, "bm25"))


def test_an_unfinished_run_says_so(make_history: Callable[..., Any]) -> None:
    history = make_history(2)
    cut = replace(history, records=history.records[:-5])
    assert "interim: 5 planned questions are not asked yet" in plain(heatmap(cut.figures, "bm25"))


def test_several_systems_are_in_one_comparison(make_history: Callable[..., Any]) -> None:
    figures = make_history(4).figures
    names = ["recency", "bm25", "hybrid(lexical=bm25,dense=static)"]
    text = plain(systems_heatmap([SystemHeatmap(name, figures) for name in names]))
    table = text[text.index("All systems at 28d") :]
    last = figures["checkpoints"][-1]
    assert row(table, "OVERALL") == [f"{last['overall']['mean']:.2f}"] * 3
    assert row(table, "retrieval hit@10") == ["1.000"] * 3
    interval = "{:.2f}–{:.2f}".format(*last["overall"]["ci95"])
    assert row(table, "95 % interval") == [interval] * 3
    assert "hybrid(" in table


def test_systems_that_do_not_fit_are_split_into_tables(make_history: Callable[..., Any]) -> None:
    figures = make_history(1).figures
    text = plain(
        systems_heatmap([SystemHeatmap(f"system{number}", figures) for number in range(9)])
    )
    assert max(len(line) for line in text.splitlines()) <= 80
    assert all(f"system{number}" in text for number in range(9))


def test_the_ramp_goes_from_red_over_amber_to_green() -> None:
    assert [ramp(0), ramp(0.5), ramp(1)] == [POOR, FAIR, GOOD]
    assert ramp(-1) == POOR
    assert ramp(2) == GOOD


@given(st.floats(0, 1))
def test_text_stands_out_on_every_colour_of_the_ramp(share: float) -> None:
    def luminance(colour: tuple[int, int, int]) -> float:
        parts = [c / 255 for c in colour]
        linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(ramp(share)), luminance(ink(ramp(share)))))
    assert (high + 0.05) / (low + 0.05) > 4


def test_checkpoints_after_the_end_of_a_history_are_reported() -> None:
    days = {"30d": 30, "90d": 60, "1y": 60}
    points: Any = [{"label": label, "ingested_days": count} for label, count in days.items()]
    history: Any = {"checkpoints": points}
    cut: Any = {"checkpoints": points[:2]}
    assert same_days(history) == ["90d, 1y cover the same 60 days: the questions are asked again"]
    assert same_days(cut) == []
