"""Tables of several runs for the terminal; `overview` is shared with summary.md."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports import (
    answer_tables,
    change_tables,
    disclosure_tables,
    forgetting_tables,
    group_tables,
)
from mnemoscope.reports.ageing_tables import ageing_overview
from mnemoscope.reports.heatmap import SystemHeatmap, elide, heatmap, systems_heatmap
from mnemoscope.reports.run_view import (
    RESTARTED,
    Figures,
    RunView,
    caveats,
    figure_of,
    groups_of,
    headline,
    no_better_than_no_memory,
    same_days,
)
from mnemoscope.reports.tables import (
    DIM,
    LABEL_WIDTH,
    MISSING,
    MUTED,
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
    decimal,
    numeric,
    system_cell,
    with_interval,
)
from mnemoscope.types import FAILED

if TYPE_CHECKING:
    from rich.console import RenderableType

_SYSTEMS_ABREAST = 5
"""Systems that fit next to the longest category name in eighty columns."""
_CREDIT_LEGEND = (
    "claimed: what the hits name; carried: what their texts say of it, the figure in all tables"
)
_LEGEND = "mean, 95 % interval below; chance: the expected score of a random ranking"


def summary(views: Sequence[RunView], *, full: bool = True) -> RenderableType:
    """All runs in one table, then the caveats; between them, if `full`, categories and cost."""
    from mnemoscope.reports.render_terminal import render

    questions = views[0].metrics["questions"]
    asked = f"{questions['scorable']:,} questions with evidence, {questions['asked']:,} asked"
    if views[0].imported and views[0].answers:
        counts = views[0].answers["figures"]["counts"]
        asked = f"{counts['asked']:,} questions, no rankings: the answers came from outside"
    models = dict.fromkeys(line for view in views for line in view.reader_and_judge)
    parts: list[Block] = [Heading(views[0].benchmark), *map(Paragraph, (asked, *models))]
    groups = groups_of(views)
    parts += disclosure_tables.systems_tables(views, groups)
    if headline(views):
        by_right = disclosure_tables.grouped_by_right(groups)
        table = overview(views, None if by_right else groups)
        if any(cell == MISSING for cell in table.rows[-1]):  # the row of chance is not complete
            table.rows.pop()
        parts += [table, Paragraph(_LEGEND, DIM)]
        if isinstance(groups, SystemGroups) and not by_right:
            parts.append(Paragraph(group_tables.legend(groups), DIM))
        parts += credit_blocks(views)
        if full and len({c for view in views for c in view.metrics["by_category"]}) > 1:
            parts += _by_category(views)
    if any(view.answers or view.forgetting for view in views):
        parts += _answered(views, full)
    parts += change_tables.systems_tables(views)
    if full:
        parts.append(_cost(views))
    told = [*notes(views), *group_tables.notes(groups)]
    return render([*parts, Paragraph(""), NoteList(told)])


def shown(
    views: Sequence[RunView], *, width: int = 80, only: Sequence[str] = (), full: bool = True
) -> RenderableType:
    """A heatmap of each system that is not a baseline (or of those in `only`), then of all.

    Runs without judged answers are shown by their retrieval.
    """
    from rich.console import Group

    from mnemoscope.reports.render_terminal import render

    judged = any(view.judged for view in views)
    told = []
    for view in views:
        told += [f"{view.label}: {line}" for line in failures(view)]
        if judged and view.restarts:
            told.append(f"{view.label}: {RESTARTED.format(view.restarts)}")
    if not judged:  # the summary shows the other caveats
        systems = [view for view in views if view.longitudinal and not view.is_baseline]
        by_days = [_recall(view, width) for view in systems]
        aged = ageing_overview([view for view in views if view.longitudinal])
        shown_last = [*by_days, *aged, NoteList(told, mark="")]
        return Group(summary(views, full=full), render(shown_last))
    told += dict.fromkeys(
        line for view in views if view.longitudinal for line in same_days(view.longitudinal)
    )
    blank = Paragraph("")
    parts: list[Block] = []
    heatmaps = []
    for view in views:
        if not view.longitudinal:
            continue
        heatmaps.append(SystemHeatmap(view.label, view.longitudinal, view.is_baseline))
        if (view.label in only) if only else not view.is_baseline:
            title = f"{view.label} · {personas_named(view)}"
            parts += [blank, *heatmap(view.longitudinal, title, width=width)]
    if len(heatmaps) > 1:
        parts += [blank, *systems_heatmap(heatmaps, width=width)]
    if aged := ageing_overview(views):
        parts += [blank, *aged]
    return render([*parts, NoteList(told, mark=""), blank])


def overview(
    views: Sequence[RunView],
    groups: SystemGroups | str | None = None,
    chosen: Sequence[str] = (),
) -> ReportTable:
    """Systems down, metrics across; the last row is chance, from the run with most questions.

    With groups, each system has its letters and ranks, and the figures of the best group are bold.
    The metrics are the chosen ones, by default those of the headline.
    """
    names = chosen or headline(views)
    grouped = groups if isinstance(groups, SystemGroups) else None
    columns = [numeric(name, min_width=9) for name in names]
    if grouped:
        title = Lines(f"{SYSTEM.title}\ngroup,\u00a0rank")
        first = SYSTEM._replace(title=title, markdown=SYSTEM.title)
        table = ReportTable([first, *group_tables.MARKDOWN_COLUMNS, *columns])
    else:
        table = ReportTable([SYSTEM, *columns])
    for view in views:
        cells = []
        ranked = grouped.of(view.label) if grouped else None
        for name in names:
            figure = figure_of(view, name)
            if figure is None:
                cells.append(Cell(MISSING, DIM))
                continue
            # Four characters for each end: six metrics fit into eighty columns.
            interval = figure["ci95"] or ()
            ends = ("1.00" if e >= 0.9995 else f"{e:.3f}".removeprefix("0") for e in interval)
            precise = with_interval(figure["mean"], interval, unknown="(no interval)")
            is_bold = bool(grouped and ranked and name == grouped.metric and ranked.is_best)
            cells.append(
                Cell(
                    f"{figure['mean']:.3f}",
                    "bold" if is_bold else "",
                    f"\n{'–'.join(ends)}",
                    Markup(f"**{precise}**") if is_bold else precise,
                )
            )
        label = system_cell(view.title, view.is_baseline)
        if grouped:
            style = label.style if ranked and ranked.is_best else label.style.removeprefix("bold ")
            below = f"\n{group_tables.group_and_ranks(ranked)}"
            label = label._replace(style=style, below=below)
            table.rows.append([label, *group_tables.markdown_cells(ranked), *cells])
        else:
            table.rows.append([label, *cells])
    fullest = max(views, key=lambda view: view.metrics["questions"]["measured"])
    overall = fullest.metrics["overall"]
    chances = [overall[name]["chance"] if name in overall else None for name in names]
    expected = [
        MISSING if chance is None else Cell(f"{chance:.3f}", MUTED, markdown=f"{chance:.4f}")
        for chance in chances
    ]
    blank = [""] * len(group_tables.MARKDOWN_COLUMNS) if grouped else []
    table.rows.append([Cell("chance", MUTED, markdown=Markup("*chance*")), *blank, *expected])
    return table


def credit_blocks(views: Sequence[RunView]) -> list[Block]:
    """What the hits claim beside what their texts carry; empty if no system has such hits."""
    own = [(view, credit) for view in views if (credit := view.metrics.get("credit"))]
    claimed = [name for _, credit in own for name in credit["claimed"]]
    if not claimed:
        return []
    name = PRIMARY if PRIMARY in claimed else claimed[0]
    columns = (f"claimed {name}", f"carried {name}", "recall per 1,000 tokens")
    table = ReportTable([SYSTEM, *map(numeric, columns)], title="credit")
    for view, credit in own:
        both = [credit["claimed"].get(name), view.metrics["overall"].get(name)]
        rate = credit["recall_per_1000_tokens"]["carried"]
        table.rows.append(
            [
                system_cell(view.label, view.is_baseline),
                *(
                    Cell(f"{one['mean']:.3f}", markdown=with_interval(one["mean"], one["ci95"]))
                    if one
                    else MISSING
                    for one in both
                ),
                MISSING if rate is None else f"{rate:.3f}",
            ]
        )
    return [table, Paragraph(_CREDIT_LEGEND, DIM)]


def _answered(views: Sequence[RunView], full: bool) -> list[Block]:
    """The tables of answers and of forgetting."""
    parts: list[Block] = []
    answered = [
        answer_tables.SystemAnswers(
            view.label, view.answers["figures"], view.is_baseline, view.timing["accounts"]
        )
        for view in views
        if view.answers and not view.longitudinal
    ]
    if answered:
        names = views[0].category_name if full else None
        parts += answer_tables.systems_tables(answered, names, views[0].exams)
        errors = [
            f"{view.label}: {number:,} times: {error}"
            for view in views
            if view.answers
            for error, number in view.answers.get("errors", {}).items()
        ]
        parts.append(NoteList([*no_better_than_no_memory(views), *errors]))
    if forgot := [(v.label, v.forgetting, v.is_baseline) for v in views if v.forgetting]:
        parts += forgetting_tables.systems_tables(forgot)
    return parts


def _cost(views: Sequence[RunView]) -> ReportTable:
    """The cost of a recall: context tokens, milliseconds, bytes."""
    columns = ("tokens@10", "p50 ms", "p95 ms", "p99 ms", "index ms", "index kB")
    table = ReportTable([SYSTEM, *map(numeric, columns)], title="cost")
    for view in views:
        tokens = view.metrics["context"].get("tokens@10")
        latency = view.timing["recall_ms"] or {}
        indexed, size = view.timing["scenarios_indexed"], view.timing["index_bytes"]
        table.rows.append(
            [
                system_cell(view.label, view.is_baseline),
                MISSING if tokens is None else f"{tokens:,.0f}",
                *(f"{latency[p]:.2f}" if latency else MISSING for p in ("p50", "p95", "p99")),
                f"{view.timing['index_ms']:,.0f}" if indexed else MISSING,
                MISSING if size is None or not indexed else f"{size / 1000:,.0f}",
            ]
        )
    return table


def _by_category(views: Sequence[RunView]) -> list[ReportTable]:
    """One metric: categories down, a few systems across."""
    names = headline(views)
    name = PRIMARY if PRIMARY in names else names[0]
    categories = sorted({c for view in views for c in view.metrics["by_category"]})
    tables = []
    for start in range(0, len(views), _SYSTEMS_ABREAST):
        abreast = slice(start, start + _SYSTEMS_ABREAST)
        labels = [system_cell(view.label, view.is_baseline) for view in views[abreast]]
        columns = [TableColumn("category", wrap=False), TableColumn("n", right=True)]
        columns += [
            TableColumn(one.text, one.style, right=True, fold=True, max_width=LABEL_WIDTH)
            for one in labels
        ]
        table = ReportTable(columns, title=f"{name} by category")
        for category in categories:
            figures = [v.metrics["by_category"].get(category, {}).get(name) for v in views]
            n = max((figure["n"] for figure in figures if figure), default=0)
            # No figure is bold: whether systems differ in a category is not tested here.
            cells = [f"{f['mean']:.3f}" if f else MISSING for f in figures[abreast]]
            table.rows.append([views[0].category_name(category), f"{n:,}", *cells])
        tables.append(table)
    return tables


def notes(views: Sequence[RunView]) -> list[str]:
    """Each caveat once, after the systems that it concerns unless it concerns all."""
    found: dict[str, list[str]] = {}
    for view in views:
        for caveat in caveats(view, views):
            found.setdefault(caveat, []).append(view.label)
    lines = [
        caveat if len(labels) == len(views) else f"{', '.join(labels)}: {caveat}"
        for caveat, labels in found.items()
    ]
    overall: list[Figures] = [view.metrics["overall"] for view in views]
    if vacuous := [
        name
        for name in headline(views)
        if any(figures.get(name, {}).get("vacuous") for figures in overall)
    ]:
        lines.append(
            f"{', '.join(vacuous)}: not informative: a random ranking scores high, or k is not "
            "smaller than the pool"
        )
    return lines


def _recall(view: RunView, width: int) -> ReportTable:
    """hit@10 by category and checkpoint, for runs without a judge."""
    figures: Figures = view.longitudinal or {}
    points = figures["checkpoints"]
    head, tail = elide(len(points), (width - 30) // 7)
    kept = [points[place] for place in (*head, *tail)]
    rows = {name: [p["categories"][name]["hit@10"] for p in kept] for name in figures["categories"]}
    rows["all"] = [point["retrieval"]["hit@10"]["mean"] for point in kept]
    return ReportTable(
        [TableColumn("hit@10"), *(TableColumn(point["label"]) for point in kept)],
        [[name, *(decimal(share, 2) for share in shares)] for name, shares in rows.items()],
        title=f"{view.label} by checkpoint",
        frame="plain",
        last_apart=True,
    )


def failures(view: RunView) -> list[str]:
    """Caveats on questions that could not be asked, answered or judged."""
    points, errors = [], {}
    if view.longitudinal:
        points, errors = view.longitudinal["checkpoints"], view.longitudinal["errors"]
    failed = sum(point["failed"] for point in points)
    notes = [f"{number:,} × {error}" for error, number in errors.items()]
    if view.manifest.identity.get("compat") and notes:
        return ["[TIMEOUT] was judged in place of each missing answer", *notes]
    if not failed:
        return notes
    asked = sum(point["asked"] for point in points)
    statuses: Counter[str] = Counter()
    for point in points:
        statuses.update({name: point["statuses"].get(name, 0) for name in (*FAILED, "unjudged")})
    named = ", ".join(f"{number:,} {name}" for name, number in sorted(statuses.items()) if number)
    return [f"{failed:,} of {asked:,} questions failed and are left out ({named})", *notes]


def personas_named(view: RunView) -> str:
    """The persona's name, or the number of personas."""
    personas = list(view.longitudinal["personas"]) if view.longitudinal else []
    return personas[0] if len(personas) == 1 else f"{len(personas)} personas"
