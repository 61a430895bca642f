"""Simulated comparisons with a known truth: sizes of conversations, effects, metrics of a ranking.

A conversation is a cluster of questions. Every function draws many repetitions at once.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy  # imports a part of itself when it is first used

from mnemoscope.stats.clustered import Floats
from mnemoscope.stats.power import Components

Random = np.random.Generator


def _sizes(*counts: int) -> Floats:
    return np.array(counts, dtype=np.float64)


LOCOMO = _sizes(197, 105, 193, 260, 242, 158, 190, 239, 196, 202)
VERY_UNEQUAL = _sizes(900, 200, 100, 60, 40, 30, 20, 15, 10, 7)
FIVE_EQUAL = _sizes(*[100] * 5)
FIVE_UNEQUAL = _sizes(400, 60, 30, 20, 10)
SIX_EQUAL = _sizes(*[100] * 6)
TWENTY_EQUAL = _sizes(*[100] * 20)
SINGLES = _sizes(*[1] * 469)
DESIGNS = {
    "LoCoMo": LOCOMO,
    "10 very unequal (900…7)": VERY_UNEQUAL,
    "5 equal": FIVE_EQUAL,
    "5 unequal (400…10)": FIVE_UNEQUAL,
    "6 equal": SIX_EQUAL,
    "20 equal": TWENTY_EQUAL,
    "469 single questions": SINGLES,
    "1 conversation (150)": _sizes(150),
    "2 equal": _sizes(100, 100),
    "3 equal": _sizes(100, 100, 100),
    "3 unequal (300, 60, 20)": _sizes(300, 60, 20),
    "4 equal": _sizes(100, 100, 100, 100),
}


def effects(kind: str, random: Random, shape: tuple[int, ...]) -> Floats:
    """Effects of conversations with mean 0 and variance 1."""
    if kind == "normal":
        return random.standard_normal(shape)
    if kind == "skewed":
        return random.standard_exponential(shape) - 1
    if kind == "1 in 10 differs":
        return ((random.random(shape) < 0.1).astype(np.float64) - 0.1) / 0.3
    raise ValueError(f"unknown kind of effects: {kind}")


def normal_sums(sizes: Floats, deff: float, kind: str, random: Random, count: int) -> Floats:
    """Cluster sums of normal questions with mean 0 and variance 1, effects of conversations in it.

    `deff` is the variance of the pooled mean, divided by that of independent questions.
    """
    weighted = float((sizes**2).sum() / sizes.sum())
    between = (deff - 1) / (weighted - 1) if deff > 1 else 0.0
    shape = (count, len(sizes))
    noise: Floats = np.sqrt((1 - between) * sizes) * random.standard_normal(shape)
    if not between:
        return noise
    noise += np.sqrt(between) * sizes * effects(kind, random, shape)
    return noise


class Changes(NamedTuple):
    """Questions that a change of the system gains and loses, with what each conversation expects.

    The three-valued difference of a question is 1, -1 or, mostly, 0.
    """

    changed: float
    """The share of questions that are gained or lost."""
    mean: float
    """The mean difference before the effects of conversations are limited to ±changed."""
    spread: float
    """The standard deviation of the conversations' differences."""
    kind: str = "normal"

    def draw(self, sizes: Floats, random: Random, count: int) -> tuple[Floats, Floats, Floats]:
        """Return sums, sums of squares and expected differences of all conversations."""
        shape = (count, len(sizes))
        expected: Floats = np.full(shape, self.mean)
        if self.spread:
            expected = self._limited(effects(self.kind, random, shape))
        numbers = sizes.astype(np.int64)
        changed = random.binomial(numbers, self.changed, shape)
        gained = random.binomial(changed, (1 + expected / self.changed) / 2)
        sums = (2 * gained - changed).astype(np.float64)
        return sums, changed.astype(np.float64), expected

    def _limited(self, drawn: Floats) -> Floats:
        return np.clip(self.mean + self.spread * drawn, -self.changed, self.changed)

    def truth(self) -> tuple[float, Components]:
        """The mean over all conversations, and the variance components."""
        if not self.spread:
            return self.mean, Components(0.0, self.changed - self.mean**2)
        middles = (np.arange(200_000) + 0.5) / 200_000
        drawn = scipy.special.ndtri(middles) if self.kind == "normal" else -np.log(middles) - 1
        expected = self._limited(drawn)
        within = self.changed - float((expected**2).mean())
        return float(expected.mean()), Components(float(expected.var()), within)


def hits(sizes: Floats, p: float, icc: float, random: Random, count: int) -> tuple[Floats, Floats]:
    """Beta-binomial hits by conversation, and the share of hits that each conversation expects."""
    shape = (count, len(sizes))
    expected = np.full(shape, p)
    if icc:
        scale = (1 - icc) / icc
        expected = random.beta(p * scale, (1 - p) * scale, shape)
    return random.binomial(sizes.astype(np.int64), expected).astype(np.float64), expected


NOISY = "skewed, with noise of questions"
_NOISE = 0.1
"""The share of the questions in the variance of a conversation's mean: deff is 10."""


