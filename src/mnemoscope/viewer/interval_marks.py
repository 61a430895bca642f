"""Small drawings of intervals, in SVG: a figure from 0 to its best value, or a difference."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from typing import NamedTuple

from mnemoscope.viewer.html_elements import NOTHING, Attribute, Html, el

_WIDTH, _HEIGHT = 120, 18
_MIDDLE = _HEIGHT / 2
_PLOT_WIDTH, _ROW_HEIGHT = 420, 34
_TICKS = 5


def level_mark(
    mean: float | None, interval: Sequence[float] | None, best: float = 1.0, low: float = 0.0
) -> Html:
    """A figure on the scale from `low` to `best`; the figure itself stands beside it as text."""
    if mean is None or not best > low:
        return NOTHING

    def at(value: float) -> float:
        return 4 + (_WIDTH - 8) * min(max((value - low) / (best - low), 0.0), 1.0)

    marks = [el("rect", x=4, y=_MIDDLE - 4, width=_WIDTH - 8, height=8, rx=2, class_="track")]
    marks.append(el("rect", x=4, y=_MIDDLE - 4, width=at(mean) - 4, height=8, rx=2, class_="bar"))
    if interval:
        left, right = at(interval[0]), at(interval[1])
        marks.append(el("line", x1=left, x2=right, y1=_MIDDLE, y2=_MIDDLE, class_="whisker"))
        for end in (left, right):
            marks.append(el("line", x1=end, x2=end, y1=4, y2=_HEIGHT - 4, class_="whisker"))
    size: dict[str, Attribute] = {
        "viewBox": f"0 0 {_WIDTH} {_HEIGHT}",
        "width": _WIDTH,
        "height": _HEIGHT,
    }
    return el("svg", *marks, class_="level", aria_hidden="true", focusable="false", **size)


class DifferenceScale(NamedTuple):
    """The scale that all rows of a forest plot share; zero is always on it."""

    low: float
    high: float
    step: float
    band: float | None

    @classmethod
    def of(cls, ends: Iterable[float], band: float | None) -> DifferenceScale:
        known = [0.0, *ends, *((-band, band) if band else ())]
        low, high = min(known), max(known)
        span = (high - low) or 0.1
        step = _round_step(span / _TICKS)
        return cls(floor(low / step) * step, ceil(high / step) * step or step, step, band)

    def at(self, value: float) -> float:
        share = (value - self.low) / (self.high - self.low)
        return 10 + (_PLOT_WIDTH - 20) * min(max(share, 0.0), 1.0)

    def ticks(self) -> list[float]:
        count = round((self.high - self.low) / self.step)
        return [self.low + place * self.step for place in range(count + 1)]


def difference_mark(
    scale: DifferenceScale, delta: float, interval: Sequence[float], verdict: str
) -> Html:
    """One row of a forest plot: the band, the zero line, the interval and the difference."""
    middle = _ROW_HEIGHT / 2
    left, right, here = scale.at(interval[0]), scale.at(interval[1]), scale.at(delta)
    marks = [
        *_background(scale, _ROW_HEIGHT),
        el("line", x1=left, x2=right, y1=middle, y2=middle, class_="whisker"),
        *(
            el("line", x1=x, x2=x, y1=middle - 6, y2=middle + 6, class_="whisker")
            for x in (left, right)
        ),
        el("rect", x=here - 5, y=middle - 5, width=10, height=10, class_="point"),
    ]
    about = f"difference {delta:+.4f}, interval from {interval[0]:+.4f} to {interval[1]:+.4f}"
    size: dict[str, Attribute] = {
        "viewBox": f"0 0 {_PLOT_WIDTH} {_ROW_HEIGHT}",
        "width": _PLOT_WIDTH,
    }
    kind = f"forest {verdict.replace(' ', '-')}"
    return el("svg", *marks, class_=kind, role="img", aria_label=about, height=_ROW_HEIGHT, **size)


def axis_mark(scale: DifferenceScale) -> Html:
    """The axis below a forest plot."""
    marks = []
    digits = max(0, -floor(log10(scale.step) + 1e-9))
    for tick in scale.ticks():
        x = scale.at(tick)
        marks.append(el("line", x1=x, x2=x, y1=0, y2=6, class_="axis"))
        text = f"{tick:+.{digits}f}" if abs(tick) > scale.step / 2 else "0"
        anchor = "middle"
        if x < 30 or x > _PLOT_WIDTH - 30:
            anchor = "start" if x < 30 else "end"
        x = 2 if anchor == "start" else _PLOT_WIDTH - 2 if anchor == "end" else x
        marks.append(el("text", text, x=x, y=20, text_anchor=anchor))
    size: dict[str, Attribute] = {
        "viewBox": f"0 0 {_PLOT_WIDTH} 26",
        "width": _PLOT_WIDTH,
        "height": 26,
    }
    return el("svg", *marks, class_="forest", aria_hidden="true", focusable="false", **size)


def _background(scale: DifferenceScale, height: float) -> list[Html]:
    marks = []
    if scale.band:
        left, right = scale.at(-scale.band), scale.at(scale.band)
        marks.append(el("rect", x=left, y=0, width=right - left, height=height, class_="band"))
    zero = scale.at(0.0)
    return [*marks, el("line", x1=zero, x2=zero, y1=0, y2=height, class_="zero")]


def _round_step(step: float) -> float:
    """The next of 1, 2, 5, 10 … times a power of ten."""
    power = 10.0 ** floor(log10(step))
    return next(one * power for one in (1, 2, 5, 10) if one * power >= step * (1 - 1e-9))
