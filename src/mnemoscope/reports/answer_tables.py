"""Answers: sections of report.md, and tables of several systems for the terminal.

Each figure has its interval and its number of questions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from shlex import quote
from typing import Literal, NamedTuple

from mnemoscope.analysis.answers import AnswerFigures, headline_of
from mnemoscope.analysis.costs import Costs
from mnemoscope.analysis.diagnosis import Diagnosis
from mnemoscope.analysis.question_records import BEST_SCORE
from mnemoscope.reports.run_view import Figures
from mnemoscope.reports.tables import (
    DIM,
    MISSING,
    SYSTEM,
    Block,
    Cell,
    Heading,
    Lines,
    Markup,
    NoteList,
    Paragraph,
    ReportTable,
    TableColumn,
    brackets,
    decimal,
    document_table,
    interval_cell,
    numeric,
    span,
    system_cell,
    with_interval,
)

CategoryName = Callable[[str], str]

_WORDS_ONLY = ("f1", "rouge-l", "exact", "likelihood", "ledger")
"""Judges that compare words or records: they cannot pass an exam on meaning."""
_WIDTH, _CATEGORY_WIDTH, _COLUMN_WIDTH = 80, 24, 10
_RATES = {
    "correct_abstain": ("correct abstain", "abstained on questions without an answer"),
    "confabulated": ("confabulated", "answered questions without an answer"),
    "false_abstain": ("false abstain", "abstained on questions with an answer"),
}
_PARTS: dict[Literal["answerable", "all"], str] = {
    "answerable": "questions with an answer",
    "all": "all questions",
}
WITHHELD = "withheld"
_LEGEND = (
    "below each figure: 95 % interval and number of questions; all asked: includes questions "
    "without an answer"
)
_COUNTED = ("requests", "cached", "retries", "input_tokens", "output_tokens")
_PAID = ("cost", "paid")
_NOTHING: Figures = {"mean": None, "n": 0, "ci95": None}


class SystemAnswers(NamedTuple):
    """One system's answers."""

    label: str
    figures: AnswerFigures
    is_baseline: bool = False
    accounts: Costs | None = None


def report_sections(
    figures: AnswerFigures,
    diagnosis: Diagnosis | None,
    accounts: Costs | None,
    category_name: CategoryName,
    exam: Figures | None = None,
) -> list[Block]:
    """The sections of report.md on answers.

    `exam` is the judge's exam result, None if it took no exam; or each judge's spec with its own.
    """
    exams = [Paragraph(exam_line(own, spec)) for spec, own in _exams(exam).items()]
    judges = [*exams, *_judges(figures)]
    abstention: Figures = figures["abstention"]
    rates = [[name, *_row(abstention[key])[:3], meaning] for key, (name, meaning) in _RATES.items()]
    return [
        Heading("Answers"),
        *_overall(figures),
        *_by_category(figures, category_name),
        Heading("Abstention"),
        document_table(["rate", "value", "95 % interval", "n", "meaning"], rates),
        *([Heading("Judges"), *judges] if judges else []),
        *failure_sections(diagnosis, accounts, category_name),
    ]


def failure_sections(
    diagnosis: Diagnosis | None, accounts: Costs | None, category_name: CategoryName
) -> list[Block]:
    """Why answers failed, and the cost; for runs whose answers are shown elsewhere."""
    return [
        *(_diagnosis(diagnosis, category_name) if diagnosis else []),
        *(_money(accounts) if accounts else []),
    ]


def systems_tables(
    systems: Sequence[SystemAnswers],
    category_name: CategoryName | None,
    exam: Figures | None = None,
) -> list[Block]:
    """For the terminal: systems down, then abstention, categories (if named) and caveats.

    Each measure of answers has separate tables.
    """
    parts: list[Block] = []
    for metric in dict.fromkeys(one.figures["metric"] for one in systems):
        own = [one for one in systems if one.figures["metric"] == metric]
        parts += [*_headlines(own), *_rates(own)]
        if category_name is not None:
            for part in _PARTS:
                parts += _categories(own, part, category_name)
    parts += [Paragraph(_LEGEND, DIM), NoteList(notes(systems))]
    for spec, own_exam in _exams(exam).items():
        line = exam_line(own_exam, spec)
        passed = own_exam is not None and own_exam["passed"]
        parts.append(Paragraph(line, DIM) if passed else NoteList([line]))
    return parts


