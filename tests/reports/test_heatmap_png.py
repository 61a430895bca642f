"""The pictures: colours for data, hatching for missing data, the same bytes each time."""

from __future__ import annotations

import struct
from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemoscope.reports.figures import ageing_png, heatmap_png, scatter_png
from mnemoscope.reports.tables import ramp

MAGIC = b"\x89PNG\r\n\x1a\n"
Pixels = NDArray[np.int16]


def pixels(picture: bytes) -> Pixels:
    from matplotlib.image import imread

    shares: NDArray[np.float32] = np.asarray(imread(BytesIO(picture)), dtype=np.float32)
    return (shares[..., :3] * 255 + 0.5).astype(np.int16)


def chunks(picture: bytes) -> list[bytes]:
    names, at = [], len(MAGIC)
    while at < len(picture):
        (size,) = struct.unpack(">I", picture[at : at + 4])
        names.append(picture[at + 4 : at + 8])
        at += size + 12
    return names


def holds(drawn: Pixels, colour: tuple[int, int, int], *, at_least: int) -> bool:
    return (
        int((np.abs(drawn - np.array(colour, dtype=np.int16)).max(axis=-1) <= 1).sum()) >= at_least
    )


@pytest.mark.parametrize("count", [1, 4, 143])
def test_a_heatmap_has_a_sensible_size_at_any_number_of_columns(
    make_history: Callable[..., Any], count: int
) -> None:
    drawn = pixels(heatmap_png(make_history(count).figures, title="bm25 on ada"))
    height, width, _ = drawn.shape
    assert 1000 <= width <= 3000
    assert 900 <= height <= 1400
    assert tuple(drawn[2, 2]) == (0x13, 0x13, 0x1F)


def test_the_same_figures_give_the_same_bytes_without_a_date(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(3).figures
    first = heatmap_png(figures, title="bm25 on ada")
    assert first == heatmap_png(figures, title="bm25 on ada")
    assert first.startswith(MAGIC)
    assert not {b"tEXt", b"iTXt", b"zTXt", b"tIME"} & set(chunks(first))
    assert scatter_png(figures, title="bm25") == scatter_png(figures, title="bm25")


def test_unasked_cells_do_not_take_the_value_of_other_cells(
    make_history: Callable[..., Any],
) -> None:
    asked = make_history(4).figures
    gap = make_history(4, unasked=frozenset({(2, 0)})).figures
    before, after = (
        pixels(heatmap_png(figures, title="x", subtitle="y")) for figures in (asked, gap)
    )
    changed = np.argwhere((before != after).any(axis=-1))
    mean = asked["checkpoints"][1]["categories"]["factual-recall"]["mean"]
    top = changed[:, 0].min()
    left = changed[changed[:, 0] < top + 60][:, 1].min()
    cell = after[top : top + 60, left : left + 150]
    assert not holds(cell, ramp(mean / 6), at_least=1)
    assert holds(cell, (0x26, 0x26, 0x2F), at_least=1000)


def test_failed_cells_look_different_from_unasked_cells(make_history: Callable[..., Any]) -> None:
    failed = pixels(heatmap_png(make_history(4, failed=frozenset({(2, 0)})).figures, title="x"))
    unasked = pixels(heatmap_png(make_history(4, unasked=frozenset({(2, 0)})).figures, title="x"))
    assert holds(failed, (0x3A, 0x1D, 0x24), at_least=1000)
    assert not holds(unasked, (0x3A, 0x1D, 0x24), at_least=1)


def test_cells_have_the_colour_of_their_score(make_history: Callable[..., Any]) -> None:
    figures = make_history(2).figures
    drawn = pixels(heatmap_png(figures, title="x"))
    for point in figures["checkpoints"]:
        assert holds(drawn, ramp(point["overall"]["mean"] / 6), at_least=4000)
        assert holds(drawn, ramp(1 - point["hallucination"]["rate"]), at_least=4000)


def test_a_long_title_widens_the_picture_instead_of_leaving_it(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(1).figures
    title = "hybrid(" + "x" * 120 + ")"
    drawn = pixels(heatmap_png(figures, title=title))
    margin = drawn[40:80, -24:]
    assert (margin == np.array((0x13, 0x13, 0x1F))).all()


@pytest.mark.parametrize("count", [1, 2, 30])
def test_recall_against_hallucination_is_drawn_for_any_number_of_points(
    make_history: Callable[..., Any], count: int
) -> None:
    drawn = pixels(scatter_png(make_history(count).figures, title="bm25"))
    assert drawn.shape == (1120, 1520, 3)
    assert holds(drawn, (0x5B, 0x8C, 0xFF), at_least=100), "the first checkpoint's point"


def test_a_run_without_judged_answers_still_has_its_pictures(
    make_history: Callable[..., Any],
) -> None:
    figures = make_history(1, failed=frozenset({(0, kind) for kind in range(8)})).figures
    assert heatmap_png(figures, title="x").startswith(MAGIC)
    assert scatter_png(figures, title="x").startswith(MAGIC)


def test_the_curve_of_the_cohort_is_drawn_with_a_band(make_history: Callable[..., Any]) -> None:
    figures = make_history(4).figures
    picture = ageing_png(figures, title="bm25 on ada")
    assert picture is not None
    assert picture == ageing_png(figures, title="bm25 on ada")
    drawn = pixels(picture)
    assert holds(drawn, (0x5B, 0x8C, 0xFF), at_least=2000)
    assert holds(drawn, (0x25, 0x31, 0x57), at_least=20_000)  # the band, a quarter of the colour


def test_without_a_cohort_there_is_no_curve(make_history: Callable[..., Any]) -> None:
    assert ageing_png(make_history(1).figures, title="x") is None
