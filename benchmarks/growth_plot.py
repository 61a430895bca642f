"""The plot of benchmarks/growth.py: CPU time and peak memory against size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from growth_fit import FEWEST_SIZES, UPPER_RANGE
from growth_points import COSTS, Axis, Measured, curves
from mnemoscope.reports.plot_style import Look, Picture, Theme, plot_page, style_of

_UNITS = {"CPU time": ("CPU seconds", 1.0), "peak memory": ("peak memory, MB", 1e6)}
"""What the axis of a cost says, and what it is divided by."""
_FEW_TICKS = 5
"""An axis with as few sizes names each of them."""


def picture(found: Sequence[Measured]) -> Picture | None:
    """CPU time above, memory below; a column for each axis with enough sizes, if there is one."""
    known = {key: points for key, points in curves(found).items() if len(points) >= FEWEST_SIZES}
    shown = list(dict.fromkeys(axis for axis, _ in known))
    if not shown:
        return None
    systems = list(dict.fromkeys(system for _, system in known))
    notes = ["Both axes are logarithmic. Dashed: growth in proportion to the size."]
    title = "Cost of a whole run against its size"
    with plot_page(Look(width="page"), 4.2, title, notes, systems) as sheet:
        grid = sheet.figure.subplots(2, len(shown), squeeze=False, sharex="col", sharey="row")
        lines: dict[str, Any] = {}
        for row, (cost, (label, scale)) in enumerate(_UNITS.items()):
            every = [COSTS[cost](one) / scale for own in known.values() for one in own]
            for column, axis in enumerate(shown):
                axes = grid[row, column]
                sheet.tidy(axes)
                axes.grid(axis="both", color=sheet.theme.grid, linewidth=0.6)
                for place, system in enumerate(systems):
                    points = known.get((axis, system), [])
                    up = [COSTS[cost](one) / scale for one in points]
                    if points:
                        sizes = [one.size for one in points]
                        lines[system] = _curve(axes, sizes, up, place, sheet.theme)
                axes.set(xscale="log", yscale="log", ylim=(min(every) / 1.6, max(every) * 1.6))
                axes.set_xlabel(axis if row else "")
                axes.set_ylabel("" if column else label)
                _ticks(axes, known, axis)
        sheet.legend([lines[system] for system in systems], systems)
        return sheet.picture()


def _curve(
    axes: Any, sizes: Sequence[int], costs: Sequence[float], place: int, theme: Theme
) -> Any:
    """The costs of one system, and a line of proportional growth that ends at the last."""
    style = style_of(place, theme, is_baseline=False)
    [line] = axes.plot(sizes, costs, linewidth=1.2, markersize=3.4, **style)
    last = sizes[-1]
    first = max(last / UPPER_RANGE, sizes[0])
    axes.plot(
        [first, last], [costs[-1] * first / last, costs[-1]], color=theme.faint, linewidth=0.8,
        linestyle=(0, (4, 3)), zorder=0.5,
    )  # fmt: skip
    return line


def _ticks(axes: Any, known: Mapping[tuple[Axis, str], Sequence[Measured]], axis: Axis) -> None:
    sizes = {one.size for (of, _), own in known.items() for one in own if of == axis}
    if len(sizes) <= _FEW_TICKS:
        axes.set_xticks(sorted(sizes))
    for side in (axes.xaxis, axes.yaxis):
        side.set_major_formatter(lambda value, _: f"{value:,.10g}")
        side.set_minor_formatter(lambda value, _: "")