def notes(systems: Iterable[SystemAnswers]) -> list[str]:
    """Questions without a grade and their effect, panels and appeals of each system."""
    lines = []
    systems = list(systems)
    concerned: dict[str, list[str]] = {}
    for one in systems:
        if withheld := one.figures["all"].get("withheld"):
            concerned.setdefault(f"{_metric(one.figures)} {withheld}", []).append(one.label)
    for told, labels in concerned.items():
        named = "" if len(labels) == len(systems) else f"{', '.join(labels)}: "
        lines.append(f"{named}{told}; --raw shows the verdicts")
    for one in systems:
        counts, everything = one.figures["counts"], one.figures["all"]
        panel = one.figures["panel"]
        if panel and not any("withheld" in own for own in panel["judges"].values()):
            votes = ", ".join(f"{spec} {own['mean']:.3f}" for spec, own in panel["judges"].items())
            lines.append(f"{one.label}: each judge alone: {votes}")
        if appeals := one.figures["appeals"]:
            lines.append(
                f"{one.label}: {appeals['heard']:,} appeals, {appeals['rescued']:,} of them turned "
                f"a failure into a pass; without appeals {appeals['primary']['mean']:.3f}"
            )
        if cut := counts.get("truncated"):
            lines.append(
                f"{one.label}: {cut:,} of {counts['asked']:,} answers were cut at the limit of "
                "tokens and judged as they are; max_tokens raises it"
            )
        if not everything.get("missing"):
            continue
        why = {**counts["failed"], "unjudged": counts["unjudged"], "open": counts["unanswered"]}
        reasons = ", ".join(f"{number:,} {status}" for status, number in why.items() if number)
        as_wrong = ""
        if bounds := everything.get("bounds"):
            name = _metric(one.figures)
            as_wrong = f"; counted as wrong, {name} is {bounds[0]:.3f}, as right {bounds[1]:.3f}"
        lines.append(
            f"{one.label}: {everything['missing']:,} of {counts['asked']:,} questions have no "
            f"grade ({reasons}){as_wrong}"
        )
    return lines


def exam_line(exam: Figures | None, spec: str = "") -> str:
    """A judge's error rates, and whether it passed its exam."""
    judge = f"The judge {spec}" if spec else "The judge"
    if exam is not None and "cells" not in exam:
        exam = None  # the smoke test of an older version
    if exam is None and spec.partition(",")[0] in _WORDS_ONLY:
        return (
            f"The judge {spec} compares words or records, not meaning: the run cannot be VERIFIED."
        )
    if exam is None:
        return (
            f"{judge} has not taken an exam (mnemoscope judges exam {quote(spec or 'SPEC')} "
            "--benchmark NAME): its "
            "error rate is not known, and the run cannot be VERIFIED."
        )
    wrong, right = (_of(exam[kind]) for kind in ("false_accept", "false_reject"))
    erred = f"accepted wrong answers: {wrong}; rejected right ones: {right}"
    if exam["passed"]:
        return f"{judge} passed its exam on {exam['benchmark']} ({erred})."
    why = next(iter(exam["reasons"]), "")
    return (
        f"{judge} failed its exam on {exam['benchmark']} ({erred}): {why}; the run cannot be "
        "VERIFIED."
    )


def _exams(exam: Figures | None) -> Mapping[str, Figures | None]:
    """Each judge's spec with its exam; an empty spec for a single exam."""
    return {"": exam} if exam is None or "passed" in exam else exam


def _of(share: Figures) -> str:
    count, of = share["count"], share["of"]
    if not of:
        return "none asked"
    return f"{share['rate']:.3f} {brackets(share['ci95'])}, {count} of {of}"


# Sections of report.md


