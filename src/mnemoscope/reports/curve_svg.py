"""A curve with its intervals as a band, drawn as SVG for pages that may not load pictures."""

from __future__ import annotations

from collections.abc import Sequence

from mnemoscope.reports.tables import MISSING, ChartPoint, CurveChart, brackets
from mnemoscope.text.display import as_html, one_line

_WIDE, _HIGH = 640, 220
_LEFT, _RIGHT, _TOP, _FOOT = 34, 12, 10, 34
_TICKS = 8
"""The most days that are named below the curve."""
_LEAST_GAP = 34
"""Between the names of two days."""


def curve_svg(chart: CurveChart) -> str:
    """The drawing and, for screen readers, its values in words."""
    days = [point.day for point in (*chart.points, *chart.others)]
    if not days:
        return ""
    first, whole = min(days), max(max(days) - min(days), 1)

    def x(day: float) -> float:
        return _LEFT + (day - first) / whole * (_WIDE - _LEFT - _RIGHT)

    def y(value: float) -> float:
        return _TOP + (1 - min(max(value / chart.best, 0), 1)) * (_HIGH - _TOP - _FOOT)

    def line(points: Sequence[ChartPoint]) -> str:
        return " ".join(f"{x(point.day):.1f},{y(point.value):.1f}" for point in points)

    parts = []
    for share in (0, 0.5, 1):
        at, value = y(share * chart.best), share * chart.best
        parts.append(f'<path class="grid" d="M{_LEFT} {at:.1f}H{_WIDE - _RIGHT}"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{at + 4:.1f}" text-anchor="end">{value:g}</text>')
    banded = [(point, point.interval) for point in chart.points if point.interval]
    ends = [f"{x(point.day):.1f},{y(high):.1f}" for point, (_, high) in banded]
    ends += [f"{x(point.day):.1f},{y(low):.1f}" for point, (low, _) in reversed(banded)]
    parts.append(f'<polygon class="band" points="{" ".join(ends)}"/>')
    parts.append(f'<polyline class="other" points="{line(chart.others)}"/>')
    parts.append(f'<polyline class="curve" points="{line(chart.points)}"/>')
    parts += [
        f'<circle class="point" cx="{x(point.day):.1f}" cy="{y(point.value):.1f}" r="3">'
        f"<title>{_about(point)}</title></circle>"
        for point in chart.points
    ]
    shown: list[float] = []
    named = sorted({point.day: point for point in (*chart.others, *chart.points)}.items())
    for place, (day, point) in enumerate(named):
        is_end = place == len(named) - 1
        step = max(1, len(named) // _TICKS)
        if not is_end and (place % step or x(named[-1][0]) - x(day) < _LEAST_GAP):
            continue
        if shown and x(day) - shown[-1] < _LEAST_GAP:
            continue
        shown.append(x(day))
        anchor = "end" if is_end and place else "start" if not place else "middle"
        parts.append(
            f'<text x="{x(day):.1f}" y="{_HIGH - 16}" text-anchor="{anchor}">'
            f"{as_html(one_line(point.label, 12))}</text>"
        )
    told = "; ".join(_about(point) for point in chart.points)
    other = f' <span class="other"></span> {as_html(chart.other_name)}' if chart.others else ""
    return (
        f'<figure class="ageing"><svg viewBox="0 0 {_WIDE} {_HIGH}" role="img" '
        f'aria-label="{as_html(chart.name)}: {told}">{"".join(parts)}</svg>'
        f'<figcaption><span class="curve"></span> {as_html(chart.name)}, with 95 % intervals'
        f"{other}</figcaption></figure>"
    )


def _about(point: ChartPoint) -> str:
    interval = brackets(point.interval, 2) or MISSING
    return as_html(one_line(f"{point.label}: {point.value:.2f} {interval}"))
