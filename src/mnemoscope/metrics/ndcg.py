"""ndcg@k, and the gain of ideal rankings that it is divided by."""

from __future__ import annotations

from functools import lru_cache
from itertools import accumulate
from math import log2

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK


class NDCG(Metric):
    """Gain of the top k over that of the best ranking: linear gain, discount log2(rank + 1).

    The best ranking gives each evidence a place of its own. A merged hit brings several at one
    rank and can beat it, which would read as better than perfect: the value is clipped at 1.
    """

    name = "ndcg"
    headline = (10,)
    rank = 4
    reference = "Järvelin and Kekäläinen, ACM TOIS 20, 2002; ndcg_cut_k of trec_eval"
    aliases = ("ndcg_cut_k", "nDCG@k")

    def value(self, top: TopK) -> float:
        share = top.gain / top.ideal
        return share if share < 1 else 1.0

    def chance(self, top: RandomTopK) -> float:
        expected = top.reachable / top.pool * top.mean_grade
        return expected * ideal_gains((1,) * top.drawn)[top.drawn] / top.ideal


@lru_cache(maxsize=4096)
def ideal_gains(grades: tuple[int, ...]) -> tuple[float, ...]:
    """The gain of the n best graded memories in the best order, for n from 0 to all of them."""
    best = sorted(grades, reverse=True)
    if best and best[-1] <= 0:
        raise ValueError("a grade of evidence must be positive; drop the id from the evidence")
    discounted = (grade / log2(rank + 1) for rank, grade in enumerate(best, 1))
    return tuple(accumulate(discounted, initial=0.0))
