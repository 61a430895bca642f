"""all@k."""

from __future__ import annotations

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK


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

    def chance(self, top: RandomTopK) -> float:
        """C(pool - reachable, drawn - reachable) / C(pool, drawn), as a product of small ratios."""
        if top.reachable < top.total or top.drawn < top.reachable:
            return 0.0
        probability = 1.0
        for taken in range(top.reachable):
            probability *= (top.drawn - taken) / (top.pool - taken)
        return probability
