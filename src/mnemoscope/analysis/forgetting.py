"""Compute forgetting.json: what a system knew before and after it was told to forget.

Mean ROUGE-L and the share of answers above one half are two separate figures, because published
tables print the second next to the first as if they were the same. Low is good for the forget set,
high for the retain set. Failed and unjudged questions are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NotRequired, TypedDict, TypeVar

import numpy as np

from mnemoscope.analysis.estimates import (
    IntervalKind,
    interval_kind,
    interval_of_difference,
    interval_of_mean,
    intervals_of_means,
    rounded,
    rounded_all,
)
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.stats.clustered import cluster_sums
from mnemoscope.text.overlap import rouge_l_recall
from mnemoscope.types import FAILED, Grade, Status

BEFORE, AFTER = "before", "after"
FORGET, RETAIN = "forget", "retain"
HALF = 0.5
CARRIED = 0.8
"""A hit's text leaks the forgotten answer if it has this share of it, by ROUGE-L recall."""
NO_FORGET = "the system has no forget(selector): it could not be told to forget and gets no score"

T = TypeVar("T")
Cells = dict[str, dict[str, T]]
"""Values by `before` and `after`, then by `forget` and `retain`."""
Covers = Callable[[str, str], float]
"""Called with a text and a reference; returns the share of the reference in the text, 0 to 1."""


class MeanRouge(TypedDict):
    """Mean ROUGE-L, or its change."""

    mean: float
    ci95: list[float]
    bounds: NotRequired[list[float]]


class ShareAboveHalf(TypedDict):
    """The share of answers whose ROUGE-L is above one half."""

    share: float
    above: int
    ci95: list[float]
    bounds: NotRequired[list[float]]


class Knowledge(TypedDict):
    """What the system knew of one set at one checkpoint."""

    asked: int
    n: int
    clusters: NotRequired[int]
    mean_rouge_l: MeanRouge | None
    share_above_half: ShareAboveHalf | None


class Change(TypedDict):
    """The difference after minus before, paired by question."""

    n: int
    mean_rouge_l: MeanRouge | None
    share_above_half: MeanRouge | None


class Leak(TypedDict):
    """Questions of the forget set whose hits still contain forgotten memories or answers."""

    n: int
    leaked: int
    share: float | None
    ci95: list[float] | None
    by_id: int
    by_text: int
    questions: list[str]


class ForgettingScore(TypedDict):
    """The score of a system that was told to forget."""

    before: dict[str, Knowledge]
    after: dict[str, Knowledge]
    change: dict[str, Change]
    leak: Leak
    forget_falls: bool | None
    retain_stays: bool | None
    interval: IntervalKind
    """What the intervals are about; files of older versions, which had others, lack it."""


class Forgetting(TypedDict):
    """The content of forgetting.json; `why` gives the reason if there is no score."""

    score: ForgettingScore | None
    why: str
    statuses: NotRequired[Cells[dict[Status, int]]]
    coverage: NotRequired[Cells[float | None]]


def forgetting(
    records: Sequence[QuestionRecord],
    *,
    can_forget: bool = True,
    forgotten: Collection[str] | None = None,
    covers: Covers = rouge_l_recall,
) -> Forgetting:
    """Compute the content of forgetting.json.

    `forgotten` are the ids of the memories that the system was told to forget (default: the
    evidence of the questions in the forget set).
    """
    statuses = _cells(records, lambda own: dict(sorted(Counter(map(status_of, own)).items())))
    coverage = _cells(records, _coverage)
    if why := _why_no_score(records, can_forget):
        return {"score": None, "why": why, "statuses": statuses, "coverage": coverage}
    if forgotten is None:
        own = (one.trial for one in records if one.question.category == FORGET and one.trial)
        forgotten = {id for trial in own for id in trial.evidence}
    known = _cells(records, _knowledge)
    changes = {kind: _change(records, kind) for kind in (FORGET, RETAIN)}
    change = changes[FORGET]["mean_rouge_l"]
    before, after = (known[point][RETAIN]["mean_rouge_l"] for point in (BEFORE, AFTER))
    score: ForgettingScore = {
        "before": known[BEFORE],
        "after": known[AFTER],
        "change": changes,
        "leak": _leak(_of(records, AFTER, FORGET), frozenset(forgotten), covers),
        # The mean of the forget set must fall for certain, that of the retain set must stay within
        # the interval that it had before.
        "forget_falls": bool(change["ci95"][1] < 0) if change else None,
        "retain_stays": bool(before["ci95"][0] <= after["mean"] <= before["ci95"][1])
        if before and after
        else None,
        "interval": interval_kind(known[AFTER][FORGET].get("clusters", 0)),
    }
    return {"score": score, "why": "", "statuses": statuses, "coverage": coverage}


def status_of(record: QuestionRecord) -> Status:
    """Return the status of the last step that ran; `unjudged` if the answer has no verdict."""
    last = record.answer or record.trial
    if last is not None and last.status in FAILED:
        return last.status
    if record.verdict is None or record.verdict.final is None:
        return "unjudged"
    return "answered" if last is None else last.status


def rouge_of(record: QuestionRecord) -> float | None:
    """Return the answer's ROUGE-L; None if the question failed or has no grade."""
    final = record.final
    return final.value if isinstance(final, Grade) else None