def _overall(figures: Figures) -> list[Block]:
    counts = figures["counts"]
    failed = ", ".join(f"{number:,} {status}" for status, number in counts["failed"].items())
    open_ = f", {counts['unanswered']:,} not answered yet" if counts["unanswered"] else ""
    coverage = counts["coverage"]
    cut = f"{counts['truncated']:,} cut at the limit of tokens, " if "truncated" in counts else ""
    caption = (
        f"{counts['asked']:,} questions asked: {counts['answered']:,} answered, {cut}"
        f"{counts['abstained']:,} abstained, {counts['empty']:,} empty, "
        f"{sum(counts['failed'].values()):,} failed{failed and f' ({failed})'}{open_}; "
        f"{counts['judged']:,} judged, {counts['unjudged']:,} unjudged"
        + (f" (coverage {coverage:.1%})." if coverage is not None else ".")
    )
    name_of = _metric(figures)
    rows = []
    if fixed := figures.get("corrected"):
        rows = [
            [f"{name_of}, corrected for the judge's errors, {name}", *_row(fixed[part])]
            for part, name in _PARTS.items()
            if part in fixed
        ]
        name_of = "accepted by the judge"
    rows += [[f"{name_of}, {name}", *_row(figures[part])] for part, name in _PARTS.items()]
    if why := figures["all"].get("withheld"):
        caption += f" {_metric(figures)} {why}; answers.json has the verdicts under raw."
    if "composite" in figures:
        rows.append(["composite, 0 to 6", *_row(figures["composite"], best=BEST_SCORE)])
        rows.append(["hallucination rate", *_row(figures["hallucination"])])
    length, against = figures["length"], figures["length"]["against_grade"]
    median = "" if length["median"] is None else f"median {length['median']:g}"
    rows.append(["answer length (words)", *_row(length, digits=1)[:3], median])
    rows.append(
        ["correlation of length and grade (Spearman)", *_row({**against, "mean": against["rho"]})]
    )
    head = ["measure", "value", "95 % interval", "n", "bounds: ungraded wrong, right"]
    return [Paragraph(caption), document_table(head, rows)]


def _by_category(figures: Figures, category_name: CategoryName) -> list[Block]:
    if not figures["by_category"]:
        return []
    head = ["category"]
    for name in _PARTS.values():
        head += [f"{_metric(figures)}, {name}", "n"]
    rows = [
        [
            category_name(key),
            *(t for part in _PARTS for t in (_with_bar(own[part]), f"{own[part]['n']:,}")),
        ]
        for key, own in figures["by_category"].items()
    ]
    return [Heading("By category"), document_table(head, rows)]


def _judges(figures: Figures) -> list[Block]:
    sections: list[Block] = []
    if panel := figures["panel"]:
        rows = [[f"mean of {judge}", *_row(own)[:3]] for judge, own in panel["judges"].items()]
        rows.append(["all judges agree", *_row(panel["agreement"])[:3]])
        rows += [
            [f"kappa of {pair}", *_row({**own, "mean": own["kappa"]})[:3]]
            for pair, own in panel.get("kappa", {}).items()
        ]
        caption = (
            f"A panel of {len(panel['judges'])} judges: the means of the mildest and the strictest "
            f"differ by {panel['span']:.4f}."
        )
        head = ["judge", "value", "95 % interval", "n"]
        sections += [Paragraph(caption), document_table(head, rows)]
    if appeals := figures["appeals"]:
        rows = [["first judge", *_row(appeals["primary"])[:3]]]
        rows.append(["after appeals", *_row(appeals["final"])[:3]])
        caption = (
            f"Appeals: {appeals['heard']:,}, of which {appeals['changed']:,} changed the grade and "
            f"{appeals['rescued']:,} turned a failure into a pass."
        )
        head = [_metric(figures), "value", "95 % interval", "n"]
        sections += [Paragraph(caption), document_table(head, rows)]
    return sections


def _diagnosis(diagnosis: Figures, category_name: CategoryName) -> list[Block]:
    failures = diagnosis["failures"]
    caption = f"{failures:,} of {diagnosis['judged']:,} judged answers failed."
    if not failures:
        return [Heading("Diagnosis"), Paragraph(caption)]
    complete = diagnosis["in_hand"]
    share = f"{_short(complete)} of those with an answer"
    caption += f" In {complete['count']:,} of them ({share}) the reader had all the evidence."
    found = {kind: own for kind, own in diagnosis["classes"].items() if own["count"]}
    rows = [
        [kind, f"{own['count']:,}", _with_bar(own), ", ".join(own["examples"])]
        for kind, own in found.items()
    ]
    crossed = [
        [category_name(key), *(f"{own.get(kind, 0):,}" for kind in found)]
        for key, own in diagnosis["by_category"].items()
    ]
    return [
        Heading("Diagnosis"),
        Paragraph(caption),
        document_table(["failure", "n", "share", "examples"], rows),
        *([document_table(["category", *found], crossed)] if crossed else []),
    ]


