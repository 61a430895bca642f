"""Pictures of a run with checkpoints: the heatmap, ageing, and recall against hallucination.

Each function returns the bytes of a PNG file; the same figures give the same bytes. matplotlib is
imported when a picture is drawn, because importing it takes longer than most commands run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import BytesIO
from itertools import groupby
from math import ceil
from typing import TYPE_CHECKING, Any

from mnemoscope.analysis.longitudinal import CheckpointFigures, LongitudinalFigures
from mnemoscope.reports.heatmap import HALLUCINATION, OVERALL, ScoreCell, score_rows
from mnemoscope.reports.run_view import CheckpointReport, Figures
from mnemoscope.reports.tables import FAIR, GOOD, POOR, RGB, ink, ramp
from mnemoscope.text.display import one_line

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PAPER, TEXT, FAINT = "#13131f", "#e8e8f0", "#8c8ca0"
_MISSING: dict[bool, dict[str, Any]] = {
    False: {"facecolor": "#26262f", "edgecolor": "#4b4b58", "hatch": "////", "label": "not asked"},
    True: {
        "facecolor": "#3a1d24",
        "edgecolor": "#8a3c48",
        "hatch": "xxxx",
        "label": "asked, none judged",
    },
}
"""The look of a cell without a figure, by whether its questions were asked."""
# Layout units are hundredths of an inch.
_SCALE = 2
"""Pixels for each layout unit; two make the text sharp on high-resolution screens."""
_ROW, _GAP, _SIDE, _TOP, _FOOT, _NAMES, _LINE = 32, 14, 24, 128, 96, 216, 1.5
_WIDEST, _NARROWEST, _ROOM, _LEGEND_ROOM = 84, 8, 1160, 520
_FEW = 12
"""With more points than this, intervals and the connecting line are not drawn."""
_NUMBERED = 30
"""Narrower cells show only their colour, not the number."""
_POINT = 0.72
"""Points of type in a layout unit."""
_SMALL_TITLE, _DIGIT = 9.6, 7.5
"""Width of a character of a bold title of 10 points, and of a day's label."""
_CAPTION = "mean composite; hallucination rate: 0 % is green, 100 % is red"
_DAYS = ("#5b8cff", "#b070e0", "#ff8a70", "#ffe27a")
"""Early to late; all are bright enough for the dark background."""


