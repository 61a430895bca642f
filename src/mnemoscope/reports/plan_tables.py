"""A planned comparison: one sentence about the primary metric, then a table and what it assumes."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.plan import PlannedComparison, PlannedMetric
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    Block,
    Cell,
    Cells,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
)
from mnemoscope.stats.clustered import FEW_CLUSTERS


def answer(found: PlannedComparison) -> str:
    """What the primary metric can find, in one sentence."""
    row = found.primary
    if row.clusters >= FEW_CLUSTERS and row.power is None:
        pair = f"between {found.base} and {found.cand} " if found.cand else ""
        return (
            f"no plan is possible: the differences {pair}in {row.metric} do not vary, so their "
            "variance is not known; give another --cand, or --changed without it"
        )
    if row.power is None or row.power_range is None:
        several = "one conversation" if row.clusters == 1 else f"{row.clusters} conversations"
        return (
            f"no plan for other conversations is possible from {several}: that takes at least "
            f"{FEW_CLUSTERS}; `compare` would speak of these conversations only"
        )
    return (
        f"a true difference of {found.detect:g} in {row.metric} is found with probability "
        f"{row.power:.2f} ({_pair(row.power_range, '.2f')}) by {row.n:,} questions"
        + ("" if row.clusters == row.n else f" in {row.clusters:,} conversations")
    )


def plan_blocks(found: PlannedComparison) -> list[Block]:
    """The answer, the figures of each metric, and what they rest on."""
    blocks: list[Block] = [
        Heading(f"Plan for a comparison with {found.base} on {found.benchmark}", 1, "markdown"),
        Paragraph(answer(found), "bold"),
        Paragraph("", only="terminal"),
    ]
    rows = [row for row in found.rows if row.power is not None]
    if rows:
        blocks.append(_table(rows, found))
        blocks += [Paragraph(line, DIM) for line in _legend(found)]
    blocks.append(Paragraph(f"variances: {found.assumed}", DIM))
    blocks.append(NoteList(found.notes))
    return blocks


def _table(rows: Sequence[PlannedMetric], found: PlannedComparison) -> ReportTable:
    columns = [
        TableColumn("metric", wrap=False),
        numeric("power"),
        numeric("detectable"),
        numeric("range"),
        numeric("needed"),
        numeric("range"),
    ]
    if not _are_single(found):
        columns.append(numeric("endless"))
    cells: list[Cells] = []
    for row in rows:
        ends = row.needed_range or (None, None)
        line: list[Cell | str] = [
            row.metric,
            _number(row.power, ".2f"),
            _number(row.detectable, ".4f"),
            MISSING if row.detectable_range is None else _pair(row.detectable_range, ".4f", "–"),
            _count(row.needed),
            f"{_count(ends[0])}–{_count(ends[1])}",
        ]
        if not _are_single(found):
            line.append(_number(row.endless, ".4f") if row.endless else "0")
        cells.append(line)
    return ReportTable(columns, cells, f"A difference of {found.detect:g}")


def _are_single(found: PlannedComparison) -> bool:
    """Whether each question is a cluster of its own."""
    return all(row.clusters == row.n for row in found.rows)


def _legend(found: PlannedComparison) -> list[str]:
    row = found.primary
    what = "questions"
    if not _are_single(found):
        what = f"conversations of {row.n / row.clusters:.0f} questions"
    lines = [
        f"power: how often the rule of `compare` finds a true difference of {found.detect:g}, "
        f"simulated; primary metric {row.metric}, alpha {found.declared.alpha:g}",
        f"detectable: the difference found with power 0.8; needed: how many {what} find "
        f"{found.detect:g} with power 0.8; ranges: 80 % limits, because the variances are "
        "estimates",
    ]
    if not _are_single(found):
        lines.append(
            "endless: detectable with endlessly many questions in as many conversations; 0: no "
            "variance between conversations was seen"
        )
    if len(found.rows) > 1:
        lines.append(
            "secondary metrics: with their simultaneous intervals; they are confirmed only if the "
            "primary metric is decided, so at most as often as that; their number needed is an "
            "upper limit (Bonferroni)"
        )
    if found.band is not None:
        shares = ", ".join(f"{one.metric} {_number(one.equivalent, '.2f')}" for one in found.rows)
        lines.append(
            f"how often two equal systems are called equivalent within ±{found.band:g}: {shares}"
        )
    return [*lines, "repeats of a run help only if the system is noisy: see docs/repeats.md"]


def _number(value: float | None, digits: str) -> str:
    return MISSING if value is None else f"{value:{digits}}"


def _count(value: int | None) -> str:
    return ">100,000" if value is None else f"{value:,}"


def _pair(ends: tuple[float, float], digits: str, between: str = " to ") -> str:
    return between.join(f"{end:{digits}}" for end in ends)
