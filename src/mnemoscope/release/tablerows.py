"""Rows of tables: figures need an interval in their cell or a column of them, gains need a p."""

from __future__ import annotations

import re
from collections.abc import Iterator

from mnemoscope.release.prose import Statement
from mnemoscope.release.wording import estimates, intervals, metrics, p_values

_INTERVAL_HEAD = re.compile(r"\b(?:CI|CI95|ci95_lo|confidence|intervals?)\b", re.IGNORECASE)
_P_HEAD = re.compile(r"^p$|^p[-_ ]?(?:corr\w*|adj\w*|holm|values?)\b", re.IGNORECASE)
_OTHER_HEAD = re.compile(
    r"^(?:n|p|z|t|h|d_z|effect.*|p[-_ ].*|Δ.*|delta.*|diff.*|change|chance.*|lift|ceiling|test|"
    r"detectable.*|bounds.*|.*\bms|.*tokens.*|cost.*|latency.*|variance.*|coverage.*|kappa.*)$",
    re.IGNORECASE,
)
_DELTA_HEAD = re.compile(r"^(?:Δ|delta|diff|change|gain|improvement)", re.IGNORECASE)
_YES = re.compile(r"\b(?:better|improved|significant|yes|win)\b|✓|✅", re.IGNORECASE)
_NO = re.compile(r"\b(?:no|not|ns|non-?significant|cannot tell)\b", re.IGNORECASE)


def row_problems(row: Statement) -> Iterator[tuple[str, str]]:
    """`interval` or `p`, and what is wrong."""
    columns = list(zip(row.head, row.cells, strict=False))
    names = [n for text in (row.text, *row.head) for _, _, own in metrics(text) for n in own]
    if not names:
        return
    about = ", ".join(dict.fromkeys(n for _, _, own in metrics(row.text) for n in own)) or "the row"
    if not any(_INTERVAL_HEAD.search(head) for head in row.head):
        bare = [
            cell
            for head, cell in columns
            if estimates(cell) and not intervals(cell) and not _OTHER_HEAD.match(head)
        ]
        if bare:
            yield "interval", f"{about}: {bare[0]} without its interval"
    yield from _gain_problems(about, columns)


def _gain_problems(about: str, columns: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    p_cells = [cell for head, cell in columns if _P_HEAD.match(head)]
    written = [p.value for _, cell in columns for p in p_values(cell)]
    gained = any(
        _DELTA_HEAD.match(head) and re.match(r"\+\s?[\d.]*[1-9]", cell) for head, cell in columns
    )
    if gained and not p_cells and not written:
        yield "p", f"{about}: a gain without its p"
    numbers = [float(n) for cell in p_cells for n in re.findall(r"\d*\.?\d+", cell)[:1]] + written
    praised = any(_YES.search(cell) and not _NO.search(cell) for _, cell in columns)
    if praised and numbers and max(numbers) >= 0.05:
        yield "p", f"{about}: called better at p={max(numbers):g}"