def _money(accounts: Figures) -> list[Block]:
    head = ["phase", "requests", "cached", "retries", "tokens in", "tokens out", "cost", "paid"]
    lines = {**accounts["phases"]}
    lines |= {Markup(f"*{side} side*"): own for side, own in accounts["sides"].items()}
    lines[Markup("**total**")] = accounts["total"]
    rows = [
        [name, *(f"{own[key]:,}" for key in _COUNTED), *(_dollars(own[key]) for key in _PAID)]
        for name, own in lines.items()
    ]
    if per := accounts["per_question"]:
        numbers = (f"{per[key]:,.2f}" for key in _COUNTED)
        rows.append([Markup("*per question*"), *numbers, *(_dollars(per[key]) for key in _PAID)])
    caption = (
        f"Over {accounts['questions']:,} questions; in US dollars. Cost: of all replies. Paid: of "
        "the replies that did not come from the cache."
    )
    if accounts["estimated"]:
        caption += " Some servers do not report token counts: tokens and cost are partly estimated."
    return [Heading("Tokens and cost"), Paragraph(caption), document_table(head, rows)]


def _row(figure: Figures, digits: int = 4, best: float = 1.0) -> list[str | Cell]:
    """Value, interval, n and bounds of a mean or a rate, whose best value is `best`."""
    interval = brackets(figure["ci95"], digits) or MISSING
    return [
        WITHHELD if "withheld" in figure else decimal(_value(figure), digits),
        interval_cell(interval, _value(figure), figure["ci95"], best=best),
        f"{figure['n']:,}",
        brackets(figure.get("bounds"), digits),
    ]


def _short(figure: Figures) -> str:
    if "withheld" in figure:
        return WITHHELD
    return with_interval(_value(figure), figure["ci95"], unknown="[interval unknown]")


def _with_bar(figure: Figures) -> Cell:
    return interval_cell(_short(figure), _value(figure), figure["ci95"])


def _value(figure: Figures) -> float | None:
    value: float | None = figure["mean"] if "mean" in figure else figure["rate"]
    return value


def _dollars(value: float) -> str:
    digits = 2 if not value or value >= 1 else 4 if value >= 0.01 else 6
    return f"${value:,.{digits}f}"


def _metric(figures: Figures) -> str:
    """The measure's name; a composite is shown as a share of 6."""
    name: str = figures["metric"]
    return "composite/6" if name == "composite" else name


# Tables of several systems


def _headlines(systems: Sequence[SystemAnswers]) -> list[Block]:
    rubric = any("hallucination" in one.figures for one in systems)
    paid = any(_asked_models(one.accounts) for one in systems)
    metric = _metric(systems[0].figures)
    titles = (f"{metric}\nanswerable", f"{metric}\nall asked")
    columns = [SYSTEM, *(numeric(Lines(title)) for title in titles)]
    columns += [numeric(Lines("halluci-\nnation"))] if rubric else []
    columns.append(numeric(Lines("answer\nwords")))
    columns += [numeric(Lines("cost\ntokens"))] if paid else []
    frame = ReportTable(columns)
    for one in systems:
        figures: Figures = one.figures
        cells = [_with_accepted(one.figures, part) for part in _PARTS]
        if rubric:
            cells.append(_cell(figures.get("hallucination", _NOTHING)))
        cells.append(_cell(figures["length"], digits=1))
        if paid:
            cells.append(_cost(one.accounts))
        frame.rows.append([system_cell(one.label, one.is_baseline), *cells])
    return [Heading("Answers"), frame]


