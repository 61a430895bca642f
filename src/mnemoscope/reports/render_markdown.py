"""Write blocks as Markdown."""

from __future__ import annotations

from collections.abc import Iterable

from mnemoscope.reports.tables import Block, Cell, ColourScale, Grid, Heading, NoteList, ReportTable


def render(blocks: Iterable[Block]) -> str:
    """The blocks, separated by empty lines."""
    parts = []
    for block in blocks:
        if isinstance(block, ReportTable):
            parts.append(table(block))
        elif isinstance(block, Grid | ColourScale) or block.only == "terminal":
            continue
        elif isinstance(block, Heading):
            parts.append(f"{'#' * block.level} {block.text}")
        elif isinstance(block, NoteList):
            parts.append("\n".join(f"- {line}" for line in block.lines))
        else:
            parts.append(block.text)
    return "\n\n".join(parts)


def table(shown: ReportTable) -> str:
    """A table with one line for each row; `|` and line breaks in cells are escaped."""
    kept = [place for place, column in enumerate(shown.columns) if column.only != "terminal"]
    columns = [shown.columns[place] for place in kept]
    head = [column.title if column.markdown is None else column.markdown for column in columns]
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in shown.rows:
        cells = []
        for cell in (row[place] for place in kept):
            text = cell
            if isinstance(cell, Cell):
                text = cell.text if cell.markdown is None else cell.markdown
            cells.append(" ".join(str(text).replace("|", "\\|").split()))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
