"""Rows of tables: figures need an interval in their cell or a column of them, gains need a p."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from mnemoscope.release.claim_patterns import PValue, estimates, intervals, metrics, p_values
from mnemoscope.release.statements import Statement

_INTERVAL_HEAD = re.compile(r"\b(?:CI|CI95|ci95_lo|confidence|intervals?)\b", re.IGNORECASE)
_INTERVAL_ALONE = re.compile(
    r"^(?:95\s?%\s?)?(?:CI|CI95\w*|ci95_\w+|confidence\b.*|intervals?)$", re.IGNORECASE
)
_P_HEAD = re.compile(r"^p$|^p[-_ ]?(?:corr\w*|adj\w*|holm|values?)\b", re.IGNORECASE)
_OTHER_HEAD = re.compile(
    r"^(?:n|p|z|t|h|d_z|effect.*|p[-_ ].*|Δ.*|delta.*|diff.*|change|chance.*|lift|ceiling|test|"
    r"detectable.*|bounds.*|.*\bms|.*tokens.*|cost.*|latency.*|variance.*|coverage.*|kappa.*)$",
    re.IGNORECASE,
)
_DELTA_HEAD = re.compile(r"^(?:Δ|delta|diff|change|gain|improvement)", re.IGNORECASE)
_BETTER = re.compile(r"\b(?:better|improved|wins?)\b", re.IGNORECASE)
_YES = re.compile(r"\b(?:better|improved|significant|yes|wins?)\b|✓|✅", re.IGNORECASE)
_DELTA = re.compile(r"([-+−])\s?\d+(?:\.\d+)?\s?(?:pp|points?)\b", re.IGNORECASE)
_LEADING = re.compile(r"[-+−]?\s?\d*\.?\d+(?:\s?(?:pp|points?|%))?")
_NO = re.compile(r"\b(?:no|not|ns|non-?significant|cannot tell)\b", re.IGNORECASE)


class TableRow(NamedTuple):
    """The claims of a row, to check against the runs."""

    names: tuple[str, ...]
    category: str
    claims: bool
    """Whether the row claims that the metrics improved."""
    figures: list[tuple[tuple[str, ...], str, bool]]
    """Metrics, one of their figures as written, and whether its column is in points."""
    p_values: list[PValue]

    @classmethod
    def of(cls, row: Statement) -> TableRow:
        columns = row.columns
        own = _names(row.text)
        names = own or tuple(n for head in row.head for n in _names(head))
        category = next((cell for head, cell in columns if "categor" in head.lower()), "")
        ps = [p for head, cell in columns for p in _ps(head, cell)]
        figures = [
            (own or _names(head), figure, points)
            for head, cell in columns
            for figure, points in _figures(head, cell)
            if own or _names(head)
        ]
        return cls(names, category, bool(names) and _claims(columns, ps), figures, ps)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for _, _, own in metrics(text) for name in own))


def _ps(head: str, cell: str) -> list[PValue]:
    if _P_HEAD.match(head) or re.match(r"^p[-_ ]?raw\b", head, re.IGNORECASE):
        sign = "" if re.match(r"p\b|[<>≤≥=]", cell) else "="
        return p_values(f"{'p_raw' if 'raw' in head.lower() else 'p'}{sign}{cell.lstrip('p ')}")
    return p_values(cell)


def _figures(head: str, cell: str) -> Iterator[tuple[str, bool]]:
    """The estimates of a cell; in a column of differences, its first number."""
    if _DELTA_HEAD.match(head):
        if found := _LEADING.match(cell):
            yield found[0], bool(re.search(r"\bpp\b|points", head, re.IGNORECASE))
    elif not (_OTHER_HEAD.match(head) or _INTERVAL_ALONE.match(head)):
        yield from ((found[0], False) for found in estimates(cell))


def _claims(columns: list[tuple[str, str]], ps: list[PValue]) -> bool:
    praised = [cell for _, cell in columns if _YES.search(cell) and not _NO.search(cell)]
    if any(_BETTER.search(cell) for cell in praised):
        return True
    signs = [_sign(head, cell) for head, cell in columns]
    if praised:
        return "-" not in signs
    denied = any(_NO.match(cell) for _, cell in columns)
    proven = any(p.proves for p in ps if not p.raw)
    return "+" in signs and proven and not denied


def _sign(head: str, cell: str) -> str:
    """`+` or `-` of a difference other than zero; empty for other cells."""
    found = _DELTA.match(cell)
    if found is None and _DELTA_HEAD.match(head):
        found = re.match(r"([-+−])\s?[\d.]*[1-9]", cell)
    return "" if found is None else "+" if found[1] == "+" else "-"


def row_problems(row: Statement) -> Iterator[tuple[str, str]]:
    """The missing part (`interval` or `p`) and what is wrong."""
    columns = row.columns
    if not any(map(_names, (row.text, *row.head))):
        return
    about = ", ".join(_names(row.text)) or "the row"
    if not any(_INTERVAL_HEAD.search(head) for head in row.head):
        bare = [
            cell
            for head, cell in columns
            if estimates(cell) and not intervals(cell) and not _OTHER_HEAD.match(head)
        ]
        if bare:
            yield "interval", f"{about}: {bare[0]} without its interval"
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
