"""The cohort: a fixed set of questions that are asked at every checkpoint from its start on.

Its curve shows the same questions with the same right answers while the history grows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import NamedTuple, TypedDict

import numpy as np
from numpy.typing import NDArray

from mnemoscope.analysis.estimates import (
    Estimate,
    interval_of_change,
    interval_of_mean,
    rounded,
    rounded_all,
)
from mnemoscope.analysis.question_records import Plan, QuestionRecord, by_checkpoint
from mnemoscope.stats.clustered import cluster_sums, difference

Key = tuple[str, str]
"""Persona and question."""
LEAST_COHORT = 30
"""A cohort of so many questions starts early rather than becomes larger."""
_NOTHING: Estimate = {"mean": None, "n": 0, "ci95": None}


class CohortPoint(TypedDict):
    """The cohort at one checkpoint."""

    label: str
    ingested_days: int
    score: Estimate
    change: Estimate
    """Since the start, question by question; n is 0 at the start."""


class QuestionCohort(TypedDict):
    """The same questions at every checkpoint from `start` to the last."""

    start: str
    questions: int
    judged: int
    """How many have a value at every checkpoint; the figures are theirs."""
    points: list[CohortPoint]


class AskedValues(NamedTuple):
    """Every question that was asked, by checkpoint, with its value."""

    days: Mapping[str, int]
    """The checkpoints at which questions were asked, in order, and the days ingested by then."""
    values: Mapping[str, Mapping[Key, int | None]]
    clusters: Mapping[Key, str]
    best: int

    @property
    def labels(self) -> list[str]:
        return list(self.days)


class FollowedQuestions(NamedTuple):
    """The questions of the cohort, and the checkpoint at which it starts."""

    start: str
    keys: frozenset[Key]


def followed_questions(
    records: Sequence[QuestionRecord], plan: Plan, days: Mapping[str, int]
) -> FollowedQuestions | None:
    """Choose the cohort; None if no question was asked at several checkpoints up to the last.

    If the plan names a cohort, it is that. Else it starts at the first checkpoint from which
    enough questions are asked to the end: thirty, or half of the most that there are. Only what
    was asked counts, so all systems have the same cohort.
    """
    at = by_checkpoint(records)
    labels = [label for label in days if label in at]
    planned = {(persona, id) for persona, own in plan.items() for p in own for id in p.cohort}
    always = planned or {key_of(one) for one in records}
    lasting: dict[str, frozenset[Key]] = {}
    for label in reversed(labels):
        always = always & {key_of(one) for one in at[label]}
        lasting[label] = frozenset(always)
    starts = labels[:-1]
    most = max((len(lasting[label]) for label in starts), default=0)
    if not most:
        return None
    least = most if planned else min(LEAST_COHORT, ceil(most / 2))
    start = next(label for label in starts if len(lasting[label]) >= least)
    return FollowedQuestions(start, lasting[start])


def key_of(record: QuestionRecord) -> Key:
    """Persona and question of a record."""
    return record.scenario, record.question.id


def cohort_of(asked: AskedValues, start: str, keys: Sequence[Key]) -> QuestionCohort:
    """Compute the curve of the cohort."""
    followed = asked.labels[asked.labels.index(start) :]
    judged = [key for key in keys if all(asked.values[at][key] is not None for at in followed)]
    begun = _known(asked.values[start], judged)
    clusters = [asked.clusters[key] for key in judged]
    points: list[CohortPoint] = []
    for label in followed:
        changes = _known(asked.values[label], judged) - begun
        is_changed = judged and label != start
        points.append(
            {
                "label": label,
                "ingested_days": asked.days[label],
                "score": _score(asked, label, keys, judged),
                "change": _mean_change(changes, clusters, asked.best) if is_changed else _NOTHING,
            }
        )
    return {"start": start, "questions": len(keys), "judged": len(judged), "points": points}


def _known(values: Mapping[Key, int | None], keys: Sequence[Key]) -> NDArray[np.float64]:
    return np.array([values[key] for key in keys], dtype=np.float64)


def _score(asked: AskedValues, label: str, keys: Sequence[Key], judged: Sequence[Key]) -> Estimate:
    """The mean of the judged questions; the bounds are those of all questions of the cohort."""
    values = _known(asked.values[label], judged)
    found: Estimate = {**_NOTHING}
    if judged:
        clusters, limits = [asked.clusters[key] for key in judged], (0.0, float(asked.best))
        interval = interval_of_mean(values, clusters, limits=limits)
        found = {"mean": rounded(float(values.mean())), "n": len(judged), "ci95": interval}
    if missing := len(keys) - len(judged):
        every = [asked.values[label][key] for key in keys]
        known, lost = sum(one or 0 for one in every), every.count(None)
        found["missing"] = missing
        found["bounds"] = rounded_all((known / len(keys), (known + asked.best * lost) / len(keys)))
    return found


def _mean_change(changes: NDArray[np.float64], clusters: Sequence[str], best: int) -> Estimate:
    found = difference(cluster_sums(changes[:, None], clusters), best)
    ends = interval_of_change(found.interval(found.critical()), best)
    return {"mean": rounded(found.delta), "n": len(changes), "ci95": ends}
