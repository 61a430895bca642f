"""The heatmap: categories down, checkpoints across, colour by score.

`score_rows` is shared with report.md and the picture. Every cell shows its number, so that the
heatmap can be read without colours.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from mnemoscope.analysis.longitudinal import CheckpointFigures, LongitudinalFigures
from mnemoscope.reports.run_view import Figures
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    WARNING,
    Block,
    Cell,
    ColourScale,
    Grid,
    GridRow,
    Heading,
    Paragraph,
    decimal,
    percent,
)

BEST = 6.0
OVERALL, HALLUCINATION = "OVERALL", "hallucination"
COHORT = "same questions"
"""The row of the cohort, which is asked at every checkpoint."""
_NARROW, _WIDE = 6, 11
"""The narrowest cell holds `10.3%` and a space, the widest an interval and two spaces."""
_TIGHT = 8
"""With systems across, most names fit into one line of a cell."""
_MARGIN = 2
_INTERVAL = "95 % interval"
_LEAST = 3
"""The fewest columns that are shown: the first, the gap, the last."""


class SystemHeatmap(NamedTuple):
    """One system's figures from longitudinal.json."""

    label: str
    figures: LongitudinalFigures
    is_baseline: bool = False


class ScoreCell(NamedTuple):
    """A figure of one checkpoint."""

    text: str
    share: float | None
    """The share of the best possible value; None without a figure."""
    asked: bool

    @property
    def cell(self) -> Cell:
        return Cell(
            self.text,
            "" if self.share is not None else "red" if self.asked else DIM,
            share=self.share,
        )


def score_rows(
    points: Sequence[CheckpointFigures], categories: Iterable[str]
) -> dict[str, list[ScoreCell]]:
    """A row for each category, then the overall score, then the hallucination rate."""
    rows = {name: [_score(p["categories"].get(name, {}), 1) for p in points] for name in categories}
    rows[OVERALL] = [_score({**p["overall"], "asked": p["asked"]}, 2) for p in points]
    rates = [(point["hallucination"]["rate"], bool(point["asked"])) for point in points]
    rows[HALLUCINATION] = [
        ScoreCell(MISSING, None, asked)
        if rate is None
        else ScoreCell(percent(rate), 1 - rate, True)
        for rate, asked in rates
    ]
    return rows


def _score(figure: Figures, digits: int) -> ScoreCell:
    mean = figure.get("mean")
    if mean is None:
        return ScoreCell(MISSING, None, bool(figure.get("asked")))
    return ScoreCell(f"{mean:.{digits}f}", mean / BEST, True)


def elide(count: int, fit: int) -> tuple[list[int], list[int]]:
    """The columns to show before and after the gap; if all fit, the second list is empty."""
    fit = max(fit, _LEAST)
    if count <= fit:
        return list(range(count)), []
    shown = fit - 1
    head = (shown + 1) // 2
    return list(range(head)), list(range(count - (shown - head), count))


