"""The plot of a load test: percentiles of latency against clients and against the rate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from mnemoscope.loadtest.load_figures import LoadStep
from mnemoscope.loadtest.load_result import LoadResult
from mnemoscope.reports.plot_style import LINES, Look, PlotPage, plot_page, style_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_HEIGHT = 2.8
"""Inches of the axes."""
_DRAWN = ("p50", "p95", "p99")
_AXES = {"closed": "clients (closed loop)", "open": "requests due each second (open loop)"}


def draw(result: LoadResult) -> bytes:
    """A PNG file: a colour for each system, a line style for each percentile, p99 with its band."""
    loops = [loop for loop in _AXES if any(step.loop == loop for step in result.steps)]
    systems = list(dict.fromkeys(step.system for step in result.steps))
    labels = [f"{system} {name}" for system in systems for name in _DRAWN]
    writers = result.options.writers
    title = f"Latency of recalls under load, {result.benchmark}, {result.memories:,} memories" + (
        f", {writers} writer{'s' if writers > 1 else ''}" if writers else ""
    )
    notes = ["Latency counts from the time at which a request was due. The band is that of p99."]
    with plot_page(Look(width="page"), _HEIGHT, title, notes, labels) as page:
        all_axes = page.figure.subplots(1, len(loops), squeeze=False, sharey=True)[0]
        handles: list[Line2D] = []
        for axes, loop in zip(all_axes, loops, strict=True):
            own = [step for step in result.steps if step.loop == loop]
            handles = _draw_loop(page, axes, own, systems)
            axes.set_xlabel(_AXES[loop])
        all_axes[0].set_ylabel("milliseconds")
        page.legend(handles, labels)
        return page.picture().content


def _draw_loop(
    page: PlotPage, axes: Axes, steps: Sequence[LoadStep], systems: Sequence[str]
) -> list[Line2D]:
    from matplotlib.ticker import LogLocator

    page.tidy(axes)
    axes.grid(axis="y", color=page.theme.grid, linewidth=0.6)
    handles = []
    for place, system in enumerate(systems):
        style = style_of(place, page.theme, is_baseline=False)
        own = sorted((step for step in steps if step.system == system), key=_load)
        for name, line in zip(_DRAWN, LINES, strict=False):
            known = [
                (_load(step), value, step.latency_ms[name].ci95)
                for step in own
                if (value := step.latency_ms[name].value) is not None
            ]
            handles += axes.plot(
                [x for x, _, _ in known],
                [value for _, value, _ in known],
                color=style["color"],
                marker=style["marker"],
                linestyle=line,
                linewidth=1.2,
                markersize=3.4,
            )
            if len(known) == 1:  # no line and no band to see
                x, value, ends = known[0]
                low, high = ends or (value, value)
                reach = [[max(0, value - low)], [max(0, high - value)]]
                axes.errorbar([x], [value], yerr=reach, color=style["color"], capsize=3)
                axes.annotate(name, (x, value), (8, 0), textcoords="offset points", va="center")
            banded = [(x, ends) for x, _, ends in known if ends is not None and name == "p99"]
            axes.fill_between(
                [x for x, _ in banded],
                [low for _, (low, _) in banded],
                [high for _, (_, high) in banded],
                color=style["color"],
                alpha=0.16,
                linewidth=0,
            )
    axes.set_xscale("log")
    axes.set_yscale("log")
    tested = sorted({_load(step) for step in steps})
    axes.set_xticks(tested, [f"{value:g}" for value in tested])
    if len(tested) == 1:
        axes.set_xlim(tested[0] / 2, tested[0] * 2)
    axes.minorticks_off()
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    return handles


def _load(step: LoadStep) -> float:
    return step.clients if step.rate is None else step.rate
