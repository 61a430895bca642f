"""The seven groups of baselines of the Nexus harness, as tables and as JSON."""

from __future__ import annotations

import msgspec

from mnemoscope.published.cohorts import cohort_of
from mnemoscope.published.published_results import GROUPS, Published, load, number
from mnemoscope.reports.published_comparison import WARNING
from mnemoscope.reports.tables import MISSING, Block, Heading, NoteList, Paragraph, document_table

REPORT_KEYS = {
    group: "baselines" if group == "core" else f"{group.removesuffix('_hotpotqa')}_baselines"
    for group in GROUPS
}
"""The key of each group in the Nexus harness's report.json."""

TITLES = {
    "core": "Core benchmarks",
    "consolidation": "Consolidation",
    "knowledge_graph": "Knowledge graph",
    "reflective_memory": "Reflective memory",
    "graphrag_bench": "GraphRAG-Bench",
    "cognee_hotpotqa": "Cognee, HotpotQA",
    "rlm": "Recursive language models",
}


class NexusFigure(msgspec.Struct, frozen=True):
    """One number of a baseline."""

    value: float
    unit: str
    as_printed: str
    category: int | None
    cohort: str


class NexusBaseline(msgspec.Struct, frozen=True):
    """A system on a benchmark, by one source."""

    system: str
    benchmark: str
    source: str
    source_basis: str
    metrics: dict[str, NexusFigure]


def baseline_tables() -> dict[str, list[NexusBaseline]]:
    """The seven groups under the keys of the Nexus harness's report.json."""
    tables: dict[str, list[NexusBaseline]] = {}
    for group, key in REPORT_KEYS.items():
        systems: dict[tuple[str, str, str], NexusBaseline] = {}
        for row in (row for row in load() if row.group == group):
            place = row.system, row.benchmark, row.source
            baseline = systems.setdefault(place, NexusBaseline(*place, row.source_basis, {}))
            baseline.metrics[row.as_printed.metric] = NexusFigure(
                value=row.value,
                unit=row.unit,
                as_printed=f"{row.as_printed.value} {row.as_printed.unit}",
                category=row.category.id if row.category else None,
                cohort=cohort_of(row).id,
            )
        tables[key] = list(systems.values())
    return tables


def baselines() -> list[Block]:
    """The seven groups as tables; in a column with several cohorts each number has a mark."""
    blocks: list[Block] = [Heading("Published baselines"), Paragraph(WARNING)]
    for group in GROUPS:
        own = [row for row in load() if row.group == group]
        blocks += [Heading(TITLES[group], 3), *_group_table(own)]
    return blocks


def _group_table(rows: list[Published]) -> list[Block]:
    columns: dict[str, list[Published]] = {}
    for row in rows:
        columns.setdefault(_column(row), []).append(row)
    mixed = {
        name: cohorts
        for name, column in columns.items()
        if len(cohorts := list(dict.fromkeys(map(cohort_of, column)))) > 1
    }
    marked = dict.fromkeys(cohort for cohorts in mixed.values() for cohort in cohorts)
    marks = {cohort: f"[{place}]" for place, cohort in enumerate(marked, 1)}
    lines = []
    for system in sorted({row.system for row in rows}, key=str.lower):
        cells = []
        for name, column in columns.items():
            found = (row for row in column if row.system == system)
            shown = (f"{number(r)} {marks[cohort_of(r)] if name in mixed else ''}" for r in found)
            cells.append(", ".join(map(str.rstrip, shown)) or MISSING)
        lines.append([system, *cells])
    blocks: list[Block] = [document_table(["system", *columns], lines)]
    if marks:
        legend = []
        for cohort, mark in marks.items():
            sources = dict.fromkeys(row.source for row in rows if cohort_of(row) == cohort)
            legend.append(f"{mark} {cohort.description} ({'; '.join(sources)})")
        caption = "Numbers in one column with different marks must not be compared:"
        blocks += [Paragraph(caption), NoteList(legend)]
    return blocks


def _column(row: Published) -> str:
    """The title of a number's column: the benchmark, and the category or the metric."""
    title = row.metric
    if row.category:
        known = f"category {row.category.id} {row.category.name}"
        title = known if row.category.id else f"category unknown ({row.category.column})"
    return f"{row.benchmark}: {title}" if row.group == "core" or row.category else title
