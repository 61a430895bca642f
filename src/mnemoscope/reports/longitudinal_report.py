"""The part of report.md that tells how a system remembered over a life: heatmap, doubt, inventions.

It reads the figures of metrics.json, "longitudinal" with "hallucination" in it, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from mnemoscope.reports.heatmap import MISSING, elide, percent

_COLUMNS = 12
"""More checkpoints than these are elided in the page; metrics.json has them all."""
_LISTED = 10
"""So many canaries are named."""
_HOW_TO_READ = (
    "Each cell is the mean composite of the answers judged, 0 to 6: correctness 0–3, completeness "
    "0–2, and 1 for inventing nothing. Honest silence on a question with an answer earns 1.",
    "Left to right the history grows. A gentle fall is memory under load; a sharp one in "
    "recency-bias-resistance is a system that sees only what is new.",
    f"`{MISSING}` means that nothing was asked or nothing could be judged. It is not a zero, and "
    "no neighbour's value stands in for it.",
    "Questions that failed are left out; bounds say what the figure is with each of them as a "
    "zero. Intervals are 95 %, over clusters of questions that share a history.",
    "Few questions make wide intervals: two cells whose intervals overlap widely are not "
    "shown to differ.",
)
_READINGS = {
    "healthy": "hallucination rises as recall falls, which Recall Bench calls healthy: what is "
    "forgotten shows as such",
    "pathological": "hallucination falls together with recall, which Recall Bench calls "
    "pathological: inventions may be passing for answers",
    "cannot tell": "the interval does not tell the healthy pattern from the pathological one",
}


def markdown(
    figures: Mapping[str, Any],
    *,
    pictures: Sequence[tuple[str, str]] = (),
    canaries: Mapping[str, Any] | None = None,
) -> str:
    """The sections; pictures are captions and file names, canaries are of several runs."""
    return "\n\n".join(
        [
            "## Over the checkpoints",
            *(f"![{caption}]({file})" for caption, file in pictures),
            _heatmap(figures),
            "### How sure the figures are",
            _intervals(figures["checkpoints"]),
            *_last(figures["checkpoints"][-1:]),
            *_personas(figures["personas"]),
            *_hallucination(figures["hallucination"]),
            *(_across_runs(canaries) if canaries else []),
            *_disclosure(figures["disclosure"]),
            "### How to read it",
            "\n".join(f"- {line}" for line in _HOW_TO_READ),
        ]
    )


def _heatmap(figures: Mapping[str, Any]) -> str:
    points = figures["checkpoints"]
    head, tail = elide(len(points), _COLUMNS)
    kept: list[Mapping[str, Any] | None] = [points[i] for i in head]
    kept += [None, *(points[i] for i in tail)] if tail else []

    def row(name: str, cell: Any) -> list[str]:
        return [name, *("…" if point is None else cell(point) for point in kept)]

    rows = [
        row(name, lambda point, name=name: _number(point["categories"][name]["mean"], 1))
        for name in figures["categories"]
    ]
    rows += [
        row("**OVERALL**", lambda point: f"**{_number(point['overall']['mean'], 2)}**"),
        row("recall quality (0–5)", lambda point: _number(point["recall_quality"]["mean"], 2)),
        row("hallucination", lambda point: _percent(point["hallucination"]["rate"])),
        row("questions judged", lambda point: f"{point['judged']:,}"),
    ]
    table = _table(row("category", lambda point: str(point["label"])), rows)
    hidden = len(points) - len(head) - len(tail)
    if not hidden:
        return table
    return f"{table}\n\n{hidden} of {len(points)} checkpoints are left out here."


def _intervals(points: Sequence[Mapping[str, Any]]) -> str:
    head, tail = elide(len(points), _COLUMNS)
    shown = [points[i] for i in (*head, *tail)]
    failures = any(point["failed"] for point in shown)
    return _table(
        [
            "checkpoint", "days", "asked", "failed", "overall", *(["bounds"] if failures else []),
            "recall quality", "hallucination", "hit@10",
        ],
        (
            [
                point["label"],
                f"{point['ingested_days']:,}",
                f"{point['asked']:,}",
                _failures(point),
                _mean(point["overall"]),
                *([_bounds(point["overall"])] if failures else []),
                _mean(point["recall_quality"]),
                _rate(point["hallucination"]),
                _mean(point["retrieval"]["hit@10"], 3),
            ]
            for point in shown
        ),
    )  # fmt: skip


def _last(points: Sequence[Mapping[str, Any]]) -> list[str]:
    """The categories and difficulties at the end, where there is most to remember."""
    if not points:
        return []
    point = points[0]
    categories = [
        [name, _mean(cell), f"{cell['n']:,}", f"{cell['eligible']:,}"]
        for name, cell in point["categories"].items()
    ]
    levels = [
        [name, _mean(cell), f"{cell['n']:,}"]
        for name, cell in point["difficulties"].items()
        if cell["n"]
    ]
    sections = [
        f"### At the last checkpoint, {point['label']}",
        _table(["category", "mean composite", "n", "eligible"], categories),
    ]
    if levels:
        sections.append(_table(["difficulty", "mean composite", "n"], levels))
    return sections


def _personas(personas: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    if len(personas) < 2:
        return []
    rows = [
        [persona, _mean(own[0]["overall"]), _mean(own[-1]["overall"]), f"{own[-1]['judged']:,}"]
        for persona, own in personas.items()
        if own
    ]
    return ["### By persona", _table(["persona", "first overall", "last overall", "n"], rows)]


def _hallucination(views: Mapping[str, Any]) -> list[str]:
    found = views["against_recall"]
    sections = [
        "### Hallucination",
        _trend(views["trend"]),
        _table(
            ["category", "all checkpoints", "n", "first", "last", "rise in 100 days"],
            (_split_row(name, split) for name, split in views["by_category"].items()),
        ),
        _correlation(found),
    ]
    if len(views["by_persona"]) > 1:
        splits = (_split_row(name, split) for name, split in views["by_persona"].items())
        head = ["persona", "all checkpoints", "n", "first", "last", "rise in 100 days"]
        sections.append(_table(head, splits))
    if own := views["canaries"]:
        sections.append(
            f"{len(own):,} {'question' if len(own) == 1 else 'questions'} asked at several "
            "checkpoints brought an invention at each, and should be watched in every run:"
        )
        rows = ([q["question"], q["persona"], q["category"], q["judged"]] for q in own[:_LISTED])
        sections.append(_table(["question", "persona", "category", "times"], rows))
    return sections


def _across_runs(canaries: Mapping[str, Any]) -> list[str]:
    """Canary questions of several runs, the oldest first."""
    counts = canaries["counts"]
    names = {
        "always": "invents in every run",
        "newly": "invents in the last run, never before",
        "no_longer": "invented in every earlier run, no longer in the last",
        "unsteady": "sometimes",
        "never": "never",
    }
    rows = [
        [
            said,
            f"{counts[kind]:,}",
            ", ".join(q["question"] for q in canaries.get(kind, [])[:_LISTED])
            + (", …" if counts[kind] > _LISTED and kind in canaries else ""),
        ]
        for kind, said in names.items()
    ]
    alone = canaries["not_compared"]
    return [
        "### Canary questions across runs",
        f"Runs, the oldest first: {', '.join(canaries['runs'])}."
        + (
            f" {alone:,} questions were not judged in the last and an earlier one." if alone else ""
        ),
        _table(["what the question does", "questions", "which"], rows),
    ]


def _disclosure(told: Mapping[str, Any]) -> list[str]:
    if not told:
        return []
    rows = [
        [
            expected,
            f"{own['evaluations']:,}",
            f"{own['unique_pairs']:,}",
            _mean(own["score"]),
            _rate(own["hallucination"]),
        ]
        for expected, own in told.items()
    ]
    head = ["expected", "evaluations", "questions", "mean composite", "hallucination"]
    return ["### What boundary questions disclosed", _table(head, rows)]


def _trend(line: Mapping[str, Any]) -> str:
    if line["slope_per_day"] is None:
        return "The rate has no trend: that takes two checkpoints with judged answers."
    said = (
        f"A line through the rates starts at {_points(line['intercept'])} and changes by "
        f"{_points(line['slope_per_day'] * 100, signed=True)} in 100 days remembered"
    )
    if line["slope_per_day_ci95"] is None:
        return f"{said}; two checkpoints cannot say how sure that is."
    slope, start = line["slope_per_day_ci95"], line["intercept_ci95"]
    low, high = (_points(end * 100, signed=True) for end in slope)
    sure = "" if slope[0] > 0 or slope[1] < 0 else ", so no change is shown"
    return (
        f"{said} (95 % intervals {_points(start[0])} to {_points(start[1])}, and {low} to {high}; "
        f"{line['n']} checkpoints{sure}). Checkpoints share questions: the truth is less sure."
    )


def _correlation(found: Mapping[str, Any]) -> str:
    if found["correlation"] is None:
        return (
            "Recall against hallucination: no correlation, for there are too few checkpoints or "
            "one of the two never changes."
        )
    said = f"Recall against hallucination: correlation {found['correlation']:+.2f}"
    if interval := found["correlation_ci95"]:
        said += f" [{interval[0]:+.2f}, {interval[1]:+.2f}]"
    return f"{said} over {len(found['points'])} checkpoints; {_READINGS[found['reading']]}."


def _split_row(name: str, split: Mapping[str, Any]) -> list[str]:
    rates = [point["rate"] for point in split["checkpoints"] if point["n"]]
    slope = split["trend"]["slope_per_day"]
    return [
        name,
        _rate(split["overall"]),
        f"{split['overall']['n']:,}",
        _percent(rates[0] if rates else None),
        _percent(rates[-1] if rates else None),
        MISSING if slope is None else _points(slope * 100, signed=True),
    ]


def _failures(point: Mapping[str, Any]) -> str:
    if not point["failed"]:
        return "0"
    wrong = ("error", "timeout", "not-indexed", "unjudged")
    told = [f"{point['statuses'][s]} {s}" for s in wrong if point["statuses"].get(s)]
    return f"{point['failed']:,} ({', '.join(told)})"


def _mean(figure: Mapping[str, Any], digits: int = 2) -> str:
    if figure["mean"] is None:
        return MISSING
    low, high = figure["ci95"]
    return f"{figure['mean']:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def _rate(figure: Mapping[str, Any]) -> str:
    if figure["rate"] is None:
        return MISSING
    low, high = figure["ci95"]
    return f"{percent(figure['rate'])} [{percent(low)}, {percent(high)}]"


def _bounds(figure: Mapping[str, Any]) -> str:
    return "[{:.2f}, {:.2f}]".format(*figure["bounds"]) if "bounds" in figure else ""


def _points(share: float, *, signed: bool = False) -> str:
    return f"{100 * share:+.2f} points" if signed else f"{100 * share:.1f} %"


def _percent(rate: float | None) -> str:
    return MISSING if rate is None else percent(rate)


def _number(value: float | None, digits: int) -> str:
    return MISSING if value is None else f"{value:.{digits}f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(str(cell) for cell in row) + " |" for row in rows]
    return "\n".join(lines)
