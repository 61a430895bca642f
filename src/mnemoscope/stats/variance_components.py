"""Variance components of repeated runs: conversations, questions, repeats, what is left.

The model of question q in conversation c and repeat r is

    y = mean + conversation(c) + question(q) + repeat(r) + repeat_by_conversation(r, c) + residual,

questions nested in conversations and crossed with repeats, all effects random and independent. The
components are found by the method of moments (Henderson's method 1, Biometrics 9, 1953): the sums
of squares T of the totals of each factor are set equal to their expectations, which are linear in
the components. Values may be missing. Without missing values and with conversations of one size
the estimates are those of the analysis of variance.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from math import inf, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mnemoscope.stats.distributions import t_quantile
from mnemoscope.stats.intervals import Interval

Floats = NDArray[np.float64]
Codes = NDArray[np.intp]

_MOST_CELLS = 4_000_000
"""Pairs of levels that are counted in one array; more of them are sorted instead."""


class RepeatComponents(NamedTuple):
    """The variances; unbiased estimates, so one that is 0 or small can come out negative."""

    conversation: float | None
    """None if it cannot be told from `question`: one conversation, one question in each, or so many
    values missing that no conversation has two questions to compare over its repeats."""
    question: float
    """Between the questions of a conversation; of all questions if `conversation` is None."""
    repeat: float
    """Run to run: what all questions of a repeat share."""
    repeat_by_conversation: float | None
    residual: float
    """Repeat × question: what one question varies from run to run beyond the above."""

    def truncated(self) -> RepeatComponents:
        """The components with 0 in place of a negative estimate."""
        conversation, question, repeat, both, residual = self
        return RepeatComponents(
            None if conversation is None else max(conversation, 0.0),
            max(question, 0.0),
            max(repeat, 0.0),
            None if both is None else max(both, 0.0),
            max(residual, 0.0),
        )


class Design(NamedTuple):
    """How many units were measured."""

    conversations: float
    questions: float
    repeats: float
    concentration: float
    """The sum of the squared shares of questions by conversation: 1 / conversations if all have
    the same size, more if they have not."""


class RepeatedMean(NamedTuple):
    """The mean over repeats and questions, with what decides its interval."""

    mean: float
    design: Design
    components: RepeatComponents
    cluster_variance: float
    """Of the mean over questions, each with its mean over repeats; conversations are the units.
    It contains every component except `repeat`, which all conversations share."""
    cluster_freedom: float
    repeat_mean_square: float
    """The variance of the repeats' means, times the questions."""


def variance_components(values: ArrayLike, conversations: Sequence[Hashable]) -> RepeatComponents:
    """Estimate the components of a table of questions × repeats; NaN where a value is missing."""
    table, clusters = _checked(values, conversations)
    question, repeat = np.nonzero(~np.isnan(table))
    observed = table[question, repeat]
    factors: dict[str, Codes] = {"question": question, "repeat": repeat}
    sizes = np.bincount(clusters)
    if len(sizes) > 1 and sizes.max() > 1:
        factors["conversation"] = clusters[question]
        factors["repeat_by_conversation"] = clusters[question] * table.shape[1] + repeat
    factors["residual"] = np.arange(len(observed), dtype=np.intp)
    deviations = observed - observed.mean()
    moments, matrix = _equations(deviations, factors)
    if "conversation" in factors and np.linalg.matrix_rank(matrix) < len(factors):
        del factors["conversation"], factors["repeat_by_conversation"]
        moments, matrix = _equations(deviations, factors)
    solved = np.linalg.lstsq(matrix, moments, rcond=None)[0]
    found = dict(zip(factors, map(float, solved), strict=True))
    return RepeatComponents(
        found.get("conversation"),
        found["question"],
        found["repeat"],
        found.get("repeat_by_conversation"),
        found["residual"],
    )