def correlated_means(
    groups: int, columns: int, correlation: float, kind: str, random: Random, count: int
) -> Floats:
    """Means of correlated metrics: repetitions x conversations x metrics.

    The effects of conversations, and the noise of questions if there is any, have a common and an
    own part with the same correlation.
    """

    def draw(kind: str) -> Floats:
        common = np.sqrt(correlation) * effects(kind, random, (count, groups, 1))
        own = np.sqrt(1 - correlation) * effects(kind, random, (count, groups, columns))
        drawn: Floats = common + own
        return drawn

    if kind != NOISY:
        return draw(kind)
    mixed: Floats = np.sqrt(1 - _NOISE) * draw("skewed") + np.sqrt(_NOISE) * draw("normal")
    return mixed


METRICS = ("recall@10", "recall@5", "hit@10", "all@10", "ndcg@10", "mrr")
"""The first is the primary metric."""
BINARY = tuple(METRICS.index(name) for name in ("hit@10", "all@10"))
CATEGORIES = 5
_SHARES = np.array([841, 446, 321, 282, 96]) / 1986
"""Shares of LoCoMo's five categories."""
_DEPTH = 100
_MISSED = _DEPTH + 1
_RANKS = np.arange(_MISSED + 1)
_GAINS = np.where((_RANKS >= 1) & (_RANKS <= 10), 1 / np.log2(np.maximum(_RANKS, 1) + 1), 0.0)
_RECIPROCALS = np.where((_RANKS >= 1) & (_RANKS <= _DEPTH), 1 / np.maximum(_RANKS, 1), 0.0)


class Rankings:
    """Two systems that rank the same evidence: six correlated metrics from latent ranks.

    The logarithm of a rank is the difficulty of the evidence, plus the system's effect on the
    conversation, plus noise. Without a shift both systems have the same distribution, so the true
    difference of every metric is 0. One question in five has two pieces of evidence.
    """

    def __init__(self, sizes: Floats = LOCOMO) -> None:
        self.sizes = sizes
        numbers = sizes.astype(np.int64)
        self.conversation = np.repeat(np.arange(len(sizes)), numbers)
        within = np.concatenate([(np.arange(size) + 0.5) / size for size in numbers])
        category = np.searchsorted(np.cumsum(_SHARES)[:-1], within)
        cell = self.conversation * CATEGORIES + category
        self.starts = np.searchsorted(cell, np.arange(len(sizes) * CATEGORIES))
        self.category_sizes = np.bincount(cell, minlength=len(sizes) * CATEGORIES).reshape(
            len(sizes), CATEGORIES
        )
        self.double = np.arange(len(cell)) % 5 == 0
        self.ideal = np.where(self.double, _GAINS[1] + _GAINS[2], _GAINS[1])

    def draw(
        self, clustering: float, shift: float, random: Random, count: int
    ) -> tuple[Floats, Floats]:
        """Return sums and sums of squares: repetitions x conversations x categories x metrics."""
        shape = (count, len(self.conversation))
        first = random.normal(0.9, 1.4, shape)
        second = random.normal(0.9, 1.4, (count, int(self.double.sum())))
        base, candidate = (
            self._metrics(first, second, clustering, move, random) for move in (0.0, -shift)
        )
        sums = np.empty((count, len(self.starts), len(METRICS)))
        squares = np.empty_like(sums)
        for place, (before, after) in enumerate(zip(base, candidate, strict=True)):
            delta = after - before
            sums[:, :, place] = np.add.reduceat(delta, self.starts, axis=1)
            squares[:, :, place] = np.add.reduceat(delta * delta, self.starts, axis=1)
        whole = (count, len(self.sizes), CATEGORIES, len(METRICS))
        return sums.reshape(whole), squares.reshape(whole)

    def _metrics(
        self, first: Floats, second: Floats, clustering: float, move: float, random: Random
    ) -> list[Floats]:
        effect = move + clustering * random.standard_normal((len(first), len(self.sizes)))
        moved = effect[:, self.conversation]
        one = _rank(first + moved + random.normal(0, 0.35, first.shape))
        other = np.full(first.shape, _MISSED)
        beside = _rank(second + moved[:, self.double] + random.normal(0, 0.35, second.shape))
        beside += beside == one[:, self.double]
        other[:, self.double] = np.minimum(beside, _MISSED)
        found = [(one <= k).astype(np.float64) + (other <= k) for k in (10, 5)]
        wanted = 1.0 + self.double
        best = np.minimum(one, other)
        return [
            found[0] / wanted,
            found[1] / wanted,
            (best <= 10).astype(np.float64),
            (found[0] == wanted).astype(np.float64),
            (_GAINS[one] + _GAINS[other]) / self.ideal,
            _RECIPROCALS[best],
        ]


def _rank(logarithm: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    found: np.ndarray[tuple[int, ...], np.dtype[np.int64]]
    found = np.exp(np.minimum(logarithm, 6.0)).astype(np.int64) + 1
    return np.minimum(found, _MISSED)
