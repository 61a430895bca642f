"""The model of what a report shows: a page is a list of blocks, a table is rows of cells.

Each report builds its blocks once; `render_terminal`, `render_markdown` and `render_html` write
them. A cell, column or block has a field for each thing that they show differently. HTML is a
document, so it shows what Markdown shows, and draws bars. Texts may come from a dataset or a
system, so all show every text as it is, in one line: Markdown and line breaks that a report wants
are marked as `Markup` and `Lines`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from mnemoscope.text.display import one_line

Medium = Literal["terminal", "markdown"]
Frame = Literal["tight", "dense", "narrow", "plain"]

RGB = tuple[int, int, int]

MISSING = "--"
POOR, FAIR, GOOD = (220, 60, 60), (245, 180, 50), (56, 195, 100)
"""The colours of Recall Bench's heatmap: red, amber, green."""
DARK, LIGHT = (16, 16, 24), (255, 255, 255)
DIM, MUTED, WARNING = "dim", "dim italic", "yellow"
LABEL_WIDTH = 12
"""Longer labels are wrapped between words, so that numbers are never cut."""
_WORD_END = re.compile(r"(?<=[-_,:./= ])(?=.)|(?<=[a-z0-9])(?=[A-Z])")


class Markup(str):
    """Markdown that a report wrote; texts from elsewhere in it are escaped."""


class Lines(str):
    """Several lines that a report wrote; the terminal shows each of them."""


class Bar(NamedTuple):
    """A figure and its interval as shares of the best possible value, drawn in HTML only."""

    value: float
    low: float
    high: float
    chance: float | None = None
    """The expected value of a random ranking."""


class Cell(NamedTuple):
    """One cell of a table."""

    text: str
    style: str = ""
    """A style of rich."""
    below: str | None = None
    """More lines under the text; the terminal shows them dim, Markdown omits them."""
    markdown: str | None = None
    """What Markdown shows instead of the text."""
    share: float | None = None
    """The share of the best possible value; it sets the background, from red to green."""
    bar: Bar | None = None


class TableColumn(NamedTuple):
    """A column: its title, how it is aligned, and how wide it may be."""

    title: str
    style: str = ""
    right: bool = False
    wrap: bool = True
    fold: bool = False
    """Long cells are wrapped, not cut."""
    min_width: int | None = None
    max_width: int | None = None
    only: Medium | None = None
    markdown: str | None = None
    """The title in Markdown, if it differs."""


Cells = Sequence[Cell | str]


@dataclass
class ReportTable:
    """Rows below columns."""

    columns: list[TableColumn]
    rows: list[Cells] = field(default_factory=list)
    title: str = ""
    """Shown in the terminal only; a document has headings."""
    frame: Frame = "tight"
    last_apart: bool = False
    """Draw a line before the last row."""
    only: Medium | None = None


class Heading(NamedTuple):
    text: str
    level: int = 2
    only: Medium | None = None


class Paragraph(NamedTuple):
    text: str
    style: str = ""
    only: Medium | None = None


class NoteList(NamedTuple):
    """Caveats: warnings in the terminal, a list in Markdown."""

    lines: Sequence[str]
    mark: str = "! "
    """Before each line in the terminal."""
    only: Medium | None = None


class GridRow(NamedTuple):
    """A name and its cells; None marks columns that are left out."""

    name: str
    cells: Sequence[Cell | None]
    style: str = ""


class Grid(NamedTuple):
    """Rows of cells of the same width; None instead of a row is a line. Terminal only."""

    name_width: int
    cell_width: int
    rows: Sequence[GridRow | None]


class ColourScale(NamedTuple):
    """The legend of the colours, from the worst to the best; `after` explains other marks."""

    low: str
    high: str
    after: Sequence[Cell]


class HeatCell(NamedTuple):
    """A figure at one checkpoint; `about` says its number of questions and its interval."""

    text: str
    share: float | None
    about: str


class HeatRow(NamedTuple):
    """The figures of one category, or of all; the key of a category selects its questions."""

    name: str
    cells: Sequence[HeatCell]
    category: str = ""


class Heatmap(NamedTuple):
    """Categories down, all checkpoints across. HTML only: other pages have no room for it."""

    checkpoints: Sequence[str]
    rows: Sequence[HeatRow]