def _equations(deviations: Floats, factors: Mapping[str, Codes]) -> tuple[Floats, Floats]:
    """The sum of squares of each factor, and how much of each component its expectation has."""
    whole = np.zeros(len(deviations), dtype=np.intp)
    own = _squares(deviations, whole)
    moments = [_squares(deviations, one) - own for one in factors.values()]
    matrix = [
        [_weight(one, other) - _weight(whole, other) for other in factors.values()]
        for one in factors.values()
    ]
    return np.array(moments), np.array(matrix)


def repeated_mean(values: ArrayLike, conversations: Sequence[Hashable]) -> RepeatedMean:
    """The mean of a table of questions × repeats, with its components; every question counts once.

    The caller may replace the cluster variance and its degrees of freedom by those of another
    procedure for clustered means before `standard_error` and `interval` use them.
    """
    table, clusters = _checked(values, conversations)
    components = variance_components(table, conversations)
    means = np.nanmean(table, axis=1)
    questions, repeats = table.shape
    sizes = np.bincount(clusters).astype(np.float64)
    units = clusters if len(sizes) > 1 else np.arange(questions, dtype=np.intp)
    count = int(units.max()) + 1
    totals = np.bincount(units, weights=means - means.mean())
    variance = float((totals**2).sum()) / questions**2 * count / (count - 1)
    by_repeat = np.nanmean(table, axis=0)
    concentration = float((sizes**2).sum()) / questions**2
    return RepeatedMean(
        float(means.mean()),
        Design(len(sizes), questions, repeats, concentration),
        components,
        variance,
        float(count - 1),
        float(by_repeat.var(ddof=1)) * questions,
    )


def standard_error(found: RepeatedMean) -> float:
    """The standard error of the mean for new conversations, new questions and new repeats.

    The cluster variance has every component except `repeat`, whose variance / repeats is added.
    """
    repeat = max(found.components.repeat, 0.0)
    return sqrt(found.cluster_variance + repeat / found.design.repeats)


def freedom(found: RepeatedMean) -> float:
    """Satterthwaite's degrees of freedom of the standard error.

    The variance between repeats is a difference of two mean squares, that of the repeats and what
    it would be if all repeats had the same mean.
    """
    design, repeat = found.design, found.components.repeat
    if repeat <= 0:
        return found.cluster_freedom
    total = standard_error(found) ** 2
    scale = design.questions * design.repeats
    own = found.repeat_mean_square / scale
    expected = max(own - repeat / design.repeats, 0.0)
    between = design.repeats - 1
    squares = (
        found.cluster_variance**2 / found.cluster_freedom
        + own**2 / between
        + expected**2 / (between * found.cluster_freedom)
    )
    return total**2 / squares if squares > 0 else inf


def interval(
    found: RepeatedMean,
    confidence: float = 0.95,
    limits: tuple[float, float] = (-inf, inf),
) -> Interval:
    """The interval of the mean by Student's t, clipped to the limits of the values."""
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1, got {confidence}")
    # Above this number Student's t is the normal distribution to all digits shown.
    own = min(freedom(found), 1e6)
    half = t_quantile((1 - confidence) / 2, own) * standard_error(found)
    return Interval(max(found.mean - half, limits[0]), min(found.mean + half, limits[1]))


def expected_error(components: RepeatComponents, design: Design) -> float:
    """The standard error that a design of this size has by the components.

    concentration (conversation + repeat_by_conversation / repeats) + question / questions
    + repeat / repeats + residual / (questions × repeats), and the root of it.
    """
    known = components.truncated()
    conversation, both = known.conversation or 0.0, known.repeat_by_conversation or 0.0
    return sqrt(
        design.concentration * (conversation + both / design.repeats)
        + known.question / design.questions
        + known.repeat / design.repeats
        + known.residual / (design.questions * design.repeats)
    )


class Purchase(NamedTuple):
    """What one more unit would give."""

    what: str
    """`repeat`, `conversation`, or `question`: one more in each conversation."""
    error: float
    """The standard error with one more of them."""
    asked: int
    """How many more questions would be asked, over all repeats."""
    at_equal_cost: float
    """The standard error if a tenth more questions were asked, all for more of these units."""


