"""How well a benchmark tells systems apart: spread, saturation, dead questions, smallest gap."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import isfinite
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.stats.clustered import ALPHA, cluster_sums, difference
from mnemoscope.stats.power import detectable

Floats = NDArray[np.float64]
_SAME = 1e-9


class Spread(NamedTuple):
    """How far the systems lie apart, and how much room is left above the best."""

    lowest: float
    highest: float
    saturation: float | None
    """The part of the way from chance to the oracle that the best system has gone; None if there
    is no way between them."""

    @property
    def width(self) -> float:
        return self.highest - self.lowest


class DeadQuestions(NamedTuple):
    """Shares of the questions that say nothing about the differences between these systems."""

    none: float
    """No system finds anything."""
    full: float
    """Every system finds all that the oracle finds."""
    equal: float
    """All systems have the same value, the two above included."""


class SmallestDifferences(NamedTuple):
    """The difference that is found with power 0.8, over the pairs of systems."""

    least: float
    median: float
    most: float


def spread(values: Floats, oracle: float, chance: float) -> Spread:
    """`values` has a row for each question and a column for each system."""
    means = values.mean(axis=0)
    highest, way = float(means.max()), oracle - chance
    gone = (highest - chance) / way if way > _SAME else None
    return Spread(float(means.min()), highest, gone)


def dead_questions(values: Floats, oracle: Floats) -> DeadQuestions:
    """`oracle` has the value of each question if all its evidence is ranked first."""
    low, high = values.min(axis=1), values.max(axis=1)
    none = high <= _SAME
    full = ~none & (low >= oracle - _SAME)
    equal = high - low <= _SAME
    return DeadQuestions(*(float(one.mean()) for one in (none, full, equal | none | full)))


def smallest_differences(values: Floats, clusters: Sequence[str]) -> SmallestDifferences | None:
    """None for fewer than two systems, or if no difference can be planned."""
    found = []
    for first, second in combinations(range(values.shape[1]), 2):
        delta = values[:, [second]] - values[:, [first]]
        row = difference(cluster_sums(delta, clusters).column(0))
        found.append(detectable(row, row.critical(ALPHA)).delta)
    found = [one for one in found if isfinite(one)]
    if not found:
        return None
    return SmallestDifferences(min(found), float(np.median(found)), max(found))
