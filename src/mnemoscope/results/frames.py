"""Frames and HTML tables: a pandas.DataFrame if pandas is installed, otherwise a `Frame`."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from mnemoscope.text.display import as_csv, as_html

if TYPE_CHECKING:
    import pandas

    DataFrame: TypeAlias = "Frame | pandas.DataFrame"


Cell: TypeAlias = "str | int | float | bool | tuple[str, ...] | tuple[int, ...] | None"


OVERALL = "overall"


SHOWN_ROWS = 200
"""The number of rows that the HTML of a frame shows."""


class Frame:
    """A small table, used if pandas is not installed."""

    def __init__(self, columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
        self.columns = list(columns)
        self.rows = [tuple(row) for row in rows]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[tuple[Cell, ...]]:
        return iter(self.rows)

    def __getitem__(self, column: str) -> list[Cell]:
        """Return one column."""
        place = self.columns.index(column)
        return [row[place] for row in self.rows]

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Write the table as CSV to a file, or return it if no path is given.

        A text that a spreadsheet would take for a formula gets an apostrophe in front.
        """
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(map(as_csv, self.columns))
        writer.writerows(
            ["" if cell is None else as_csv(cell) for cell in row] for row in self.rows
        )
        if path is None:
            return text.getvalue()
        Path(path).write_text(text.getvalue(), encoding="utf-8")
        return None

    def __repr__(self) -> str:
        return f"Frame of {len(self)} rows: {', '.join(self.columns)}"

    def _repr_html_(self) -> str:
        shown = [[plain_cell(cell) for cell in row] for row in self.rows[:SHOWN_ROWS]]
        more = len(self.rows) - len(shown)
        return html_table(self.columns, shown) + (f"<p>and {more:,} more rows</p>" if more else "")


class BoldText(str):
    """A cell that an HTML table shows in bold."""


def html_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return an HTML table with all texts escaped."""

    def shown(cell: str) -> str:
        return f"<b>{as_html(cell)}</b>" if isinstance(cell, BoldText) else as_html(cell)

    def row(tag: str, cells: Sequence[str]) -> str:
        return f"<tr>{''.join(f'<{tag}>{shown(cell)}</{tag}>' for cell in cells)}</tr>"

    body = "".join(row("td", cells) for cells in rows)
    return f"<table><thead>{row('th', columns)}</thead><tbody>{body}</tbody></table>"


def frame_of(kind: type[NamedTuple], rows: Sequence[NamedTuple]) -> DataFrame:
    """Return the rows as a pandas.DataFrame, or as a Frame if pandas is not installed."""
    columns: tuple[str, ...] = kind._fields
    try:
        import pandas
    except ImportError:
        return Frame(columns, rows)
    return pandas.DataFrame(list(rows), columns=list(columns))


def plain_cell(cell: Cell) -> str:
    if cell is None:
        return ""
    if isinstance(cell, tuple):
        return ", ".join(map(str, cell))
    return f"{cell:.4f}" if isinstance(cell, float) else str(cell)
