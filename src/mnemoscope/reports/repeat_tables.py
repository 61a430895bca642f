"""Tables of declared repeats: combined figures, the sources of the variance, what to buy next."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.repeats import PARTS, BuyNext, RepeatedFigure, RepeatSet
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    Block,
    Cells,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    decimal,
    numeric,
    span,
)

_NAMES = {
    "repeat": "system",
    "conversation": "conversation",
    "question": "question",
    "repeat_by_conversation": "system × conv.",
    "residual": "system × question",
    "judge": "judge",
}
"""The components in the order in which they are shown."""
_LEGEND = (
    "Share of the variance of one value. system: what all questions of a run share; conversation, "
    "question: what stays the same in every run; system × …: what varies from run to run in one "
    "conversation or question; --: not to be told from another one."
)
_MORE = {
    "repeat": ("one more repeat", "repeats"),
    "conversation": ("one more conversation", "conversations"),
    "question": ("one more question in each conversation", "questions"),
}


def repeat_blocks(sets: Sequence[RepeatSet], *, level: int = 2) -> list[Block]:
    """The section on repeats of the terminal, summary.md and report.md."""
    blocks: list[Block] = []
    for one in sets:
        blocks.append(Heading(f"{one.label}: {one.of} repeats", level))
        if one.problems:
            blocks.append(Paragraph(f"No combined figure: all {one.of} declared repeats count."))
            blocks.append(NoteList([*one.problems, *one.notes]))
            continue
        if one.identical:
            blocks.append(Paragraph(_nothing_shown(one)))
        blocks.append(_figures(one))
        if one.identical:
            blocks += [NoteList(one.notes)] if one.notes else []
            continue
        if any(figure.variance for figure in one.figures.values()):
            blocks += [_variance(one), Paragraph(_LEGEND, DIM)]
        blocks += map(Paragraph, told(one))
        blocks += [NoteList(one.notes)] if one.notes else []
    return blocks


def told(one: RepeatSet) -> list[str]:
    """What to buy next, what is known of the judge, and the protocol's variance, in words."""
    lines = []
    name = PRIMARY if PRIMARY in one.figures else next(iter(one.figures), "")
    if name and one.figures[name].next:
        lines.append(what_to_buy(name, one.figures[name]))
    for metric, figure in one.figures.items():
        if figure.band is not None:
            verb = "within" if figure.spread <= figure.band + 1e-12 else "MORE than"
            lines.append(
                f"{metric}: the repeats differ by up to {figure.spread:.4f}, {verb} the "
                f"{figure.band:g} that the protocol accepts"
            )
    return lines


def what_to_buy(name: str, figure: RepeatedFigure) -> str:
    """Which purchase lowers the standard error most, as one paragraph."""
    gains = [f"{_MORE[one.what][0]} gives {one.se:.4f} ({_asked(one)})" for one in figure.next]
    cheapest = min(figure.next, key=lambda one: one.se_at_equal_cost)
    return (
        f"{name}: the standard error is {figure.se:.4f}. {gains[0].capitalize()}, the most for one "
        f"unit; {'; '.join(gains[1:])}. For the same number of questions asked, more "
        f"{_MORE[cheapest.what][1]} lower it most: a tenth more questions give "
        f"{cheapest.se_at_equal_cost:.4f}."
    )


def _asked(one: BuyNext) -> str:
    return f"{one.asked:,} more {'question' if one.asked == 1 else 'questions'} asked"


def _nothing_shown(one: RepeatSet) -> str:
    seeded = one.runs[0].seed is not None
    about = "although each had its own seed" if seeded else "and the system takes no seed"
    return (
        f"The journals of all {one.of} repeats are identical, {about}: it shows no randomness. The "
        "repeats say nothing that one run does not, and no variance from run to run is claimed. "
        "The intervals are those of one run."
    )


def _figures(one: RepeatSet) -> ReportTable:
    banded = any(figure.band is not None for figure in one.figures.values())
    columns = [
        TableColumn("metric"),
        *(numeric(title) for title in ("mean", "95 % interval", "repeats from–to", "system sd")),
        *([numeric("accepted")] if banded else []),
    ]
    rows: list[Cells] = []
    for name, figure in one.figures.items():
        row = [
            name,
            decimal(figure.mean),
            brackets(figure.ci95),
            span((min(figure.means), max(figure.means)), 4),
            decimal(figure.sd),
        ]
        rows.append([*row, *([decimal(figure.band)] if banded else [])])
    return ReportTable(columns, rows)


def _variance(one: RepeatSet) -> ReportTable:
    found = [figure.variance or {} for figure in one.figures.values()]
    judged = any(own.get("judge") is not None for own in found)
    parts = [part for part in _NAMES if part != "judge" or judged]
    rows: list[Cells] = []
    for name, own in zip(one.figures, found, strict=True):
        total = sum(own.get(part) or 0.0 for part in PARTS)
        shares = []
        for part in parts:
            value = own.get(part)
            shares.append(MISSING if value is None or not total else f"{value / total:.1%}")
        rows.append([name, *shares])
    return ReportTable([TableColumn("metric"), *(numeric(_NAMES[part]) for part in parts)], rows)
