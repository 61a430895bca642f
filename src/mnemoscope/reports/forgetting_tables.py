"""Forgetting: what the system knew before and after, and whether forgotten texts leak."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.forgetting import Forgetting
from mnemoscope.reports.run_view import Figures
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    SYSTEM,
    Block,
    Cell,
    Heading,
    Lines,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    document_table,
    numeric,
    span,
    system_cell,
    with_interval,
)

_SETS = {"forget": "to be forgotten", "retain": "to be kept"}
_WHEN = ("before", "after")


def report_sections(figures: Forgetting) -> list[Block]:
    """The sections of report.md on forgetting."""
    score: Figures | None = figures["score"]
    if score is None:
        return [Heading("Forgetting"), Paragraph(f"No score: {figures['why']}.")]
    rows = []
    for kind, name in _SETS.items():
        for when in _WHEN:
            own = score[when][kind]
            mean, share = own["mean_rouge_l"], own["share_above_half"]
            rows.append(
                [
                    name,
                    when,
                    f"{own['n']:,}",
                    with_interval(mean["mean"], mean["ci95"]) if mean else MISSING,
                    with_interval(share["share"], share["ci95"]) if share else MISSING,
                ]
            )
    head = ["questions", "when", "n", "mean ROUGE-L", "above 0.5"]
    return [Heading("Forgetting"), document_table(head, rows), NoteList(_changes(score))]


def systems_tables(systems: Sequence[tuple[str, Forgetting, bool]]) -> list[Block]:
    """For the terminal: both sets before and after, and the leaks, for all systems."""
    sets = (Lines(f"{kind}\n{when}") for kind in _SETS for when in _WHEN)
    columns = [SYSTEM, *map(numeric, (*sets, "leaked")), TableColumn("forgets", wrap=False)]
    frame = ReportTable(columns, title="Forgetting")
    notes = []
    for label, figures, is_baseline in systems:
        name = system_cell(label, is_baseline)
        score: Figures | None = figures["score"]
        if score is None:
            frame.rows.append([name, *[MISSING] * 6])
            notes.append(f"{label}: no score: {figures['why']}")
            continue
        cells = [_cell(score[when][kind]) for kind in _SETS for when in _WHEN]
        leak = score["leak"]
        verdict = "yes" if score["forget_falls"] else "cannot tell"
        verdict = "leaks" if leak["leaked"] else verdict
        leaked = Cell(f"{leak['leaked']:,}", "", f"\nof {leak['n']:,}")
        frame.rows.append([name, *cells, leaked, verdict])
    legend = "mean ROUGE-L with its 95 % interval, and the share above 0.5 as %"
    return [frame, Paragraph(legend, DIM), NoteList(notes)]


def _changes(score: Figures) -> list[str]:
    leak = score["leak"]
    lines = [
        f"forgotten texts are still retrieved for {leak['leaked']:,} of {leak['n']:,} questions"
        + (f", as a share {brackets(leak['ci95'])}" if leak["ci95"] else ""),
    ]
    for kind, name in _SETS.items():
        change = score["change"][kind]["mean_rouge_l"]
        if change is not None:
            lines.append(
                f"change of mean ROUGE-L, {name}: {change['mean']:+.4f} "
                f"{brackets(change['ci95'])} over {score['change'][kind]['n']:,} questions, paired"
            )
    verdicts = {True: "yes", False: "no", None: "not known"}
    return [
        *lines,
        f"the score of the texts to be forgotten falls: {verdicts[score['forget_falls']]}",
        f"the score of the texts to be kept stays within its interval: "
        f"{verdicts[score['retain_stays']]}",
    ]


def _cell(own: Figures) -> Cell:
    mean, share = own["mean_rouge_l"], own["share_above_half"]
    if mean is None:
        return Cell(MISSING, DIM)
    below = f"\n{span(mean['ci95'])}\n{share['share']:.0%}"
    return Cell(f"{mean['mean']:.3f}", "", below)