def _why_no_score(records: Sequence[QuestionRecord], can_forget: bool) -> str:
    """Return why there is no score; empty where there is one."""
    if not can_forget:
        return NO_FORGET
    for point in (BEFORE, AFTER):
        for kind in (FORGET, RETAIN):
            if not _of(records, point, kind):
                return f"no questions of the {kind} set were asked {point} forgetting"
    if any(record.verdict is not None and record.verdict.score is not None for record in records):
        return "the answers were judged with a rubric; forgetting needs the judge rouge-l"
    asked = _of(records, AFTER, FORGET)
    if all(rouge_of(record) is None for record in asked):
        errors = Counter(error for record in asked for error in record.errors).most_common(1)
        reason = errors[0][0] if errors else "no answer was judged"
        return f"no question of the forget set could be measured after forgetting: {reason}"
    return ""


def _of(records: Sequence[QuestionRecord], point: str, kind: str) -> list[QuestionRecord]:
    return [
        record
        for record in records
        if record.checkpoint == point and record.question.category == kind
    ]


def _cells(
    records: Sequence[QuestionRecord], figure: Callable[[list[QuestionRecord]], T]
) -> Cells[T]:
    return {
        point: {kind: figure(_of(records, point, kind)) for kind in (FORGET, RETAIN)}
        for point in (BEFORE, AFTER)
    }


def _coverage(records: Sequence[QuestionRecord]) -> float | None:
    measured = sum(rouge_of(record) is not None for record in records)
    return rounded(measured / len(records)) if records else None


def _knowledge(records: Sequence[QuestionRecord]) -> Knowledge:
    measured = [(value, one.cluster) for one in records if (value := rouge_of(one)) is not None]
    asked, n = len(records), len(measured)
    if not n:
        return {"asked": asked, "n": 0, "mean_rouge_l": None, "share_above_half": None}
    values = np.array([value for value, _ in measured])
    clusters = [cluster for _, cluster in measured]
    of_mean, of_share = intervals_of_means(np.stack([values, values > HALF], axis=1), clusters)
    above = int((values > HALF).sum())
    mean: MeanRouge = {"mean": rounded(values.mean()), "ci95": of_mean}
    share: ShareAboveHalf = {
        "share": rounded(above / n),
        "above": above,
        "ci95": of_share,
    }
    if failed := asked - n:
        # Both ends are given, because low is good for the forget set and bad for the retain set.
        mean["bounds"] = _bounds(float(values.sum()), asked, failed)
        share["bounds"] = _bounds(above, asked, failed)
    return {
        "asked": asked,
        "n": n,
        "clusters": len(set(clusters)),
        "mean_rouge_l": mean,
        "share_above_half": share,
    }


def _bounds(total: float, asked: int, failed: int) -> list[float]:
    """Return the mean if every failure were 0, and if every failure were 1."""
    return rounded_all((total / asked, (total + failed) / asked))


def _change(records: Sequence[QuestionRecord], kind: str) -> Change:
    """Compute after minus before over the questions that have a value at both checkpoints."""
    before = {record.question.id: record for record in _of(records, BEFORE, kind)}
    pairs = [
        (old, new, record.cluster)
        for record in _of(records, AFTER, kind)
        if (new := rouge_of(record)) is not None
        and record.question.id in before
        and (old := rouge_of(before[record.question.id])) is not None
    ]
    if not pairs:
        return {"n": 0, "mean_rouge_l": None, "share_above_half": None}
    table = np.array([(old, new) for old, new, _ in pairs])
    scores = np.stack([table, table > HALF], axis=2)
    clusters = [cluster for _, _, cluster in pairs]
    sums = cluster_sums(scores[:, 1] - scores[:, 0], clusters)
    mean, share = (
        MeanRouge(
            mean=rounded(sums.sums[:, place].sum() / len(pairs)),
            ci95=interval_of_difference(sums.column(place)),
        )
        for place in range(2)
    )
    return {"n": len(pairs), "mean_rouge_l": mean, "share_above_half": share}


def _leak(records: Sequence[QuestionRecord], forgotten: Collection[str], covers: Covers) -> Leak:
    by_id, by_text = set(), set()
    asked, clusters = [], []
    for record in records:
        trial, question = record.trial, record.question
        if trial is None or trial.status in FAILED:
            continue
        asked.append(question.id)
        clusters.append(record.cluster)
        if any(
            id in forgotten for hit in trial.ranking for id in (hit, *trial.sources.get(hit, ()))
        ):
            by_id.add(question.id)
        # `texts` has only texts that differ from the memory's; unchanged ones are found by id.
        if any(covers(text, question.reference) >= CARRIED for text in trial.texts.values()):
            by_text.add(question.id)
    found, n = by_id | by_text, len(asked)
    leaks = np.array([id in found for id in asked], dtype=np.float64)
    return {
        "n": n,
        "leaked": len(found),
        "share": rounded(len(found) / n) if n else None,
        "ci95": interval_of_mean(leaks, clusters) if n else None,
        "by_id": len(by_id),
        "by_text": len(by_text),
        "questions": sorted(found)[:10],
    }
