"""precision@k."""

from __future__ import annotations

from typing import Any

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class Precision(Metric):
    """Relevant places in the top k, divided by k even if fewer hits were returned."""

    name = "precision"
    reference = "P_k of trec_eval"
    aliases = ("P_k", "P@k")

    def value(self, top: TopK) -> float:
        return top.relevant / top.k

    def values(self, tops: TopKs) -> Any:
        return tops.relevant / tops.k

    def chance(self, top: RandomTopK) -> float:
        return top.drawn * (top.reachable / top.pool) / top.k

    def expectation(self, top: UnorderedTopK) -> float:
        return sum(own.evidence * own.within(top.k) / own.size for own in top.groups) / top.k
