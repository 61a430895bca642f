"""How answers are shown: sections for report.md, tables for the terminal.

It reads what `analysis.answers`, `.diagnosis` and `.accounts` made and computes nothing new. No
figure stands without the number of questions it is over and its interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import ceil
from shlex import quote
from typing import Any, NamedTuple

from rich import box
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemoscope.reports.markdown_table import table as markdown_table
from mnemoscope.stats import wilson

Figures = Mapping[str, Any]
CategoryName = Callable[[str], str]

_WORDS_ONLY = ("f1", "rouge-l", "exact", "likelihood", "ledger")
"""Judges that cannot pass an exam on meaning, or take one at all."""
_LABEL_WIDTH = 16
_CATEGORY_WIDTH = 24
_COLUMN_WIDTH = 10
_WIDTH = 80
_RATES = {
    "correct_abstain": "correct abstain",
    "confabulated": "confabulated",
    "false_abstain": "false abstain",
}
_MEANING = {
    "correct_abstain": "of questions that have no answer, abstained",
    "confabulated": "of questions that have no answer, answered all the same",
    "false_abstain": "of questions that have an answer, abstained",
}
_PARTS = {"answerable": "questions with an answer", "all": "all questions"}
_LEGEND = (
    "below each figure: 95 % interval and number of questions; all asked: those included that "
    "have no answer"
)


class Shown(NamedTuple):
    """One system's answers."""

    label: str
    figures: Figures
    is_arm: bool = False
    accounts: Figures | None = None


def markdown(
    figures: Figures,
    diagnosis: Figures | None,
    accounts: Figures | None,
    category_name: CategoryName,
    exam: Figures | None = None,
) -> str:
    """The sections of report.md that tell of answers.

    `exam` is the judge's, None where it took none; or each judge's spec to its own.
    """
    exams = [exam_line(own, spec) for spec, own in _exams(exam).items()]
    judges = [*exams, *_judges(figures)]
    sections = [
        "## Answers",
        *_overall(figures),
        *_by_category(figures, category_name),
        "## Abstention",
        *_abstention(figures),
        *(["## Judges", *judges] if judges else []),
        *failures(diagnosis, accounts, category_name),
    ]
    return "\n\n".join(sections)


def failures(
    diagnosis: Figures | None, accounts: Figures | None, category_name: CategoryName
) -> list[str]:
    """Why answers failed and what it all cost, for runs whose answers are shown elsewhere."""
    return [
        *(_diagnosis(diagnosis, category_name) if diagnosis else []),
        *(_money(accounts) if accounts else []),
    ]


def table(
    systems: Sequence[Shown | tuple[str, Figures, bool]],
    category_name: CategoryName,
    exam: Figures | None = None,
) -> RenderableType:
    """Systems down; abstention and categories below; what must be said beside them last.

    Systems whose answers were measured otherwise stand in tables of their own.
    """
    shown = [Shown(*one) for one in systems]
    parts: list[RenderableType] = []
    for metric in dict.fromkeys(one.figures["metric"] for one in shown):
        own = [one for one in shown if one.figures["metric"] == metric]
        parts += [*_headlines(own), *_rates(own)]
        for part in _PARTS:
            parts += _categories(own, part, category_name)
    parts.append(Text(_LEGEND, style="dim"))
    parts += [Text(f"! {line}", style="yellow") for line in notes(shown)]
    for spec, told in _exams(exam).items():
        line = exam_line(told, spec)
        passed = told is not None and told["passed"]
        parts.append(Text(line, style="dim") if passed else Text(f"! {line}", style="yellow"))
    return Group(*parts)


def notes(systems: Iterable[Shown]) -> list[str]:
    """What is missing in each system's figures, what it could change, and how judges differ."""
    said = []
    for one in systems:
        counts, everything = one.figures["counts"], one.figures["all"]
        if panel := one.figures["panel"]:
            votes = ", ".join(f"{spec} {own['mean']:.3f}" for spec, own in panel["judges"].items())
            said.append(f"{one.label}: the judges by themselves: {votes}")
        if appeals := one.figures["appeals"]:
            said.append(
                f"{one.label}: {appeals['heard']:,} appeals, {appeals['rescued']:,} of them turned "
                f"a failure into a pass; without them {appeals['primary']['mean']:.3f}"
            )
        if not everything.get("missing"):
            continue
        why = {**counts["failed"], "unjudged": counts["unjudged"], "open": counts["unanswered"]}
        told = ", ".join(f"{number:,} {status}" for status, number in why.items() if number)
        between = ""
        if bounds := everything.get("bounds"):
            wrong = next((end for end in bounds if end != everything["mean"]), everything["mean"])
            between = f"; with them as wrong {_metric(one.figures)} is {wrong:.3f}"
        said.append(
            f"{one.label}: {everything['missing']:,} of {counts['asked']:,} questions have no "
            f"grade ({told}){between}"
        )
    return said