def heatmap(
    figures: LongitudinalFigures,
    title: str,
    *,
    width: int = 80,
    intervals_in: str = "report.md, longitudinal.json",
) -> list[Block]:
    """One system over its checkpoints; `intervals_in` is where intervals are that do not fit."""
    points, names = figures["checkpoints"], figures["categories"]
    name_width = _name_width(names)
    cell_width = min(_WIDE, max(_NARROW, (width - name_width) // max(len(points), 1)))
    head, tail = elide(len(points), (width - name_width) // cell_width)
    kept: list[int | None] = [*head, None, *tail] if tail else [*head]

    def row(name: str, cells: Sequence[Cell], style: str = "") -> GridRow:
        return GridRow(name, [None if i is None else cells[i] for i in kept], style)

    scores = {name: [c.cell for c in cells] for name, cells in score_rows(points, names).items()}
    days = [
        p["label"] if len(p["label"]) < cell_width else f"{p['days']}d"[: cell_width - 1]
        for p in points
    ]
    counts = [str(n) if n < 10_000 else f"{n / 1000:.0f}k" for n in (p["judged"] for p in points)]
    rows = [
        row("", [Cell(day, DIM) for day in days]),
        None,
        *(row(name, scores[name]) for name in names),
        None,
        row(
            OVERALL, [cell._replace(style=cell.style or "bold") for cell in scores[OVERALL]], "bold"
        ),
        *([row(_INTERVAL, [_interval(p) for p in points], DIM)] if cell_width >= _WIDE else []),
        *([row(*cohort_row)] if (cohort_row := _cohort_row(figures)) else []),
        None,
        row(HALLUCINATION, scores[HALLUCINATION]),
        row("questions judged", [Cell(count, DIM) for count in counts], DIM),
    ]
    hidden = len(points) - len(head) - len(tail)
    return [
        Heading(title),
        Paragraph(_under_title(figures), DIM),
        Paragraph(""),
        Grid(name_width - _MARGIN, cell_width, rows),
        Paragraph(""),
        *_legend(figures, hidden, width),
        *([] if cell_width >= _WIDE else [_note(f"95 % intervals: {intervals_in}")]),
    ]


def systems_heatmap(systems: Sequence[SystemHeatmap], *, width: int = 80) -> list[Block]:
    """All systems at their last checkpoint: categories down, systems across."""
    last = [one.figures["checkpoints"][-1] for one in systems]
    names = list(dict.fromkeys(c for one in systems for c in one.figures["categories"]))
    labels = list(dict.fromkeys(point["label"] for point in last))
    room = width - _name_width(names)
    tables = ceil(len(systems) / max(1, room // _TIGHT))
    abreast = ceil(len(systems) / tables)
    cell_width = min(_WIDE + 2, max(_TIGHT, room // abreast))
    blocks: list[Block] = [Heading(f"All systems at {' / '.join(labels)}")]
    for start in range(0, len(systems), abreast):
        points = last[start : start + abreast]
        scores = score_rows(points, names)
        overall = [cell._replace(asked=False).cell for cell in scores[OVERALL]]
        hits = [point["retrieval"]["hit@10"]["mean"] for point in points]
        rows: list[GridRow | None] = [
            *_heads(systems[start : start + abreast], cell_width - 1),
            None,
            *(GridRow(name, [cell.cell for cell in scores[name]]) for name in names),
            None,
            GridRow(
                OVERALL, [cell._replace(style=cell.style or "bold") for cell in overall], "bold"
            ),
        ]
        if cell_width >= _WIDE:
            rows.append(GridRow(_INTERVAL, [_interval(point) for point in points], DIM))
        else:  # narrow cells: one row for each end
            for end, name in enumerate((f"{_INTERVAL} from", "to".rjust(len(_INTERVAL) + 5))):
                ends = [ci[end] if ci else None for ci in (p["overall"]["ci95"] for p in points)]
                rows.append(GridRow(name, [Cell(decimal(one, 2), DIM) for one in ends], DIM))
        rows += [
            None,
            GridRow(HALLUCINATION, [cell.cell for cell in scores[HALLUCINATION]]),
            GridRow(
                "retrieval hit@10",
                [Cell(decimal(hit, 3), DIM if hit is None else "") for hit in hits],
            ),
        ]
        blocks += [Paragraph(""), Grid(_name_width(names) - _MARGIN, cell_width, rows)]
    if any(one.label == "oracle" for one in systems):
        blocks.append(Paragraph(""))
        blocks.append(_note("oracle returns the evidence itself: its errors are the reader's"))
    return blocks


def cohort_cells(figures: LongitudinalFigures) -> list[ScoreCell]:
    """The composite of the fixed cohort at each checkpoint; empty without a cohort."""
    aged = figures.get("ageing", {}).get("composite")
    if aged is None or (cohort := aged["cohort"]) is None:
        return []
    found = {point["label"]: point["score"] for point in cohort["points"]}
    return [_score(found.get(point["label"], {}), 2) for point in figures["checkpoints"]]


def _cohort_row(figures: LongitudinalFigures) -> tuple[str, list[Cell]] | None:
    cells = cohort_cells(figures)
    return (COHORT, [cell.cell for cell in cells]) if cells else None


def _interval(point: CheckpointFigures) -> Cell:
    interval = point["overall"]["ci95"]
    return Cell(MISSING if interval is None else "{:.2f}–{:.2f}".format(*interval), DIM)


def _heads(systems: Sequence[SystemHeatmap], room: int) -> list[GridRow]:
    """The systems' names, wrapped into as many lines as the longest needs."""
    folded = [_folded(one.label, room) for one in systems]
    styles = [DIM if one.is_baseline else "bold" for one in systems]
    return [
        GridRow(
            "",
            [
                Cell(parts[line] if line < len(parts) else "", style)
                for parts, style in zip(folded, styles, strict=True)
            ],
        )
        for line in range(max(map(len, folded)))
    ]


def _folded(label: str, room: int) -> list[str]:
    """A label in lines that fit, broken between its parts if possible."""
    lines = [""]
    for part in re.findall(r"[^(,=\-]*[(,=\-]|[^(,=\-]+", label):
        if len(lines[-1]) + len(part) <= room:
            lines[-1] += part
            continue
        lines += [part[i : i + room] for i in range(0, len(part), room)]
    return [line for line in lines if line]


def _under_title(figures: LongitudinalFigures) -> str:
    judged = sum(point["judged"] for point in figures["checkpoints"])
    counts = {
        "persona": len(figures["personas"]),
        "checkpoint": len(figures["checkpoints"]),
        "judged answer": judged,
    }
    parts = (f"{number:,} {what}{'s' * (number != 1)}" for what, number in counts.items())
    return f"mean composite 0–6 · {' · '.join(parts)}"


def _legend(figures: LongitudinalFigures, hidden: int, width: int) -> list[Block]:
    points = figures["checkpoints"]
    after = [Cell(f"   {MISSING} nothing asked")]
    if any(p["asked"] and not p["judged"] for p in points) or any(
        cell["asked"] and not cell["n"] for p in points for cell in p["categories"].values()
    ):
        after += [Cell(f"   {MISSING}", "red"), Cell(" asked, none judged")]
    lines: list[Block] = [ColourScale("0", "6", after)]
    if hidden:
        note = f"… {hidden} of {len(points)} checkpoints left out to fit {width} columns"
        lines.append(_note(note))
    if failed := sum(point["failed"] for point in points):
        asked = sum(point["asked"] for point in points)
        note = f"! {failed:,} of {asked:,} questions failed and are left out"
        lines.append(_note(note, WARNING))
        if bounds := points[-1]["overall"].get("bounds"):
            note = f"{bounds[0]:.2f} instead of {bounds[1]:.2f}"
            lines.append(_note(f"  counted as zeros, they make the last overall {note}", WARNING))
    if waiting := sum(max(point["planned"] - point["asked"], 0) for point in points):
        note = f"! interim: {waiting:,} planned questions are not asked yet"
        lines.append(_note(note, WARNING))
    return lines


def _note(text: str, style: str = DIM) -> Paragraph:
    return Paragraph(" " * _MARGIN + text, style)


def _name_width(names: Sequence[str]) -> int:
    return _MARGIN + max(len(name) for name in (*names, "retrieval hit@10")) + 2
