"""What several systems find, question by question, for the terminal and Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mnemoscope.analysis.question_difficulty import (
    ItemDifficulty,
    LabelCandidate,
    QuestionAnalysis,
)
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    Block,
    Cell,
    Cells,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    numeric,
)

_SHOWN_TEXT = 160
"""Characters of a memory; sessions of a conversation are long."""
_NAMED = 4
"""Systems that a list names."""
_ID = TableColumn("question", fold=True, max_width=14)
_CATEGORY = TableColumn("category", fold=True, max_width=14)


def question_blocks(
    found: QuestionAnalysis,
    names: Mapping[str, str],
    memories: Mapping[str, str],
    limit: int,
) -> list[Block]:
    """Counts by category, then lists of at most `limit` questions each.

    `names` are names of categories, `memories` the texts of memories, where they are known.
    """
    none, every, split = found.none_find, found.all_find, found.separating
    votes = len(found.votes)
    blocks: list[Block] = [
        Heading(f"{found.questions:,} questions of {found.benchmark} by {found.metric}", 1),
        Paragraph(
            f"{len(found.systems)} systems, {votes} independent: all find {len(every):,}, none "
            f"finds {len(none):,}, {len(split):,} separate them."
        ),
        _counts(found, names),
    ]
    for title, items in (
        ("No system finds", none),
        ("Separates the systems", split),
        ("All systems find", every),
    ):
        blocks += _list(title, items, names, memories, limit, with_systems=items is split)
    if split and limit:
        blocks.append(
            Paragraph(
                "found: difficulty, the share of independent systems that find it; discr.: its "
                "correlation with the share of other questions found",
                DIM,
            )
        )
    blocks += _candidate_blocks(found, names, memories, limit)
    notes = list(found.notes)
    if not memories:
        notes.append("the texts of memories are not shown: --data names the dataset's file")
    return [*blocks, NoteList(notes)] if notes else blocks


def _counts(found: QuestionAnalysis, names: Mapping[str, str]) -> ReportTable:
    columns = [TableColumn("category", fold=True, max_width=24)]
    columns += [numeric(name) for name in ("n", "none", "some", "all", "mean found")]
    table = ReportTable(columns, title="questions found by no, some and all systems")
    categories = sorted({one.category for one in found.items})
    for category in [*categories, None] if len(categories) > 1 else [None]:
        own = [one for one in found.items if category in (None, one.category)]
        none, every = (sum(not one.found_by for one in own), sum(not one.missed_by for one in own))
        mean = sum(one.difficulty for one in own) / len(own)
        label = "all" if category is None else _category(category, names)
        if category in found.withheld or {one.category for one in own} <= found.withheld.keys():
            table.rows.append([label, f"{len(own):,}", "", "", "", "withheld"])
            continue
        counts = (len(own), none, len(own) - none - every, every)
        table.rows.append([label, *(f"{n:,}" for n in counts), f"{mean:.3f}"])
    return table


def _list(
    title: str,
    items: Sequence[ItemDifficulty],
    names: Mapping[str, str],
    memories: Mapping[str, str],
    limit: int,
    *,
    with_systems: bool,
) -> list[Block]:
    if not items or not limit:
        return []
    rows: list[Cells] = []
    for one in items[:limit]:
        details = [one.text, *_evidence(one, memories)]
        if with_systems:
            details += [f"found by {_named(one.found_by)}", f"not by {_named(one.missed_by)}"]
        measures = [f"{one.difficulty:.2f}"]
        measures += [MISSING if one.discrimination is None else f"{one.discrimination:+.2f}"]
        head = [one.question, _category(one.category, names)]
        rows.append([*head, *(measures if with_systems else []), _text(details)])
    columns = [_ID, _CATEGORY, TableColumn("text")]
    if with_systems:
        columns[2:2] = [numeric("found"), numeric("discr.")]
    more = f", {limit:,} shown" if len(items) > limit else ""
    shown = f"{title}: {len(items):,}{more}"
    return [Heading(shown, only="markdown"), ReportTable(columns, rows, shown)]


def _candidate_blocks(
    found: QuestionAnalysis, names: Mapping[str, str], memories: Mapping[str, str], limit: int
) -> list[Block]:
    about = (
        f"memories that at least {found.agree} of {len(found.votes)} independent systems have "
        f"{'as their first hit' if found.top == 1 else f'among their first {found.top} hits'} "
        "though they are not evidence"
    )
    chance = f"{found.expected_candidates:,.1f} would be expected of random rankings"
    title = f"Candidates for missing labels: {len(found.candidates):,}"
    rows: list[Cells] = [
        [
            one.question,
            _category(one.category, names),
            f"{one.votes}",
            f"{one.evidence_votes}",
            _text(_candidate(one, memories)),
        ]
        for one in found.candidates[:limit]
    ]
    columns = [_ID, _CATEGORY, numeric("votes"), numeric("evid."), TableColumn("text")]
    blocks: list[Block] = [Heading(title, only="markdown")]
    if rows:
        blocks.append(ReportTable(columns, rows, title))
    else:
        blocks.append(Paragraph(title, "bold", only="terminal"))
    legend = (
        f"{about}; {chance}; evid.: votes for the evidence. Systems that share words, models or "
        "parts agree without being right: read the texts before a label is changed"
    )
    return [*blocks, Paragraph(legend, DIM)]


def _candidate(one: LabelCandidate, memories: Mapping[str, str]) -> list[str]:
    text = memories.get(one.memory, "")
    named = f"candidate {one.memory}" + (f": {_cut(text)}" if text else "")
    return [one.text, named, *_evidence(one, memories)]


def _evidence(one: ItemDifficulty | LabelCandidate, memories: Mapping[str, str]) -> list[str]:
    return [
        f"evidence {id}" + (f": {_cut(memories[id])}" if id in memories else "")
        for id in one.evidence
    ]


def _text(details: Sequence[str]) -> Cell:
    below = "".join(f"\n{_one_line(line)}" for line in details[1:])
    return Cell(details[0], "", below, " · ".join(details))


def _named(systems: Sequence[str]) -> str:
    more = f" and {len(systems) - _NAMED} more" if len(systems) > _NAMED else ""
    return "; ".join(systems[:_NAMED]) + more


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _cut(text: str) -> str:
    flat = _one_line(text)
    return flat if len(flat) <= _SHOWN_TEXT else f"{flat[:_SHOWN_TEXT]}…"


def _category(key: str, names: Mapping[str, str]) -> str:
    return f"{key} {names[key]}" if key in names else key or MISSING
