"""The figures that the runs of a release gave, to hold what a text says against them.

Ends of intervals are not held: they depend on the method. A number agrees if rounding can make it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mnemoscope.analysis.compare import OVERALL, Comparison, Row
from mnemoscope.release.claim_patterns import PValue, estimates, p_values
from mnemoscope.release.state import Release

_POINTS = re.compile(r"pp|points?", re.IGNORECASE)


def matches(name: str, metric: str) -> bool:
    """`mrr` in a text means any mrr@k, `recall` any recall@k."""
    return name == metric or ("@" not in name and metric.startswith(f"{name}@"))


class Known:
    """Levels, differences and p-values by metric."""

    def __init__(self, release: Release, found: Sequence[Comparison]) -> None:
        self.rows = [row for one in found for row in one.rows]
        self.levels: list[tuple[str, float]] = [
            (row.metric, value) for row in self.rows for value in (row.base, row.cand)
        ]
        for record in release.records():
            self.levels += _levels(release.run(record).read_json("metrics.json"))

    def strange(self, names: Iterable[str], text: str) -> list[str]:
        """The figures and p-values of a text that no run gave for these metrics."""
        names = list(names)
        said = [n[0].strip() for n in estimates(text) if not self.has(names, n[0])]
        return said + [f"p={p.value:g}" for p in p_values(text) if not self.allows(names, p)]

    def has(self, names: Iterable[str], figure: str, points: bool = False) -> bool:
        """Whether a run gave it; a bare number may be a share, with `points` it is none."""
        digits = re.sub(r"[^\d.]", "", figure)
        slack = 0.51 * 10 ** -len(digits.partition(".")[2])
        return any(abs(float(digits) - one) <= slack for one in self._like(names, figure, points))

    def allows(self, names: Iterable[str], p: PValue) -> bool:
        """Whether no smaller p is written than the runs gave; a larger one claims less."""
        given = [row.p_raw if p.raw else row.p_corrected for row in self.of(names)]
        return not given or any(one <= p.value + p.slack for one in given)

    def of(self, names: Iterable[str]) -> list[Row]:
        names = list(names)
        return [row for row in self.rows if any(matches(name, row.metric) for name in names)]

    def _like(self, names: Iterable[str], figure: str, points: bool) -> Iterator[float]:
        """Everything known that could be written in the figure's unit."""
        names = list(names)
        percent = "%" in figure or "percent" in figure.lower()
        differences = [abs(row.delta) for row in self.of(names)]
        if points or _POINTS.search(figure):
            yield from (100 * one for one in differences)
            return
        levels = [value for metric, value in self.levels if any(matches(n, metric) for n in names)]
        scale = 100 if percent else 1
        yield from (scale * one for one in [*levels, *differences])
        if percent:
            yield from (100 * abs(row.delta) / row.base for row in self.of(names) if row.base)


def _levels(recorded: dict[str, Any]) -> Iterator[tuple[str, float]]:
    for scope in (recorded[OVERALL], *recorded["by_category"].values()):
        for metric, figure in scope.items():
            if isinstance(figure, dict) and "mean" in figure:
                yield metric, figure["mean"]
