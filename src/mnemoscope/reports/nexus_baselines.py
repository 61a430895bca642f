"""The seven groups of baselines that came with the Nexus harness, as tables and as plain data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from mnemoscope.published.cohorts import Cohort, cohort_of
from mnemoscope.published.formatting import number
from mnemoscope.published.published_results import GROUPS, Published, load
from mnemoscope.reports.markdown_table import table as markdown_table
from mnemoscope.reports.published_comparison import WARNING

REPORT_KEYS = {
    group: "baselines" if group == "core" else f"{group.removesuffix('_hotpotqa')}_baselines"
    for group in GROUPS
}
"""Under which key the Nexus harness has each of its seven groups in report.json."""

TITLES = {
    "core": "Core benchmarks",
    "consolidation": "Consolidation",
    "knowledge_graph": "Knowledge graph",
    "reflective_memory": "Reflective memory",
    "graphrag_bench": "GraphRAG-Bench",
    "cognee_hotpotqa": "Cognee, HotpotQA",
    "rlm": "Recursive language models",
}


def baseline_tables(rows: Iterable[Published] | None = None) -> dict[str, list[dict[str, Any]]]:
    """The seven groups of baselines of the Nexus harness, under its keys of report.json."""
    tables: dict[str, list[dict[str, Any]]] = {key: [] for key in REPORT_KEYS.values()}
    for group, key in REPORT_KEYS.items():
        systems: dict[tuple[str, str, str], dict[str, Any]] = {}
        for row in _of_group(group, rows):
            place = row.system, row.benchmark, row.source
            told = systems.setdefault(
                place,
                {
                    "system": row.system,
                    "benchmark": row.benchmark,
                    "source": row.source,
                    "source_basis": row.source_basis,
                    "metrics": {},
                },
            )
            told["metrics"][row.as_printed.metric] = {
                "value": row.value,
                "unit": row.unit,
                "as_printed": f"{row.as_printed.value} {row.as_printed.unit}",
                "category": row.category.id if row.category else None,
                "cohort": cohort_of(row).id,
            }
        tables[key] = list(systems.values())
    return tables


def baseline_markdown(rows: Iterable[Published] | None = None) -> str:
    """The seven groups as tables; a column that holds several cohorts marks each number."""
    kept = list(load() if rows is None else rows)
    sections = ["## Published baselines", WARNING]
    for group in GROUPS:
        sections += [f"### {TITLES[group]}", *_group_table(_of_group(group, kept))]
    return "\n\n".join(sections) + "\n"


def _of_group(group: str, rows: Iterable[Published] | None) -> list[Published]:
    return [row for row in (load() if rows is None else rows) if row.group == group]


def _group_table(rows: list[Published]) -> list[str]:
    columns: dict[str, list[Published]] = {}
    for row in rows:
        columns.setdefault(_column(row), []).append(row)
    cohorts = {
        name: list(dict.fromkeys(map(cohort_of, column))) for name, column in columns.items()
    }
    marked = [one for mixed in cohorts.values() if len(mixed) > 1 for one in mixed]
    marks = {cohort: str(place) for place, cohort in enumerate(dict.fromkeys(marked), 1)}
    lines = []
    for system in sorted({row.system for row in rows}, key=str.lower):
        cells = []
        for name, column in columns.items():
            found = [row for row in column if row.system == system]
            cells.append(", ".join(_marked(row, marks, len(cohorts[name]) > 1) for row in found))
        lines.append([system, *(cell or "--" for cell in cells)])
    legend = [
        f"[{mark}] {cohort.description} ({_sources(rows, cohort)})"
        for cohort, mark in marks.items()
    ]
    shown = ["Numbers in one column with different marks may not be compared:"] if legend else []
    return [
        markdown_table(["system", *columns], lines),
        *shown,
        *(["\n".join(f"- {one}" for one in legend)] if legend else []),
    ]


def _column(row: Published) -> str:
    """What stands above a number: the benchmark, the category where it is known, the metric."""
    said = row.metric
    if row.category:
        known = f"category {row.category.id} {row.category.name}"
        said = known if row.category.id else f"category unknown ({row.category.column})"
    return f"{row.benchmark}: {said}" if row.group == "core" or row.category else said


def _marked(row: Published, marks: Mapping[Cohort, str], mixed: bool) -> str:
    return number(row) + (f" [{marks[cohort_of(row)]}]" if mixed else "")


def _sources(rows: list[Published], cohort: Cohort) -> str:
    return "; ".join(dict.fromkeys(row.source for row in rows if cohort_of(row) == cohort))