def exam_line(exam: Figures | None, spec: str = "") -> str:
    """What is known of a judge: how often it errs, and whether that is little enough."""
    judge = f"The judge {spec}" if spec else "The judge"
    if exam is None and spec.partition(",")[0] in _WORDS_ONLY:
        return f"{spec} compares words or records and is no judge of meaning: never VERIFIED."
    if exam is None:
        return (
            f"{judge} has taken no exam (mnemoscope judges exam {quote(spec or 'SPEC')}): how "
            "often it errs is not known, and the run cannot be VERIFIED."
        )
    erred = "; ".join(
        f"{verb} {_of(exam[kind])}"
        for kind, verb in (
            ("false_accept", "accepted wrong answers:"),
            ("false_reject", "rejected right ones:"),
        )
    )
    if exam["passed"]:
        return f"{judge} passed its exam ({erred})."
    return f"{judge} failed its exam ({erred}): the run cannot be VERIFIED."


def _exams(exam: Figures | None) -> Mapping[str, Figures | None]:
    """Each judge's spec to its exam; the spec is empty where one exam is given alone."""
    return {"": exam} if exam is None or "passed" in exam else exam


def _of(share: Figures) -> str:
    count, of = share["count"], share["of"]
    if not of:
        return "none asked"
    return f"{count / of:.3f} {_square(wilson(count, of))}, {count} of {of}"


# Markdown


def _overall(figures: Figures) -> list[str]:
    counts = figures["counts"]
    failed = ", ".join(f"{number:,} {status}" for status, number in counts["failed"].items())
    open_ = f", {counts['unanswered']:,} not answered yet" if counts["unanswered"] else ""
    lines = [
        f"{counts['asked']:,} questions asked: {counts['answered']:,} answered, "
        f"{counts['abstained']:,} abstained, {counts['empty']:,} empty, "
        f"{sum(counts['failed'].values()):,} failed{failed and f' ({failed})'}{open_}; "
        f"{counts['judged']:,} judged, "
        f"{counts['unjudged']:,} unjudged"
        + (f" (coverage {counts['coverage']:.1%})." if counts["coverage"] is not None else ".")
    ]
    rows = [[f"{_metric(figures)}, {name}", *_row(figures[part])] for part, name in _PARTS.items()]
    if "composite" in figures:
        rows.append(["composite, 0 to 6", *_row(figures["composite"])])
        rows.append(["hallucination rate", *_row(figures["hallucination"])])
    length = figures["length"]
    median = "" if length["median"] is None else f"median {length['median']:g}"
    row = _row(length, digits=1)
    rows.append(["answer length (words)", *row[:3], median])
    against = length["against_grade"]
    rows.append(["length against grade (Spearman)", *_row({**against, "mean": against["rho"]})])
    head = ["measure", "value", "95 % interval", "n", "failed and unjudged as wrong … left out"]
    return [*lines, markdown_table(head, rows)]


def _by_category(figures: Figures, category_name: CategoryName) -> list[str]:
    if not figures["by_category"]:
        return []
    head = ["category"]
    for name in _PARTS.values():
        head += [f"{_metric(figures)}, {name}", "n"]
    rows = [
        [category_name(key), *(cell for part in _PARTS for cell in _pair(own[part]))]
        for key, own in figures["by_category"].items()
    ]
    return ["## By category", markdown_table(head, rows)]


def _abstention(figures: Figures) -> list[str]:
    rows = [
        [name, *_row(figures["abstention"][key])[:3], _MEANING[key]] for key, name in _RATES.items()
    ]
    return [markdown_table(["rate", "value", "95 % interval", "n", "of what"], rows)]


def _judges(figures: Figures) -> list[str]:
    sections = []
    if panel := figures["panel"]:
        rows = [[f"mean of {judge}", *_row(own)[:3]] for judge, own in panel["judges"].items()]
        rows.append(["all say the same", *_row(panel["agreement"])[:3]])
        sections += [
            f"A panel of {len(panel['judges'])}: between the mildest and the strictest lie "
            f"{panel['span']:.4f}.",
            markdown_table(["judge", "value", "95 % interval", "n"], rows),
        ]
    if appeals := figures["appeals"]:
        rows = [["first judge", *_row(appeals["primary"])[:3]]]
        rows.append(["after appeals", *_row(appeals["final"])[:3]])
        sections += [
            f"Appeals heard: {appeals['heard']:,}, of which {appeals['changed']:,} changed the "
            f"mark and {appeals['rescued']:,} turned a failure into a pass.",
            markdown_table([_metric(figures), "value", "95 % interval", "n"], rows),
        ]
    return sections


