"""A run beside what others published: its cohort in one table, the rest with the reason why not.

Functions over plain values: nothing is read but the registry in the package.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from mnemoscope.published.cohorts import TRAITS, Cohort, cohort_of, differences
from mnemoscope.published.keying import NAMES
from mnemoscope.published.registry import GROUPS, Category, Printed, Published, load
from mnemoscope.published.show import number

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
_WARNING = (
    "Quoted from others, verified by nobody here. One cohort means that no stated condition "
    "differs; prompts of the answering model and of the judge are seldom stated, and differ."
)


class Page(NamedTuple):
    """One content twice: for people and for programs."""

    markdown: str
    json: dict[str, Any]


def beside(
    run_figures: Sequence[Mapping[str, Any]],
    benchmark: str,
    answer_model: str,
    judge_model: str,
    metric: str,
    *,
    variant: str = "",
    most: int = 25,
) -> Page:
    """Set a run's figures beside the published numbers of their cohorts.

    Args:
        run_figures: One for each number: `system`, `value` (a fraction), `n`, and where there are
            any `ci95` (low, high) and `category` (LoCoMo's integer; none for the overall).
        benchmark: As the registry names it; upper and lower case are one.
        answer_model: The model that answered; `none` for retrieval alone.
        judge_model: The model that judged; `none` or `rule` where none did.
        metric: As the registry names it: `accuracy_llm_judge`, `recall_any@10`.
        variant: The questions, as the registry writes them: `S (n=500)`. LoCoMo's are known by n.
        most: How many numbers that may not be compared the Markdown shows; the JSON has all.
    """
    rows = [row for row in load() if row.benchmark.lower() == benchmark.lower()]
    sections, content = [f"## Beside published results\n\n{_WARNING}"], []
    for figure in run_figures:
        ours = _as_published(figure, benchmark, answer_model, judge_model, metric, variant)
        cohort = cohort_of(ours)
        key = figure.get("category")
        same = [row for row in rows if (row.category.id if row.category else None) == key]
        same = [row for row in same if not (row.category and row.category.id is None)]
        comparable = [row for row in same if cohort_of(row) == cohort]
        others = [(row, differences(cohort, cohort_of(row))) for row in same]
        others = [(row, why) for row, why in others if why]
        others.sort(key=lambda one: (len(one[1]), one[0].system))
        sections += _section(figure, cohort, comparable, others, most)
        content.append(
            {
                "run": dict(figure),
                "cohort": {"id": cohort.id, "description": cohort.description},
                "comparable": [_plain(row) for row in comparable],
                "not_comparable": [
                    {**_plain(row), "cohort": cohort_of(row).id, "because": _because(why)}
                    for row, why in others
                ],
            }
        )
    return Page("\n\n".join(sections) + "\n", {"warning": _WARNING, "figures": content})


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
    sections = ["## Published baselines", _WARNING]
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
        _table(["system", *columns], lines),
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


def _as_published(
    figure: Mapping[str, Any],
    benchmark: str,
    answer_model: str,
    judge_model: str,
    metric: str,
    variant: str,
) -> Published:
    """The run's figure in the registry's terms, so that it gets a cohort by the same rules."""
    n, key = int(figure["n"]), figure.get("category")
    spelt = {row.benchmark.lower(): row.benchmark for row in load()}
    benchmark = spelt.get(benchmark.lower(), benchmark)
    if not variant:
        whole = "cats 1-4" if benchmark == "LoCoMo" and n == 1540 else "questions"
        variant = f"{whole} (n={n})"
    return Published(
        collection="survey",
        system=str(figure["system"]),
        benchmark=benchmark,
        variant=variant,
        metric=metric,
        value=float(figure["value"]),
        unit="fraction",
        as_printed=Printed(metric, str(figure["value"]), "fraction"),
        category=Category("", "named", key, NAMES[key]) if key else None,
        n=n,
        answer_model=answer_model,
        judge_model=judge_model,
        source="this run",
        source_basis="stated",
        reported_by="this run",
    )


def _section(
    figure: Mapping[str, Any],
    cohort: Cohort,
    comparable: list[Published],
    others: list[tuple[Published, dict[str, tuple[str, str]]]],
    most: int,
) -> list[str]:
    interval = figure.get("ci95")
    told = f"[{interval[0]:.4f}, {interval[1]:.4f}]" if interval else "--"
    lines = [
        (
            figure["value"],
            [f"**{figure['system']}**", f"**{figure['value']:.4f}**", told, "this run", ""],
        )
    ]
    lines += [
        (row.value, [_named(row), number(row), "--", row.reported_by, row.source])
        for row in comparable
    ]
    lines.sort(key=lambda line: -line[0])
    head = ["system", "value", "95 % interval", "reported by", "source"]
    sections = [
        f"### {cohort.description} ({cohort.id})",
        _table(head, [line for _, line in lines]),
    ]
    if not comparable:
        sections.append("Nobody published a number of this cohort that is in the registry.")
    if others:
        shown = [
            [
                _named(row),
                number(row),
                cohort_of(row).id,
                _because(why),
                row.reported_by,
                row.source,
            ]
            for row, why in others[:most]
        ]
        head = ["system", "value", "cohort", "not comparable, because", "reported by", "source"]
        sections += [
            "Not comparable, because a condition differs or is not stated:",
            _table(head, shown),
        ]
        if len(others) > most:
            sections.append(f"{len(others) - most:,} more are in the JSON.")
    return sections


def _because(why: Mapping[str, tuple[str, str]]) -> str:
    return "; ".join(f"{TRAITS[trait]}: {theirs}" for trait, (_, theirs) in why.items())


def _named(row: Published) -> str:
    marks = ["retracted"] * row.retracted + ["no citation"] * (not row.cited)
    return row.system + (f" ({', '.join(marks)})" if marks else "")


def _plain(row: Published) -> dict[str, Any]:
    return {
        "system": row.system,
        "metric": row.metric,
        "value": row.value,
        "unit": row.unit,
        "n": row.n,
        "answer_model": row.answer_model,
        "judge_model": row.judge_model,
        "reported_by": row.reported_by,
        "source": row.source,
        "retracted": row.retracted,
        "cited": row.cited,
    }


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)