def heatmap_png(figures: LongitudinalFigures, *, title: str, subtitle: str = "") -> bytes:
    """Categories, overall score and hallucination rate down, checkpoints across.

    A cell without data is hatched; it never takes the value of another cell.
    """
    points = figures["checkpoints"]
    rows = score_rows(points, figures["categories"])
    cell = min(_WIDEST, max(_NARROWEST, _ROOM // max(len(points), 1)))
    left, wide, high = _SIDE + _NAMES, cell * len(points), _ROW * len(rows) + 2 * _GAP
    width = max(left + wide + _SIDE + 8, _LEGEND_ROOM, _title_room(title))
    height = _TOP + high + _FOOT
    with _figure(width, height, title, subtitle or _subtitle(figures)) as figure:
        axes = figure.add_axes((left / width, _FOOT / height, wide / width, high / height))
        axes.set(xlim=(0, max(len(points), 1)), ylim=(high, 0), facecolor=PAPER)
        axes.spines[:].set_visible(False)
        top, centres = 0, []
        for name, cells in rows.items():
            top += _GAP if name in (OVERALL, HALLUCINATION) else 0
            _draw_row(axes, cells, top, cell)
            centres.append(top + _ROW / 2)
            top += _ROW
        names = [*figures["categories"], OVERALL, "hallucination rate"]
        axes.set_yticks(centres, names, size=10.5, color=TEXT, va="center")
        axes.get_yticklabels()[-2].set_fontweight("bold")
        axes.tick_params(axis="y", length=0, pad=14 * _POINT)
        _label_days(axes, points, cell)
        if points:
            place = ((left - 14) / width, 1 - (_TOP - 18) / height)
            figure.text(*place, "days of history", size=9, color=FAINT, ha="right")
        _draw_legend(figure, {c.asked for cells in rows.values() for c in cells if c.share is None})
        return _bytes(figure)


def scatter_png(figures: CheckpointReport, *, title: str) -> bytes:
    """Recall quality across, hallucination rate up, a point for each checkpoint."""
    found = figures["hallucination"]["against_recall"]
    points = found["points"]
    width = max(760, _title_room(title))
    with _figure(width, 560, title, _reading(found)) as figure:
        plot = figure.add_axes((0.1, 0.13, 0.76, 0.71), facecolor=PAPER)
        if points:
            _draw_points(figure, plot, points)
        plot.set_xlabel("recall quality, 0–5 (correctness + completeness)", color=TEXT, size=10)
        plot.set_ylabel("hallucination rate, %", color=TEXT, size=10)
        plot.tick_params(colors=FAINT, labelsize=9, length=0)
        plot.grid(color="#2a2a38", linewidth=0.8)
        plot.set_axisbelow(True)
        plot.spines[:].set_visible(False)
        return _bytes(figure)


def ageing_png(figures: CheckpointReport, *, title: str) -> bytes | None:
    """The composite of the cohort over the days of history, beside that of all questions."""
    aged = figures.get("ageing", {}).get("composite")
    if aged is None or (cohort := aged["cohort"]) is None or not cohort["judged"]:
        return None
    change = aged["changes"][-1]["interference"]
    asked = f"the same {cohort['judged']:,} questions"
    below = f"{asked} from {cohort['start']} on · 95 % intervals"
    if change["change"] is not None and change["ci95"]:
        ends = "[{:+.2f}, {:+.2f}]".format(*change["ci95"])
        below += f" · change {change['change']:+.2f} {ends}".replace("-", "−")
    width = max(760, _title_room(title))
    with _figure(width, 480, title, below) as figure:
        plot = figure.add_axes((0.08, 0.13, 0.88, 0.68), facecolor=PAPER)
        days = [point["ingested_days"] for point in cohort["points"]]
        scores = [point["score"]["mean"] or 0.0 for point in cohort["points"]]
        low, high = zip(
            *(point["score"]["ci95"] or (0, 0) for point in cohort["points"]), strict=True
        )
        every = [(p["ingested_days"], p["overall"]["mean"]) for p in figures["checkpoints"]]
        known = [(day, mean) for day, mean in every if mean is not None]
        plot.fill_between(days, low, high, color=_DAYS[0], alpha=0.25, linewidth=0)
        plot.plot(
            [day for day, _ in known], [mean for _, mean in known], color=FAINT, linewidth=1.4,
            linestyle=(0, (4, 3)), label="all questions of each checkpoint",
        )  # fmt: skip
        marker = "o" if len(days) <= 2 * _FEW else ""
        plot.plot(days, scores, color=_DAYS[0], linewidth=2.2, marker=marker, label=asked)
        plot.set_ylim(0, 6.1)
        plot.set_xlabel("days of history", color=TEXT, size=10)
        plot.set_ylabel("mean composite, 0–6", color=TEXT, size=10)
        plot.tick_params(colors=FAINT, labelsize=9, length=0)
        plot.grid(color="#2a2a38", linewidth=0.8)
        plot.set_axisbelow(True)
        plot.spines[:].set_visible(False)
        plot.legend(loc="lower left", frameon=False, fontsize=9.5, labelcolor=TEXT)
        return _bytes(figure)


def _draw_row(axes: Axes, cells: Sequence[ScoreCell], top: float, cell: float) -> None:
    """Adjacent cells without data share one hatched area."""
    numbered = cell >= _NUMBERED
    colours = [(*_unit(ramp(c.share or 0.0)), float(c.share is not None)) for c in cells]
    inset = _LINE / 2
    line, gap = (_LINE * _POINT, 0.0) if numbered else (0.0, inset)  # lines, or rows apart
    edges = (range(len(cells) + 1), (top + gap, top + _ROW - gap))
    axes.pcolormesh(*edges, [colours], edgecolors=PAPER, linewidth=line, antialiased=False)
    gap, start = _LINE / cell if numbered else 0.0, 0
    for (asked, missing), run in groupby(cells, key=lambda c: (c.asked, c.share is None)):
        end = start + len(list(run))
        if missing:
            box = (start + gap / 2, end - start - gap)
            axes.broken_barh([box], (top + inset, _ROW - _LINE), linewidth=0, **_MISSING[asked])
        start = end
    for place, one in enumerate(cells):
        if numbered and one.share is not None:
            size = 10.5 if cell >= 48 else 7.5 if len(one.text) < 5 else 6.5
            axes.text(
                place + 0.5, top + _ROW / 2, one.text, size=size,
                color=_unit(ink(ramp(one.share))), ha="center", va="center",
            )  # fmt: skip


def _label_days(axes: Axes, points: Sequence[CheckpointFigures], cell: float) -> None:
    """Labels above the columns: the first, the last, and as many between as have room."""
    labels = []
    for point in points:  # the label, and the days if the label is not the days
        label, days = str(point["label"]), f"{point['ingested_days']}"
        labels.append(days if label in (days, f"{days}d") else f"{label}\n{days}")
    longest = max((len(part) for label in labels for part in label.split("\n")), default=1)
    step = max(1, ceil((longest + 1.5) * _DIGIT / cell))
    last = len(points) - 1
    kept = [i for i in range(last) if i % step == 0 and (last - i >= step or not i)] + [last]
    kept = kept if points else []
    axes.xaxis.tick_top()
    shown = [labels[i] for i in kept]
    axes.set_xticks([i + 0.5 for i in kept], shown, size=9, color=TEXT)
    ticked = step > 1
    axes.tick_params(
        axis="x", length=6 * _POINT * ticked, color=FAINT, pad=(8 if ticked else 14) * _POINT
    )


def _draw_legend(figure: Figure, missing: set[bool]) -> None:
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LinearSegmentedColormap, Normalize
    from matplotlib.patches import Patch

    width, height = (100 * side for side in figure.get_size_inches())
    shades = LinearSegmentedColormap.from_list("score", [_unit(c) for c in (POOR, FAIR, GOOD)])
    place = figure.add_axes((_SIDE / width, 44 / height, 180 / width, 12 / height))
    scale = ScalarMappable(Normalize(0, 6), shades)
    bar = figure.colorbar(scale, cax=place, orientation="horizontal", ticks=range(7))
    bar.ax.tick_params(colors=FAINT, labelsize=8.5, length=0)
    bar.outline.set_visible(False)
    figure.text(_SIDE / width, 64 / height, _CAPTION, size=9, color=FAINT)
    handles = [Patch(linewidth=0, **_MISSING[asked]) for asked in sorted({False} | missing)]
    figure.legend(
        handles=handles, loc="center left", bbox_to_anchor=((_SIDE + 190) / width, 50 / height),
        ncols=2, frameon=False, fontsize=9, labelcolor=TEXT, handlelength=2.2, handleheight=0.95,
        borderpad=0,
    )  # fmt: skip


def _draw_points(figure: Figure, plot: Axes, points: Sequence[Figures]) -> None:
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
        bar.set_label("days of history", color=FAINT, size=9)
        bar.ax.tick_params(colors=FAINT, labelsize=8.5, length=0)
        bar.outline.set_visible(False)


def _reading(found: Figures) -> str:
    if found["correlation"] is None:
        return "no correlation: too few checkpoints, or one of the two never changes"
    correlation = f"correlation {found['correlation']:+.2f}"
    if interval := found["correlation_ci95"]:
        correlation += f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return f"{correlation} · {found['reading']}".replace("-", "−")


def _subtitle(figures: LongitudinalFigures) -> str:
    judged, asked = (sum(p[key] for p in figures["checkpoints"]) for key in ("judged", "asked"))
    personas = len(figures["personas"])
    counts = f"{personas} {'persona' if personas == 1 else 'personas'} · {judged:,} judged answers"
    return counts if judged == asked else f"{counts} of {asked:,} asked"


def _title_room(title: str) -> int:
    """The width that the title needs in its smallest type."""
    return ceil(2 * _SIDE + len(title) * _SMALL_TITLE)


@contextmanager
def _figure(width: float, height: float, title: str, below: str) -> Iterator[Figure]:
    """A figure with its title; the size is in layout units, the user's settings are ignored."""
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams["hatch.linewidth"] = 0.7
        matplotlib.rcParams["text.parse_math"] = False  # names may contain a $
        figure = Figure(figsize=(width / 100, height / 100), dpi=100 * _SCALE, facecolor=PAPER)
        FigureCanvasAgg(figure)
        title, below = one_line(title), one_line(below)
        size = min(15, (width - 2 * _SIDE) / max(len(title), 1) / _SMALL_TITLE * 10)
        left = _SIDE / width
        figure.text(left, 1 - 30 / height, title, size=size, weight="bold", color=TEXT, va="center")
        figure.text(left, 1 - 56 / height, below, size=10, color=FAINT, va="center")
        yield figure


def _bytes(figure: Figure) -> bytes:
    file = BytesIO()
    figure.savefig(file, format="png", facecolor=PAPER, metadata={"Software": None})
    return file.getvalue()


def _unit(colour: RGB) -> tuple[float, float, float]:
    red, green, blue = (part / 255 for part in colour)
    return red, green, blue
