"""Recall within a token budget: the share of the evidence that fits into a reader's context."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

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


def recalls_of_places(
    tokens: Sequence[Sequence[int]],
    ranks: Sequence[Sequence[int]],
    totals: Sequence[int],
    budgets: tuple[int, ...] = BUDGETS,
) -> NDArray[np.float64]:
    """Compute the same for many rankings, one row each, from the ranks of their evidence.

    A hit is one memory, and none before the last rank is a repetition. There are `totals` evidence
    ids.
    """
    if min(map(min, filter(None, tokens)), default=0) < 0:
        raise ValueError("a hit cannot cost fewer than 0 tokens")
    needed = [sum(own[:rank]) for own, found in zip(tokens, ranks, strict=True) for rank in found]
    # The first budget that is large enough; one more column for what is in none.
    width = len(budgets) + 1
    cells = np.searchsorted(budgets, needed)
    cells += np.repeat(np.arange(len(ranks)) * width, [len(found) for found in ranks])
    counts = np.bincount(cells, minlength=len(ranks) * width).reshape(-1, width)
    covered: NDArray[np.float64] = counts.cumsum(axis=1)[:, :-1] / np.array(totals)[:, None]
    return covered
