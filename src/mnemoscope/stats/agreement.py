"""Do judges agree, and whose noise is it: Cohen's kappa, and variance split by its source."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnemoscope.stats.intervals import Floats


class Kappa(NamedTuple):
    """Agreement beyond chance with a percentile interval, over n items."""

    kappa: float
    low: float
    high: float
    n: int


class VarianceSplit(NamedTuple):
    """Variance of a score from one run, judged once: system + judge."""

    system: float
    judge: float
    clipped: bool
    """The system's estimate came out negative, and stands at 0: there were too few runs."""
    runs: int
    judgings: int


def cohens_kappa(
    a: Sequence[Hashable],
    b: Sequence[Hashable],
    *,
    seed: int,
    draws: int = 10_000,
    confidence: float = 0.95,
) -> Kappa:
    """κ = (po - pe) / (1 - pe), observed and chance agreement of two raters (Cohen 1960).

    Any labels will do. Raters who gave one and the same label throughout agree perfectly: 1,
    where the formula says 0/0. Of no items κ is NaN. The interval draws items anew; it is a point
    when all agree, since it cannot draw a disagreement that it has not seen.
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
    # Drawing n items anew is drawing how many of them fall into each pair of labels.
    drawn = np.random.default_rng(seed).multinomial(n, counts / n, size=draws)
    tail = (1 - confidence) / 2
    low, high = np.quantile(_kappas(cells, drawn, len(code)), [tail, 1 - tail])
    return Kappa(float(_kappas(cells, counts[None], len(code))[0]), float(low), float(high), n)


def variance_split(values: ArrayLike) -> VarianceSplit:
    """Split the variance of a score into the system's and the judge's, which is nested in it.

    `values` is runs x judgings of mean scores, or runs x judgings x questions. The nested analysis
    of variance with R runs of J judgings gives judge = W = ΣΣ(y_rj - ȳ_r)² / (R (J - 1)) and
    system = (B - W) / J with B = J Σ(ȳ_r - ȳ)² / (R - 1). Judging one run again and again shows
    only the judge. One run has no system's variance, one judging no split: NaN.
    """
    table = np.asarray(values, dtype=np.float64)
    if table.ndim not in (2, 3):
        raise ValueError(
            f"values must be runs x judgings, or runs x judgings x questions: "
            f"got shape {table.shape}"
        )
    if table.ndim == 3:
        # A question that one judging lacks would move that mean for a reason that is not noise.
        table = table[:, :, ~np.isnan(table).any(axis=(0, 1))]
        if not table.shape[2]:
            return VarianceSplit(nan, nan, False, table.shape[0], table.shape[1])
        table = table.mean(axis=2)
    runs, judgings = table.shape
    if not runs or judgings < 2 or np.isnan(table).any():
        return VarianceSplit(nan, nan, False, runs, judgings)
    judge = float(table.var(axis=1, ddof=1).mean())
    if runs < 2:
        return VarianceSplit(nan, judge, False, runs, judgings)
    system = float(table.mean(axis=1).var(ddof=1)) - judge / judgings
    return VarianceSplit(max(0.0, system), judge, system < 0, runs, judgings)


def _kappas(cells: NDArray[np.int64], counts: NDArray[np.int64], labels: int) -> Floats:
    """κ of every row of counts, whose columns are the pairs of labels in `cells`."""
    n = counts[0].sum()
    agreed = counts @ (cells[:, 0] == cells[:, 1]).astype(np.int64)
    margins = [counts @ (cells[:, [side]] == np.arange(labels)).astype(np.int64) for side in (0, 1)]
    chance = (margins[0] * margins[1]).sum(axis=1)
    spare = n * n - chance
    # In whole numbers, so that chance agreement of exactly 1 is seen as such.
    ratio: Floats = np.where(spare > 0, (n * agreed - chance) / np.maximum(spare, 1), 1.0)
    return ratio
