"""Write blocks as Markdown."""

from __future__ import annotations

import re
from collections.abc import Iterable

from mnemoscope.reports.tables import (
    Block,
    Cell,
    ColourScale,
    CurveChart,
    Grid,
    Heading,
    Heatmap,
    Markup,
    NoteList,
    ReportTable,
)
from mnemoscope.text.display import as_markdown, one_line

_PIPE = re.compile(r"(\\*)\|")


def render(blocks: Iterable[Block]) -> str:
    """The blocks, separated by empty lines."""
    parts = []
    for block in blocks:
        if isinstance(block, Grid | ColourScale | Heatmap | CurveChart) or block.only == "terminal":
            continue
        if isinstance(block, ReportTable):
            parts.append(table(block))
        elif isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {_escaped(block.text)}")
        elif isinstance(block, NoteList):
            parts.append("\n".join(f"- {_escaped(line)}" for line in block.lines))
        else:
            parts.append(_escaped(block.text))
    return "\n\n".join(parts)


def table(shown: ReportTable) -> str:
    """A table with one line for each row."""
    kept = [place for place, column in enumerate(shown.columns) if column.only != "terminal"]
    columns = [shown.columns[place] for place in kept]
    head = [column.title if column.markdown is None else column.markdown for column in columns]
    lines = ["| " + " | ".join(map(_cell, head)) + " |", "|" + "---|" * len(head)]
    for row in shown.rows:
        cells = []
        for cell in (row[place] for place in kept):
            if isinstance(cell, Cell):
                cell = cell.text if cell.markdown is None else cell.markdown
            cells.append(_cell(cell))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(text: str) -> str:
    if not isinstance(text, Markup):
        return " ".join(as_markdown(text).split())
    # After an odd number of backslashes, one more would make the pipe end the cell.
    return _PIPE.sub(lambda found: found[1] + ("∣" if len(found[1]) % 2 else "\\|"), one_line(text))


def _escaped(text: str) -> str:
    return str(text) if isinstance(text, Markup) else as_markdown(text, starts_line=True)