def purchases(components: RepeatComponents, design: Design) -> list[Purchase]:
    """What one more repeat, conversation or question would give, best first.

    Conversations keep their mean size. Without a component of conversations, questions are the
    units.
    """
    found = []
    for what in ("repeat", "conversation", "question"):
        if what == "conversation" and components.conversation is None:
            continue
        one, unit = _larger(design, what, 1), _larger(design, what, 0.1, share=True)
        asked = one.questions * one.repeats - design.questions * design.repeats
        found.append(
            Purchase(
                what,
                expected_error(components, one),
                round(asked),
                expected_error(components, unit),
            )
        )
    return sorted(found, key=lambda one: one.error)


class JudgeNoise(NamedTuple):
    """The variance of verdicts on the same answer."""

    variance: float
    freedom: int
    """The verdicts beyond the first of each answer."""


def judge_noise(verdicts: ArrayLike, answers: Sequence[Hashable]) -> JudgeNoise | None:
    """The variance within the verdicts of each answer, pooled; None if no answer has two."""
    values = np.asarray(verdicts, dtype=np.float64)
    if values.ndim != 1 or len(values) != len(answers):
        raise ValueError(f"an answer for each verdict: got {values.shape} and {len(answers)}")
    if not len(values):
        return None
    codes = _codes(answers)
    counts = np.bincount(codes)
    beyond = int(len(values) - len(counts))
    if not beyond:
        return None
    means = np.bincount(codes, weights=values) / counts
    return JudgeNoise(float(((values - means[codes]) ** 2).sum()) / beyond, beyond)


def _larger(design: Design, what: str, by: float, *, share: bool = False) -> Design:
    """The design with more units of a kind: a number of them, or a share of those it has."""
    if what == "repeat":
        more = by * design.repeats if share else by
        return design._replace(repeats=design.repeats + more)
    if what == "conversation":
        factor = 1 + (by if share else by / design.conversations)
        return Design(
            design.conversations * factor,
            design.questions * factor,
            design.repeats,
            design.concentration / factor,
        )
    factor = 1 + (by if share else by * design.conversations / design.questions)
    return design._replace(questions=design.questions * factor)


def _checked(values: ArrayLike, conversations: Sequence[Hashable]) -> tuple[Floats, Codes]:
    table = np.asarray(values, dtype=np.float64)
    if table.ndim != 2 or table.shape[0] < 2 or table.shape[1] < 2:
        raise ValueError(f"at least two questions and two repeats are needed, got {table.shape}")
    if len(conversations) != len(table):
        raise ValueError(
            f"a conversation for each question: got {len(conversations)} for {len(table)}"
        )
    if np.isnan(table).all(axis=1).any() or np.isnan(table).all(axis=0).any():
        raise ValueError("a question or a repeat has no value")
    return table, _codes(conversations)


def _codes(labels: Sequence[Hashable]) -> Codes:
    known: dict[Hashable, int] = {}
    return np.array([known.setdefault(label, len(known)) for label in labels], dtype=np.intp)


def _squares(values: Floats, codes: Codes) -> float:
    """T: the squared total of each level / its number of values, summed."""
    counts = np.bincount(codes)
    totals = np.bincount(codes, weights=values)
    some = counts > 0
    return float((totals[some] ** 2 / counts[some]).sum())


def _weight(codes: Codes, other: Codes) -> float:
    """How often the variance of the other factor is in the expectation of T."""
    sizes = np.bincount(codes)
    width = int(other.max()) + 1
    if width == len(codes):  # each value is a level of its own
        return float(np.count_nonzero(sizes))
    if len(sizes) == len(codes):
        return float(len(codes))
    joint = codes * width + other
    if len(sizes) * width <= _MOST_CELLS:
        counts = np.bincount(joint)
        cells = np.flatnonzero(counts)
        counts = counts[cells]
    else:
        cells, counts = np.unique(joint, return_counts=True)
    return float((counts.astype(np.float64) ** 2 / sizes[cells // width]).sum())
