"""Write blocks with rich. Import it only to print: importing rich takes time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from rich import box
from rich.console import Group
from rich.style import Style
from rich.table import Table as RichTable
from rich.text import Text

from mnemoscope.reports.tables import (
    DIM,
    RGB,
    WARNING,
    Block,
    Cell,
    ColourScale,
    Frame,
    Grid,
    Heading,
    NoteList,
    ReportTable,
    ink,
    ramp,
)

_FRAMES: dict[Frame, dict[str, Any]] = {
    "tight": {"title_style": "bold", "pad_edge": False, "collapse_padding": True},
    "dense": {"title_style": "bold", "pad_edge": False},
    # No padding: the box already puts a space between columns.
    "narrow": {"show_edge": False, "padding": 0},
    "plain": {},
}
_MARGIN = " " * 2


def render(blocks: Iterable[Block]) -> Group:
    """The blocks, one below the other."""
    parts: list[RichTable | Text] = []
    for block in blocks:
        if isinstance(block, ReportTable):
            parts.append(table(block))
        elif isinstance(block, Grid):
            parts += _grid(block)
        elif isinstance(block, ColourScale):
            parts.append(_scale(block))
        elif block.only == "markdown":
            continue
        elif isinstance(block, NoteList):
            parts += [Text(block.mark + line, style=WARNING) for line in block.lines]
        else:
            style = "bold" if isinstance(block, Heading) else block.style
            parts.append(Text(block.text, style=style))
    return Group(*parts)


def table(shown: ReportTable) -> RichTable:
    frame = _FRAMES[shown.frame]
    title = shown.title or None
    drawn = RichTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", **frame)
    kept = [place for place, column in enumerate(shown.columns) if column.only != "markdown"]
    for place in kept:
        column = shown.columns[place]
        drawn.add_column(
            Text(column.title, style=column.style) if column.style else column.title,
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold" if column.fold else "ellipsis",
            min_width=column.min_width,
            max_width=column.max_width,
        )
    for number, row in enumerate(shown.rows, 1):
        if shown.last_apart and number == len(shown.rows):
            drawn.add_section()
        cells = (Cell(c) if isinstance(c, str) else c for c in (row[place] for place in kept))
        drawn.add_row(
            *(
                Text(cell.text, style=cell.style)
                if cell.below is None
                else Text.assemble((cell.text, cell.style), (cell.below, DIM))
                for cell in cells
            )
        )
    return drawn


def _grid(grid: Grid) -> Iterator[Text]:
    wide = grid.name_width + grid.cell_width * max(len(row.cells) for row in grid.rows if row)
    for row in grid.rows:
        if row is None:
            yield Text(_MARGIN + "─" * wide, style=DIM, no_wrap=True, overflow="crop")
            continue
        line = Text(_MARGIN, no_wrap=True, overflow="crop", end="\n")
        line.append(row.name.ljust(grid.name_width), style=row.style)
        for cell in row.cells:
            shown = cell or Cell("…", DIM)
            style: str | Style = shown.style
            if shown.share is not None:
                paper = ramp(shown.share)
                bold = "bold" in shown.style or None
                style = Style(color=_hex(ink(paper)), bgcolor=_hex(paper), bold=bold)
            # An odd space goes before the text, as for numbers that are aligned right.
            after = (grid.cell_width - len(shown.text)) // 2
            line.append((shown.text + " " * after).rjust(grid.cell_width), style=style)
        yield line


def _scale(scale: ColourScale) -> Text:
    line = Text(f"{_MARGIN}{scale.low} ", style=DIM)
    for step in range(18):
        line.append("█", style=Style(color=_hex(ramp(step / 17)), dim=False))
    line.append(f" {scale.high}")
    for cell in scale.after:
        line.append(cell.text, style=cell.style)
    return line


def _hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
