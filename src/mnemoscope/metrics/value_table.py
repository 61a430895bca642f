"""Score many rankings at once: one row a ranking, one column a metric.

Rankings whose evidence is at the same ranks have the same row, which is computed once. Sums are
taken in the order of the ranks and logarithms from `math`, so that a row has the same bits as the
values of its ranking alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import chain
from math import log2
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.metrics.installed import metrics_at
from mnemoscope.metrics.metric import Metric, TopK, TopKs
from mnemoscope.metrics.ndcg import ideal_gains

Floats = NDArray[np.float64]


class SharedRows(NamedTuple):
    """A table in which rankings share rows."""

    rows: Floats
    """The distinct rows."""
    places: list[int]
    """Which of them each ranking has."""


def value_table(
    positions: Iterable[tuple[int, ...]],
    totals: Iterable[int],
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
) -> Floats:
    """Compute the values of rankings from the ranks of their evidence, in ascending order.

    A total is the number of all evidence ids of a question; none of them has a grade.
    """
    shared = shared_rows(positions, totals, ks, cuts)
    return shared.rows[shared.places]


def shared_rows(
    positions: Iterable[tuple[int, ...]],
    totals: Iterable[int],
    ks: tuple[int, ...],
    cuts: tuple[int, ...],
) -> SharedRows:
    """The same, with each distinct row once."""
    known: dict[tuple[tuple[int, ...], int], int] = {}
    places = [known.setdefault(key, len(known)) for key in zip(positions, totals, strict=True)]
    return SharedRows(_distinct_rows(list(known), ks, cuts), places)


def _distinct_rows(
    patterns: Sequence[tuple[tuple[int, ...], int]], ks: tuple[int, ...], cuts: tuple[int, ...]
) -> Floats:
    totals = np.array([total for _, total in patterns], dtype=np.int64)
    if not totals.all():
        raise ValueError("a question without evidence cannot be scored; leave it out")
    lengths = np.array([len(ranks) for ranks, _ in patterns], dtype=np.int64)
    longest = int(lengths.max(initial=0))
    # A column of zeros in front, and zeros after the last rank: sums of no rank are 0.
    ranks = np.zeros((len(patterns), longest + 1), dtype=np.int64)
    filled = np.arange(longest + 1) <= lengths[:, None]
    filled[:, 0] = False
    ranks[filled] = list(chain.from_iterable(ranks for ranks, _ in patterns))
    gains = np.cumsum(_discounts(int(ranks.max(initial=0)))[ranks], axis=1)
    nth = np.arange(longest + 1)
    precisions = np.cumsum(np.divide(nth, ranks, out=np.zeros(ranks.shape), where=filled), axis=1)
    ideals = np.array(ideal_gains((1,) * int(totals.max(initial=0))))
    firsts = ranks[:, 1] if longest else np.zeros(len(patterns), dtype=np.int64)
    row = np.arange(len(patterns))
    columns: list[Floats] = []
    for k, at, metrics in metrics_at(ks, cuts):
        n = lengths if at == "all" else np.count_nonzero(filled & (ranks <= k), axis=1)
        found = np.flatnonzero(n)
        tops = TopKs(
            k,
            n[found],
            n[found],
            totals[found],
            firsts[found],
            gains[row, n][found],
            ideals[np.minimum(totals, k)][found],
            precisions[row, n][found],
        )
        for metric in metrics:
            column = np.zeros(len(patterns))
            values = metric.values(tops) if _computes_many(type(metric)) else None
            if values is None:
                values = np.array([metric.value(top) for top in _each(tops)], dtype=np.float64)
            column[found] = values
            columns.append(column)
    return np.stack(columns, axis=1) if columns else np.zeros((len(patterns), 0))


@lru_cache
def _computes_many(kind: type[Metric]) -> bool:
    """Whether the class that defines `value` also defines `values`, so that both agree."""
    return next("values" in vars(base) for base in kind.__mro__ if "value" in vars(base))


def _each(tops: TopKs) -> Iterable[TopK]:
    """The rankings one by one, for a metric that computes one value at a time."""
    fields = zip(*(part.tolist() for part in tops[1:]), strict=True)
    return (TopK(tops.k, *own) for own in fields)


@lru_cache(maxsize=8)
def _discounts(deepest: int) -> Floats:
    """The gain of a rank, from 0 to the deepest; 0 where there is no rank."""
    return np.array([0.0, *(1 / log2(rank + 1) for rank in range(1, deepest + 1))])
