"""mrr@k."""

from __future__ import annotations

from typing import Any

from mnemoscope.metrics.metric import Metric, RandomTopK, TopK, TopKs, UnorderedTopK


class ReciprocalRank(Metric):
    """1 / rank of the first evidence if it is in the top k, else 0."""

    name = "mrr"
    at = "depth"
    headline = "deepest"
    rank = 5
    reference = "Voorhees, The TREC-8 Question Answering Track, 1999; recip_rank of trec_eval"
    aliases = ("recip_rank", "RR@k")

    def value(self, top: TopK) -> float:
        return 1 / top.first

    def values(self, tops: TopKs) -> Any:
        return 1 / tops.first

    def chance(self, top: RandomTopK) -> float:
        # P(first evidence at rank r) = P(none before r) x P(evidence at r | none before).
        return sum(
            top.missed[rank - 1] * top.reachable / (top.pool - rank + 1) / rank
            for rank in range(1, top.drawn + 1)
        )

    def expectation(self, top: UnorderedTopK) -> float:
        first = top.groups[0]
        expected, missed = 0.0, 1.0
        for place in range(first.within(top.k)):
            here = missed * min(1.0, first.evidence / (first.size - place))
            expected += here / (first.before + place + 1)
            missed -= here
        return expected
