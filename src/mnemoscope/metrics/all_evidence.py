"""all@k."""

from __future__ import annotations

from typing import Any

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class AllEvidence(Metric):
    """1 if all evidence is in the top k, else 0."""

    name = "all"
    interval = "proportion"
    headline = (10,)
    rank = 3
    reference = "recall_all@k of LongMemEval (Wu et al., 2024)"
    aliases = ("recall_all@k",)

    def value(self, top: TopK) -> float:
        return 1.0 if top.found == top.total else 0.0

    def values(self, tops: TopKs) -> Any:
        return (tops.found == tops.total) * 1.0

    def chance(self, top: RandomTopK) -> float:
        """C(pool - reachable, drawn - reachable) / C(pool, drawn), as a product of small ratios."""
        if top.reachable < top.total or top.drawn < top.reachable:
            return 0.0
        probability = 1.0
        for taken in range(top.reachable):
            probability *= (top.drawn - taken) / (top.pool - taken)
        return probability

    def expectation(self, top: UnorderedTopK) -> float:
        """The chance that the group at the cut has all its evidence in front of it."""
        if sum(own.evidence for own in top.groups) < top.total:
            return 0.0
        probability = 1.0
        for own in top.groups:
            for taken in range(own.evidence):
                probability *= max(0, own.within(top.k) - taken) / (own.size - taken)
        return probability
