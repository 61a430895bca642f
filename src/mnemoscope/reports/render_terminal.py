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
    CurveChart,
    Frame,
    Grid,
    Heading,
    Heatmap,
    Lines,
    NoteList,
    ReportTable,
    ink,
    ramp,
)
from mnemoscope.text.display import one_line, visible

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
        if isinstance(block, Grid):
            parts += _grid(block)
        elif isinstance(block, ColourScale):
            parts.append(_scale(block))
        elif isinstance(block, Heatmap | CurveChart) or block.only == "markdown":
            continue
        elif isinstance(block, ReportTable):
            parts.append(table(block))
        elif isinstance(block, NoteList):
            parts += [Text(block.mark + shown(line), style=WARNING) for line in block.lines]
        else:
            style = "bold" if isinstance(block, Heading) else block.style
            parts.append(Text(shown(block.text), style=style))
    return Group(*parts)


def shown(text: str) -> str:
    """The text without control characters, in one line unless a report wrote several."""
    return visible(text) if isinstance(text, Lines) else one_line(text)


def table(content: ReportTable) -> RichTable:
    frame = _FRAMES[content.frame]
    style = frame.get("title_style", "table.title")
    title = Text(shown(content.title), style=style) if content.title else None
    drawn = RichTable(title=title, box=box.SIMPLE_HEAD, title_justify="left", **frame)
    kept = [place for place, column in enumerate(content.columns) if column.only != "markdown"]
    for place in kept:
        column = content.columns[place]
        drawn.add_column(
            Text(shown(column.title), style=column.style),
            justify="right" if column.right else "left",
            no_wrap=not column.wrap,
            overflow="fold" if column.fold else "ellipsis",
            min_width=column.min_width,
            max_width=column.max_width,
        )
    for number, row in enumerate(content.rows, 1):
        if content.last_apart and number == len(content.rows):
            drawn.add_section()
        cells = (Cell(c) if isinstance(c, str) else c for c in (row[place] for place in kept))
        drawn.add_row(
            *(
                Text(shown(cell.text), style=cell.style)
                if cell.below is None
                else Text.assemble((shown(cell.text), cell.style), (visible(cell.below), DIM))
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
        line.append(shown(row.name).ljust(grid.name_width), style=row.style)
        for cell in row.cells:
            filled = cell or Cell("…", DIM)
            text = shown(filled.text)
            style: str | Style = filled.style
            if filled.share is not None:
                paper = ramp(filled.share)
                bold = "bold" in filled.style or None
                style = Style(color=_hex(ink(paper)), bgcolor=_hex(paper), bold=bold)
            # An odd space goes before the text, as for numbers that are aligned right.
            after = (grid.cell_width - len(text)) // 2
            line.append((text + " " * after).rjust(grid.cell_width), style=style)
        yield line


def _scale(scale: ColourScale) -> Text:
    line = Text(f"{_MARGIN}{scale.low} ", style=DIM)
    for step in range(18):
        line.append("█", style=Style(color=_hex(ramp(step / 17)), dim=False))
    line.append(f" {scale.high}")
    for cell in scale.after:
        line.append(visible(cell.text), style=cell.style)
    return line


def _hex(colour: RGB) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)
