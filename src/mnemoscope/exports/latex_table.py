"""Figures and comparisons as LaTeX tables (booktabs), to \\input or to compile as they are.

A figure has its 95 % interval below it. Superscript letters mark systems that cannot be told apart
by one metric, and only its best group is bold. What a reader must know is printed below the table;
all other caveats are comments at the top of the file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mnemoscope
from mnemoscope.analysis.comparison import OVERALL, Comparison
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.exports.latex_text import as_comment, as_latex
from mnemoscope.reports.comparison_tables import answer, p_value
from mnemoscope.reports.group_tables import answer as groups_answer
from mnemoscope.reports.run_view import RunView, figure_of

_LABEL = 40
"""The most characters of a system's label."""
_DASH = "--"


class LatexTable(NamedTuple):
    """A table whose cells are LaTeX; a None instead of a row is a line across."""

    align: str
    head: Sequence[str]
    rows: Sequence[Sequence[str] | None]
    caption: str
    label: str
    notes: Sequence[str]
    """Plain texts below the table."""
    comments: Sequence[str]
    """Plain texts at the top of the file."""


def latex_file(table: LatexTable, *, standalone: bool = False) -> bytes:
    """The table environment, or with `standalone` a document around it."""
    lines = [
        as_comment(f"Written by mnemoscope {mnemoscope.__version__}."),
        as_comment(
            "Compile with pdflatex."
            if standalone
            else "Use: \\usepackage{booktabs} in the preamble, then \\input this file."
        ),
        *(as_comment(f"caveat: {line}") for line in table.comments),
    ]
    if standalone:
        lines += [
            r"\documentclass{article}",
            r"\usepackage[margin=2cm]{geometry}",
            r"\usepackage{booktabs}",
            r"\pagestyle{empty}",
            r"\begin{document}",
        ]
    lines += [
        r"\begin{table}[htbp]",
        r"\centering",
        rf"\caption{{{table.caption}}}",
        rf"\label{{{table.label}}}",
        r"\small",
        r"\setlength{\tabcolsep}{4pt}",
        rf"\begin{{tabular}}{{@{{}}{table.align}@{{}}}}",
        r"\toprule",
        " & ".join(table.head) + r" \\",
        r"\midrule",
        *(r"\midrule" if row is None else " & ".join(row) + r" \\" for row in table.rows),
        r"\bottomrule",
        r"\end{tabular}",
    ]
    if table.notes:
        notes = "\\\\\n".join(map(as_latex, table.notes))
        lines += [
            r"\par\smallskip",
            r"\begin{minipage}{\linewidth}\footnotesize\raggedright",
            notes,
            r"\end{minipage}",
        ]
    lines.append(r"\end{table}")
    if standalone:
        lines.append(r"\end{document}")
    return ("\n".join(lines) + "\n").encode("ascii")


def figures_table(
    views: Sequence[RunView],
    names: Sequence[str],
    groups: SystemGroups | None,
    notes: Sequence[str],
    comments: Sequence[str],
) -> LatexTable:
    """Systems down, metrics across, then the baselines and what a random ranking scores."""
    rows: list[Sequence[str] | None] = []
    for place, view in enumerate(views):
        means, intervals = _system_rows(view, names, groups)
        if place and view.is_baseline and not views[place - 1].is_baseline:
            rows.append(None)
        elif place:
            means[0] = rf"\addlinespace[2pt] {means[0]}"
        rows += [means, intervals]
    fullest = max(views, key=lambda view: view.metrics["questions"]["measured"])
    overall = fullest.metrics["overall"]
    chances = [overall[name]["chance"] if name in overall else None for name in names]
    if any(chance is not None for chance in chances):
        shown = (_DASH if chance is None else rf"\textit{{{chance:.3f}}}" for chance in chances)
        rows += [None, [r"\textit{chance}", *shown]]
    questions = fullest.metrics["questions"]
    clusters = questions.get("clusters", 0)
    where = f" in {clusters:,} conversations" if clusters > 1 else ""
    name = str(fullest.manifest.identity["benchmark"]["name"])
    caption = as_latex(f"{name}: {questions['measured']:,} questions{where}.")
    legend = [
        "Means with 95\u00a0% intervals that allow for questions of one conversation not being "
        "independent; chance: the expected score of a random ranking."
    ]
    if groups is not None:
        legend.append(_legend(groups))
    return LatexTable(
        align="l" + "r" * len(names),
        head=["System", *map(as_latex, names)],
        rows=rows,
        caption=caption,
        label=_label(name),
        notes=[" ".join(legend), *notes],
        comments=[f"the benchmark is {fullest.benchmark}", *comments],
    )


