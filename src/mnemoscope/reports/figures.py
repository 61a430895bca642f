"""Pictures of a life's run: the heatmap, and recall against hallucination.

Each function returns the bytes of a PNG file, the same for the same figures. matplotlib is imported
when a picture is drawn, because importing it takes longer than most commands run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Any, NamedTuple

from mnemoscope.reports.heatmap import BEST
from mnemoscope.reports.tables import RGB, ink, percent, ramp

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, TEXT, FAINT = "#13131f", "#e8e8f0", "#8c8ca0"
UNASKED, HATCH, FAILED = "#26262f", "#4b4b58", "#3a1d24"
FAILED_HATCH = "#8a3c48"
_SCALE = 2
"""Pixels of the file for each unit of the layout, so that text is sharp on fine screens."""
_ROW, _GAP, _SIDE, _TOP, _FOOT = 32, 14, 24, 128, 96
_NAMES = 216
_WIDEST, _NARROWEST, _ROOM = 84, 8, 1160
_LEGEND_ROOM = 520
_FEW = 12
"""So many points can carry their intervals and the line through them without a tangle."""
_NUMBERED = 30
"""Narrower cells hold no number."""
_SMALL_TITLE = 9.6
"""A character of a bold title of 10 points is about so wide."""
_DIGIT = 7.5
"""A character of a day's label is about so wide."""


_CAPTION = "mean composite; of the hallucination rate, 0 % is green and 100 % red"
_DAYS = ("#5b8cff", "#b070e0", "#ff8a70", "#ffe27a")
"""Early to late, all of them bright enough for the dark paper."""


class _Cell(NamedTuple):
    share: float | None
    """Of the best, for the colour; none where there is no value."""
    text: str
    asked: bool


class _Row(NamedTuple):
    name: str
    cells: list[_Cell]
    above: int
    """Empty space before the row."""


