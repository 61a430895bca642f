"""A run over its checkpoints: the heatmap, and one checkpoint chosen with a slider."""

from __future__ import annotations

from mnemoscope.analysis.estimates import Estimate
from mnemoscope.analysis.longitudinal import CheckpointFigures
from mnemoscope.reports.heatmap import BEST, HALLUCINATION, OVERALL, ScoreCell, score_rows
from mnemoscope.reports.longitudinal_report import recall_sections
from mnemoscope.reports.run_view import RunView
from mnemoscope.reports.tables import MISSING, Heatmap, brackets, decimal, percent
from mnemoscope.viewer.html_elements import Html, el, foreign, row, table, url
from mnemoscope.viewer.interval_marks import level_mark
from mnemoscope.viewer.run_folder import ViewedRun

_SHADES = 10
"""The last step of the colours, h0 to h10: style attributes are not allowed on our pages."""


def checkpoints_content(run: ViewedRun, view: RunView, at: int) -> list[Html]:
    """The slider, the chosen checkpoint, then the heatmap of all."""
    assert view.longitudinal is not None
    points = view.longitudinal["checkpoints"]
    last = len(points) - 1
    slider = el(
        "form",
        el("input", type="hidden", name="run", value=run.id),
        el("label", "Checkpoint", for_="at"),
        el(
            "input",
            type="range",
            id="at",
            name="at",
            min="0",
            max=str(last),
            value=str(at),
            data_src=url("/checkpoints", run=run.id, fragment="1"),
            data_labels="\n".join(point["label"] for point in points),
            aria_valuetext=points[at]["label"],
        ),
        el("output", points[at]["label"], for_="at", id="at-label"),
        el("noscript", el("button", "Show")),
        method="get",
        action="/checkpoints",
        class_="controls",
    )
    scale = f"Mean composite from 0 to {BEST:g}" if view.judged else "hit@10 from 0 to 1"
    return [
        slider,
        el("div", checkpoint_panel(view, at), id="panel"),
        el("h2", "All checkpoints"),
        _heatmap(view, at),
        el("p", f"{scale}; {MISSING}: nothing asked or measured", class_="dim"),
    ]


def checkpoint_panel(view: RunView, at: int) -> Html:
    """The categories at one checkpoint as bars with intervals."""
    assert view.longitudinal is not None
    point = view.longitudinal["checkpoints"][at]
    cells = {
        view.category_name(name): cell
        for name in view.longitudinal["categories"]
        if (cell := point["categories"].get(name)) is not None
    }
    if view.judged:
        head = ["Category", "", "Mean composite [95 % interval]", "Judged of asked"]
        rows = [_bar("All categories", point["overall"], BEST, point["asked"])]
        rows += [_bar(name, cell, BEST, cell["asked"]) for name, cell in cells.items()]
    else:
        head = ["Category", "", "hit@10 [95 % interval]", "Asked"]
        rows = [_bar("All categories", point["retrieval"]["hit@10"], 1.0, point["asked"])]
        for name, cell in cells.items():
            found: Estimate = {"mean": cell["hit@10"], "n": cell["asked"], "ci95": None}
            rows.append(_bar(name, found, 1.0, cell["asked"]))
    return el(
        "section",
        el("h2", f"At {point['label']}"),
        el("p", _about(point)),
        table(head, rows, caption=f"Categories at {point['label']}", numbers=2),
    )


def _about(point: CheckpointFigures) -> str:
    hits = point["retrieval"]["hit@10"]["mean"]
    rate = point["hallucination"]["rate"]
    return (
        f"{point['ingested_days']:,} days ingested · {point['judged']:,} of {point['asked']:,} "
        f"answers judged, {point['failed']:,} failed · hallucination "
        f"{MISSING if rate is None else percent(rate)} · hit@10 {decimal(hits, 3)}"
    )


def _bar(name: str, figure: Estimate, best: float, asked: int) -> Html:
    mean, interval = figure["mean"], figure["ci95"]
    return row(
        foreign(name, 80),
        el("td", level_mark(mean, interval, best)),
        f"{decimal(mean, 2)} {brackets(interval, 2)}",
        f"{figure['n']:,} of {asked:,}" if best == BEST else f"{asked:,}",
        numbers=2,
    )


def _scores(view: RunView) -> dict[str, list[ScoreCell]]:
    """Rows of the heatmap: composites, or hit@10 of a run whose answers are not judged."""
    assert view.longitudinal is not None
    if view.judged:
        return score_rows(view.longitudinal["checkpoints"], view.longitudinal["categories"])
    drawn = recall_sections(view.longitudinal)[-1]
    assert isinstance(drawn, Heatmap)
    return {
        one.name: [ScoreCell(cell.text, cell.share, True) for cell in one.cells]
        for one in drawn.rows
    }


def _heatmap(view: RunView, at: int) -> Html:
    assert view.longitudinal is not None
    points = view.longitudinal["checkpoints"]
    rows = []
    for name, cells in _scores(view).items():
        drawn = []
        for place, cell in enumerate(cells):
            shade = "" if cell.share is None else f"h{round(min(max(cell.share, 0), 1) * _SHADES)}"
            here = " here" if place == at else ""
            drawn.append(el("td", cell.text, class_=f"{shade}{here}".strip() or None))
        label = {OVERALL: "overall", HALLUCINATION: "hallucination"}.get(name)
        title = label or view.category_name(name)
        rows.append(el("tr", el("th", foreign(title, 60), scope="row"), drawn))
    head = ["Category"]
    titles = [
        el("th", point["label"], scope="col", class_="here" if place == at else None)
        for place, point in enumerate(points)
    ]
    return table([*head, *titles], rows, caption="Heatmap", class_="heat")