def _system_rows(
    view: RunView, names: Sequence[str], groups: SystemGroups | None
) -> list[list[str]]:
    """The means of one system, and their intervals in the line below."""
    own = groups.of(view.label) if groups else None
    means, intervals = [as_latex(view.label, _LABEL)], [""]
    for name in names:
        figure = figure_of(view, name)
        if figure is None:
            beyond = view.metrics.get("beyond_end", {})
            means.append(_DASH)
            intervals.append(_ends(beyond[name]["bounds"], "to") if name in beyond else "")
            continue
        mean = f"{figure['mean']:.3f}"
        if groups and own and name == groups.metric:
            bold = rf"\textbf{{{mean}}}" if own.is_best else mean
            mean = rf"{bold}\rlap{{\textsuperscript{{{own.letters}}}}}"
        means.append(mean)
        intervals.append(_ends(figure["ci95"]) if figure["ci95"] else "")
    return [means, intervals]


def _ends(ends: Sequence[float], between: str = "") -> str:
    low, high = ("1" if end >= 0.9995 else f"{end:.3f}".removeprefix("0") for end in ends)
    inner = f"{low} {between} {high}" if between else f"[{low}, {high}]"
    # In braces: a bracket after \\ would be the option of \\.
    return rf"{{\scriptsize {inner}}}"


def _legend(groups: SystemGroups) -> str:
    where = " on these conversations" if groups.these_only else ""
    return (
        f"Systems that share a letter cannot be told apart by {groups.metric}{where}, with one "
        "error rate of 5\u00a0% for all pairs; bold: the best group."
    )


def comparison_table(
    found: Comparison, notes: Sequence[str], comments: Sequence[str]
) -> LatexTable:
    """Two runs: a row for each metric over all questions."""
    rows: list[Sequence[str] | None] = []
    for row in (row for row in found.rows if row.scope == OVERALL):
        low, high = row.shown
        verdict = row.verdict or "exploratory"
        decides = row.role == "primary" and row.verdict not in (None, "cannot tell")
        rows.append(
            [
                as_latex(row.metric) + (r"\textsuperscript{*}" if row.role == "primary" else ""),
                f"{row.base:.3f}",
                f"{row.cand:.3f}",
                f"${row.delta:+.4f}$",
                f"$[{low:+.4f}, {high:+.4f}]$",
                as_latex(p_value(row.p)),
                rf"\textbf{{{as_latex(verdict)}}}" if decides else as_latex(verdict),
            ]
        )
    legend = (
        "*: the primary metric, which decides. Intervals of the other declared metrics are "
        "simultaneous; p is adjusted for them."
    )
    return LatexTable(
        align="lrrrrrl",
        head=[
            "Metric",
            as_latex(found.base, _LABEL),
            as_latex(found.cand, _LABEL),
            "Difference",
            r"95\,\% interval",
            "$p$",
            "Verdict",
        ],
        rows=rows,
        caption=as_latex(f"{found.benchmark}: {answer(found)}"),
        label=_label(f"{found.benchmark}-comparison"),
        notes=[legend, *notes],
        comments=comments,
    )


def pairs_table(groups: SystemGroups, notes: Sequence[str], comments: Sequence[str]) -> LatexTable:
    """Several runs: a row for each pair of systems, by one metric."""
    rows = [
        [
            as_latex(pair.first, _LABEL),
            as_latex(pair.second, _LABEL),
            f"${pair.delta:+.4f}$",
            f"$[{pair.ci95[0]:+.4f}, {pair.ci95[1]:+.4f}]$",
            r"\textbf{better}" if pair.is_decided else "cannot tell",
        ]
        for pair in groups.pairs
    ]
    legend = "The intervals hold for all pairs at once, with one error rate of 5\u00a0%."
    return LatexTable(
        align="llrrl",
        head=["First", "Second", "First $-$ second", r"95\,\% interval", "The first is"],
        rows=rows,
        caption=as_latex(f"{groups.benchmark}: {groups_answer(groups)}"),
        label=_label(f"{groups.benchmark}-pairs"),
        notes=[legend, *notes],
        comments=comments,
    )


def _label(name: str) -> str:
    """A label for \\ref: letters, digits and hyphens."""
    return "tab:" + "".join(one if one.isascii() and one.isalnum() else "-" for one in name)
