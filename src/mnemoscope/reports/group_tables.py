"""Groups of systems that cannot be told apart: cells for tables, and all pairs of systems."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.analysis.system_groups import RankedSystem, SystemGroups
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    Block,
    Cell,
    Cells,
    Grid,
    GridRow,
    Heading,
    Markup,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    numeric,
)

_LISTED = 15
"""Pairs that the terminal lists; more are shown as a matrix."""
_NAMED = 5
"""Systems of the best group that the first sentence names."""
_WIDE = 30
_NAME = 18
"""The width of a name beside the matrix: twenty systems fit into eighty columns."""
_RANKS = TableColumn("ranks", wrap=False)
MARKDOWN_COLUMNS = (
    TableColumn("group", only="markdown"),
    TableColumn("ranks", only="markdown"),
)


def rank_text(ranks: Sequence[int]) -> str:
    """`2`, or `1–3` if several ranks are possible."""
    return f"{ranks[0]}" if ranks[0] == ranks[1] else f"{ranks[0]}–{ranks[1]}"


def group_and_ranks(one: RankedSystem | None) -> str:
    """`ab · 1–3` below the name of a system."""
    return f"{one.letters} · {rank_text(one.ranks)}" if one else MISSING


def markdown_cells(one: RankedSystem | None) -> list[str]:
    """The cells of `MARKDOWN_COLUMNS`."""
    return [one.letters, rank_text(one.ranks)] if one else [MISSING, MISSING]


def legend(groups: SystemGroups) -> str:
    """What letters, ranks and bold mean, in one line."""
    where = ""
    if groups.these_only:
        count = f"{groups.clusters} conversations" if groups.clusters > 1 else "conversation"
        where = f", on {'these' if groups.clusters > 1 else 'this'} {count} only"
    return (
        f"{groups.metric}: systems that share a letter cannot be told apart{where}; then the "
        "possible ranks; bold: the best group"
    )


def notes(groups: SystemGroups | str | None) -> list[str]:
    """The caveats of the groups, or why a table has none."""
    if isinstance(groups, str):
        return [f"no groups of systems: {groups}"]
    return list(groups.notes) if groups else []


def group_blocks(groups: SystemGroups) -> list[Block]:
    """The answer, all systems best first, then their pairs."""
    clusters = "one conversation" if groups.clusters == 1 else f"{groups.clusters:,} conversations"
    decided = sum(pair.is_decided for pair in groups.pairs)
    rows: list[Cells] = [
        [
            str(number),
            _label(one),
            _mean(one),
            one.letters,
            rank_text(one.ranks),
        ]
        for number, one in enumerate(groups.systems, 1)
    ]
    label = TableColumn("system", fold=True, max_width=_WIDE)
    columns = [numeric("#"), label, numeric(groups.metric), TableColumn("group"), _RANKS]
    blocks: list[Block] = [
        Heading(f"{len(rows)} systems on {groups.benchmark}", 1),
        Paragraph(answer(groups)),
        Paragraph(
            f"{groups.questions:,} questions that all systems measured, in {clusters}; {decided:,} "
            f"of {len(groups.pairs):,} pairs told apart, with one error rate of 5 % for all pairs"
        ),
        ReportTable(columns, rows),
        Paragraph(legend(groups), DIM),
        Heading("Pairs", only="markdown"),
        *_pairs(groups),
    ]
    if groups.apart:
        blocks.append(Paragraph(f"given the labels, not ranked: {'; '.join(groups.apart)}", DIM))
    return [*blocks, NoteList(groups.notes)] if groups.notes else blocks


def answer(groups: SystemGroups) -> str:
    """Which systems are best, in one sentence."""
    best = [one.system for one in groups.systems if one.is_best]
    where = " on these conversations" if groups.these_only else ""
    if len(best) == len(groups.systems):
        return f"No system can be told apart from the best by {groups.metric}{where}."
    more = f" and {len(best) - _NAMED} more" if len(best) > _NAMED else ""
    shown = "; ".join(best[:_NAMED]) + more
    apart = "" if len(best) == 1 else f" ({len(best)} that cannot be told apart from the first)"
    return f"Best of {len(groups.systems)} by {groups.metric}{where}: {shown}{apart}."


def _label(one: RankedSystem) -> Cell:
    return Cell(one.system, "bold cyan" if one.is_best else "cyan")


def _mean(one: RankedSystem) -> Cell:
    text = f"{one.mean:.4f}"
    if one.is_best:
        return Cell(text, "bold", markdown=Markup(f"**{text}**"))
    return Cell(text)


def _pairs(groups: SystemGroups) -> list[Block]:
    """A list of the pairs; in the terminal a matrix if they are many."""
    rows: list[Cells] = [
        [
            Cell(pair.first, "" if pair.is_decided else DIM),
            Cell(pair.second, "" if pair.is_decided else DIM),
            Cell(
                f"{pair.delta:+.4f}",
                "",
                f"\n{brackets(pair.ci95)}",
                f"{pair.delta:+.4f} {brackets(pair.ci95)}",
            ),
            Cell("better", "bold green") if pair.is_decided else Cell("cannot tell", "yellow"),
        ]
        for pair in groups.pairs
    ]
    label = TableColumn("", fold=True, max_width=_WIDE)
    columns = [
        label._replace(title="first"),
        label._replace(title="second"),
        numeric("first - second", markdown="first - second [simultaneous 95 % interval]"),
        TableColumn("the first is", wrap=False),
    ]
    if len(rows) <= _LISTED:
        return [ReportTable(columns, rows)]
    return [ReportTable(columns, rows, only="markdown"), *_matrix(groups)]


def _matrix(groups: SystemGroups) -> list[Block]:
    """Rows against columns: which system is better, for the terminal."""
    count = len(groups.systems)
    width = min(3, (80 - 2 - _NAME) // count)
    if width < 2 or (width == 2 and count > 99):
        text = f"{len(groups.pairs):,} pairs: --markdown FILE or --json shows them"
        return [Paragraph(text, DIM, only="terminal")]
    place = {one.system: number for number, one in enumerate(groups.systems)}
    signs = [[Cell("·", DIM)] * count for _ in range(count)]
    for pair in groups.pairs:
        if pair.is_decided:
            first, second = place[pair.first], place[pair.second]
            signs[first][second], signs[second][first] = Cell("+", "green"), Cell("−", "red")
    rows = [GridRow("", [Cell(f"{number}", DIM) for number in range(1, count + 1)])]
    for number, one in enumerate(groups.systems):
        signs[number][number] = Cell("")
        name = f"{number + 1:>2} {one.system}"
        short = name if len(name) < _NAME else f"{name[: _NAME - 2]}…"
        rows.append(GridRow(short, signs[number]))
    return [
        Grid(_NAME, width, rows),
        Paragraph(
            "+ the system of the row is better than that of the column, − worse, · cannot tell",
            DIM,
            only="terminal",
        ),
    ]
