"""Tables for the terminal."""

from __future__ import annotations

import re
from collections.abc import Sequence
from io import StringIO
from typing import Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from mnemoscope.metrics import PRIMARY
from mnemoscope.reports import answer_tables, forgetting_tables
from mnemoscope.reports.run_view import (
    RunView,
    caveats,
    chances,
    headline,
    no_better_than_no_memory,
    vacuous,
)

_LABEL_WIDTH = 16
"""Long labels are folded, so that numbers never have to be cut."""
_SYSTEMS_ABREAST = 5
"""As many as fit beside the longest category's name into eighty columns."""
_LEGEND = "mean, 95 % interval below; chance: what a random order would get"


def summary(views: Sequence[RunView], *, with_cost: bool = True) -> RenderableType:
    """All runs in one table, by category and by cost below, and what must be said beside them."""
    questions = views[0].metrics["questions"]
    parts: list[RenderableType] = [
        Text(views[0].benchmark, style="bold"),
        Text(f"{questions['scorable']:,} questions with evidence, {questions['asked']:,} asked"),
        *(Text(line) for line in dict.fromkeys(line for v in views for line in v.asked_by)),
    ]
    if headline(views):
        parts.append(overview(views))
        parts.append(
            Text("mean, 95 % interval below; chance: what a random order would get", "dim")
        )
        if len({c for view in views for c in view.metrics["by_category"]}) > 1:
            parts += by_category(views)
    parts += _said(views)
    if with_cost:
        parts.append(cost(views))
    parts.append(Text())
    parts += [Text(note, style="yellow") for note in notes(views)]
    return Group(*parts)


def _said(views: Sequence[RunView]) -> list[RenderableType]:
    """What was answered, and what was forgotten."""
    parts: list[RenderableType] = []
    told = [
        answer_tables.Shown(
            view.label, view.answers["figures"], view.is_arm, view.timing["accounts"]
        )
        for view in views
        if view.answers and not view.life
    ]
    if told:
        parts.append(answer_tables.table(told, views[0].category_name, views[0].exams))
        parts += [Text(f"! {line}", style="yellow") for line in no_better_than_no_memory(views)]
        for view in views:
            for error, number in (view.answers or {}).get("errors", {}).items():
                parts.append(Text(f"! {view.label}: {number:,} times: {error}", style="yellow"))
    if forgot := [(v.label, v.forgetting, v.is_arm) for v in views if v.forgetting]:
        parts.append(forgetting_tables.table(forgot))
    return parts


def overview(views: Sequence[RunView]) -> Table:
    names = headline(views)
    table = _table()
    table.add_column("system", max_width=_LABEL_WIDTH, overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True, min_width=9)
    for view in views:
        table.add_row(_label(view), *(_cell(view.overall.get(name)) for name in names))
    known = [value for value in chances(views, names) if value is not None]
    if names and len(known) == len(names):
        table.add_row(
            Text("chance", style="dim italic"),
            *(Text(f"{value:.3f}", style="dim italic") for value in known),
        )
    return table


def cost(views: Sequence[RunView]) -> Table:
    """What a recall costs: context tokens, milliseconds, bytes."""
    table = _table("cost")
    table.add_column("system", max_width=_LABEL_WIDTH, overflow="fold")
    for name in ("tokens@10", "p50 ms", "p95 ms", "p99 ms", "index ms", "index kB"):
        table.add_column(name, justify="right", no_wrap=True)
    for view in views:
        tokens = view.metrics["context"].get("tokens@10")
        latency = view.timing["recall_ms"] or {}
        indexed, size = view.timing["scenarios_indexed"], view.timing["index_bytes"]
        table.add_row(
            _label(view),
            "--" if tokens is None else f"{tokens:,.0f}",
            *(f"{latency[p]:.2f}" if latency else "--" for p in ("p50", "p95", "p99")),
            f"{view.timing['index_ms']:,.0f}" if indexed else "--",
            "--" if size is None or not indexed else f"{size / 1000:,.0f}",
        )
    return table


def by_category(views: Sequence[RunView]) -> list[Table]:
    """One metric, categories down, systems across, a few at a time; each row's best is bold."""
    shown = headline(views)
    name = PRIMARY if PRIMARY in shown else shown[0]
    categories = sorted({c for view in views for c in view.metrics["by_category"]})
    rows = {
        category: [view.metrics["by_category"].get(category, {}).get(name) for view in views]
        for category in categories
    }
    tables = []
    for start in range(0, len(views), _SYSTEMS_ABREAST):
        abreast = slice(start, start + _SYSTEMS_ABREAST)
        table = _table(f"{name} by category")
        table.add_column("category", no_wrap=True)
        table.add_column("n", justify="right")
        for view in views[abreast]:
            table.add_column(_label(view), justify="right", max_width=_LABEL_WIDTH, overflow="fold")
        for category, figures in rows.items():
            n = max((figure["n"] for figure in figures if figure), default=0)
            cells = _category_cells(figures, views)[abreast]
            table.add_row(Text(views[0].category_name(category)), f"{n:,}", *cells)
        tables.append(table)
    return tables


def _category_cells(
    figures: Sequence[dict[str, Any] | None], views: Sequence[RunView]
) -> list[Text]:
    contest = [f["mean"] for f, v in zip(figures, views, strict=True) if f and not v.is_arm]
    best = max(contest, default=None)
    return [
        Text(
            f"{figure['mean']:.3f}" if figure else "--",
            "bold" if figure and figure["mean"] == best and not view.is_arm else "",
        )
        for figure, view in zip(figures, views, strict=True)
    ]


def picture(views: Sequence[RunView], title: str) -> str:
    """The figures as an SVG file that refers to nothing outside itself; no machine's timings."""
    console = Console(record=True, width=84, file=StringIO(), force_terminal=True)
    console.print(summary(views, with_cost=False))
    drawn = console.export_svg(title=title)
    return re.sub(r"@font-face \{.*?\}", "", drawn, flags=re.DOTALL)


def notes(views: Sequence[RunView]) -> list[str]:
    """Caveats, each said once, with the systems it concerns where not all."""
    said: dict[str, list[str]] = {}
    for view in views:
        for caveat in caveats(view):
            said.setdefault(caveat, []).append(view.label)
    lines = [
        f"! {caveat}" if len(labels) == len(views) else f"! {', '.join(labels)}: {caveat}"
        for caveat, labels in said.items()
    ]
    if empty := vacuous(views, headline(views)):
        lines.append(
            f"! {', '.join(empty)}: vacuous here: luck alone does well, or k is all there is"
        )
    return lines


def _table(title: str | None = None) -> Table:
    return Table(
        title=title,
        box=box.SIMPLE_HEAD,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        collapse_padding=True,
    )


def _label(view: RunView) -> Text:
    return Text(view.label, style="dim" if view.is_arm else "bold cyan")


def _cell(figure: dict[str, Any] | None) -> Text:
    if figure is None:
        return Text("--", style="dim")
    low, high = map(_bound, figure["ci95"])
    return Text.assemble(f"{figure['mean']:.3f}", (f"\n{low}–{high}", "dim"))


def _bound(value: float) -> str:
    """Four characters, so that six metrics fit into eighty columns."""
    return "1.00" if value >= 0.9995 else f"{value:.3f}".removeprefix("0")
