"""f1@k: precision and recall of the top k in one number."""

from __future__ import annotations

from mnemoscope.metrics import Metric, RandomTopK, TopK


class F1AtK(Metric):
    """The harmonic mean of precision@k and recall@k."""

    name = "f1"
    headline = (10,)
    reference = "van Rijsbergen, Information Retrieval, 1979"
    aliases = ("F@k", "set_F.1")

    def value(self, top: TopK) -> float:
        precision, recall = top.relevant / top.k, top.found / top.total
        return 2 * precision * recall / (precision + recall)

    def chance(self, top: RandomTopK) -> float:
        # With one memory a place it is 2 found / (k + total): linear, so the mean goes inside.
        return 2 * top.drawn * top.reachable / top.pool / (top.k + top.total)
