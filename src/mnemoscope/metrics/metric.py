"""The base class of metrics, and their input: the top k of a ranking and of a random ranking."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

if TYPE_CHECKING:  # few commands compute values, and numpy is slow to import
    from numpy.typing import NDArray


class TopK(NamedTuple):
    """The first k places of one ranking, compared with the evidence of its question."""

    k: int
    relevant: int
    """Places with evidence that no earlier place has; at least one."""
    found: int
    """Evidence ids at those places; a hit that merges memories has several."""
    total: int
    """Evidence ids of the question, including those that the pool does not contain."""
    first: int
    """Rank of the first evidence, counted from 1."""
    gain: float
    """Discounted gain: the sum of grade / log2(rank + 1)."""
    ideal: float
    """The discounted gain of the best ranking of the whole evidence."""
    precisions: float
    """The sum of the precisions at the ranks of the evidence ids found."""


class TopKs(NamedTuple):
    """The first k places of many rankings: the fields of `TopK`, an entry for each ranking."""

    k: int
    relevant: NDArray[Any]
    found: NDArray[Any]
    total: NDArray[Any]
    first: NDArray[Any]
    gain: NDArray[Any]
    ideal: NDArray[Any]
    precisions: NDArray[Any]


class RandomTopK(NamedTuple):
    """The first k places of a random order of the pool, in which all orders are equally likely."""

    k: int
    drawn: int
    """Places that are filled: fewer than k if the ranking or the pool is shorter."""
    pool: int
    reachable: int
    """Evidence ids that the pool contains; at least one."""
    total: int
    mean_grade: float
    """Mean grade of the evidence, 1 without grades."""
    ideal: float
    missed: Sequence[float]
    """The probability that the first n places contain no evidence, for n from 0 to the smaller of
    `drawn` and the deepest k."""


class PlaceGroup(NamedTuple):
    """Consecutive places of a ranking that have no order: a hit that names several memories."""

    before: int
    """Places in front of the group."""
    size: int
    grades: tuple[int, ...]
    """The grades of the evidence ids in the group that no earlier group has; at least one id."""

    @property
    def evidence(self) -> int:
        return len(self.grades)

    def within(self, k: int) -> int:
        """How many of its places are in the top k."""
        return min(self.size, max(0, k - self.before))


class UnorderedTopK(NamedTuple):
    """The first k places of a ranking in which some hits take several places without an order."""

    k: int
    groups: tuple[PlaceGroup, ...]
    """Those with new evidence that begin in the top k, in order; at least one."""
    total: int
    """Evidence ids of the question, including those that the pool does not contain."""
    ideal: float


class Metric(ABC):
    """One way to score a ranking; the docstring of a subclass is the metric's definition.

    Values lie between 0 and 1. A top k without evidence scores 0, and `value` is not called for it.
    """

    name: ClassVar[str]
    """As in `name@k`."""
    at: ClassVar[Literal["k", "depth", "all"]] = "k"
    """Computed at every usual k, at 10 and the depth of the rankings, or over the whole ranking."""
    interval: ClassVar[Literal["proportion", "mean"]] = "mean"
    """Proportions are 0 or 1 for each question: `compare` counts gained and lost ones, and the
    effect is Cohen's h. Of means it is d_z. Both have the same interval."""
    headline: ClassVar[tuple[int, ...] | Literal["deepest"]] = ()
    """The k's at which summary tables show it and `compare` tests it by default."""
    rank: ClassVar[int] = 100
    """Its order in summary tables: lower numbers come first."""
    reference: ClassVar[str] = ""
    """Where it was defined."""
    aliases: ClassVar[tuple[str, ...]] = ()
    """Its names in other tools."""

    @abstractmethod
    def value(self, top: TopK) -> float:
        """The score of one ranking."""

    def values(self, tops: TopKs) -> Any:
        """The scores of many rankings as an array, each exactly the `value` of its ranking.

        None means that `value` computes them one by one. It is not used for a subclass that
        overrides `value` alone.
        """
        return None

    def chance(self, top: RandomTopK) -> float | None:
        """The expected score of a random ranking; None if it is unknown."""
        return None

    def expectation(self, top: UnorderedTopK) -> float | None:
        """The mean score over all orders of each group; None if it must be sampled."""
        return None

    def ceiling(self, best: TopK) -> float:
        """The best possible score: that of a ranking with all reachable evidence first."""
        return self.value(best)
