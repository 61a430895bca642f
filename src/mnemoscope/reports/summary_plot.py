"""The drawing of `report --svg`: a panel for each headline metric, then one for each category."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.metrics import PRIMARY
from mnemoscope.reports import group_tables
from mnemoscope.reports.dot_plots import SystemMark, draw_marks
from mnemoscope.reports.plot_style import Look, Picture, plot_page, short
from mnemoscope.reports.run_plots import SHARED_LETTERS, about_sample, chance_of, system_marks
from mnemoscope.reports.run_tables import notes
from mnemoscope.reports.run_view import Figures, RunView, groups_of, headline

_ABREAST = 3
_ROW, _AROUND = 0.2, 0.5
"""Inches of a system, and of a panel's title and axis."""


class _Panel(NamedTuple):
    title: str
    marks: Sequence[SystemMark]
    chance: float | None = None


def summary_picture(views: Sequence[RunView], title: str, look: Look) -> Picture:
    """All figures of the runs with their intervals; times are left out, since they vary."""
    rows: list[list[_Panel]] = []
    told: list[str] = []
    benchmarks = list(dict.fromkeys(view.benchmark for view in views))
    for benchmark in benchmarks:
        own = [view for view in views if view.benchmark == benchmark]
        groups = groups_of(own)
        grouped = groups if isinstance(groups, SystemGroups) else None
        panels = [*_metrics(own, grouped), *_answers(own), *_checkpoints(own)]
        for part in (panels, _categories(own)):
            rows += [part[at : at + _ABREAST] for at in range(0, len(part), _ABREAST)]
        told.append(f"{benchmark}: {about_sample(own)}. 95 % intervals.")
        if grouped:
            told.append(f"{SHARED_LETTERS} Groups are by {grouped.metric}.")
        told += [*notes(own), *group_tables.notes(groups)]
    if not rows:
        raise UsageError("the runs have no figures to draw")
    heights = [_ROW * len(row[0].marks) + _AROUND for row in rows]
    with plot_page(look, sum(heights), title, told) as page:
        grid = page.figure.add_gridspec(len(rows), _ABREAST, height_ratios=heights)
        for down, row in enumerate(rows):
            for across, panel in enumerate(row):
                axes = page.figure.add_subplot(grid[down, across])
                draw_marks(page, axes, panel.marks, chance=panel.chance, named=not across)
                axes.set_title(short(panel.title, 34), loc="left", color=page.theme.text, pad=9)
                axes.locator_params(axis="x", nbins=4)
        return page.picture()


def _metrics(views: Sequence[RunView], groups: SystemGroups | None) -> list[_Panel]:
    return [
        _Panel(name, system_marks(views, name, groups), chance_of(views, name))
        for name in headline(views)
    ]


def _categories(views: Sequence[RunView]) -> list[_Panel]:
    names = headline(views)
    categories = sorted({name for view in views for name in view.metrics["by_category"]})
    if not names or len(categories) < 2:
        return []
    metric = PRIMARY if PRIMARY in names else names[0]
    panels = []
    for category in categories:
        marks = system_marks(views, metric, None, category)
        panels.append(_Panel(f"{metric}, {views[0].category_name(category)}", marks))
    return panels


def _answers(views: Sequence[RunView]) -> list[_Panel]:
    """A panel for each scale on which answers were graded."""
    answered = {v.label: v.answers["figures"] for v in views if v.answers and not v.longitudinal}
    panels = []
    for metric in dict.fromkeys(own["metric"] for own in answered.values()):
        found: dict[str, Figures] = {
            label: own["answerable"] for label, own in answered.items() if own["metric"] == metric
        }
        panels.append(_Panel(f"answers: {metric}", _marks(views, found)))
    return panels


def _checkpoints(views: Sequence[RunView]) -> list[_Panel]:
    """The composite score at the last checkpoint."""
    found: dict[str, Figures] = {}
    last = ""
    for view in views:
        if view.longitudinal and view.judged:
            point = view.longitudinal["checkpoints"][-1]
            found[view.label], last = point["overall"], str(point["label"])
    return [_Panel(f"composite of 6 at {last}", _marks(views, found))] if found else []


def _marks(views: Sequence[RunView], found: dict[str, Figures]) -> list[SystemMark]:
    marks = []
    for place, view in enumerate(views):
        own = found.get(view.label, {})
        low, high = own.get("ci95") or (None, None)
        mark = SystemMark(view.label, own.get("mean"), low, high, style=place)
        marks.append(mark._replace(is_baseline=view.is_baseline))
    return marks
