"""One summary over datasets: the main figures of each system on each of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from mnemoscope._store.jsonl import encode_json, write_atomically
from mnemoscope.analysis.answers import headline_of
from mnemoscope.analysis.disclosure_rates import RATES
from mnemoscope.analysis.estimates import Estimate, rate
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports.render_markdown import render
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.tables import (
    MISSING,
    SYSTEM,
    Block,
    Cell,
    Heading,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
    span,
    system_cell,
    with_interval,
)

_NOTE = (
    "Figures of different datasets are not comparable and have no mean: they measure different "
    "things on different questions."
)
_BEST = 6


class DatasetRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One figure of one system on one dataset."""

    dataset: str
    system: str
    figure: str
    mean: float | None
    ci95: list[float] | None
    n: int
    missing: int = 0
    """Questions that failed or were not judged, which the mean leaves out."""
    is_baseline: bool = False
    withheld: str = ""
    """Why there is no mean: the judge passed no exam."""


class DatasetSummary(msgspec.Struct, frozen=True):
    """The content of datasets.json."""

    rows: list[DatasetRow]


def dataset_rows(views: Mapping[str, Sequence[RunView]]) -> list[DatasetRow]:
    """The main figures: of retrieval, of answers, and of forgetting."""
    return [
        row for dataset, own in views.items() for view in own for row in _rows_of(dataset, view)
    ]


def _rows_of(dataset: str, view: RunView) -> Iterator[DatasetRow]:
    about = (dataset, view.label)
    if not view.forgetting:
        name = (
            PRIMARY
            if PRIMARY in view.metrics["overall"]
            else next(iter(view.metrics["overall"]), "")
        )
        if name:
            figure, counts = view.metrics["overall"][name], view.metrics["questions"]
            missing = counts["scorable"] - counts["measured"]
            ends = figure["ci95"]
            yield DatasetRow(
                *about, name, figure["mean"], ends, figure["n"], missing, view.is_baseline
            )
    if told := view.metrics.get("disclosure"):
        k = next(reversed(told["hits"]), "")
        rates = told["answers"] or told["hits"].get(k)
        for name in RATES:
            own = rates[name] if rates else rate((), ())
            yield DatasetRow(
                *about,
                name if told["answers"] else f"{name}@{k}",
                own["rate"],
                own["ci95"],
                own["n"],
                own.get("missing", 0),
                view.is_baseline,
            )
    if view.forgetting and view.forgetting["score"] is not None:
        after = view.forgetting["score"]["after"]
        for kind in ("forget", "retain"):
            mean = after[kind]["mean_rouge_l"]
            yield DatasetRow(
                *about,
                f"{kind} after, ROUGE-L",
                mean["mean"] if mean else None,
                mean["ci95"] if mean else None,
                after[kind]["n"],
                is_baseline=view.is_baseline,
            )
    elif view.longitudinal and view.judged:
        point = view.longitudinal["checkpoints"][-1]
        overall: Estimate = point["overall"]
        yield _row(about, f"composite of {_BEST} at {point['label']}", overall, view)
    elif view.answers and view.answers["judge"] and not view.forgetting:
        figures = view.answers["figures"]
        yield _row(
            about, f"{figures['metric']}, answerable", headline_of(figures, "answerable"), view
        )
        if figures["all"]["n"] != figures["answerable"]["n"]:
            yield _row(about, f"{figures['metric']}, all", headline_of(figures, "all"), view)


def _row(about: tuple[str, str], name: str, own: Estimate, view: RunView) -> DatasetRow:
    missing = own.get("missing", 0)
    return DatasetRow(
        *about,
        name,
        own["mean"],
        own["ci95"],
        own["n"],
        missing,
        view.is_baseline,
        own.get("withheld", ""),
    )


def summary_table(rows: Sequence[DatasetRow]) -> ReportTable:
    """For the terminal: a row for each figure, the dataset named once."""
    columns = [
        TableColumn("dataset"),
        SYSTEM,
        TableColumn("figure"),
        numeric("mean"),
        numeric("95 %"),
        numeric("n"),
        numeric("missing"),
    ]
    table = ReportTable(columns, title="All datasets")
    before = ""
    for row in rows:
        table.rows.append(
            [
                Cell(row.dataset if row.dataset != before else "", markdown=row.dataset),
                system_cell(row.system, row.is_baseline),
                row.figure,
                f"{row.mean:.3f}"
                if row.mean is not None
                else "withheld"
                if row.withheld
                else MISSING,
                span(row.ci95) if row.ci95 else "",
                f"{row.n:,}",
                f"{row.missing:,}" if row.missing else "",
            ]
        )
        before = row.dataset
    return table


def _mean(row: DatasetRow) -> str:
    if row.mean is None:
        return "withheld" if row.withheld else MISSING
    return f"{row.mean:.3f}"


def write_dataset_summary(folder: Path, rows: Sequence[DatasetRow]) -> None:
    """Write datasets.md and datasets.json into the folder above theirs."""
    table = ReportTable([TableColumn(name) for name in ("dataset", "system", "figure")])
    table.columns += [TableColumn(name) for name in ("mean [95 % interval]", "n", "missing")]
    for row in rows:
        value = row.withheld or with_interval(row.mean, row.ci95, unknown="[not known]")
        table.rows.append(
            [row.dataset, row.system, row.figure, value, f"{row.n:,}", f"{row.missing:,}"]
        )
    blocks: list[Block] = [Heading("All datasets", 1), Paragraph(_NOTE), table]
    write_atomically(folder / "datasets.md", f"{render(blocks)}\n".encode())
    write_atomically(folder / "datasets.json", encode_json(DatasetSummary(list(rows))))


def summary_note() -> str:
    return _NOTE
