"""Disclosure: what was leaked, what was wrongly withheld, and which questions are right."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.disclosure_pairs import is_right_metric
from mnemoscope.analysis.disclosure_rates import RATES, DisclosureFigures, DisclosureRates
from mnemoscope.analysis.estimates import Rate
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.reports import group_tables
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    SYSTEM,
    Block,
    Cell,
    Cells,
    Heading,
    NoteList,
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
_OF_RECALL = (
    "recall and the other metrics of rankings are of the asks inside, and say nothing of leaks"
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


def grouped_by_right(groups: SystemGroups | str | None) -> SystemGroups | None:
    """The groups if they are formed by the share of right questions, else None."""
    return groups if isinstance(groups, SystemGroups) and is_right_metric(groups.metric) else None


def systems_tables(
    views: Sequence[RunView], groups: SystemGroups | str | None = None
) -> list[Block]:
    """The three rates of all systems: of their answers, and of their hits at the largest k.

    Groups by `right` are shown in the table that has the figure.
    """
    grouped = grouped_by_right(groups)
    blocks: list[Block] = []
    told = [(view, own) for view in views if (own := view.metrics.get("disclosure"))]
    answered = [(view, own["answers"]) for view, own in told if own["answers"]]
    if answered:
        blocks += _table("Disclosure in answers", _OF_ANSWERS, answered, "right", grouped)
    depths = [k for _, own in told for k in own["hits"]]
    if depths:
        k = max(depths, key=int)
        found = [(view, own["hits"][k]) for view, own in told if k in own["hits"]]
        title = f"Disclosure in the first {k} hits"
        blocks += _table(title, _OF_HITS, found, f"right@{k}", grouped)
    return [*blocks, Paragraph(_OF_RECALL, DIM)] if blocks else []


def _table(
    title: str,
    legend: str,
    systems: Sequence[tuple[RunView, DisclosureRates]],
    metric: str,
    groups: SystemGroups | None,
) -> list[Block]:
    own = groups if groups and groups.metric == metric else None
    more = group_tables.MARKDOWN_COLUMNS if own else ()
    table = ReportTable([SYSTEM, *more, *map(numeric, RATES)], title=title)
    failed: list[str] = []
    for view, rates in systems:
        name = system_cell(view.title, view.is_baseline)
        cells = [_cell(rates[key]) for key in RATES]
        if own:
            ranked = own.of(view.label)
            name = name._replace(below=f"\n{group_tables.group_and_ranks(ranked)}")
            if ranked and ranked.is_best:
                cells[-1] = cells[-1]._replace(style="bold")
            table.rows.append([name, *group_tables.markdown_cells(ranked), *cells])
        else:
            table.rows.append([name, *cells])
        failed += _failed(view.label, rates)
    blocks: list[Block] = [Heading(title, only="markdown"), table, Paragraph(legend, DIM)]
    if own:
        blocks.append(Paragraph(group_tables.legend(own), DIM))
    return [*blocks, NoteList(failed)] if failed else blocks


def _failed(label: str, rates: DisclosureRates) -> list[str]:
    """What failed asks leave open: a system may fail where it would be wrong."""
    bounds = [
        f"{key} {rates[key]['bounds'][0]:.3f} to {rates[key]['bounds'][1]:.3f}"
        for key in RATES
        if "bounds" in rates[key]
    ]
    if not bounds:
        return []
    return [f"{label}: asks failed and are left out of its rates; with them: {', '.join(bounds)}"]


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
