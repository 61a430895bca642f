"""The report of a file of Recall Bench: its heatmap, its figures, and what its marks give."""

from __future__ import annotations

from typing import Any

import msgspec

from mnemoscope.analysis.hallucination import views
from mnemoscope.analysis.recall_bench_runs import RecallBenchRun, Reproduced
from mnemoscope.reports.heatmap import heatmap
from mnemoscope.reports.tables import (
    MISSING,
    Block,
    Cell,
    Cells,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    decimal,
    numeric,
    percent,
)

_SHOWN = 10
_SETTINGS = {
    "judge_model": "judge",
    "appellate_judge_model": "appellate judge",
    "judge_memory_window": "judge memory window",
    "sample": "sample",
}


def blocks(run: RecallBenchRun, *, width: int = 80) -> list[Block]:
    """The heatmap, the checkpoints, and what the file does not allow."""
    figures = run.figures()
    title = f"{run.label} · {run.settings.adapter_name or 'unknown adapter'}"
    intervals_in = "the table below" if run.records else "none, without marks"
    return [
        *heatmap(figures, title, width=width, intervals_in=intervals_in),
        Paragraph(""),
        _checkpoints(run),
        Paragraph(reproduction(run)),
        *_differing([one for one in run.reproduced() if not one.is_same]),
        NoteList(_notes(run)),
    ]


def reproduction(run: RecallBenchRun) -> str:
    """How many of the printed figures the marks of the file give again, in one sentence."""
    found = run.reproduced()
    if not found:
        return "The file has no marks of single answers that would give its figures again."
    overall = [one for one in found if one.figure == "overall score"]
    same, own = (sum(one.is_same for one in some) for some in (found, overall))
    return (
        f"Recomputed from its marks: the overall score of {own} of {len(overall)} checkpoints, and "
        f"{same} of all {len(found)} printed figures, are as printed."
    )


def content(run: RecallBenchRun) -> dict[str, Any]:
    """The report as JSON."""
    figures = run.figures()
    found = run.reproduced()
    return {
        "file": str(run.path),
        "kind": run.kind,
        "settings": msgspec.to_builtins(run.settings),
        "printed": [msgspec.to_builtins(one) for one in run.printed],
        "reproduced": {
            "figures": len(found),
            "same": sum(one.is_same for one in found),
            "different": [msgspec.to_builtins(one) for one in found if not one.is_same],
        },
        "longitudinal": figures,
        "hallucination": views(run.records, run.plan, figures) if run.records else None,
        "notes": _notes(run),
    }


def _checkpoints(run: RecallBenchRun) -> ReportTable:
    computed = {
        (one.persona, one.checkpoint): one
        for one in run.reproduced()
        if one.figure == "overall score"
    }
    points = {
        (persona, point["label"]): point
        for persona, own in run.figures()["personas"].items()
        for point in own
    }
    several = len({one.persona for one in run.printed}) > 1
    rows: list[Cells] = []
    for one in run.printed:
        key = (one.persona, one.label)
        again, point = computed.get(key), points[key]
        cells: list[Cell | str] = [*([one.persona] if several else []), one.label]
        cells += [f"{one.questions:,}", decimal(one.overall, 4)]
        if again is not None and not again.is_same:
            cells.append(Cell(f"≠ {again.recomputed:.4f}", "bold red"))
        else:
            cells.append(decimal(point["overall"]["mean"], 4))
        cells.append(brackets(point["overall"]["ci95"], 2) or MISSING)
        rate = point["hallucination"]["rate"]
        if rate is None and one.hallucination is not None:
            rate = one.hallucination / 100
        cells.append(MISSING if rate is None else percent(rate))
        rows.append(cells)
    names = ("judged", "score printed", "from marks", "95 % interval", "hallucination")
    first = [TableColumn("persona", wrap=False)] if several else []
    columns = [*first, TableColumn("checkpoint", min_width=10), *map(numeric, names)]
    return ReportTable(columns, rows)


def _differing(wrong: list[Reproduced]) -> list[Block]:
    lines = [
        f"NOT reproduced: {one.figure} at {one.checkpoint} of {one.persona} is printed as "
        f"{one.printed:.4f}, and the marks give {one.recomputed:.4f}"
        for one in wrong[:_SHOWN]
    ]
    if len(wrong) > _SHOWN:
        lines.append(f"and {len(wrong) - _SHOWN} more")
    return [NoteList(lines)] if lines else []


def _notes(run: RecallBenchRun) -> list[str]:
    about = [
        f"{name} {value}"
        for field, name in _SETTINGS.items()
        if (value := getattr(run.settings, field)) is not None
    ]
    notes = [
        "the marks and figures are those of the file"
        + (f" ({', '.join(about)})" if about else "")
        + "; whether that judge can be trusted is not checked here"
    ]
    if missing := len(run.without_marks):
        notes.append(
            f"{missing} of {len(run.printed)} checkpoints have aggregates only: their figures are "
            "as printed, without intervals, and `compare` and `canaries` cannot use them; "
            "result.json and questions.jsonl have the marks"
        )
    notes.append(
        "negative-recall counts as every other category: there an abstention is the right answer, "
        "and elsewhere it scores 1 of 6; information-boundary and group-session-attribution count "
        "only if the run asked them"
    )
    return [*notes, *run.notes]
