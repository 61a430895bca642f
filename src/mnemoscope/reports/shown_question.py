"""One question of a run, and the list of those that a run missed, for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mnemoscope.analysis.question_details import (
    EvidenceMemory,
    JudgeMark,
    QuestionDetails,
    RecalledHit,
    SourceMemory,
)
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    WARNING,
    Block,
    Cell,
    Cells,
    Heading,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    decimal,
    numeric,
)

_TEXT, _MEMORY = 1_000, 160
"""Characters of a text and of a memory; `full` shows all of them."""
_HITS = 10
"""Hits that are shown, besides later ones that count; `full` shows all of them."""
_KINDS = {
    "right": "green",
    "carried": "green",
    "claimed": WARNING,
    "wrong": "red",
    "unlabelled": DIM,
}
_LEGEND = {
    "right": "right: evidence",
    "carried": "carried: its own text says what the evidence says",
    "claimed": "claimed: it names evidence and does not say it, so it does not count",
    "wrong": "wrong: no evidence",
    "unlabelled": "unlabelled: the question has no evidence",
}
_WORDS = TableColumn("text", fold=True)
_ID = TableColumn("memory", fold=True, max_width=18)


class MissedQuestion(Protocol):
    """What the list of missed questions shows of each."""

    @property
    def question(self) -> str: ...
    @property
    def category(self) -> str: ...
    @property
    def checkpoint(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def ranks(self) -> Sequence[int]: ...
    @property
    def status(self) -> str: ...
    @property
    def failure(self) -> str: ...


def question_blocks(
    details: QuestionDetails,
    system: str,
    names: Mapping[str, str],
    *,
    has_texts: bool,
    full: bool = False,
) -> list[Block]:
    """The question, its evidence, the hits, the answer and the verdicts."""
    blocks: list[Block] = [
        Heading(f"{details.id} · {system}", 1),
        _pairs("question", details.text, _about(details, names, full), full),
    ]
    if details.evidence:
        rows = [_evidence(one, full) for one in details.evidence]
        columns = [numeric("rank"), _ID, _WORDS]
        blocks.append(ReportTable(columns, rows, "Evidence"))
    if details.hits:
        has_scores = any(hit.score is not None for hit in details.hits)
        columns = [numeric("rank"), *([numeric("score")] if has_scores else [])]
        columns += [TableColumn("hit", wrap=False), _ID, _WORDS]
        rows = [
            _hit(one, has_scores, full)
            for one in details.hits
            if full or one.rank <= _HITS or one.credited or one.claimed
        ]
        more = f", {len(rows)} shown" if len(rows) < details.returned else ""
        of = f" of {details.pool:,} memories" if details.pool else ""
        title = f"Recalled: {details.returned:,}{of}{more}"
        kinds = dict.fromkeys(hit.kind for hit in details.hits)
        blocks.append(ReportTable(columns, rows, title))
        blocks.append(Paragraph("; ".join(_LEGEND[kind] for kind in kinds), DIM))
    if details.answer is not None or details.verdict is not None:
        text = details.answer.text if details.answer else ""
        blocks.append(_pairs("answer", text or MISSING, _answer(details, full), full))
    if not has_texts:
        blocks.append(
            Paragraph("the texts of memories are not shown: --data names the dataset's file", DIM)
        )
    return blocks


def missed_blocks(
    rows: Sequence[MissedQuestion],
    title: str,
    names: Mapping[str, str],
    *,
    withheld: str,
    limit: int,
) -> list[Block]:
    """The first `limit` of the missed questions of a run."""
    title += f", {limit:,} shown" if len(rows) > limit else ""
    has_checkpoints = any(row.checkpoint for row in rows)
    columns = [
        TableColumn("question", fold=True, max_width=20),
        *([TableColumn("at", wrap=False)] if has_checkpoints else []),
        TableColumn("category", fold=True, max_width=14),
        TableColumn("status", wrap=False),
        numeric("best rank"),
        _WORDS,
    ]
    shown: list[Cells] = [
        [
            Cell(row.question, "cyan"),
            *([row.checkpoint] if has_checkpoints else []),
            category_name(row.category, names),
            row.status,
            str(min(row.ranks)) if row.ranks else MISSING,
            Cell(_cut(row.text, _MEMORY), "", _reason(row)),
        ]
        for row in rows[:limit]
    ]
    if not shown:
        return [Heading(title, 1)]
    legend = "missed: no evidence among the first hits, unless another reason is below the text"
    told = [NoteList([f"how many answers are wrong is {withheld}"])] if withheld else []
    return [Heading(title, 1), ReportTable(columns, shown), Paragraph(legend, DIM), *told]


def _reason(row: MissedQuestion) -> str | None:
    """The reason below the text, if it is not the usual one."""
    if row.failure.startswith("no evidence"):
        return None
    return f"\n{_flat(_cut(row.failure, _MEMORY))}"


def _pairs(name: str, text: str, rows: list[Cells], full: bool) -> ReportTable:
    """A text, and below it names and values."""
    titles = [
        TableColumn(name, wrap=False),
        TableColumn(_cut(text, _TEXT, full), style="bold", fold=True),
    ]
    return ReportTable(titles, rows, frame="narrow")


def category_name(key: str, names: Mapping[str, str]) -> str:
    return f"{key} {names[key]}" if key in names else key or MISSING


def _about(details: QuestionDetails, names: Mapping[str, str], full: bool) -> list[Cells]:
    rows: list[Cells] = []
    if details.asked and details.asked.now:
        rows.append(["asked at", f"{details.asked.now:%Y-%m-%d %H:%M}"])
    if details.reference:
        rows.append(["reference", _cut(details.reference, _TEXT, full)])
    if details.expects != "answer":
        rows.append(["expected", details.expects])
    place = " · ".join(filter(None, [details.scenario, details.checkpoint]))
    rows.append(["category", category_name(details.category, names)])
    rows.append(["scenario", place])
    found = f"evidence {details.found} in the top {details.k}" if details.found else ""
    status = " · ".join(filter(None, [details.status, found, details.failure]))
    rows.append(["status", status or MISSING])
    if details.metrics:
        values = (f"{name} {decimal(value, 3)}" for name, value in details.metrics.items())
        rows.append(["metrics", " · ".join(values)])
    if details.error:
        rows.append(["error", Cell(_cut(details.error, _TEXT, full), "red")])
    return rows


def _evidence(one: EvidenceMemory, full: bool) -> Cells:
    rank = Cell(f"{one.rank}", "green") if one.rank else Cell(MISSING, "red")
    return [rank, one.id, _memory_text(one.memory, None, full)]


def _hit(one: RecalledHit, has_scores: bool, full: bool) -> Cells:
    score = [MISSING if one.score is None else f"{one.score:.4g}"] if has_scores else []
    kind = f"{one.kind}, again" if one.is_repeated else one.kind
    text = _memory_text(one.memory, one.text, full)
    named = one.credited if one.credited and one.credited != (one.id,) else one.claimed
    if named:
        text = f"[{', '.join(named)}] {text}"
    return [str(one.rank), *score, Cell(kind, _KINDS[one.kind]), one.id, text]


def _memory_text(memory: SourceMemory | None, own: str | None, full: bool) -> str:
    if own is not None:
        return _cut(own, _MEMORY, full)
    if memory is None:
        return MISSING
    before = " ".join(filter(None, [f"{memory.at:%Y-%m-%d}" if memory.at else "", memory.speaker]))
    text = _cut(memory.text, _MEMORY, full)
    return f"{before}: {text}" if before else text


def _answer(details: QuestionDetails, full: bool) -> list[Cells]:
    rows: list[Cells] = []
    if (answer := details.answer) is not None:
        rows.append(["status", answer.status])
        if answer.sources:
            rows.append(["made from", ", ".join(answer.sources)])
    if (verdict := details.verdict) is not None:
        if verdict.primary is not None:
            rows += _mark("first judge", verdict.primary, full)
            rows += _mark("appeal", verdict.final, full) if verdict.final else []
        elif verdict.final is not None:
            rows += _mark("verdict", verdict.final, full)
        if verdict.final is None:
            rows.append(["verdict", Cell(f"unjudged: {verdict.error}", WARNING)])
    return rows


def _mark(name: str, mark: JudgeMark, full: bool) -> list[Cells]:
    word, style = ("right", "green") if mark.passed else ("wrong", "red")
    parts = [f"{word} ({mark.value:.3g})", *(f"{key} {n}" for key, n in mark.rubric.items())]
    parts += [f"{judge} {value:.3g}" for judge, value in mark.votes.items()]
    rows: list[Cells] = [[name, Cell(" · ".join(parts), style)]]
    if mark.reasoning:
        rows.append(["why", _cut(mark.reasoning, _TEXT, full)])
    return rows


def _cut(text: str, most: int, full: bool = False) -> str:
    return text if full or len(text) <= most else f"{text[:most]}… ({len(text):,} characters)"


def _flat(text: str) -> str:
    return " ".join(text.split())
