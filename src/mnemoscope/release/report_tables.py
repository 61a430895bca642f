"""Tables and figures of the report, the notes and the history."""

from __future__ import annotations

from math import isnan
from pathlib import Path

from mnemoscope.analysis.aggregates import CAVEAT, SeedRow, read_aggregates, seed_comparison
from mnemoscope.analysis.comparison import OVERALL, Comparison, Row
from mnemoscope.release.decide import standing
from mnemoscope.reports.run_view import Figures
from mnemoscope.reports.tables import ReportTable, document_table, with_interval

_COLUMNS = (
    "metric",
    "prev [95 % CI]",
    "new [95 % CI]",
    "Δ [95 % CI], pp",
    "p",
    "effect",
    "significant",
)
_PAIRED = (
    f"{'base':>8}{'cand':>8}{'delta':>9} {'95% CI':<20}{'p':>9}{'effect':>14}"
    f"{'detectable':>12}  verdict"
)
_UNPAIRED = f"{'base':>8} {'95% CI':<18}{'cand':>8} {'95% CI':<18}{'z':>7}{'p_raw':>9}{'p_corr':>9}"


def p_value(p: float) -> str:
    if isnan(p):
        return "none"
    return "<0.0001" if p < 0.0001 else f"{p:.4f}"


def p_equals(p: float) -> str:
    """`p=0.0123`, or `p<0.0001`."""
    text = p_value(p)
    return f"p{text}" if text.startswith("<") else f"p={text}"


def points(delta: float) -> str:
    """A difference in percentage points, with an ASCII minus that a search finds."""
    return f"{100 * delta:+.2f}pp"


def points_interval(row: Row) -> str:
    low, high = row.shown
    return f"[{100 * low:+.2f}, {100 * high:+.2f}]"


def effect(row: Row) -> str:
    return f"{row.effect_name}={row.effect:+.3f}"


def detectable(row: Row) -> str:
    """With its 80 % limits, in percentage points."""
    if row.detectable is None or row.detectable_range is None:
        return "unknown"
    low, high = row.detectable_range
    return f"{100 * row.detectable:.2f}pp ({100 * low:.2f} to {100 * high:.2f})"


def overall_table(comparison: Comparison, base: Figures, cand: Figures) -> ReportTable:
    """Every metric of the protocol, before and after."""
    rows = [
        _cells(row, base["overall"], cand["overall"])
        for row in comparison.rows
        if row.scope == OVERALL
    ]
    return document_table(_COLUMNS, rows)


def category_table(
    comparison: Comparison, base: Figures, cand: Figures, names: dict[str, str]
) -> ReportTable | None:
    """Every metric in each category; None if the dataset has no categories."""
    before, after = base["by_category"], cand["by_category"]
    rows = [
        [
            f"{row.scope} {names.get(row.scope, '')}".strip(),
            str(row.n),
            *_cells(row, before[row.scope], after[row.scope]),
        ]
        for row in comparison.rows
        if row.scope != OVERALL
    ]
    return document_table(("category", "n", *_COLUMNS), rows) if rows else None


def impact_table(comparison: Comparison) -> ReportTable:
    """The effect of a methodology change on each metric."""
    rows = [
        [
            row.metric,
            f"{row.base:.4f}",
            f"{row.cand:.4f}",
            f"{points(row.delta)} {points_interval(row)}",
            p_value(row.p),
        ]
        for row in comparison.rows
        if row.scope == OVERALL
    ]
    return document_table(["metric", "old", "new", "Δ [95 % CI]", "p"], rows)


def _cells(row: Row, before: Figures, after: Figures) -> list[str]:
    significant = "no" if standing(row) == "neutral" else "yes"
    if row.verdict is None:
        significant = "no: exploratory"
    elif significant == "yes" and row.confirmed is False:
        significant = "not confirmed: the primary metric is undecided"
    old, new = before[row.metric], after[row.metric]
    return [
        row.metric,
        with_interval(old["mean"], old["ci95"]),
        with_interval(new["mean"], new["ci95"]),
        f"{100 * row.delta:+.2f} {points_interval(row)}",
        p_value(row.p),
        f"{effect(row)} {row.effect_label}",
        significant,
    ]


def verbatim(comparison: Comparison, base: Path, cand: Path) -> str:
    """The significance output as text: paired tests, then the unpaired ones of the process."""
    head = (
        f"{comparison.benchmark}: {comparison.base} -> {comparison.cand}, "
        f"{comparison.paired} paired questions in {comparison.clusters} clusters, "
        f"primary metric {comparison.declared.primary}, simultaneous intervals for the others"
    )
    lines = [head, *comparison.notes, "", f"{'scope':<10} {'metric':<11}{_PAIRED}"]
    lines += [_paired_line(row) for row in comparison.rows]
    lines += ["", "Unpaired, computed as in significance_test.py:", CAVEAT, ""]
    lines += [f"{'metric':<11}{_UNPAIRED}"]
    seeds = seed_comparison(read_aggregates(base), read_aggregates(cand))
    return "\n".join([*lines, *map(_seed_line, seeds)])


def _paired_line(row: Row) -> str:
    interval = f"[{row.shown.low:+.4f}, {row.shown.high:+.4f}]"
    least = "unknown" if row.detectable is None else f"{row.detectable:.4f}"
    return (
        f"{row.scope:<10} {row.metric:<11}{row.base:>8.4f}{row.cand:>8.4f}{row.delta:>+9.4f} "
        f"{interval:<20}{p_value(row.p):>9}"
        f"{effect(row):>14}{least:>12}  {row.verdict or 'exploratory'}"
    )


def _seed_line(row: SeedRow) -> str:
    before, after = (f"[{low:.4f}, {high:.4f}]" for low, high in (row.base_ci95, row.cand_ci95))
    return (
        f"{row.metric:<11}{row.base:>8.4f} {before:<18}{row.cand:>8.4f} {after:<18}"
        f"{row.z:>7.2f}{p_value(row.p_raw):>9}{p_value(row.p_corrected):>9}"
    )