def _diagnosis(diagnosis: Figures, category_name: CategoryName) -> list[str]:
    failures = diagnosis["failures"]
    said = f"{failures:,} of {diagnosis['judged']:,} judged answers failed."
    if not failures:
        return ["## Diagnosis", said]
    hand = diagnosis["in_hand"]
    said += f" In {hand['count']:,} of them ({_short(hand)}) all the evidence was in hand."
    found = {kind: own for kind, own in diagnosis["classes"].items() if own["count"]}
    rows = [
        [kind, f"{own['count']:,}", _short(own), ", ".join(own["examples"])]
        for kind, own in found.items()
    ]
    sections = [
        "## Diagnosis",
        said,
        markdown_table(["failure", "n", "share", "for example"], rows),
    ]
    if categories := diagnosis["by_category"]:
        crossed = [
            [category_name(key), *(f"{own.get(kind, 0):,}" for kind in found)]
            for key, own in categories.items()
        ]
        sections.append(markdown_table(["category", *found], crossed))
    return sections


def _money(accounts: Figures) -> list[str]:
    head = ["phase", "requests", "cached", "retries", "tokens in", "tokens out", "cost", "paid"]
    lines = {**accounts["phases"]}
    lines |= {f"*{side} side*": own for side, own in accounts["sides"].items()}
    lines["**total**"] = accounts["total"]
    rows = [
        [name, *(f"{own[key]:,}" for key in _COUNTED), *(_dollars(own[key]) for key in _PAID)]
        for name, own in lines.items()
    ]
    if per := accounts["per_question"]:
        numbers = (f"{per[key]:,.2f}" for key in _COUNTED)
        rows.append(["*for a question*", *numbers, *(_dollars(per[key]) for key in _PAID)])
    said = (
        f"Over {accounts['questions']:,} questions; US dollars. Cost: of all replies; paid: of "
        "those that came over the wire, not from the cache."
    )
    if accounts["estimated"]:
        said += " Some servers report no token counts: tokens and money are partly estimated."
    return ["## Tokens and money", said, markdown_table(head, rows)]


_COUNTED = ("requests", "cached", "retries", "input_tokens", "output_tokens")
_PAID = ("cost", "paid")


def _row(figure: Figures, digits: int = 4) -> list[str]:
    """Value, interval, n and bounds of a mean or a rate."""
    value = _value(figure)
    bounds = figure.get("bounds")
    return [
        "--" if value is None else f"{value:.{digits}f}",
        _square(figure["ci95"], digits) if figure["ci95"] else "--",
        f"{figure['n']:,}",
        _square(bounds, digits) if bounds else "",
    ]


def _pair(figure: Figures) -> list[str]:
    return [_short(figure), f"{figure['n']:,}"]


def _short(figure: Figures) -> str:
    value = _value(figure)
    if value is None:
        return "--"
    interval = _square(figure["ci95"]) if figure["ci95"] else "[interval not known]"
    return f"{value:.4f} {interval}"


def _value(figure: Figures) -> float | None:
    value: float | None = figure["mean"] if "mean" in figure else figure["rate"]
    return value


def _square(interval: Sequence[float], digits: int = 4) -> str:
    return f"[{interval[0]:.{digits}f}, {interval[1]:.{digits}f}]"


def _dollars(value: float) -> str:
    digits = 2 if not value or value >= 1 else 4 if value >= 0.01 else 6
    return f"${value:,.{digits}f}"


def _metric(figures: Figures) -> str:
    """The measure's name, which says that a composite is told as a share of the best."""
    name: str = figures["metric"]
    return "composite/6" if name == "composite" else name


# Terminal


def _headlines(systems: Sequence[Shown]) -> list[RenderableType]:
    rubric = any("hallucination" in one.figures for one in systems)
    paid = any(_asked_models(one.accounts) for one in systems)
    metric = _metric(systems[0].figures)
    frame = _frame()
    frame.add_column("system", max_width=_LABEL_WIDTH, overflow="fold")
    frame.add_column(f"{metric}\nanswerable", justify="right", no_wrap=True)
    frame.add_column(f"{metric}\nall asked", justify="right", no_wrap=True)
    if rubric:
        frame.add_column("halluci-\nnation", justify="right", no_wrap=True)
    frame.add_column("answer\nwords", justify="right", no_wrap=True)
    if paid:
        frame.add_column("cost\ntokens", justify="right", no_wrap=True)
    for one in systems:
        cells = [_cell(one.figures[part]) for part in _PARTS]
        if rubric:
            cells.append(_cell(one.figures.get("hallucination", _NOTHING)))
        cells.append(_cell(one.figures["length"], digits=1))
        if paid:
            cells.append(_cost(one.accounts))
        frame.add_row(_label(one), *cells)
    return [_title("Answers"), frame]


