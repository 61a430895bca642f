"""Several systems: the table with groups and ranks, and the forest plot against a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mnemoscope.analysis.comparison import OVERALL, Row
from mnemoscope.analysis.system_groups import SystemGroups, labelled
from mnemoscope.reports import group_tables
from mnemoscope.reports.comparison_tables import verdict_cell
from mnemoscope.reports.run_view import headline
from mnemoscope.reports.tables import MISSING, brackets, decimal
from mnemoscope.results import ComparisonResult
from mnemoscope.viewer.html_elements import NOTHING, Html, el, foreign, row, table, url
from mnemoscope.viewer.interval_marks import (
    DifferenceScale,
    axis_mark,
    difference_mark,
    level_mark,
)
from mnemoscope.viewer.run_folder import ViewedRun
from mnemoscope.viewer.run_pages import select


class ComparedRun(NamedTuple):
    """A run of a forest plot: its comparison with the reference, or why there is none."""

    run: ViewedRun
    result: ComparisonResult | None
    reason: str = ""

    def row(self, metric: str) -> Row | None:
        """The row of a metric over all questions; of the primary one if none is named."""
        found = self.result.paired if self.result else None
        if found is None or not metric:
            return found.primary if found else None
        rows = (one for one in found.rows if (one.metric, one.scope) == (metric, OVERALL))
        return next(rows, None)


def systems_content(runs: Sequence[ViewedRun], groups: SystemGroups | str) -> list[Html]:
    """All systems with letters, ranks and the headline metrics with their intervals."""
    found = groups if isinstance(groups, SystemGroups) else None
    names = [one.label for one in labelled([one.directory for one in runs])]
    labels = dict(zip(names, runs, strict=True))
    order = [one.system for one in found.systems] if found else []
    order += [label for label in labels if label not in order]
    views = [one.view for one in runs if one.view is not None]
    metrics = headline(views)
    if found and found.metric in metrics:
        metrics = [found.metric, *(name for name in metrics if name != found.metric)]
    rows = []
    for label in order:
        run = labels[label]
        if run.view is None:
            continue
        own = found.of(label) if found else None
        letters, ranks = group_tables.markdown_cells(own)
        overall = run.view.metrics["overall"]
        cells = []
        for place, name in enumerate(metrics):
            figure = overall.get(name)
            if place == 0:
                mark = level_mark(figure["mean"], figure["ci95"]) if figure else NOTHING
                cells.append(el("td", mark))
            shown = decimal(figure["mean"], 3) if figure else MISSING
            is_best = found is not None and name == found.metric and own is not None and own.is_best
            interval = brackets(figure["ci95"], 3) if figure else ""
            below = el("small", interval, class_="below") if interval else None
            cells.append(el("td", el("b", shown) if is_best else shown, below, class_="num"))
        link = el("a", foreign(run.name, 120), href=url("/run", run=run.id))
        note = " (baseline)" if run.view.is_baseline else None
        name = el("th", link, note, scope="row")
        rows.append(el("tr", name, el("td", letters), el("td", ranks), cells))
    first = metrics[0] if metrics else ""
    head = ["System", "Group", "Ranks", *([""] if first else []), *metrics]
    parts = [el("p", group_tables.answer(found), class_="answer")] if found else []
    parts.append(table(head, rows, caption="Systems, best first", numbers=len(metrics)))
    if found:
        parts.append(el("p", group_tables.legend(found), class_="dim"))
        if found.apart:
            parts.append(el("p", f"Given the labels, not ranked: {', '.join(found.apart)}"))
    told = group_tables.notes(groups)
    if told:
        parts.append(el("ul", [el("li", foreign(line)) for line in told], class_="warning"))
    pairs = tuple(("run", one.id) for one in runs)
    parts.append(el("p", el("a", "Forest plot of these", href=url("/forest", *pairs))))
    return parts


def compared_runs(
    runs: Sequence[ViewedRun],
    reference: ViewedRun,
    compare: Callable[[ViewedRun, ViewedRun], ComparisonResult | str],
) -> list[ComparedRun]:
    """Compare every other run with the reference."""
    found = []
    for one in runs:
        if one.id != reference.id:
            result = compare(reference, one)
            if isinstance(result, str):
                found.append(ComparedRun(one, None, result))
            else:
                found.append(ComparedRun(one, result))
    return found


def metrics_of(compared: Sequence[ComparedRun]) -> list[str]:
    """The metrics of these comparisons over all questions, the primary one first."""
    rows = (
        row
        for one in compared
        if one.result and one.result.paired
        for row in one.result.paired.rows
    )
    return list(dict.fromkeys(row.metric for row in rows if row.scope == OVERALL))


def forest_content(
    runs: Sequence[ViewedRun],
    reference: ViewedRun,
    compared: Sequence[ComparedRun],
    metric: str,
    band: float | None,
) -> list[Html]:
    """Differences against the reference, with intervals, the zero line and the band."""
    drawn = [row for one in compared if (row := one.row(metric)) is not None]
    scale = DifferenceScale.of([end for row in drawn for end in row.shown], band)
    named = ", ".join(dict.fromkeys(row.metric for row in drawn)) or metric
    known = [(one, one.row(metric)) for one in compared]
    order = sorted(known, key=lambda pair: -(pair[1].delta if pair[1] else -9.0))
    rows = [_forest_row(one, row, reference, scale) for one, row in order]
    if drawn:
        rows.append(el("tr", el("td"), el("td"), el("td", axis_mark(scale)), el("td")))
    parts = [
        _forest_form(runs, reference, metrics_of(compared), metric, band),
        el(
            "p",
            f"Differences in {named} against ",
            foreign(reference.name, 120),
            ", paired by question. Right of zero: the run is higher than the reference.",
            f" The shaded band is ±{band:g}." if band else None,
        ),
        table(
            ["Run", "Verdict", "Plot", "Difference [interval]"],
            rows,
            numbers=1,
            caption="Forest plot of differences",
            class_="plot",
        ),
    ]
    if len(drawn) > 1:
        parts.append(
            el(
                "p",
                "Each comparison with the reference has its own error rate of 5 %. The table of "
                "systems holds for all pairs at once.",
                class_="dim",
            )
        )
    answers = [el("li", foreign(one.result.answer)) for one, _ in order if one.result]
    return (
        [*parts, el("h2", "In words, by the primary metric"), el("ul", answers)]
        if answers
        else parts
    )


def _forest_row(
    one: ComparedRun, found: Row | None, reference: ViewedRun, scale: DifferenceScale
) -> Html:
    place = url("/compare", base=reference.id, cand=one.run.id)
    name = el("a", foreign(one.run.name, 120), href=place)
    if found is None:
        reason = one.reason or (one.result.answer if one.result else "")
        told = el("td", foreign(reason, 400), colspan=3, class_="problem")
        return el("tr", el("th", name, scope="row"), told)
    low, high = found.shown
    mark = difference_mark(scale, found.delta, found.shown, found.verdict or "none")
    return row(
        name,
        el("td", verdict_mark(found)),
        el("td", mark, class_="mark"),
        f"{found.delta:+.4f} [{low:+.4f}, {high:+.4f}]",
        numbers=1,
    )


def verdict_mark(row: Row) -> Html:
    """The verdict as `compare` words it."""
    cell = verdict_cell(row)
    word = cell.text if cell.markdown is None else cell.markdown
    return el("span", word, class_=f"verdict {(row.verdict or 'none').replace(' ', '-')}")


def _forest_form(
    runs: Sequence[ViewedRun],
    reference: ViewedRun,
    metrics: Sequence[str],
    metric: str,
    band: float | None,
) -> Html:
    options = [el("option", one, value=one, selected=one == metric or None) for one in metrics]
    return el(
        "form",
        [el("input", type="hidden", name="run", value=one.id) for one in runs],
        el("label", "Reference", for_="reference"),
        select("reference", runs, reference.id),
        el("label", "Metric", for_="metric"),
        el("select", options, name="metric", id="metric"),
        el("label", "Equivalence band", for_="band"),
        el(
            "input",
            type="number",
            id="band",
            name="band",
            min="0",
            max="1",
            step="any",
            value=f"{band:g}" if band else None,
        ),
        el("button", "Draw"),
        method="get",
        action="/forest",
        class_="controls",
    )
