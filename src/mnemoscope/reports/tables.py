"""The model of what a report shows: a page is a list of blocks, a table is rows of cells.

Each report builds its blocks once; `render_terminal` and `render_markdown` write them. Where the
two show one thing differently, the cell, column or block says so itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

Medium = Literal["terminal", "markdown"]
Frame = Literal["tight", "dense", "narrow", "plain"]

RGB = tuple[int, int, int]

MISSING = "--"
POOR, FAIR, GOOD = (220, 60, 60), (245, 180, 50), (56, 195, 100)
"""The ramp of Recall Bench's picture: red, amber in the middle, green."""
DARK, LIGHT = (16, 16, 24), (255, 255, 255)
DIM, MUTED, WARNING = "dim", "dim italic", "yellow"
LABEL_WIDTH = 16
"""Long labels are folded, so that numbers never have to be cut."""


class Cell(NamedTuple):
    """What stands in one place of a table."""

    text: str
    style: str = ""
    """As rich writes styles."""
    below: str | None = None
    """Further lines under the text; the terminal shows them dim, Markdown leaves them out."""
    markdown: str | None = None
    """What Markdown shows instead of the text."""
    share: float | None = None
    """Of the best possible, for a background from red to green."""


class TableColumn(NamedTuple):
    """A column: its title, how it is aligned, and how wide it may be."""

    title: str
    style: str = ""
    right: bool = False
    wrap: bool = True
    fold: bool = False
    """Cells break rather than lose their ends."""
    min_width: int | None = None
    max_width: int | None = None
    only: Medium | None = None
    markdown: str | None = None
    """The title in Markdown, where it is another."""


Cells = Sequence[Cell | str]


@dataclass
class ReportTable:
    """Rows below columns."""

    columns: list[TableColumn]
    rows: list[Cells] = field(default_factory=list)
    title: str = ""
    """Shown in the terminal; a document has headings."""
    frame: Frame = "tight"
    last_apart: bool = False
    """A line stands before the last row."""


class Heading(NamedTuple):
    text: str
    level: int = 2
    only: Medium | None = None


class Paragraph(NamedTuple):
    text: str
    style: str = ""
    only: Medium | None = None


class NoteList(NamedTuple):
    """Lines that qualify the figures: warnings in the terminal, a list in Markdown."""

    lines: Sequence[str]
    mark: str = "! "
    """Before each line in the terminal."""
    only: Medium | None = None


class GridRow(NamedTuple):
    """A name and its cells, None where columns are left out."""

    name: str
    cells: Sequence[Cell | None]
    style: str = ""


class Grid(NamedTuple):
    """Cells of one width behind their names; None for a row is a rule. Only for the terminal."""

    name_width: int
    cell_width: int
    rows: Sequence[GridRow | None]


class ColourScale(NamedTuple):
    """The colours of shares from the worst to the best, and what else is to be explained."""

    low: str
    high: str
    after: Sequence[Cell]


Block = Heading | Paragraph | NoteList | ReportTable | Grid | ColourScale


def numeric(title: str, **options: int | str) -> TableColumn:
    """A column of figures, set to the right and never broken."""
    return TableColumn(title, right=True, wrap=False, **options)  # type: ignore[arg-type]


SYSTEM = TableColumn("system", fold=True, max_width=LABEL_WIDTH)


def system_cell(label: str, is_baseline: bool) -> Cell:
    return Cell(label, DIM if is_baseline else "bold cyan")


def document_table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> ReportTable:
    """A table of plain text, as most tables of a document are."""
    return ReportTable(
        [TableColumn(title) for title in head], [[str(cell) for cell in row] for row in rows]
    )


def bullets(title: str, lines: Sequence[str], level: int = 2) -> list[Block]:
    """A heading and a list; nothing where there is nothing to list."""
    return [Heading(title, level), NoteList(lines)] if lines else []


def decimal(value: float | None, digits: int = 4) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def brackets(interval: Sequence[float] | None, digits: int = 4) -> str:
    """`[0.3057, 0.8632]`; nothing where there is no interval."""
    return f"[{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]" if interval else ""


def with_interval(
    value: float | None, interval: Sequence[float] | None, digits: int = 4, unknown: str = ""
) -> str:
    """A figure and its interval; `unknown` is said in its place where the figure has none."""
    if value is None or not (interval or unknown):
        return MISSING
    return f"{value:.{digits}f} {brackets(interval, digits) or unknown}"


def span(interval: Sequence[float], digits: int = 3) -> str:
    """`.306–.863`: without the zero before the point, so that more fits beside each other."""
    ends = (f"{end:.{digits}f}" for end in interval)
    return "–".join(e.replace("0.", ".", 1) if e.lstrip("-").startswith("0.") else e for e in ends)


def percent(rate: float) -> str:
    """At most five characters."""
    return "100%" if rate >= 0.9995 else f"{100 * rate:.1f}%"


def ramp(share: float) -> RGB:
    """The colour of a share of the best: 0 red, 0.5 amber, 1 green."""
    share = min(max(share, 0.0), 1.0)
    low, high, along = (POOR, FAIR, share * 2) if share < 0.5 else (FAIR, GOOD, share * 2 - 1)
    red, green, blue = (round(a + (b - a) * along) for a, b in zip(low, high, strict=True))
    return red, green, blue


def ink(paper: RGB) -> RGB:
    """Dark or light, whichever stands out more on this colour (WCAG contrast)."""
    light, dark = (
        sum(
            weight * (v / 12.92 if v <= 0.03928 else ((v + 0.055) / 1.055) ** 2.4)
            for weight, v in zip((0.2126, 0.7152, 0.0722), (c / 255 for c in colour), strict=True)
        )
        for colour in (paper, DARK)
    )
    return DARK if (light + 0.05) / (dark + 0.05) >= 1.05 / (light + 0.05) else LIGHT
