"""The tables on answers from elsewhere: what was imported, their figures beside ours, agreement."""

from __future__ import annotations

from mnemoscope.analysis.answers import AnswerSheet, headline_of
from mnemoscope.analysis.foreign_verdicts import (
    AgreementTable,
    ImportCounts,
    ImportedAnswers,
    TheirFigureContent,
)
from mnemoscope.reports.tables import (
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
    with_interval,
)

_TITLE = "Answers from outside"
_KINDS = {
    "unknown": "answers are for questions that the dataset does not have",
    "repeated": "answers repeat an earlier answer to the same question; the first counts",
    "conflicting": "answers differ from an earlier answer to the same question; the first counts",
    "other_text": "answers are matched by id, although the text of the question differs",
}
_SHOWN = 5
"""Figures of the file that are shown, beside those not reproduced; imported.json has all."""


def report_sections(content: ImportedAnswers, answers: AnswerSheet | None) -> list[Block]:
    """The section of report.md."""
    return [
        Heading(_TITLE),
        Paragraph(origin(content)),
        NoteList(what_was_read(content)),
        beside(content, answers),
        *agreement_blocks(content, is_withheld=_is_withheld(answers)),
    ]


def origin(content: ImportedAnswers) -> str:
    about = ", ".join(f"{name} {value}" for name, value in content["about"].items())
    at = f", at {content['asked_at']}" if "asked_at" in content else ""
    return (
        f"The answers were read from {content['file']} ({content['format']}{at}, sha256 "
        f"{content['sha256'][:12]}…). No system was asked here."
        + (f" The file states: {about}." if about else "")
    )


def what_was_read(content: ImportedAnswers) -> list[str]:
    """What became of every answer in the file and of every question of the dataset."""
    counts: ImportCounts = content["counts"]
    found = [
        f"{counts['matched']:,} of {counts['in_file']:,} answers in the file are scored: "
        f"{counts['by_id']:,} matched by id, {counts['by_text']:,} by the question's text; "
        f"{counts['verdicts']:,} have a verdict of theirs"
    ]
    numbers = {
        "unknown": counts["unknown"],
        "repeated": counts["repeated"],
        "conflicting": counts["conflicting"],
        "other_text": counts["other_text"],
    }
    for kind, text in _KINDS.items():
        if numbers[kind]:
            first = counts["examples"].get(kind, ["?"])[0]
            found.append(f"{numbers[kind]:,} {text} (first: {first})")
    if counts["missing"]:
        found.append(
            f"{counts['missing']:,} questions of the dataset have no answer in the file: they are "
            "errors, not wrong answers, and are left out of the figures"
        )
    if counts["elsewhere"]:
        found.append(
            f"{counts['elsewhere']:,} answers at other checkpoints of the file are not scored "
            "here; --at chooses another checkpoint"
        )
    if hidden := len(content["figures"]) - len(_shown(content)):
        found.append(f"imported.json has {hidden:,} more figures of the file; none is contradicted")
    return found + content["notes"]


def _shown(content: ImportedAnswers) -> list[TheirFigureContent]:
    """The first figures, and every figure that the verdicts do not give."""
    return [
        one
        for position, one in enumerate(content["figures"])
        if position < _SHOWN or one["reproduced"] is False
    ]


def _is_withheld(answers: AnswerSheet | None) -> bool:
    return answers is not None and "withheld" in answers


def beside(content: ImportedAnswers, answers: AnswerSheet | None) -> ReportTable:
    """Their figures, as printed and recomputed, and ours."""
    rows: list[Cells] = [_their_row(one) for one in _shown(content)]
    if answers is not None and answers["judge"]:
        own = answers["figures"]
        parts = (
            ("questions with an answer", headline_of(own, "answerable")),
            ("all questions", headline_of(own, "all")),
        )
        rows += [
            [
                f"ours: {own['metric']}",
                MISSING,
                "withheld" if why else with_interval(estimate["mean"], estimate["ci95"]),
                f"{estimate['n']:,}",
                f"{name}, judge {answers['judge']}" + (f"; {why}" if why else ""),
            ]
            for name, estimate in parts
            for why in (estimate.get("withheld", ""),)
        ]
    columns = [
        TableColumn("figure"),
        numeric("printed"),
        numeric("recomputed"),
        numeric("n"),
        TableColumn("rule", fold=True),
    ]
    return ReportTable(columns, rows)


def _their_row(one: TheirFigureContent) -> Cells:
    differs = "" if one["reproduced"] is not False else " (NOT reproduced)"
    return (
        f"theirs: {one['name']}",
        decimal(one["printed"]),
        decimal(one["recomputed"]) + differs,
        f"{one['n']:,}",
        one["rule"],
    )


def agreement_blocks(content: ImportedAnswers, *, is_withheld: bool) -> list[Block]:
    """How far the verdicts agree. Kappa and the counts would give away a withheld share of ours."""
    found: list[Block] = []
    for name, text in (("agreement", "all"), ("unanimous", "their verdicts are unanimous")):
        table = content["agreement"] if name == "agreement" else content["unanimous"]
        if table is not None:
            found.append(Paragraph(agreement_sentence(table, text, is_withheld)))
    theirs, ours = content["theirs_here"], content["ours_here"]
    if found and is_withheld:
        told = "Kappa and the counts are withheld with our accuracy, which follows from them."
        found.append(Paragraph(told))
    elif found and theirs is not None and ours is not None:
        found.append(
            Paragraph(
                f"On the answers that both judged: {theirs:.4f} by theirs, {ours:.4f} by ours."
            )
        )
    return found


def agreement_sentence(table: AgreementTable, which: str, is_withheld: bool) -> str:
    share = table["agreement"]
    if is_withheld:
        rate = with_interval(share["rate"], share["ci95"], 3)
        return f"Agreement with their verdicts ({which}): {rate} of {table['n']:,}."
    kappa = MISSING if table["kappa"] is None else f"{table['kappa']:.3f}"
    ends = f" {brackets(table['kappa_ci95'], 3)}" if table["kappa_ci95"] else ""
    rate = with_interval(share["rate"], share["ci95"], 3)
    return (
        f"Agreement with their verdicts ({which}): {rate} of {table['n']:,}, kappa {kappa}{ends}; "
        f"both right {table['both_right']:,}, only theirs {table['only_theirs']:,}, only ours "
        f"{table['only_ours']:,}, both wrong {table['both_wrong']:,}."
    )
