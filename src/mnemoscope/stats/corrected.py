"""Accuracy corrected for the errors of a judge, with intervals over both samples.

Rogan and Gladen (1978): if a judge accepts a share q of the answers, a share fa of wrong answers
and rejects a share fr of right ones, the accuracy is (q - fa) / (1 - fa - fr). The interval is that
of Lang and Reiczigel (2014), with the variance of q between conversations in place of that between
questions. Prediction-powered inference (Angelopoulos et al. 2023) uses labels of some answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mnemoscope.stats.clustered import ALPHA, cluster_sums, difference
from mnemoscope.stats.distributions import normal_quantile

_Z = normal_quantile(1 - ALPHA / 2)
LEAST_INFORMATION = 0.05
"""Below this 1 - fa - fr, a judge accepts wrong answers nearly as often as right ones."""


class JudgeErrors(NamedTuple):
    """A judge's rates of false accepts and false rejects, and the answers they come from."""

    false_accept: float
    accept_n: float
    false_reject: float
    reject_n: float


class Corrected(NamedTuple):
    """A corrected accuracy; its interval covers the errors of both samples."""

    accuracy: float
    low: float
    high: float
    n: int


def rogan_gladen(
    verdicts: ArrayLike, clusters: Sequence[str], errors: JudgeErrors
) -> Corrected | None:
    """The accuracy behind verdicts of 0 and 1; None if the judge's verdicts say nothing."""
    values = np.asarray(verdicts, dtype=np.float64)
    if not len(values):
        return None
    information = 1 - errors.false_accept - errors.false_reject
    if information < LEAST_INFORMATION or not errors.accept_n or not errors.reject_n:
        return None
    accepted = difference(cluster_sums(values[:, None], clusters))
    q = accepted.delta
    plain = (q - errors.false_accept) / information
    # Agresti and Coull's pseudo-counts, with the number of questions that the clusters are worth.
    n = max(1.0, _worth(q, accepted.se, len(values)))
    n_q = n + _Z**2
    q_ = (n * q + _Z**2 / 2) / n_q
    fa_n, fr_n = errors.accept_n + 2, errors.reject_n + 2
    fa = (errors.accept_n * errors.false_accept + 1) / fa_n
    fr = (errors.reject_n * errors.false_reject + 1) / fr_n
    left = max(LEAST_INFORMATION, 1 - fa - fr)
    centre = (q_ - fa) / left
    fa_noise, fr_noise = fa * (1 - fa) / fa_n, fr * (1 - fr) / fr_n
    shift = 2 * _Z**2 * (centre * fr_noise - (1 - centre) * fa_noise)
    # The clusters' part has the critical value of few clusters, which is more than the normal one.
    wider = (accepted.critical() / _Z) ** 2
    variance = wider * q_ * (1 - q_) / n_q + (1 - centre) ** 2 * fa_noise + centre**2 * fr_noise
    reach = _Z * sqrt(variance) / left
    low, high = centre + shift - reach, centre + shift + reach
    return Corrected(_unit(plain), _unit(low), _unit(high), len(values))


def prediction_powered(
    verdicts: ArrayLike,
    labels: Sequence[float | None],
    clusters: Sequence[str],
) -> Corrected | None:
    """The accuracy from verdicts on all answers and labels (1, 0) of a random part of them.

    The weight of the verdicts is the one with the least variance (PPI++), so that a judge whose
    verdicts say nothing costs nothing. It is estimated from the labelled answers.
    """
    f = np.asarray(verdicts, dtype=np.float64)
    known = np.array([label is not None for label in labels])
    if not len(f) or known.sum() < 2:
        return None
    y = np.array([0.0 if label is None else float(label) for label in labels])
    n, labelled = len(f), int(known.sum())
    own = f[known]
    spread = float(f.var(ddof=1)) if n > 1 else 0.0
    covariance = float(np.cov(y[known], own)[0, 1])
    weight = covariance / ((1 + labelled / n) * spread) if spread else 0.0
    # One value a question whose mean is the estimate: its clusters give the variance.
    # The rectifier is centred, since how many labels a cluster has is chance.
    rectifier = y - weight * f
    mean = float(rectifier[known].mean())
    parts = weight * f + mean + known * (n / labelled) * (rectifier - mean)
    found = difference(cluster_sums(parts[:, None], clusters))
    # Two imaginary labels, one right and one wrong: few labels do not show how others vary.
    reach = found.critical() * sqrt(found.se**2 + 2 / labelled**2)
    return Corrected(_unit(found.delta), _unit(found.delta - reach), _unit(found.delta + reach), n)


def _worth(rate: float, se: float, n: int) -> float:
    """How many independent questions have this standard error; all, if all verdicts are equal."""
    noise = rate * (1 - rate)
    return noise / se**2 if noise > 1e-12 else float(n)


def _unit(value: float) -> float:
    return min(1.0, max(0.0, value))