def heatmap_png(figures: Mapping[str, Any], *, title: str, subtitle: str = "") -> bytes:
    """Categories down, checkpoints across, then all together and the hallucination rate.

    A cell without data is hatched as such; it never takes the value of its neighbour.
    """
    points = figures["checkpoints"]
    rows = _rows(figures)
    cell = min(_WIDEST, max(_NARROWEST, _ROOM // max(len(points), 1)))
    left = _SIDE + _NAMES
    right = left + cell * len(points)
    width = max(right + _SIDE + 8, _LEGEND_ROOM, _title_room(title))
    bottom = _TOP + sum(_ROW + row.above for row in rows)
    with _canvas(width, bottom + _FOOT) as (figure, axes):
        _draw_title(axes, title, subtitle or _subtitle(figures), width)
        _draw_days(axes, points, left, cell, _TOP - 12)
        y = _TOP
        for row in rows:
            y += row.above
            bold = "bold" if row.name == "OVERALL" else "normal"
            axes.text(
                left - 14, y + _ROW / 2, row.name, size=10.5, weight=bold, color=TEXT,
                ha="right", va="center",
            )  # fmt: skip
            _draw_row(axes, row, left, y, cell)
            y += _ROW
        _draw_legend(axes, _SIDE, bottom + 40, rows)
        return _bytes(figure)


def scatter_png(figures: Mapping[str, Any], *, title: str) -> bytes:
    """Recall quality across, hallucination rate up, a point for each checkpoint, in their order."""
    found = figures["hallucination"]["against_recall"]
    points = found["points"]
    width = max(760, _title_room(title))
    with _canvas(width, 560) as (figure, axes):
        _draw_title(axes, title, _reading(found), width)
        plot = figure.add_axes((0.1, 0.13, 0.76, 0.71), facecolor=PAPER)
        if points:
            _draw_points(figure, plot, points)
        plot.set_xlabel("recall quality, 0–5 (correctness + completeness)", color=TEXT, size=10)
        plot.set_ylabel("hallucination rate, %", color=TEXT, size=10)
        plot.tick_params(colors=FAINT, labelsize=9, length=0)
        plot.grid(color="#2a2a38", linewidth=0.8)
        plot.set_axisbelow(True)
        for spine in plot.spines.values():
            spine.set_visible(False)
        return _bytes(figure)


def _rows(figures: Mapping[str, Any]) -> list[_Row]:
    points = figures["checkpoints"]
    rows = [
        _Row(name, [_score(point["categories"][name], 1) for point in points], 0)
        for name in figures["categories"]
    ]
    overall = [_score({**point["overall"], "asked": point["asked"]}, 2) for point in points]
    rows.append(_Row("OVERALL", overall, _GAP))
    rows.append(_Row("hallucination rate", [_rate(point) for point in points], _GAP))
    return rows


def _score(figure: Mapping[str, Any], digits: int) -> _Cell:
    if figure["mean"] is None:
        return _Cell(None, "", bool(figure["asked"]))
    return _Cell(figure["mean"] / BEST, f"{figure['mean']:.{digits}f}", True)


def _rate(point: Mapping[str, Any]) -> _Cell:
    rate = point["hallucination"]["rate"]
    if rate is None:
        return _Cell(None, "", bool(point["asked"]))
    return _Cell(1 - rate, percent(rate), True)


def _draw_row(axes: Axes, row: _Row, left: float, y: float, cell: float) -> None:
    """Neighbours without data are one piece, so that the hatching runs through."""
    from matplotlib.patches import Rectangle

    gap = 1.5 if cell >= _NUMBERED else 0.0
    x = left
    for (asked, missing), run in groupby(row.cells, key=lambda c: (c.asked, c.share is None)):
        cells = list(run)
        if missing:
            wide = cell * len(cells) - gap
            axes.add_artist(_hatched(x, y, wide, _ROW - 1.5, asked))
            x += cell * len(cells)
            continue
        for one in cells:
            colour = ramp(one.share or 0.0)
            axes.add_artist(
                Rectangle((x, y), cell - gap, _ROW - 1.5, facecolor=_unit(colour), linewidth=0)
            )
            if cell >= _NUMBERED:
                size = 10.5 if cell >= 48 else 7.5 if len(one.text) < 5 else 6.5
                axes.text(
                    x + (cell - gap) / 2, y + _ROW / 2 - 1, one.text, size=size,
                    color=_unit(ink(colour)), ha="center", va="center",
                )  # fmt: skip
            x += cell


def _hatched(x: float, y: float, wide: float, high: float, asked: bool) -> Any:
    from matplotlib.patches import Rectangle

    return Rectangle(
        (x, y), wide, high, linewidth=0, hatch="////" if not asked else "xxxx",
        facecolor=FAILED if asked else UNASKED, edgecolor=FAILED_HATCH if asked else HATCH,
    )  # fmt: skip


def _draw_days(
    axes: Axes, points: Sequence[Mapping[str, Any]], left: float, cell: float, y: float
) -> None:
    """Labels above the columns, as many as have room; the first and the last always."""
    labels = [_day(point) for point in points]
    longest = max((len(part) for label in labels for part in label.split("\n")), default=1)
    step = max(1, ceil((longest + 1.5) * _DIGIT / cell))
    last = len(points) - 1
    for index, label in enumerate(labels):
        crowded = index % step or (0 < last - index < step and index)
        if crowded and index != last:
            continue
        x = left + cell * (index + 0.5)
        axes.text(x, y - 4, label, size=9, color=TEXT, ha="center", va="bottom")
        if step > 1:
            axes.plot([x, x], [y + 2, y + 8], color=FAINT, linewidth=0.8)
    if points:
        axes.text(left - 14, y - 4, "days remembered", size=9, color=FAINT, ha="right", va="bottom")


def _day(point: Mapping[str, Any]) -> str:
    """The label, with its days where it does not say them."""
    label, days = str(point["label"]), f"{point['ingested_days']}"
    return days if label in (days, f"{days}d") else f"{label}\n{days}"


def _draw_legend(axes: Axes, x: float, y: float, rows: Sequence[_Row]) -> None:
    from matplotlib.patches import Rectangle

    steps, wide = 120, 180
    for step in range(steps):
        axes.add_artist(
            Rectangle(
                (x + wide * step / steps, y), wide / steps + 0.5, 12, linewidth=0,
                facecolor=_unit(ramp(step / (steps - 1))),
            )
        )  # fmt: skip
    for mark in range(7):
        axes.text(
            x + wide * mark / 6, y + 17, str(mark), size=8.5, color=FAINT, ha="center", va="top"
        )
    axes.text(x, y - 8, _CAPTION, size=9, color=FAINT, va="bottom")
    x += wide + 20
    missing = {cell.asked for row in rows for cell in row.cells if cell.share is None}
    for asked, name in ((False, "not asked"), (True, "asked, none judged")):
        if asked in missing or not asked:
            axes.add_artist(_hatched(x, y, 28, 12, asked))
            axes.text(x + 36, y + 6, name, size=9, color=TEXT, va="center")
            x += 120


def _draw_points(figure: Figure, plot: Axes, points: Sequence[Mapping[str, Any]]) -> None:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.patheffects import withStroke

    across = [point["recall_quality"] for point in points]
    up = [100 * point["rate"] for point in points]
    days = [point["ingested_days"] for point in points]
    few = len(points) <= _FEW
    if few:
        plot.plot(across, up, color="#77778c", linewidth=1, linestyle=":", zorder=2)
        for point, x, y in zip(points, across, up, strict=True):
            plot.plot(point["recall_quality_ci95"], [y, y], color="#45455a", linewidth=1, zorder=1)
            rates = [100 * rate for rate in point["rate_ci95"]]
            plot.plot([x, x], rates, color="#45455a", linewidth=1, zorder=1)
    shades = LinearSegmentedColormap.from_list("days", _DAYS)
    drawn = plot.scatter(
        across, up, c=days, cmap=shades, s=64 if few else 28, zorder=3, linewidths=0, clip_on=False
    )
    for index in range(len(points)) if few else {0, len(points) - 1}:
        plot.annotate(
            str(points[index]["label"]), (across[index], up[index]), xytext=(0, 9), ha="center",
            textcoords="offset points", size=10, color=TEXT, zorder=4,
            path_effects=[withStroke(linewidth=3, foreground=PAPER)],
        )  # fmt: skip
    plot.set_ylim(bottom=0.0, top=max(plot.get_ylim()[1], 1.0))
    if len(points) > 1:
        bar = figure.colorbar(drawn, cax=figure.add_axes((0.89, 0.13, 0.018, 0.71)))
        bar.set_label("days remembered", color=FAINT, size=9)
        bar.ax.tick_params(colors=FAINT, labelsize=8.5, length=0)
        bar.outline.set_visible(False)


def _reading(found: Mapping[str, Any]) -> str:
    if found["correlation"] is None:
        return "no correlation: too few checkpoints, or one of the two never changes"
    said = f"correlation {found['correlation']:+.2f}"
    if interval := found["correlation_ci95"]:
        said += f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return f"{said} · {found['reading']}".replace("-", "−")


def _subtitle(figures: Mapping[str, Any]) -> str:
    judged = sum(point["judged"] for point in figures["checkpoints"])
    asked = sum(point["asked"] for point in figures["checkpoints"])
    personas = len(figures["personas"])
    said = f"{personas} {'persona' if personas == 1 else 'personas'} · {judged:,} judged answers"
    return said if judged == asked else f"{said} of {asked:,} asked"


def _title_room(title: str) -> int:
    """How wide the picture must be for the title, set as small as a title may be."""
    return ceil(2 * _SIDE + len(title) * _SMALL_TITLE)


def _draw_title(axes: Axes, title: str, below: str, width: float) -> None:
    fits = (width - 2 * _SIDE) / max(len(title), 1) / _SMALL_TITLE * 10
    axes.text(_SIDE, 30, title, size=min(15, fits), weight="bold", color=TEXT, va="center")
    axes.text(_SIDE, 56, below, size=10, color=FAINT, va="center")


@contextmanager
def _canvas(width: float, height: float) -> Iterator[tuple[Figure, Axes]]:
    """A figure whose axes count layout units from the top left; whatever the user's settings."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["hatch.linewidth"] = 0.7
        figure = Figure(figsize=(width / 100, height / 100), dpi=100 * _SCALE, facecolor=PAPER)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.set_xlim(0, width)
        axes.set_ylim(height, 0)
        axes.axis("off")
        yield figure, axes


def _bytes(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", facecolor=PAPER, metadata={"Software": None})
    return file.getvalue()


def _unit(colour: RGB) -> tuple[float, float, float]:
    red, green, blue = (part / 255 for part in colour)
    return red, green, blue