class ChartPoint(NamedTuple):
    """A point of a curve, with its 95 % interval if it has one."""

    day: int
    label: str
    value: float
    interval: Sequence[float] | None = None


class CurveChart(NamedTuple):
    """A curve over the days of history with its intervals as a band, and a second one without.

    HTML only: other pages have a picture.
    """

    name: str
    points: Sequence[ChartPoint]
    best: float
    other_name: str = ""
    others: Sequence[ChartPoint] = ()


Block = Heading | Paragraph | NoteList | ReportTable | Grid | ColourScale | Heatmap | CurveChart


def numeric(title: str, **options: int | str) -> TableColumn:
    """A column of numbers: aligned right, never wrapped."""
    return TableColumn(title, right=True, wrap=False, **options)  # type: ignore[arg-type]


SYSTEM = TableColumn("system", fold=True, max_width=LABEL_WIDTH)


def system_cell(label: str, is_baseline: bool) -> Cell:
    return Cell(wrapped(label), DIM if is_baseline else "bold cyan", markdown=label)


def wrapped(label: str, width: int = LABEL_WIDTH) -> Lines:
    """A label in lines of at most `width`, broken between its words; a longer word is cut."""
    lines = [""]
    for word in _WORD_END.split(one_line(label)):
        if lines[-1] and len(lines[-1]) + len(word) > width:
            lines.append("")
        lines[-1] += word
    return Lines(
        "\n".join(f"{line[: width - 1]}…" if len(line) > width else line for line in lines)
    )


def document_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> ReportTable:
    """A table of plain text, and of cells that have a bar."""
    return ReportTable(
        [TableColumn(title) for title in head],
        [[cell if isinstance(cell, str | Cell) else str(cell) for cell in row] for row in rows],
    )


def decimal(value: float | None, digits: int = 4) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def brackets(interval: Sequence[float] | None, digits: int = 4) -> str:
    """`[0.3057, 0.8632]`, or an empty text without an interval."""
    return f"[{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]" if interval else ""


def with_interval(
    value: float | None, interval: Sequence[float] | None, digits: int = 4, unknown: str = ""
) -> str:
    """A figure and its interval; `unknown` replaces a missing interval."""
    if value is None or not (interval or unknown):
        return MISSING
    return f"{value:.{digits}f} {brackets(interval, digits) or unknown}"


def interval_cell(
    text: str,
    value: float | None,
    interval: Sequence[float] | None,
    *,
    best: float = 1.0,
    chance: float | None = None,
) -> Cell:
    """A text with the bar of a figure, which has an interval; `best` is the best possible value."""
    if value is None or not interval or not 0 <= interval[0] <= interval[1] <= best:
        return Cell(text)
    expected = None if chance is None else chance / best
    return Cell(text, bar=Bar(value / best, interval[0] / best, interval[1] / best, expected))


def span(interval: Sequence[float], digits: int = 3) -> str:
    """`.306–.863`: without the zero before the point, to save width."""
    ends = (f"{end:.{digits}f}" for end in interval)
    return "–".join(e.replace("0.", ".", 1) if e.lstrip("-").startswith("0.") else e for e in ends)


def percent(rate: float) -> str:
    """A percentage of at most five characters."""
    return "100%" if rate >= 0.9995 else f"{100 * rate:.1f}%"


def ramp(share: float) -> RGB:
    """The colour of a share: 0 is red, 0.5 amber, 1 green."""
    share = min(max(share, 0.0), 1.0)
    low, high, along = (POOR, FAIR, share * 2) if share < 0.5 else (FAIR, GOOD, share * 2 - 1)
    red, green, blue = (round(a + (b - a) * along) for a, b in zip(low, high, strict=True))
    return red, green, blue


def ink(paper: RGB) -> RGB:
    """Dark or light text: the one with more contrast on this colour (WCAG)."""
    light, dark = (
        sum(
            weight * (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4)
            for weight, v in zip((0.2126, 0.7152, 0.0722), (c / 255 for c in colour), strict=True)
        )
        for colour in (paper, DARK)
    )
    return DARK if (light + 0.05) / (dark + 0.05) >= 1.05 / (light + 0.05) else LIGHT
