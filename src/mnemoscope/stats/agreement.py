"""Agreement between two judges: Cohen's kappa."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mnemoscope.stats.intervals import Floats


class Kappa(NamedTuple):
    """Agreement beyond chance with a percentile interval, over n items."""

    kappa: float
    low: float
    high: float
    n: int


def cohens_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    seed: int,
    draws: int = 10_000,
    confidence: float = 0.95,
) -> Kappa:
    """κ = (po - pe) / (1 - pe), from observed and chance agreement of two raters (Cohen 1960).

    Labels may be of any type. If both raters gave the same single label throughout, the formula
    is 0/0 and κ is 1. Without items κ is NaN. The interval is a bootstrap over items; it has no
    width if the raters agree on all of them.
    """
    if len(a) != len(b):
        raise ValueError(f"both raters must label the same items, got {len(a)} and {len(b)}")
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    if draws < 1:
        raise ValueError(f"at least one draw is needed, got {draws}")
    n = len(a)
    if not n:
        return Kappa(nan, nan, nan, 0)
    code = {label: i for i, label in enumerate(dict.fromkeys([*a, *b]))}
    pairs = np.array([[code[x], code[y]] for x, y in zip(a, b, strict=True)])
    cells, counts = np.unique(pairs, axis=0, return_counts=True)
    # Resampling n items is the same as drawing how many fall into each pair of labels.
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=draws)
    tail = (1 - confidence) / 2
    low, high = np.quantile(_kappas(cells, drawn, len(code)), [tail, 1 - tail])
    return Kappa(float(_kappas(cells, counts[None], len(code))[0]), float(low), float(high), n)


def _kappas(cells: NDArray[np.int64], counts: NDArray[np.int64], labels: int) -> Floats:
    """Compute κ of every row of counts, whose columns are the pairs of labels in `cells`."""
    n = counts[0].sum()
    agreed = counts @ (cells[:, 0] == cells[:, 1]).astype(np.int64)
    margins = [counts @ (cells[:, [side]] == np.arange(labels)).astype(np.int64) for side in (0, 1)]
    chance = (margins[0] * margins[1]).sum(axis=1)
    spare = n * n - chance
    # In integers, so that chance agreement of exactly 1 is detected.
    ratio: Floats = np.where(spare > 0, (n * agreed - chance) / np.maximum(spare, 1), 1.0)
    return ratio
