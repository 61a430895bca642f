"""The sections of report.md on checkpoints: heatmap, intervals, hallucination."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemoscope.analysis.longitudinal import BEST_QUALITY
from mnemoscope.reports.heatmap import (
    BEST,
    COHORT,
    HALLUCINATION,
    OVERALL,
    cohort_cells,
    elide,
    score_rows,
)
from mnemoscope.reports.run_view import CheckpointReport, Figures, RunView
from mnemoscope.reports.tables import (
    MISSING,
    Block,
    Cell,
    Heading,
    HeatCell,
    Heatmap,
    HeatRow,
    Markup,
    NoteList,
    Paragraph,
    ReportTable,
    brackets,
    decimal,
    document_table,
    interval_cell,
    percent,
    with_interval,
)

_COLUMNS = 12
"""The most checkpoints that the page shows; metrics.json has all of them."""
_LISTED = 10
"""The most canaries that are listed."""
_HOW_TO_READ = (
    "Each cell is the mean composite of the judged answers, 0 to 6: correctness 0–3, completeness "
    "0–2, and 1 for an answer without hallucination. An abstention on a question with an answer "
    "scores 1.",
    "The history grows from left to right, and each checkpoint asks other questions, too: only "
    "the row of the same questions shows the effect of more memories alone. A sharp fall in "
    "recency-bias-resistance shows that the system finds only recent memories.",
    Markup(
        f"`{MISSING}` means that no question was asked, or that none could be judged. It is not a "
        "zero and does not take the value of another cell."
    ),
    "Failed questions are left out; the bounds show the figure with failed questions scored as "
    "zero. Intervals are 95 %, over clusters of questions that share a history.",
    "Few questions make wide intervals. If the intervals of two cells overlap widely, the cells "
    "are not shown to differ.",
)
_READINGS = {
    "healthy": "hallucination rises as recall falls, which Recall Bench calls healthy: the system "
    "shows what it has forgotten",
    "pathological": "hallucination falls together with recall, which Recall Bench calls "
    "pathological: hallucinations may count as answers",
    "cannot tell": "the interval does not separate the healthy pattern from the pathological one",
}


def sections(
    figures: CheckpointReport, *, pictures: Sequence[tuple[str, str]] = (), is_wide: bool = False
) -> list[Block]:
    """The sections; pictures are captions and file names. A wide page has all checkpoints."""
    points = figures["checkpoints"]
    return [
        Heading("By checkpoint"),
        *(Paragraph(Markup(f"![{caption}]({file})")) for caption, file in pictures),
        *([_whole_heatmap(figures)] if is_wide else _heatmap(figures)),
        Heading("Intervals", 3),
        _intervals(points, len(points) if is_wide else _COLUMNS),
        *_last(points[-1:]),
        *_personas(figures["personas"]),
        *_hallucination(figures["hallucination"]),
        *_disclosure(figures["disclosure"]),
        Heading("How to read the tables", 3),
        NoteList(_HOW_TO_READ),
    ]


def recall_sections(figures: CheckpointReport) -> list[Block]:
    """A heatmap of hit@10, for runs whose answers are not judged."""
    points = figures["checkpoints"]
    rows = []
    for name in figures["categories"]:
        cells = [point["categories"][name] for point in points]
        drawn = [
            HeatCell(decimal(one["hit@10"], 2), one["hit@10"], f"asked {one['asked']:,}")
            for one in cells
        ]
        rows.append(HeatRow(name, drawn, name))
    hits = [point["retrieval"]["hit@10"] for point in points]
    drawn = [HeatCell(decimal(one["mean"], 2), one["mean"], _about(one, digits=3)) for one in hits]
    caption = "hit@10: the share of the questions with evidence that have some in the first ten."
    shown = Heatmap([point["label"] for point in points], [*rows, HeatRow("all", drawn)])
    return [Heading("By checkpoint"), Paragraph(caption), shown]


def asked(figures: CheckpointReport) -> list[str]:
    """The number of questions asked, judged and failed over all checkpoints."""
    points = figures["checkpoints"]
    asked, judged, failed = (sum(p[k] for p in points) for k in ("asked", "judged", "failed"))
    errors = "; ".join(f"{number:,} × {error}" for error, number in figures["errors"].items())
    return [
        f"questions over {len(points)} checkpoints: {asked:,} asked, {judged:,} judged, "
        f"{failed:,} failed" + (f" ({errors})" if errors else "")
    ]


def last_overalls(views: Sequence[RunView]) -> ReportTable:
    """Systems down; overall, hallucination and categories of the last checkpoint across."""
    ends: dict[str, Figures] = {
        view.label: view.longitudinal["checkpoints"][-1] for view in views if view.longitudinal
    }
    categories = list(dict.fromkeys(name for end in ends.values() for name in end["categories"]))
    rows = [
        [
            label,
            with_interval(end["overall"]["mean"], end["overall"]["ci95"], 2),
            with_interval(end["hallucination"]["rate"], end["hallucination"]["ci95"], 3),
            *(decimal(end["categories"].get(name, {}).get("mean"), 2) for name in categories),
        ]
        for label, end in ends.items()
    ]
    return document_table(["system", "composite 0–6", "hallucination", *categories], rows)


def _heatmap(figures: CheckpointReport) -> list[Block]:
    points = figures["checkpoints"]
    head, tail = elide(len(points), _COLUMNS)
    kept: list[int | None] = [*head, None, *tail] if tail else [*head]
    scores = {
        name: [cell.text for cell in cells]
        for name, cells in score_rows(points, figures["categories"]).items()
    }
    overall, rates = scores.pop(OVERALL), scores.pop(HALLUCINATION)
    rows: dict[str, Sequence[str]] = {
        **scores,
        Markup(f"**{OVERALL}**"): [Markup(f"**{text}**") for text in overall],
        "recall quality (0–5)": [decimal(p["recall_quality"]["mean"], 2) for p in points],
        **({COHORT: [cell.text for cell in cohort]} if (cohort := cohort_cells(figures)) else {}),
        HALLUCINATION: rates,
        "questions judged": [f"{point['judged']:,}" for point in points],
    }
    shown = [["category", *(p["label"] for p in points)], *([k, *v] for k, v in rows.items())]
    head_row, *body = (
        [name, *("…" if place is None else cells[place] for place in kept)]
        for name, *cells in shown
    )
    hidden = len(points) - len(head) - len(tail)
    left_out = Paragraph(f"{hidden} of {len(points)} checkpoints are left out here.")
    return [document_table(head_row, body), *([left_out] if hidden else [])]


def _whole_heatmap(figures: CheckpointReport) -> Heatmap:
    """Every cell of the heatmap, with its number of questions and its interval."""
    points = figures["checkpoints"]
    rows = []
    for name, cells in score_rows(points, figures["categories"]).items():
        if name == HALLUCINATION:
            found = [_about(p["hallucination"], "rate", 3) for p in points]
        elif name == OVERALL:
            found = [_about(p["overall"]) for p in points]
        else:
            found = [_about(p["categories"].get(name, {})) for p in points]
        drawn = [
            HeatCell(cell.text, cell.share, about) for cell, about in zip(cells, found, strict=True)
        ]
        rows.append(HeatRow(name, drawn, name if name in figures["categories"] else ""))
        if name == OVERALL and (cohort := cohort_cells(figures)):
            about = "the questions that are asked at every checkpoint: see Ageing"
            drawn = [HeatCell(cell.text, cell.share, about) for cell in cohort]
            rows.append(HeatRow(COHORT, drawn))
    return Heatmap([point["label"] for point in points], rows)


def _about(figure: Figures, key: str = "mean", digits: int = 2) -> str:
    if figure.get(key) is None:
        return "none judged" if figure.get("asked") else "nothing asked"
    hits = figure.get("hit@10")
    parts = [f"n {figure['n']:,}", f"95 % interval {brackets(figure['ci95'], digits) or MISSING}"]
    return ", ".join([*parts, *([] if hits is None else [f"hit@10 {hits:.3f}"])])


def _intervals(points: Sequence[Figures], most: int = _COLUMNS) -> ReportTable:
    head, tail = elide(len(points), most)
    shown = [points[i] for i in (*head, *tail)]
    bounds = ["bounds"] if any(point["failed"] for point in shown) else []
    columns = ["checkpoint", "days", "asked", "failed", "overall", *bounds]
    columns += ["recall quality", "hallucination", "hit@10"]
    rows = [
        [
            point["label"],
            f"{point['ingested_days']:,}",
            f"{point['asked']:,}",
            _failures(point),
            _mean(point["overall"]),
            *(brackets(point["overall"].get(name), 2) for name in bounds),
            _mean(point["recall_quality"], best=BEST_QUALITY),
            _rate(point["hallucination"]),
            _mean(point["retrieval"]["hit@10"], 3, best=1),
        ]
        for point in shown
    ]
    return document_table(columns, rows)


def _last(points: Sequence[Figures]) -> list[Block]:
    """The categories and difficulties at the last checkpoint, with the longest history."""
    blocks: list[Block] = []
    for point in points:
        categories = [
            [name, _mean(cell), f"{cell['n']:,}", f"{cell['eligible']:,}"]
            for name, cell in point["categories"].items()
        ]
        levels = [
            [name, _mean(cell), f"{cell['n']:,}"]
            for name, cell in point["difficulties"].items()
            if cell["n"]
        ]
        blocks += [
            Heading(f"At the last checkpoint, {point['label']}", 3),
            document_table(["category", "mean composite", "n", "eligible"], categories),
        ]
        if levels:
            blocks.append(document_table(["difficulty", "mean composite", "n"], levels))
    return blocks


def _personas(personas: Mapping[str, Sequence[Figures]]) -> list[Block]:
    if len(personas) < 2:
        return []
    rows = [
        [persona, _mean(own[0]["overall"]), _mean(own[-1]["overall"]), f"{own[-1]['judged']:,}"]
        for persona, own in personas.items()
        if own
    ]
    head = ["persona", "first overall", "last overall", "n"]
    return [Heading("By persona", 3), document_table(head, rows)]


def _hallucination(views: Figures) -> list[Block]:
    head = ["all checkpoints", "n", "first", "last", "change in 100 days"]
    by = [("category", views["by_category"]), ("persona", views["by_persona"])]
    categories, personas = (
        document_table([name, *head], (_split_row(*split) for split in splits.items()))
        for name, splits in by
    )
    blocks: list[Block] = [
        Heading("Hallucination", 3),
        Paragraph(_trend(views["trend"])),
        categories,
        Paragraph(_correlation(views["against_recall"])),
        *([personas] if len(views["by_persona"]) > 1 else []),
    ]
    if own := views["canaries"]:
        caption = (
            f"{len(own):,} {'question' if len(own) == 1 else 'questions'}, asked at several "
            "checkpoints: the system hallucinated every time. Compare them in every run:"
        )
        rows = ([q["question"], q["persona"], q["category"], q["judged"]] for q in own[:_LISTED])
        columns = ["question", "persona", "category", "times"]
        blocks += [Paragraph(caption), document_table(columns, rows)]
    return blocks


def _disclosure(figures: Figures) -> list[Block]:
    if not figures:
        return []
    rows = [
        [
            expected,
            f"{own['evaluations']:,}",
            f"{own['unique_pairs']:,}",
            _mean(own["score"]),
            _rate(own["hallucination"]),
        ]
        for expected, own in figures.items()
    ]
    head = ["expected", "evaluations", "questions", "mean composite", "hallucination"]
    return [Heading("Disclosure in boundary questions", 3), document_table(head, rows)]


def _trend(line: Figures) -> str:
    if line["slope_per_day"] is None:
        return "No trend of the rate: it needs two checkpoints with judged answers."
    trend = (
        f"A line through the rates starts at {_points(line['intercept'])} and changes by "
        f"{_points(line['slope_per_day'] * 100, signed=True)} in 100 days of history"
    )
    if line["slope_per_day_ci95"] is None:
        return f"{trend}; two checkpoints give no interval."
    slope, start = line["slope_per_day_ci95"], line["intercept_ci95"]
    low, high = (_points(end * 100, signed=True) for end in slope)
    unsure = "" if slope[0] > 0 or slope[1] < 0 else ", no significant change"
    return (
        f"{trend} (95 % intervals {_points(start[0])} to {_points(start[1])}, and {low} to {high}; "
        f"{line['n']} checkpoints{unsure}). Checkpoints share questions, so the true intervals "
        "are wider."
    )


def _correlation(found: Figures) -> str:
    if found["correlation"] is None:
        return (
            "Recall against hallucination: no correlation, because there are too few checkpoints "
            "or one of the two never changes."
        )
    correlation = f"Recall against hallucination: correlation {found['correlation']:+.2f}"
    if interval := found["correlation_ci95"]:
        correlation += f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return f"{correlation} over {len(found['points'])} checkpoints; {_READINGS[found['reading']]}."


def _split_row(name: str, split: Figures) -> list[str | Cell]:
    rates = [point["rate"] for point in split["checkpoints"] if point["n"]]
    slope = split["trend"]["slope_per_day"]
    return [
        name,
        _rate(split["overall"]),
        f"{split['overall']['n']:,}",
        *(percent(rates[end]) if rates else MISSING for end in (0, -1)),
        MISSING if slope is None else _points(slope * 100, signed=True),
    ]


def _failures(point: Figures) -> str:
    if not point["failed"]:
        return "0"
    wrong = ("error", "timeout", "not-indexed", "unjudged")
    reasons = [f"{point['statuses'][s]} {s}" for s in wrong if point["statuses"].get(s)]
    return f"{point['failed']:,} ({', '.join(reasons)})"


def _mean(figure: Figures, digits: int = 2, best: float = BEST) -> Cell:
    text = with_interval(figure["mean"], figure["ci95"], digits)
    return interval_cell(text, figure["mean"], figure["ci95"], best=best)


def _rate(figure: Figures) -> Cell:
    if figure["rate"] is None:
        return Cell(MISSING)
    low, high = figure["ci95"]
    text = f"{percent(figure['rate'])} [{percent(low)}, {percent(high)}]"
    return interval_cell(text, figure["rate"], figure["ci95"])


def _points(share: float, *, signed: bool = False) -> str:
    return f"{100 * share:+.2f} points" if signed else f"{100 * share:.1f} %"
