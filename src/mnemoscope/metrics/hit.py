"""hit@k."""

from __future__ import annotations

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class HitRate(Metric):
    """1 if any evidence is in the top k, else 0."""

    name = "hit"
    interval = "proportion"
    headline = (10,)
    rank = 2
    reference = "success_k of trec_eval"
    aliases = ("success@k", "recall_any@k", "hit_rate@k")

    def value(self, top: TopK) -> float:
        return 1.0

    def values(self, tops: TopKs) -> float:
        return 1.0

    def chance(self, top: RandomTopK) -> float:
        return 1 - top.missed[top.drawn]

    def expectation(self, top: UnorderedTopK) -> float:
        """Only the last group can lie partly in the top k; an earlier one is a sure hit."""
        first = top.groups[0]
        missed = 1.0
        for place in range(first.within(top.k)):
            missed *= max(0.0, 1 - first.evidence / (first.size - place))
        return 1 - missed
