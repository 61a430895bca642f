"""Forest plots: differences against a reference, with the intervals of the decision engine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from mnemoscope._store.errors import UsageError
from mnemoscope.analysis.comparison import OVERALL, Comparison
from mnemoscope.analysis.system_groups import SystemGroups
from mnemoscope.reports.dot_plots import row_height
from mnemoscope.reports.plot_style import Look, Picture, plot_page, short


class DifferenceMark(NamedTuple):
    """A difference against the reference, with the interval that decides."""

    label: str
    delta: float
    low: float
    high: float
    said: str
    """The verdict."""
    role: str = "primary"
    """primary, secondary, or anything else for exploration."""


def metrics_forest(found: Comparison, look: Look, notes: Sequence[str]) -> Picture:
    """Two runs: the difference in each metric, with the intervals that decide."""
    marks = []
    for row in (row for row in found.rows if row.scope == OVERALL):
        said: str = row.verdict or "exploratory"
        if row.confirmed is False and row.verdict not in (None, "cannot tell"):
            said += " (not confirmed)"
        marks.append(DifferenceMark(row.metric, row.delta, *row.shown, said, row.role))
    level = 100 - 100 * found.declared.alpha
    legend = (
        f"Square: the primary metric, which decides, with its {level:g} % "
        "interval. Circles: secondary metrics, with simultaneous intervals. "
        f"{found.paired:,} questions in {found.clusters:,} {found.rows[0].units[1]}s."
    )
    return forest_picture(
        marks,
        f"{found.cand} − {found.base}",
        look,
        title=f"{found.benchmark}: {found.cand} against {found.base}",
        notes=[legend, *notes],
    )


def systems_forest(
    groups: SystemGroups,
    reference: str,
    baselines: Collection[str],
    look: Look,
    notes: Sequence[str],
) -> Picture:
    """Several runs: the difference of each system to the reference in one metric.

    Baselines are not drawn: far below all systems, they would leave no room for the others.
    """
    marks = []
    for pair in groups.pairs:
        pair_of = {pair.first, pair.second}
        if reference not in pair_of or (pair_of - {reference}) & set(baselines):
            continue
        is_better = pair.second == reference
        sign = 1.0 if is_better else -1.0
        low, high = sorted(sign * end for end in pair.ci95)
        said = ("better" if is_better else "worse") if pair.is_decided else "cannot tell"
        label = pair.first if is_better else pair.second
        marks.append(DifferenceMark(label, sign * pair.delta, low, high, said))
    marks.sort(key=lambda mark: -mark.delta)
    legend = (
        f"Simultaneous 95 % intervals, with one error rate for all {len(groups.pairs)} pairs of "
        f"{len(groups.systems)} systems. {groups.questions:,} questions in {groups.clusters:,} "
        "conversations."
    )
    if not marks:
        raise UsageError("only baselines are left to compare with the reference")
    return forest_picture(
        marks,
        f"{groups.metric}, system − {reference}",
        look,
        title=f"{groups.benchmark}: {groups.metric} against {reference}",
        notes=[legend, *notes],
    )


def forest_picture(
    marks: Sequence[DifferenceMark], across: str, look: Look, *, title: str, notes: Sequence[str]
) -> Picture:
    """Differences down, better to the right of the line at zero."""
    height = row_height(look) * len(marks) + 0.42
    with plot_page(look, height, title, notes) as page:
        theme, axes = page.theme, page.figure.add_subplot()
        page.tidy(axes)
        axes.grid(axis="x", color=theme.grid, linewidth=0.6)
        axes.axvline(0, color=theme.text, linewidth=0.8)
        for place, mark in enumerate(marks):
            decided = {"better": theme.colours[0], "worse": theme.colours[1]}
            colour = decided.get(mark.said.partition(" (")[0], theme.faint)
            axes.plot([mark.low, mark.high], [place, place], color=colour, linewidth=1.4)
            is_primary = mark.role == "primary"
            axes.plot(
                [mark.delta], [place], marker="s" if is_primary else "o", color=colour,
                markersize=4.8 if is_primary else 4,
                markerfacecolor=colour if mark.role in ("primary", "secondary") else theme.paper,
            )  # fmt: skip
            axes.annotate(
                f"{mark.delta:+.3f}  {mark.said}".replace("-", "−"), (1.02, place),
                xycoords=("axes fraction", "data"), color=theme.text, va="center",
                weight="bold" if is_primary else "normal", annotation_clip=False,
            )  # fmt: skip
        axes.set_yticks(range(len(marks)), [short(mark.label, look.label) for mark in marks])
        axes.tick_params(axis="y", length=0)
        axes.set_ylim(len(marks) - 0.4, -0.6)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(short(across, 52))
        return page.picture()