def _rates(systems: Sequence[SystemAnswers]) -> list[Block]:
    """The three rates, if there are abstentions or questions without an answer."""
    rates: list[Figures] = [one.figures["abstention"] for one in systems]
    if not any(own["correct_abstain"]["n"] or own["false_abstain"]["count"] for own in rates):
        return []
    frame = ReportTable([SYSTEM, *(numeric(name) for name, _ in _RATES.values())])
    for one, own in zip(systems, rates, strict=True):
        cells = (_cell(own[key]) for key in _RATES)
        frame.rows.append([system_cell(one.label, one.is_baseline), *cells])
    return [Heading("Abstention"), frame]


def _categories(
    systems: Sequence[SystemAnswers],
    part: Literal["answerable", "all"],
    category_name: CategoryName,
) -> list[Block]:
    """Categories down, systems across; `all` only shows the categories whose figures differ."""
    kinds = sorted({key for one in systems for key in one.figures["by_category"]})
    rows: dict[str, list[Figures]] = {}
    for key in kinds:
        found: list[Figures] = [one.figures["by_category"].get(key) or {} for one in systems]
        own = [figures.get(part, _NOTHING) for figures in found]
        same = [figures.get("answerable", _NOTHING) for figures in found]
        if any(figure["n"] for figure in own) and (part == "answerable" or own != same):
            rows[key] = own
    if len(kinds) < 2 or not rows:
        return []
    tables: list[Block] = []
    # Each column has a space on both sides; systems are spread evenly over the tables.
    names = min(_CATEGORY_WIDTH, max(len(category_name(key)) for key in rows)) + 2
    needed = ceil(len(systems) / ((_WIDTH - names) // (_COLUMN_WIDTH + 2)))
    together = ceil(len(systems) / needed)
    for start in range(0, len(systems), together):
        abreast = slice(start, start + together)
        frame = ReportTable([TableColumn("category", fold=True, max_width=_CATEGORY_WIDTH)])
        for one in systems[abreast]:
            style = system_cell(one.label, one.is_baseline).style
            column = TableColumn(one.label, style, right=True, fold=True, max_width=_COLUMN_WIDTH)
            frame.columns.append(column)
        for key, own in rows.items():
            pairs = list(zip(own, systems, strict=True))
            means = [figure["mean"] for figure, one in pairs if not one.is_baseline]
            best = max((mean for mean in means if mean is not None), default=None)
            cells = [
                _cell(figure, bold=not one.is_baseline and figure["mean"] == best)
                for figure, one in pairs[abreast]
            ]
            frame.rows.append([category_name(key), *cells])
        title = f"{_metric(systems[0].figures)} by category, {_PARTS[part]}"
        tables += [Heading(title), frame]
    return tables


def _cell(figure: Figures, *, digits: int = 3, bold: bool = False) -> Cell:
    """The figure, and below it its interval and its number of questions."""
    value = _value(figure)
    if value is None:
        return Cell(WITHHELD if "withheld" in figure else MISSING, DIM)
    interval = span(figure["ci95"], digits) if figure["ci95"] else "all equal"
    below = f"\n{interval}\nn {figure['n']:,}"
    return Cell(f"{value:.{digits}f}", "bold" if bold else "", below)


def _with_accepted(figures: AnswerFigures, part: Literal["answerable", "all"]) -> Cell:
    """The headline, and below a corrected one the share that the judge accepts."""
    found = _cell(headline_of(figures, part))
    if "corrected" not in figures:
        return found
    return found._replace(below=f"{found.below}\naccepted {figures[part]['mean']:.3f}")


def _cost(accounts: Figures | None) -> Cell:
    if accounts is None or not _asked_models(accounts):
        return Cell(MISSING, DIM)
    total, about = accounts["total"], "~" if accounts["estimated"] else ""
    tokens = total["input_tokens"] + total["output_tokens"]
    size, unit = next(
        (size for size in ((1_000_000, " M"), (1_000, " k")) if tokens >= size[0]), (1, "")
    )
    counted = f"{tokens / size:.1f}{unit}" if unit else str(tokens)
    below = f"\n{about}{counted} tok\n{accounts['questions']:,} q"
    return Cell(f"{about}{_dollars(total['cost'])}", "", below)


def _asked_models(accounts: Figures | None) -> bool:
    return accounts is not None and bool(
        accounts["total"]["requests"] or accounts["total"]["cached"]
    )
