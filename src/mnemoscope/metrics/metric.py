"""What a metric is, and what it is given: the top k of one ranking, and of a random one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Literal, NamedTuple


class TopK(NamedTuple):
    """The first k places of one ranking, compared with the evidence of its question."""

    k: int
    relevant: int
    """Places that bring evidence which no earlier place brought; at least one."""
    found: int
    """Evidence ids that those places bring; one place brings several where memories are merged."""
    total: int
    """Evidence ids of the question, including those that the pool does not contain."""
    first: int
    """Rank of the first evidence, counted from 1."""
    gain: float
    """Discounted gain: the sum of grade / log2(rank + 1)."""
    ideal: float
    """The discounted gain of the best ranking of the whole evidence."""
    precisions: float
    """The sum, over the evidence ids found, of the precision at the rank that brings each."""


class RandomTopK(NamedTuple):
    """The first k places of a random order of the pool, in which all orders are equally likely."""

    k: int
    drawn: int
    """Places that are filled: fewer than k where the ranking or the pool is shorter."""
    pool: int
    reachable: int
    """Evidence ids that the pool contains; at least one."""
    total: int
    mean_grade: float
    """Mean grade of the evidence, 1 where it is not graded."""
    ideal: float
    missed: Sequence[float]
    """The probability that the first n places contain no evidence, for n from 0 to drawn, but not
    beyond the deepest k."""


class Metric(ABC):
    """One way to score a ranking; the docstring of a subclass is the metric's definition.

    Values lie between 0 and 1. A top k without evidence scores 0, and `value` is not called for it.
    """

    name: ClassVar[str]
    """As in `name@k`."""
    at: ClassVar[Literal["k", "depth", "all"]] = "k"
    """Computed at every usual k, at 10 and the depth of the rankings, or over the whole ranking."""
    interval: ClassVar[Literal["proportion", "mean"]] = "mean"
    """Proportions are 0 or 1 for each question: Wilson intervals, McNemar's test, gained and lost.
    Means get bootstrap intervals and a paired t-test."""
    headline: ClassVar[tuple[int, ...] | Literal["deepest"]] = ()
    """The k's at which summary tables show it and `compare` tests it by default."""
    rank: ClassVar[int] = 100
    """Its place in summary tables: lower numbers stand further left."""
    reference: ClassVar[str] = ""
    """Where it was defined."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """What other tools call it."""

    @abstractmethod
    def value(self, top: TopK) -> float:
        """The score of one ranking."""

    def chance(self, top: RandomTopK) -> float | None:
        """The expected score of a random ranking; None where it is not known."""
        return None

    def ceiling(self, best: TopK) -> float:
        """The best score that any ranking can get: that of the reachable evidence, best first."""
        return self.value(best)
