"""ndcg@k, and the gain of the ideal ranking."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import log2
from typing import Any

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class NDCG(Metric):
    """Gain of the top k over that of the best ranking: linear gain, discount log2(rank + 1).

    The best ranking has one evidence id at each place. A merged hit has several at one rank, so
    its gain can be higher; the value is clipped at 1.
    """

    name = "ndcg"
    headline = (10,)
    rank = 4
    reference = "Järvelin and Kekäläinen, ACM TOIS 20, 2002; ndcg_cut_k of trec_eval"
    aliases = ("ndcg_cut_k", "nDCG@k")

    def value(self, top: TopK) -> float:
        share = top.gain / top.ideal
        return share if share < 1 else 1.0

    def values(self, tops: TopKs) -> Any:
        return (tops.gain / tops.ideal).clip(max=1.0)

    def chance(self, top: RandomTopK) -> float:
        expected = top.reachable / top.pool * top.mean_grade
        return expected * ideal_gains((1,) * top.drawn)[top.drawn] / top.ideal

    def expectation(self, top: UnorderedTopK) -> float:
        """Each place of a group gains its mean grade; one place has at most one evidence id."""
        discounts = ideal_gains((1,) * top.k)
        gain = 0.0
        for own in top.groups:
            covered = discounts[own.before + own.within(top.k)] - discounts[own.before]
            gain += sum(own.grades) / own.size * covered
        return min(1.0, gain / top.ideal)


@lru_cache(maxsize=4096)
def ideal_gains(grades: tuple[int, ...]) -> tuple[float, ...]:
    """Return the gain of the n best graded memories in the best order, for n from 0 to all."""
    best = sorted(grades, reverse=True)
    if best and best[-1] <= 0:
        raise ValueError("grades of evidence must be positive; remove the id from the evidence")
    discounted = (grade / log2(rank + 1) for rank, grade in enumerate(best, 1))
    return tuple(accumulate(discounted, initial=0.0))
