"""Plots of curves: recall against k and against tokens, ageing over checkpoints, latency."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from mnemoscope.reports.plot_style import Look, Picture, plot_page, style_of

_HEIGHTS = {"column": 2.0, "page": 3.0}
"""Inches of the axes."""
_STEPS = 200
"""Points of a latency curve: more cannot be seen and make the file large."""
_LONGEST_MARKED = 16
"""Curves with more points are drawn without markers."""


class CurvePoint(NamedTuple):
    """One point; without a value, `low` and `high` are the bounds of what it may be."""

    x: float
    y: float | None
    low: float | None
    high: float | None


class Curve(NamedTuple):
    """The curve of one system."""

    label: str
    points: Sequence[CurvePoint]
    is_baseline: bool = False


class AxisText(NamedTuple):
    """What the axes say; `ticks` are the only values that the x axis names, if there are any."""

    x: str
    y: str
    ticks: Sequence[float] = ()
    is_log: bool = False
    top: float | None = 1.0
    """The largest value of the y axis, if it has a limit."""


def curves_picture(
    curves: Sequence[Curve],
    text: AxisText,
    look: Look,
    *,
    title: str,
    notes: Sequence[str] = (),
    chance: Curve | None = None,
) -> Picture:
    """A line for each system with its 95 % interval as a band."""
    labels = [curve.label for curve in curves] + ([chance.label] if chance else [])
    with plot_page(look, _HEIGHTS[look.width], title, notes, labels) as page:
        theme, axes = page.theme, page.figure.add_subplot()
        page.tidy(axes)
        axes.grid(axis="y", color=theme.grid, linewidth=0.6)
        handles = []
        for place, curve in enumerate(curves):
            style = style_of(place, theme, is_baseline=curve.is_baseline)
            marker = style["marker"] if len(curve.points) <= _LONGEST_MARKED else ""
            known = [one for one in curve.points if one.y is not None]
            banded = [one for one in known if one.low is not None and one.high is not None]
            if banded and not curve.is_baseline:  # more bands could not be told apart
                axes.fill_between(
                    [one.x for one in banded],
                    [one.low or 0.0 for one in banded],
                    [one.high or 0.0 for one in banded],
                    color=style["color"],
                    alpha=0.16,
                    linewidth=0,
                )
            [line] = axes.plot(
                [one.x for one in known],
                [one.y or 0.0 for one in known],
                color=style["color"],
                linestyle=style["linestyle"],
                linewidth=1.2,
                marker=marker,
                markersize=3.4,
                markerfacecolor=theme.paper if curve.is_baseline else style["color"],
                markeredgewidth=0.8,
            )
            handles.append(line)
            for one in curve.points:  # only bounds are known
                if one.y is None and one.low is not None and one.high is not None:
                    axes.plot(
                        [one.x] * 2, [one.low, one.high], color=style["color"], linewidth=0.9,
                        linestyle=(0, (1, 1)), marker="_", markersize=5,
                    )  # fmt: skip
        if chance is not None:
            known = [one for one in chance.points if one.y is not None]
            [line] = axes.plot(
                [one.x for one in known], [one.y or 0.0 for one in known], color=theme.faint,
                linewidth=0.9, linestyle=(0, (1, 1)),
            )  # fmt: skip
            handles.append(line)
        if text.is_log:
            axes.set_xscale("log")
        if text.ticks:
            axes.set_xticks(list(text.ticks), [f"{tick:,.0f}" for tick in text.ticks], minor=False)
            axes.set_xticks([], minor=True)
        axes.set_ylim(bottom=0)
        if text.top is not None:
            axes.set_ylim(top=text.top * 1.02)
        axes.set_xlabel(text.x)
        axes.set_ylabel(text.y)
        page.legend(handles, labels)
        return page.picture()


class LatencyCurve(NamedTuple):
    """The times of one system, in milliseconds."""

    label: str
    milliseconds: Sequence[float]
    p50: float
    p95: float
    p99: float
    is_baseline: bool = False


def latency_picture(
    curves: Sequence[LatencyCurve], look: Look, *, title: str, notes: Sequence[str] = ()
) -> Picture:
    """The share of recalls that took at most so long, with the 50th, 95th and 99th percentile."""
    from matplotlib.lines import Line2D

    labels = [curve.label for curve in curves]
    with plot_page(look, _HEIGHTS[look.width], title, notes, labels) as page:
        theme, axes = page.theme, page.figure.add_subplot()
        page.tidy(axes)
        axes.grid(axis="both", color=theme.grid, linewidth=0.6)
        handles = []
        for place, curve in enumerate(curves):
            style = style_of(place, theme, is_baseline=curve.is_baseline)
            across, up = _steps(sorted(curve.milliseconds))
            axes.plot(
                across, up, drawstyle="steps-post", color=style["color"], linewidth=1.2,
                linestyle=style["linestyle"],
            )  # fmt: skip
            marks = {"color": style["color"], "marker": style["marker"], "markersize": 4}
            marks |= {"markeredgecolor": theme.paper, "markeredgewidth": 0.5}
            ends = [curve.p50, curve.p95, curve.p99]
            axes.plot(ends, [0.5, 0.95, 0.99], linestyle="", **marks)
            handles.append(Line2D([], [], linestyle=style["linestyle"], linewidth=1.2, **marks))
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_ylim(0, 1.02)
        axes.set_yticks([0, 0.25, 0.5, 0.75, 0.95], ["0", "0.25", "p50", "0.75", "p95"])
        axes.set_xlabel("milliseconds for one recall")
        axes.set_ylabel("share of recalls")
        page.legend(handles, labels)
        return page.picture()


def _steps(ordered: Sequence[float]) -> tuple[list[float], list[float]]:
    """The steps of the distribution; many times are thinned out evenly."""
    count = len(ordered)
    places = sorted({round(step * (count - 1) / _STEPS) for step in range(_STEPS + 1)})
    pairs = [(ordered[place], (place + 1) / count) for place in places]
    last = [list(same)[-1] for _, same in groupby(pairs, key=lambda pair: pair[0])]
    # A logarithmic axis has no zero.
    return [max(time, 1e-4) for time, _ in last], [share for _, share in last]
