"""Change: what systems tell after an update, and whether they obey requests to forget."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.change_scores import ChangeScores, rates_of
from mnemoscope.analysis.estimates import Rate
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.tables import (
    DIM,
    LABEL_WIDTH,
    MISSING,
    Block,
    Cell,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    decimal,
    document_table,
    numeric,
    system_cell,
    with_interval,
)

_ABREAST = 4
"""Systems that fit next to the names of the figures in eighty columns."""
_NAMES = {
    "recall_right_first": "hits: right value first",
    "recall_outdated_before": "hits: outdated before it",
    "recall_outdated_alone": "hits: outdated alone",
    "recall_neither": "hits: neither",
    "answers_right": "told: right value",
    "answers_outdated": "told: outdated value",
    "answers_mixed": "told: both, unmarked",
    "answers_neither": "told: neither",
    "recall_known": "hits: known before",
    "recall_obeyed": "hits: request obeyed",
    "recall_kept": "hits: the rest kept",
    "answers_known": "told: known before",
    "answers_obeyed": "told: request obeyed",
    "answers_kept": "told: the rest kept",
    "found": "hits: found",
    "two_places": "hits: two places taken",
    "both": "hits: both values",
    "one": "hits: one value",
    "newest_first": "hits: newer one first",
    "both_told": "told: both values",
}
_SHORT = (
    *("recall_right_first", "recall_outdated_before"),
    *("answers_right", "answers_outdated", "answers_mixed"),
    *("recall_obeyed", "recall_kept", "answers_obeyed", "answers_kept"),
    *("two_places", "both", "newest_first"),
)
"""The figures of the terminal; reports have all."""
_LEGEND = (
    "share of the questions with its 95 % interval; outdated before it: or without it; obeyed: of "
    "what was known before the request; kept: of other facts known before it; two places: of the "
    "facts found"
)


def report_sections(scores: ChangeScores) -> list[Block]:
    """The section of report.md on change."""
    rows = [
        [
            category,
            _NAMES[name],
            decimal(own["rate"]) if own["rate"] is not None else MISSING,
            brackets(own["ci95"]) if own["ci95"] else MISSING,
            f"{own['count']:,} of {own['n']:,}" + _missing(own),
        ]
        for name, category, own in rates_of(scores)
    ]
    head = ["change", "figure", "share", "95 % interval", "questions"]
    about = f"Hits: the first {scores['k']}. {_LEGEND[:1].upper()}{_LEGEND[1:]}."
    if failed := scores["not_measured"]:
        about += f" {failed:,} questions failed and are left out."
    return [Heading("Change"), document_table(head, rows), Paragraph(about)]


def _missing(own: Rate) -> str:
    """What failed questions leave open: a system may fail where it would be wrong."""
    if "bounds" not in own:
        return ""
    low, high = own["bounds"]
    return f" ({own.get('missing', 0):,} failed: {decimal(low)} to {decimal(high)})"


def _left_out(label: str, scores: ChangeScores) -> list[str]:
    """A note on a system of which questions failed."""
    if not (failed := scores["not_measured"]):
        return []
    open_ones = [
        f"{_NAMES[name]} {own['bounds'][0]:.2f} to {own['bounds'][1]:.2f}"
        for name, _, own in rates_of(scores)
        if "bounds" in own
    ]
    also = f"; with them: {', '.join(open_ones)}" if open_ones else ""
    return [f"{label}: {failed:,} questions failed and are left out{also}"]


def systems_tables(views: Sequence[RunView]) -> list[Block]:
    """The main figures of all systems; empty if no run is of the benchmark `change`."""
    scored = [(view, own) for view in views if (own := view.metrics.get("change"))]
    parts: list[Block] = []
    for start in range(0, len(scored), _ABREAST):
        parts.append(_table(scored[start : start + _ABREAST]))
    if not parts:
        return []
    notes = [line for view, own in scored for line in _left_out(view.label, own)]
    return [*parts, Paragraph(_LEGEND, DIM), *([NoteList(notes)] if notes else [])]


def _table(scored: Sequence[tuple[RunView, ChangeScores]]) -> ReportTable:
    columns = [TableColumn("change", wrap=False), TableColumn("figure", wrap=False), numeric("n")]
    for view, _ in scored:
        label = system_cell(view.label, view.is_baseline)
        columns.append(
            TableColumn(label.text, label.style, right=True, fold=True, max_width=LABEL_WIDTH)
        )
    table = ReportTable(columns, title="change")
    rates = [{(name, kind): own for name, kind, own in rates_of(one)} for _, one in scored]
    shown = ""
    for name, kind in dict.fromkeys(key for own in rates for key in own):
        if name in _SHORT:
            cells = [_cell(own.get((name, kind))) for own in rates]
            n = max(one[name, kind]["n"] for one in rates if (name, kind) in one)
            table.rows.append([kind if kind != shown else "", _NAMES[name], f"{n:,}", *cells])
            shown = kind
    return table


def _cell(own: Rate | None) -> Cell:
    if own is None or own["rate"] is None:
        return Cell(MISSING, DIM)
    ends = "–".join("1" if end > 0.995 else f"{end:.2f}"[1:] for end in own["ci95"] or ())
    precise = with_interval(own["rate"], own["ci95"] or (), unknown="(no interval)")
    return Cell(f"{own['rate']:.2f}", "", f"\n{ends}", precise)
