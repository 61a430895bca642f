"""What one simulated cell of the calibration page is, and how it stands to bounds and facts."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple
from zlib import crc32

import numpy as np

from calibration_models import Random

SEED = 15


class Bound(NamedTuple):
    """What is required of a rate; no bound is required of cells that are shown as they are."""

    low: float = 0.0
    high: float = 1.0

    def __str__(self) -> str:
        if self.low == 0:
            return f"≤ {100 * self.high:.1f}"
        if self.high == 1:
            return f"≥ {100 * self.low:.1f}"
        return f"{100 * self.low:.1f}–{100 * self.high:.1f}"


class Facts(NamedTuple):
    """What the specification of the rule measured, once, with another program."""

    low: float
    high: float
    repetitions: int
    comparable: bool = True
    """False if it was measured on another population, so that only the order of size can agree."""
    rounding: float = 0.0005
    """Half a unit of the last digit that was printed."""

    def __str__(self) -> str:
        figures = [f"{100 * end:.1f}" for end in dict.fromkeys((self.low, self.high))]
        return "–".join(figures)


class Cell(NamedTuple):
    """A simulated rate."""

    section: str
    labels: tuple[str, ...]
    rate: float
    repetitions: int
    required: Bound | None = None
    facts: Facts | None = None

    @property
    def se(self) -> float:
        return sqrt(self.rate * (1 - self.rate) / self.repetitions)

    @property
    def holds(self) -> bool | None:
        if self.required is None:
            return None
        return self.required.low <= self.rate <= self.required.high

    @property
    def z(self) -> float | None:
        """The distance to the facts in standard errors of both; 0 inside their range."""
        if self.facts is None or not self.facts.comparable:
            return None
        low, high = self.facts.low - self.facts.rounding, self.facts.high + self.facts.rounding
        nearest = min(max(self.rate, low), high, 1.0)
        # At a rate of 0 or 1 the estimated error would be 0: one event is assumed at least.
        variance = 0.0
        for rate, count in ((self.rate, self.repetitions), (nearest, self.facts.repetitions)):
            share = min(max(rate, 1 / count), 1 - 1 / count)
            variance += share * (1 - share) / count
        return (self.rate - nearest) / sqrt(variance)

    @property
    def agrees(self) -> bool | None:
        z = self.z
        return None if z is None else abs(z) < 3


class Plan(NamedTuple):
    """The simulated power of the rule, beside the power that the planner states beforehand."""

    setting: str
    delta: float
    actual: float
    repetitions: int
    planned: float
    closed: float
    required: bool
    facts: str = ""

    @property
    def se(self) -> float:
        return sqrt(self.actual * (1 - self.actual) / self.repetitions)

    @property
    def holds(self) -> bool:
        return abs(self.planned - self.actual) <= 0.03


class Task(NamedTuple):
    """A simulation that fills one or several cells. Its seed depends on its name only."""

    section: str
    name: str
    repetitions: int
    simulate: Callable[[Random, int], list[Cell | Plan]]

    def run(self, repetitions: int | None = None) -> list[Cell | Plan]:
        random = np.random.default_rng([SEED, crc32(f"{self.section} {self.name}".encode())])
        return self.simulate(random, repetitions or self.repetitions)


def share(
    repetitions: int,
    block: int,
    simulate: Callable[[int], np.ndarray[tuple[int, ...], np.dtype[np.bool_]]],
) -> float:
    """The share of true values, simulated in blocks so that they fit into the memory."""
    total = 0
    for start in range(0, repetitions, block):
        total += int(simulate(min(block, repetitions - start)).sum())
    return total / repetitions
