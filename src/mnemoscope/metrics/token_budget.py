"""Recall within a token budget: the share of the evidence that fits into a reader's context."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate

from mnemoscope.metrics.ranking import merged_positions

BUDGETS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
"""Context sizes in tokens at which systems are compared."""


def recall_within(
    tokens: Sequence[int],
    hits: Sequence[Collection[str]],
    evidence: Collection[str],
    budgets: tuple[int, ...] = BUDGETS,
) -> dict[str, float]:
    """Compute for each budget the fraction of the evidence in the hits that fit into it.

    The context ends before the first hit that does not fit whole, even if a later one would fit.
    A repeated hit costs its tokens again, because the reader would be shown it again.
    """
    if not evidence:
        raise ValueError("a question without evidence cannot be scored; leave it out")
    if len(tokens) != len(hits):
        raise ValueError(f"{len(tokens)} token counts for {len(hits)} hits")
    if min(tokens, default=0) < 0:
        raise ValueError("a hit cannot cost fewer than 0 tokens")
    spent = list(accumulate(tokens))
    finds = merged_positions(hits, evidence)
    ranks = [find.rank for find in finds]
    covered = list(accumulate((len(find.evidence) for find in finds), initial=0))
    total = len(set(evidence))
    recalls = [covered[bisect_right(ranks, bisect_right(spent, budget))] for budget in budgets]
    return {f"recall@{n}tokens": found / total for n, found in zip(budgets, recalls, strict=True)}


def recall_of_places(
    tokens: Sequence[int],
    ranks: Sequence[int],
    total: int,
    budgets: tuple[int, ...] = BUDGETS,
) -> list[float]:
    """Compute the same from the ranks of hits that are one evidence memory each.

    There are `total` evidence ids; no hit before the last rank is a repetition.
    """
    if min(tokens, default=0) < 0:
        raise ValueError("a hit cannot cost fewer than 0 tokens")
    needed = [sum(tokens[:rank]) for rank in ranks]
    return [bisect_right(needed, budget) / total for budget in budgets]
