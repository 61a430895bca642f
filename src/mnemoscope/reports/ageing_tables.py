"""Tables and curves of ageing: the cohort at each checkpoint, and why the overall score changes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mnemoscope.analysis.ageing import AgeingFigures, ChangePart, Measure, ScoreChange
from mnemoscope.analysis.question_cohort import QuestionCohort
from mnemoscope.reports.heatmap import elide
from mnemoscope.reports.run_view import CheckpointReport, RunView
from mnemoscope.reports.tables import (
    MISSING,
    SYSTEM,
    Block,
    Cell,
    ChartPoint,
    CurveChart,
    Heading,
    Markup,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    decimal,
    document_table,
    numeric,
    system_cell,
    with_interval,
)

PARTS = {
    "interference": "the same questions, more memories",
    "supersession": "answers that have expired, and their successors",
    "composition": "questions of one of the two checkpoints only",
}
_NO_QUESTIONS = "no questions"
_LISTED = 12
"""The most checkpoints that report.md lists."""
_HOW_TO_READ = (
    "The cohort is fixed: its questions are asked at every checkpoint from its start on, and their "
    "right answers stay the same. If its curve falls, the system loses what it knew.",
    "Interference, supersession and composition add up to the change of all questions. "
    "Interference is the change of the questions that both checkpoints ask.",
    "Supersession and composition are by how much replaced and other questions move the mean away "
    "from that of the same questions. They are positive if such questions are easier for the "
    "system, as new ones are for a system that forgets.",
)


class ShownAgeing(NamedTuple):
    """The figures of the measure that is shown."""

    measure: Measure
    figures: AgeingFigures

    @property
    def digits(self) -> int:
        return 2 if self.measure == "composite" else 3

    @property
    def change(self) -> ScoreChange:
        """Between the start of the cohort and the last checkpoint."""
        return self.figures["changes"][-1]


def shown_ageing(longitudinal: CheckpointReport | None, measure: str = "") -> ShownAgeing | None:
    """The ageing of a measure, by default of the composite if answers were judged.

    None if the run is of an older version, or asks at fewer than two checkpoints.
    """
    found = longitudinal.get("ageing", {}) if longitudinal else {}
    return next(
        (ShownAgeing(name, own) for name, own in found.items() if measure in ("", name)), None
    )


def cohort_means(cohort: QuestionCohort | None) -> Mapping[str, float | None]:
    """The mean of the cohort by label of the checkpoint."""
    return {point["label"]: point["score"]["mean"] for point in cohort["points"]} if cohort else {}


def cohort_sentence(aged: ShownAgeing) -> str:
    """What the cohort shows, in one sentence; empty without a cohort."""
    cohort = aged.figures["cohort"]
    if cohort is None or not cohort["judged"]:
        return ""
    first, last = cohort["points"][0], cohort["points"][-1]
    begun, ended, digits = first["score"]["mean"], last["score"]["mean"], aged.digits
    return (
        f"{_questions(cohort['judged'])} asked at every checkpoint: {aged.measure} "
        f"{decimal(begun, digits)} at {first['label']}, {decimal(ended, digits)} at "
        f"{last['label']}, a change of {_signed(last['change']['mean'], digits)} "
        f"{brackets(last['change']['ci95'], digits)}."
    )


def ageing_overview(views: Sequence[RunView]) -> list[Block]:
    """All systems: the cohort at its ends, and the parts of the change of all questions."""
    aged = [(view, own) for view in views if (own := shown_ageing(view.longitudinal))]
    if not aged:
        return []
    _, first = aged[0]
    ends = f"{first.change['first']} to {first.change['last']}"
    columns = [SYSTEM, TableColumn("cohort", right=True, wrap=False)]
    columns += [numeric(name) for name in ("change of all", *PARTS)]
    table = ReportTable(columns)
    for view, own in aged:
        means = list(cohort_means(own.figures["cohort"]).values())
        kept = f"{decimal(means[0], 2)} → {decimal(means[-1], 2)}" if means else MISSING
        table.rows.append(
            [
                system_cell(view.label, view.is_baseline),
                kept,
                *(_part_cell(own.change[name]) for name in ("total", *PARTS)),  # type: ignore[literal-required]
            ]
        )
    return [
        Heading(f"Ageing, {ends}"),
        Paragraph(_about_cohort(first)),
        table,
        *([NoteList(notes)] if (notes := _oracle_notes(aged)) else []),
    ]


def ageing_sections(
    longitudinal: CheckpointReport, *, picture: str = "", is_wide: bool = False
) -> list[Block]:
    """The section of a report: curve, cohort by checkpoint, parts of the change."""
    if (aged := shown_ageing(longitudinal)) is None:
        return []
    cohort = aged.figures["cohort"]
    blocks: list[Block] = [Heading("Ageing"), Paragraph(_about_cohort(aged))]
    if picture:
        blocks.append(Paragraph(Markup(f"![{aged.measure} of the cohort]({picture})")))
    if cohort is not None:
        points = longitudinal["checkpoints"]
        if is_wide:
            blocks.append(_chart(aged, cohort, longitudinal))
        head, tail = elide(len(points), len(points) if is_wide else _LISTED)
        blocks.append(_by_checkpoint(aged, cohort, longitudinal, [*head, *tail]))
    blocks.append(Heading(f"Why the {aged.measure} of all questions changes", 3))
    blocks += [_split(change, aged.digits) for change in aged.figures["changes"]]
    return [*blocks, NoteList(_HOW_TO_READ)]


def _about_cohort(aged: ShownAgeing) -> str:
    cohort = aged.figures["cohort"]
    if cohort is None:
        return (
            "No question was asked at every checkpoint, so no curve is comparable: with --sample, "
            "--cohort N asks N questions at each."
        )
    text = (
        f"The cohort: {_questions(cohort['questions'])} asked at every checkpoint from "
        f"{cohort['start']} to {aged.change['last']}. Mean {aged.measure}, 95 % intervals."
    )
    if cohort["start"] != aged.figures["changes"][0]["first"]:
        text += (
            " It starts there because earlier checkpoints share too few questions with all later "
            "ones; with --sample, --cohort N asks N questions at each."
        )
    if lost := cohort["questions"] - cohort["judged"]:
        text += f" {lost:,} failed at one of them and are left out; bounds show what they may hide."
    return text


def _questions(number: int) -> str:
    return "1 question is" if number == 1 else f"{number:,} questions are"


def _by_checkpoint(
    aged: ShownAgeing,
    cohort: QuestionCohort,
    longitudinal: CheckpointReport,
    kept: Sequence[int],
) -> ReportTable:
    own = {point["label"]: point for point in cohort["points"]}
    has_bounds = any("bounds" in point["score"] for point in cohort["points"])
    head = ["checkpoint", "days", "cohort", *(["bounds"] if has_bounds else [])]
    rows = []
    for point in (longitudinal["checkpoints"][place] for place in kept):
        every = _all_questions(aged, longitudinal).get(point["label"])
        row = [point["label"], f"{point['ingested_days']:,}"]
        if found := own.get(point["label"]):
            score, change = found["score"], found["change"]
            row.append(with_interval(score["mean"], score["ci95"], aged.digits))
            row += [brackets(score.get("bounds"), aged.digits)] if has_bounds else []
            row.append(f"{_signed(change['mean'], aged.digits)} {brackets(change['ci95'], 2)}")
        else:
            row += [MISSING] * (3 if has_bounds else 2)
        rows.append([*row, decimal(every, aged.digits), f"{point['asked']:,}"])
    since = f"change since {cohort['start']}"
    return document_table([*head, since, "all questions", "asked"], rows)


def _all_questions(aged: ShownAgeing, longitudinal: CheckpointReport) -> dict[str, float | None]:
    return {
        point["label"]: point["overall"]["mean"]
        if aged.measure == "composite"
        else point["retrieval"]["hit@10"]["mean"]
        for point in longitudinal["checkpoints"]
    }


def _chart(aged: ShownAgeing, cohort: QuestionCohort, longitudinal: CheckpointReport) -> CurveChart:
    days = {point["label"]: point["ingested_days"] for point in longitudinal["checkpoints"]}
    points = [
        ChartPoint(point["ingested_days"], point["label"], mean, point["score"]["ci95"])
        for point in cohort["points"]
        if (mean := point["score"]["mean"]) is not None
    ]
    others = [
        ChartPoint(days[label], label, mean)
        for label, mean in _all_questions(aged, longitudinal).items()
        if mean is not None
    ]
    name = f"{aged.measure} of the same {cohort['judged']:,} questions"
    best = aged.figures["best"]
    return CurveChart(name, points, best, "all questions", others)


def _split(change: ScoreChange, digits: int) -> ReportTable:
    first, last = change["first"], change["last"]
    rows = []
    for name, what in {"total": "all questions", **PARTS}.items():
        part: ChangePart = change[name]  # type: ignore[literal-required]
        row = [
            Markup(f"**{name}**") if name == "total" else name,
            _with_sign(part, digits),
            f"{part['first']:,}",
            f"{part['last']:,}",
        ]
        if "bounds" in change["total"]:
            row.append(brackets(part.get("bounds"), digits))
        rows.append([*row, what])
    bounds = ["bounds"] if "bounds" in change["total"] else []
    head = [f"{first} to {last}", "change", f"questions at {first}", f"at {last}", *bounds, "of"]
    return document_table(head, rows)


def _with_sign(part: ChangePart, digits: int) -> str:
    after = brackets(part["ci95"], digits) or ("" if _is_asked(part) else f"({_NO_QUESTIONS})")
    return f"{_signed(part['change'], digits)} {after}".strip()


def _is_asked(part: ChangePart) -> bool:
    return bool(part["first"] or part["last"])


def _part_cell(part: ChangePart) -> Cell:
    """Two digits, so that the table fits into 80 columns."""
    below = "" if _is_asked(part) else f"\n{_NO_QUESTIONS}"
    if part["ci95"] is not None:
        below = "\n" + ", ".join(decimal(end, 2) for end in part["ci95"])
    return Cell(_signed(part["change"], 2), below=below, markdown=_with_sign(part, 2))


def _signed(value: float | None, digits: int) -> str:
    if value is None:
        return MISSING
    text = f"{value:+.{digits}f}"
    return text[1:] if float(text) == 0 else text


def _oracle_notes(aged: Sequence[tuple[RunView, ShownAgeing]]) -> list[str]:
    for view, own in aged:
        change = own.change["interference"]["change"]
        if view.label == "oracle" and change:
            return [
                f"oracle always has the evidence, and its cohort changes by "
                f"{_signed(change, own.digits)}: that much is the reader's or the judge's"
            ]
    return []