def _rates(systems: Sequence[Shown]) -> list[RenderableType]:
    """The three rates, where any question has no answer or any answer is an abstention."""
    told = [one.figures["abstention"] for one in systems]
    if not any(own["correct_abstain"]["n"] or own["false_abstain"]["count"] for own in told):
        return []
    frame = _frame()
    frame.add_column("system", max_width=_LABEL_WIDTH, overflow="fold")
    for name in _RATES.values():
        frame.add_column(name, justify="right", no_wrap=True)
    for one, own in zip(systems, told, strict=True):
        frame.add_row(_label(one), *(_cell(own[key]) for key in _RATES))
    return [_title("Abstention"), frame]


def _categories(
    systems: Sequence[Shown], part: str, category_name: CategoryName
) -> list[RenderableType]:
    """Categories down, systems across; of all questions only where that is another figure."""
    kinds = sorted({key for one in systems for key in one.figures["by_category"]})
    rows: dict[str, list[Figures]] = {}
    for key in kinds:
        found = [one.figures["by_category"].get(key, {}) for one in systems]
        own = [figures.get(part, _NOTHING) for figures in found]
        same = [figures.get("answerable", _NOTHING) for figures in found]
        if any(figure["n"] for figure in own) and (part == "answerable" or own != same):
            rows[key] = own
    if len(kinds) < 2 or not rows:
        return []
    tables: list[RenderableType] = []
    # A space on either side of each column; systems are spread evenly over the tables they need.
    names = min(_CATEGORY_WIDTH, max(len(category_name(key)) for key in rows)) + 2
    needed = ceil(len(systems) / ((_WIDTH - names) // (_COLUMN_WIDTH + 2)))
    together = ceil(len(systems) / needed)
    for start in range(0, len(systems), together):
        abreast = slice(start, start + together)
        frame = _frame()
        frame.add_column("category", max_width=_CATEGORY_WIDTH, overflow="fold")
        for one in systems[abreast]:
            frame.add_column(_label(one), justify="right", max_width=_COLUMN_WIDTH, overflow="fold")
        for key, own in rows.items():
            contest = [f["mean"] for f, one in zip(own, systems, strict=True) if not one.is_arm]
            best = max((mean for mean in contest if mean is not None), default=None)
            cells = [
                _cell(figure, bold=not one.is_arm and figure["mean"] == best)
                for figure, one in zip(own[abreast], systems[abreast], strict=True)
            ]
            frame.add_row(Text(category_name(key)), *cells)
        title = f"{_metric(systems[0].figures)} by category, {_PARTS[part]}"
        tables += [_title(title), frame]
    return tables


_NOTHING: Figures = {"mean": None, "n": 0, "ci95": None}


def _cell(figure: Figures, *, digits: int = 3, bold: bool = False) -> Text:
    """The figure, and below it its interval and what it is over."""
    value = _value(figure)
    if value is None:
        return Text("--", style="dim")
    interval = _span(figure["ci95"], digits) if figure["ci95"] else "all alike"
    return Text.assemble(
        (f"{value:.{digits}f}", "bold" if bold else ""),
        (f"\n{interval}\nn {figure['n']:,}", "dim"),
    )


def _span(interval: Sequence[float], digits: int = 3) -> str:
    return "–".join(_bound(end, digits) for end in interval)


def _bound(value: float, digits: int) -> str:
    """Without the zero before the point, so that more fits beside each other."""
    written = f"{value:.{digits}f}"
    return written.replace("0.", ".", 1) if written.lstrip("-").startswith("0.") else written


def _cost(accounts: Figures | None) -> Text:
    if accounts is None or not _asked_models(accounts):
        return Text("--", style="dim")
    total = accounts["total"]
    about = "~" if accounts["estimated"] else ""
    tokens = total["input_tokens"] + total["output_tokens"]
    return Text.assemble(
        f"{about}{_dollars(total['cost'])}",
        (f"\n{about}{_thousands(tokens)} tok\n{accounts['questions']:,} q", "dim"),
    )


def _thousands(number: int) -> str:
    for size, name in ((1_000_000, " M"), (1_000, " k")):
        if number >= size:
            return f"{number / size:.1f}{name}"
    return str(number)


def _asked_models(accounts: Figures | None) -> bool:
    return accounts is not None and bool(
        accounts["total"]["requests"] or accounts["total"]["cached"]
    )


def _label(one: Shown) -> Text:
    return Text(one.label, style="dim" if one.is_arm else "bold cyan")


def _title(text: str) -> Text:
    return Text(text, style="bold")


def _frame() -> Table:
    return Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
