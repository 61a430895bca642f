"""recall@k."""

from __future__ import annotations

from typing import Any

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class Recall(Metric):
    """The fraction of the evidence that is in the top k."""

    name = "recall"
    headline = (5, 10)
    rank = 1
    reference = "recall_k of trec_eval"
    aliases = ("recall_k", "R@k")

    def value(self, top: TopK) -> float:
        return top.found / top.total

    def values(self, tops: TopKs) -> Any:
        return tops.found / tops.total

    def chance(self, top: RandomTopK) -> float:
        return top.drawn * (top.reachable / top.pool) / top.total

    def expectation(self, top: UnorderedTopK) -> float:
        found = sum(own.evidence * own.within(top.k) / own.size for own in top.groups)
        return found / top.total
