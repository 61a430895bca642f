"""map."""

from __future__ import annotations

from typing import Any

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class AveragePrecision(Metric):
    """Mean over all evidence of the precision at the rank that brings it, over the whole ranking.

    Evidence that is not found counts 0.
    """

    name = "map"
    at = "all"
    reference = "map of trec_eval"
    aliases = ("AP",)

    def value(self, top: TopK) -> float:
        return top.precisions / top.total

    def values(self, tops: TopKs) -> Any:
        return tops.precisions / tops.total

    def chance(self, top: RandomTopK) -> float:
        """Sum over ranks r of P(r is relevant) x E[relevant up to r | r is relevant] / r / total.

        The other r - 1 ranks contain (r - 1) x (reachable - 1) / (pool - 1) evidence ids on
        average, so the sum over r needs only the harmonic number of the places drawn.
        """
        harmonic = sum(1 / rank for rank in range(1, top.drawn + 1))
        others = (top.reachable - 1) / (top.pool - 1) if top.pool > 1 else 0.0
        share = top.reachable / top.pool / top.total
        return share * (harmonic + (top.drawn - harmonic) * others)

    def expectation(self, top: UnorderedTopK) -> float:
        """As for a random ranking, with the evidence of the groups in front counted as found."""
        expected, found = 0.0, 0
        for own in top.groups:
            others = (own.evidence - 1) / (own.size - 1) if own.size > 1 else 0.0
            for place in range(own.within(top.k)):
                precision = (found + 1 + place * others) / (own.before + place + 1)
                expected += own.evidence / own.size * precision
            found += own.evidence
        return expected / top.total
