"""Disclosure: what was leaked, what was wrongly withheld, and which questions are right."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.disclosure_rates import RATES, DisclosureFigures, DisclosureRates
from mnemoscope.analysis.estimates import Rate
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    SYSTEM,
    Block,
    Cell,
    Cells,
    Heading,
    Paragraph,
    ReportTable,
    document_table,
    numeric,
    span,
    system_cell,
    with_interval,
)

_OF_ANSWERS = (
    "leaked: replies outside that tell the secret; withheld: asks inside that do not tell the "
    "answer; right: questions told in every room inside and refused in every room outside"
)
_OF_HITS = (
    "leaked: asks with a hit from a forbidden session; withheld: asks inside without the evidence; "
    "right: questions without either"
)


def report_sections(view: RunView) -> list[Block]:
    """The sections of report.md on disclosure; empty if no question was asked in rooms."""
    told = view.metrics.get("disclosure")
    if told is None:
        return []
    scopes: dict[str, DisclosureFigures] = {"all": told, **told.get("by_category", {})}
    rows: list[Cells] = []
    for name, own in scopes.items():
        for what, rates in _kinds(own):
            row: list[str] = [name, what, f"{own['texts']:,}"]
            row += (_with_interval(rates[key]) for key in RATES)
            known = rates.get("leaked_where_known")
            rows.append([*row, _with_interval(known) if known else MISSING])
    head = ["questions", "of", "n", *RATES, "leaked where known"]
    asked = (
        f"{told['texts']:,} questions, each asked with the same words in rooms that may be told "
        f"({told['inside']:,} asks inside) and in rooms that may not ({told['outside']:,} outside)."
    )
    legend = f"Answers: {_OF_ANSWERS}. Hits: {_OF_HITS}."
    legend += " Leaked where known: of the questions that the system answers in a room inside."
    return [
        Heading("Disclosure"),
        Paragraph(asked),
        document_table(head, rows),
        Paragraph(legend),
    ]


def systems_tables(views: Sequence[RunView]) -> list[Block]:
    """The three rates of all systems: of their answers, and of their hits at the largest k."""
    blocks: list[Block] = []
    told = [(view, own) for view in views if (own := view.metrics.get("disclosure"))]
    answered = [(view, own["answers"]) for view, own in told if own["answers"]]
    if answered:
        blocks += [_table("Disclosure in answers", answered), Paragraph(_OF_ANSWERS, DIM)]
    depths = [k for _, own in told for k in own["hits"]]
    if depths:
        k = max(depths, key=int)
        found = [(view, own["hits"][k]) for view, own in told if k in own["hits"]]
        blocks += [_table(f"Disclosure in the first {k} hits", found), Paragraph(_OF_HITS, DIM)]
    return blocks


def _table(title: str, systems: Sequence[tuple[RunView, DisclosureRates]]) -> ReportTable:
    table = ReportTable([SYSTEM, *map(numeric, RATES)], title=title)
    for view, rates in systems:
        name = system_cell(view.title, view.is_baseline)
        table.rows.append([name, *(_cell(rates[key]) for key in RATES)])
    return table


def _kinds(own: DisclosureFigures) -> list[tuple[str, DisclosureRates]]:
    answers = [("answers", own["answers"])] if own["answers"] else []
    return [*answers, *((f"first {k} hits", rates) for k, rates in own["hits"].items())]


def _cell(rate: Rate) -> Cell:
    if rate["rate"] is None or rate["ci95"] is None:
        return Cell(MISSING, DIM)
    return Cell(f"{rate['rate']:.3f}", "", f"\n{span(rate['ci95'])}", markdown=_with_interval(rate))


def _with_interval(rate: Rate) -> str:
    if rate["rate"] is None or rate["ci95"] is None:
        return MISSING
    shown = with_interval(rate["rate"], rate["ci95"])
    if "bounds" not in rate:
        return shown
    low, high = rate["bounds"]
    return f"{shown} ({rate.get('missing', 0):,} failed: {low:.3f} to {high:.3f})"
