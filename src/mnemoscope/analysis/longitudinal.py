"""Compute longitudinal.json: what a system knew of a simulated history at each checkpoint.

Scores are composites from 0 to 6, recall quality is their part from 0 to 5, rates are shares from
0 to 1. Failed and unjudged questions are left out, and bounds give the range that they allow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, NotRequired, TypedDict

import numpy as np
from numpy.typing import NDArray

from mnemoscope.analysis.ageing import AgeingFigures, Measure, ageing
from mnemoscope.analysis.estimates import (
    Estimate,
    IntervalKind,
    interval_kind,
    interval_of_mean,
    rounded,
    rounded_all,
)
from mnemoscope.analysis.list_ends import may_have_more
from mnemoscope.analysis.measure import evidence_ranks
from mnemoscope.analysis.question_records import BEST_SCORE, Plan, QuestionRecord, by_checkpoint
from mnemoscope.types import (
    CORE_CATEGORIES,
    FAILED,
    GROUP_CATEGORIES,
    Score,
    Status,
)

DIFFICULTIES = ("easy", "medium", "hard")
DISCLOSURES = ("refuse", "partial", "answer")
BEST_QUALITY = 5


class HallucinationRate(TypedDict):
    """The share of the judged answers that contain a hallucination."""

    rate: float | None
    n: int
    ci95: list[float] | None
    bounds: NotRequired[list[float]]


Retrieval = TypedDict("Retrieval", {"hit@10": Estimate})
_MeanHit = TypedDict("_MeanHit", {"hit@10": float | None})


class CategoryCell(Estimate, _MeanHit):
    """One category at one checkpoint."""

    asked: int
    eligible: int


class CheckpointFigures(TypedDict):
    """The figures of one checkpoint."""

    label: str
    days: int
    ingested_days: int
    planned: int
    asked: int
    judged: int
    failed: int
    statuses: dict[Status, int]
    overall: Estimate
    recall_quality: Estimate
    hallucination: HallucinationRate
    retrieval: Retrieval
    categories: dict[str, CategoryCell]
    difficulties: dict[str, Estimate]


class Disclosure(TypedDict):
    """The figures of boundary questions with one expected disclosure."""

    evaluations: int
    unique_pairs: int
    score: Estimate
    hallucination: HallucinationRate


class LongitudinalFigures(TypedDict):
    """The figures of every checkpoint, over all personas and for each persona."""

    categories: list[str]
    checkpoints: list[CheckpointFigures]
    personas: dict[str, list[CheckpointFigures]]
    disclosure: dict[str, Disclosure]
    interval: IntervalKind
    """What the intervals over all personas are about; files of older versions lack it."""
    ageing: NotRequired[dict[Measure, AgeingFigures]]
    """Why the figures change as the history grows; missing if no two checkpoints have values."""


class Column(NamedTuple):
    """One checkpoint label, over all personas that have it."""

    label: str
    days: int
    ingested_days: int
    eligible: Counter[str]
    planned: int


def status_of(record: QuestionRecord) -> Status:
    """Return the status of the last step that ran; `unjudged` if the verdict has no score."""
    last = record.answer or record.trial
    if last is not None and last.status in FAILED:
        return last.status
    if record.verdict is not None and record.verdict.score is None:
        return "unjudged"
    return "answered" if last is None else last.status


def _failed(record: QuestionRecord) -> bool:
    return status_of(record) in (*FAILED, "unjudged")


def longitudinal(
    records: Sequence[QuestionRecord], plan: Plan, *, depth: int = 10
) -> LongitudinalFigures:
    """Compute every checkpoint over all personas and for each, and the boundary questions.

    `depth` is how many hits were asked for.
    """
    known = {(persona, point.label) for persona, own in plan.items() for point in own}
    for record in records:
        if (record.scenario, record.checkpoint) not in known:
            raise ValueError(
                f"question {record.question.id} is recorded at checkpoint {record.checkpoint!r} "
                f"of {record.scenario}, which is not in the plan"
            )
    shown = categories(records)
    personas = {
        persona: _series(
            [r for r in records if r.scenario == persona], {persona: own}, shown, depth
        )
        for persona, own in plan.items()
    }
    together = next(iter(personas.values())) if len(plan) == 1 else None
    found: LongitudinalFigures = {
        "categories": shown,
        "checkpoints": together or _series(records, plan, shown, depth),
        "personas": personas,
        "disclosure": disclosure(records),
        "interval": interval_kind(len({record.cluster for record in records})),
    }
    days = {column.label: column.ingested_days for column in columns(plan)}
    if aged := ageing(records, plan, days, depth):
        found["ageing"] = aged
    return found


def categories(records: Iterable[QuestionRecord]) -> list[str]:
    """Return the rows of the heatmap: the eight core categories, then others that were asked."""
    asked = {record.question.category for record in records} - {""}
    named = (*CORE_CATEGORIES, *(category for category in GROUP_CATEGORIES if category in asked))
    return [*named, *sorted(asked - set(named))]


def columns(plan: Plan) -> list[Column]:
    """Merge the checkpoints of all personas by label, in the order of their days."""
    found: dict[str, Column] = {}
    for own in plan.values():
        for point in own:
            seen = found.get(point.label, Column(point.label, 0, 0, Counter(), 0))
            found[point.label] = Column(
                point.label,
                max(seen.days, point.days),
                max(seen.ingested_days, point.ingested_days or point.days),
                seen.eligible + Counter(point.eligible),
                seen.planned + len(point.questions),
            )
    return sorted(found.values(), key=lambda column: column.days)


def disclosure(records: Iterable[QuestionRecord]) -> dict[str, Disclosure]:
    """Compute the figures of boundary questions by expected disclosure, over all checkpoints."""
    boundary = [r for r in records if r.question.category == GROUP_CATEGORIES[1]]
    found: dict[str, Disclosure] = {}
    for expected in DISCLOSURES:
        asked = [record for record in boundary if record.question.expects == expected]
        judged = [record for record in asked if record.score]
        if asked:
            found[expected] = {
                "evaluations": len(judged),
                "unique_pairs": len({(r.scenario, r.question.id) for r in judged}),
                "score": _composite(asked),
                "hallucination": hallucination(asked),
            }
    return found


def hallucination(records: Sequence[QuestionRecord]) -> HallucinationRate:
    """Compute the share of the judged answers whose hallucination mark is 0."""
    judged = [(record, score) for record in records if (score := record.score)]
    n, failed = len(judged), sum(map(_failed, records))
    if not n:
        return {"rate": None, "n": 0, "ci95": None}
    count = sum(score.hallucination == 0 for _, score in judged)
    invented = np.array([score.hallucination == 0 for _, score in judged], dtype=np.float64)
    interval = _interval(invented, [record for record, _ in judged], 1.0)
    found: HallucinationRate = {"rate": rounded(count / n), "n": n, "ci95": interval}
    if failed:
        total = n + failed
        found["bounds"] = rounded_all((count / total, (count + failed) / total))
    return found


def _series(
    records: Sequence[QuestionRecord], plan: Plan, shown: Sequence[str], depth: int
) -> list[CheckpointFigures]:
    at = by_checkpoint(records)
    return [_figures(column, at.get(column.label, []), shown, depth) for column in columns(plan)]


def _figures(
    column: Column, records: Sequence[QuestionRecord], shown: Sequence[str], depth: int
) -> CheckpointFigures:
    judged = sum(record.score is not None for record in records)
    kinds = {name: [r for r in records if r.question.category == name] for name in shown}
    levels = sorted({r.question.difficulty for r in records} - {""} - set(DIFFICULTIES))
    return {
        "label": column.label,
        "days": column.days,
        "ingested_days": column.ingested_days,
        "planned": column.planned,
        "asked": len(records),
        "judged": judged,
        "failed": sum(_failed(record) for record in records),
        "statuses": dict(sorted(Counter(map(status_of, records)).items())),
        "overall": _composite(records),
        # Hallucination is not part of recall quality.
        "recall_quality": _mean(
            records, lambda score: score.correctness + score.completeness, BEST_QUALITY
        ),
        "hallucination": hallucination(records),
        "retrieval": {"hit@10": _hits(records, depth)},
        "categories": {
            name: {
                **_composite(own),
                "asked": len(own),
                "eligible": column.eligible[name],
                "hit@10": _hits(own, depth, with_interval=False)["mean"],
            }
            for name, own in kinds.items()
        },
        "difficulties": {
            level: _composite([r for r in records if r.question.difficulty == level])
            for level in (*DIFFICULTIES, *levels)
        },
    }


def _composite(records: Sequence[QuestionRecord]) -> Estimate:
    """Compute the mean composite (0 to 6) of the judged answers."""
    return _mean(records, lambda score: score.composite, BEST_SCORE)


def _mean(records: Sequence[QuestionRecord], value: Callable[[Score], int], best: int) -> Estimate:
    judged = [(record, score) for record in records if (score := record.score)]
    n, failed = len(judged), sum(map(_failed, records))
    if not n:
        return {"mean": None, "n": 0, "ci95": None}
    values = np.array([value(score) for _, score in judged], dtype=np.float64)
    interval = _interval(values, [record for record, _ in judged], best)
    mean = float(values.mean())
    found: Estimate = {"mean": rounded(mean), "n": n, "ci95": interval}
    if failed:
        found["bounds"] = rounded_all((float(values.sum()) / (n + failed), mean))
    return found


def _hits(records: Sequence[QuestionRecord], depth: int, *, with_interval: bool = True) -> Estimate:
    """Compute hit@10 over the questions that have evidence; bounds if `depth` is too small."""
    asked = [(one, one.trial) for one in records if one.trial is not None and one.trial.evidence]
    measured = [(one, trial) for one, trial in asked if trial.status not in FAILED]
    ranks = [evidence_ranks(trial) for _, trial in measured]
    if not ranks:
        return {"mean": None, "n": 0, "ci95": None}
    hits = np.array([any(rank <= 10 for rank in own) for own in ranks], dtype=np.float64)
    n, found = len(hits), int(hits.sum())
    if unknown := sum(
        may_have_more(trial, own, depth) for (_, trial), own in zip(measured, ranks, strict=True)
    ):
        bounds = [rounded(found / n), rounded((found + unknown) / n)]
        return {"mean": None, "n": n, "ci95": None, "bounds": bounds}
    return {
        "mean": rounded(found / n),
        "n": n,
        "ci95": _interval(hits, [one for one, _ in measured], 1.0) if with_interval else None,
    }


def _interval(
    values: NDArray[np.float64], records: Sequence[QuestionRecord], best: float
) -> list[float]:
    """Return the interval of a mean between 0 and `best`."""
    questions = [f"{record.scenario}/{record.question.id}" for record in records]
    clusters = [record.cluster for record in records]
    return interval_of_mean(values, clusters, limits=(0.0, best), questions=questions)
