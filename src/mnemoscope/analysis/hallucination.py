"""When and where a system hallucinates: the six views of Recall Bench.

The views are the rate at each checkpoint, by category, its trend, canaries (questions that are
hallucinated every time), against recall quality, and by persona.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from typing import Literal, TypedDict

from mnemoscope.analysis.estimates import rounded, rounded_all
from mnemoscope.analysis.longitudinal import (
    CheckpointFigures,
    HallucinationRate,
    LongitudinalFigures,
    columns,
    hallucination,
)
from mnemoscope.analysis.question_records import Plan, QuestionRecord, by_checkpoint
from mnemoscope.stats import linear_trend, pearson

Reading = Literal["healthy", "pathological", "cannot tell"]
Key = tuple[str, str]


class RateAtCheckpoint(HallucinationRate):
    """The rate at one checkpoint."""

    label: str
    ingested_days: int


class HallucinationTrend(TypedDict):
    """A regression line of the rate over the ingested days."""

    intercept: float | None
    intercept_ci95: list[float] | None
    slope_per_day: float | None
    slope_per_day_ci95: list[float] | None
    p: float | None
    n: int


class RateSeries(TypedDict):
    """The hallucination rate of one category or persona."""

    overall: HallucinationRate
    checkpoints: list[RateAtCheckpoint]
    trend: HallucinationTrend


class QualityAndRate(TypedDict):
    """Recall quality and hallucination rate at one checkpoint."""

    label: str
    ingested_days: int
    recall_quality: float | None
    recall_quality_ci95: list[float] | None
    rate: float | None
    rate_ci95: list[float] | None
    n: int


class AgainstRecall(TypedDict):
    """The correlation between recall quality and hallucination rate."""

    points: list[QualityAndRate]
    correlation: float | None
    correlation_ci95: list[float] | None
    reading: Reading


class AskedQuestion(TypedDict):
    """A question with its persona, category and text."""

    persona: str
    question: str
    category: str
    text: str


class SteadyCanary(AskedQuestion):
    """A question that was hallucinated every time it was judged."""

    invented: int
    judged: int


class Canary(AskedQuestion):
    """A question with, for each run, how often it was hallucinated and how often judged."""

    runs: dict[str, list[int]]


class Canaries(TypedDict):
    """Questions grouped by how their hallucinations changed across runs, oldest run first."""

    runs: list[str]
    always: list[Canary]
    newly: list[Canary]
    no_longer: list[Canary]
    unsteady: list[Canary]
    counts: dict[str, int]
    not_compared: int


class HallucinationViews(TypedDict):
    """All views of one run."""

    by_checkpoint: list[RateAtCheckpoint]
    by_category: dict[str, RateSeries]
    trend: HallucinationTrend
    canaries: list[SteadyCanary]
    against_recall: AgainstRecall
    by_persona: dict[str, RateSeries]


def views(
    records: Sequence[QuestionRecord], plan: Plan, figures: LongitudinalFigures
) -> HallucinationViews:
    """Compute all views of one run; `figures` are those of `longitudinal` for the same records."""
    row = rates(figures["checkpoints"])
    return {
        "by_checkpoint": row,
        "by_category": {
            category: _of_category(category, records, plan) for category in figures["categories"]
        },
        "trend": trend(row),
        "canaries": steady_canaries(records),
        "against_recall": against_recall(figures["checkpoints"]),
        "by_persona": {
            persona: _split([r for r in records if r.scenario == persona], rates(own))
            for persona, own in figures["personas"].items()
        },
    }


def rates(checkpoints: Sequence[CheckpointFigures]) -> list[RateAtCheckpoint]:
    """Return the hallucination rate at each checkpoint."""
    return [
        {
            "label": point["label"],
            "ingested_days": point["ingested_days"],
            **point["hallucination"],
        }
        for point in checkpoints
    ]


def trend(row: Sequence[RateAtCheckpoint]) -> HallucinationTrend:
    """Fit a regression line, with 95 % intervals, of the rate over the ingested days.

    Checkpoints are treated as independent. They are not fully so, because they share questions
    and history.
    """
    # Checkpoints with the same ingested days count once; the last one is used.
    rate_by_day = {point["ingested_days"]: point["rate"] for point in row}
    heights = [nan if rate is None else rate for rate in rate_by_day.values()]
    line = linear_trend(list(rate_by_day), heights)
    # Points that happen to lie exactly on a line would give intervals without width.
    known = not isnan(line.slope_low) and line.slope_low < line.slope_high
    return {
        "intercept": _or_none(line.intercept),
        "intercept_ci95": rounded_all((line.intercept_low, line.intercept_high)) if known else None,
        "slope_per_day": _or_none(line.slope),
        "slope_per_day_ci95": rounded_all((line.slope_low, line.slope_high)) if known else None,
        "p": line.p if known else None,
        "n": line.n,
    }


def against_recall(checkpoints: Sequence[CheckpointFigures]) -> AgainstRecall:
    """Correlate recall quality with hallucination rate over the checkpoints.

    Recall Bench's reading: in a healthy system hallucination rises as recall falls. If both fall
    together, hallucinated answers may be counted as recalled.
    """
    points: list[QualityAndRate] = [
        {
            "label": point["label"],
            "ingested_days": point["ingested_days"],
            "recall_quality": point["recall_quality"]["mean"],
            "recall_quality_ci95": point["recall_quality"]["ci95"],
            "rate": point["hallucination"]["rate"],
            "rate_ci95": point["hallucination"]["ci95"],
            "n": point["judged"],
        }
        for point in {point["ingested_days"]: point for point in checkpoints}.values()
        if point["judged"]
    ]
    quality = [point["recall_quality"] or 0.0 for point in points]
    found = pearson(quality, [point["rate"] or 0.0 for point in points])
    interval = rounded_all(found.ci95) if found.ci95 else None
    return {
        "points": points,
        "correlation": _or_none(found.r),
        "correlation_ci95": interval,
        "reading": read(interval),
    }


def read(interval: Sequence[float] | None) -> Reading:
    """Interpret the interval of the correlation."""
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "cannot tell"
    return "healthy" if interval[1] < 0 else "pathological"


def steady_canaries(records: Sequence[QuestionRecord]) -> list[SteadyCanary]:
    """Return the questions judged at several checkpoints and hallucinated at each of them."""
    about = _about(records)
    return [
        {**about[key], "invented": invented, "judged": judged}
        for key, (invented, judged) in _counts(records).items()
        if invented == judged > 1
    ]


def canaries(runs: Mapping[str, Sequence[QuestionRecord]]) -> Canaries:
    """Group questions by how their hallucinations changed across runs, oldest run first.

    A question is hallucinated in a run if it is at any checkpoint. Only questions that the last
    run and at least one earlier run judged are compared: "always" was hallucinated in every run
    that judged it, "newly" only in the last, "no_longer" in all but the last, "unsteady" in some,
    "never" in none.
    """
    counts = {label: _counts(records) for label, records in runs.items()}
    about = {key: own for records in runs.values() for key, own in _about(records).items()}
    found: dict[str, list[Canary]] = {
        kind: [] for kind in ("always", "newly", "no_longer", "unsteady")
    }
    never = not_compared = 0
    last = next(reversed(counts), "")
    for key in sorted(about):
        own = {label: count[key] for label, count in counts.items() if key in count}
        if last not in own or len(own) < 2:
            not_compared += 1
            continue
        *earlier, now = (invented > 0 for invented, _ in own.values())
        if kind := _kind(earlier, now):
            found[kind].append({**about[key], "runs": {k: list(v) for k, v in own.items()}})
        else:
            never += 1
    return {
        "runs": list(runs),
        "always": found["always"],
        "newly": found["newly"],
        "no_longer": found["no_longer"],
        "unsteady": found["unsteady"],
        "counts": {**{kind: len(own) for kind, own in found.items()}, "never": never},
        "not_compared": not_compared,
    }


def _kind(earlier: Sequence[bool], now: bool) -> str:
    if all(earlier):
        return "always" if now else "no_longer"
    if any(earlier):
        return "unsteady"
    return "newly" if now else ""


def _of_category(category: str, records: Sequence[QuestionRecord], plan: Plan) -> RateSeries:
    own = [record for record in records if record.question.category == category]
    at = by_checkpoint(own)
    row: list[RateAtCheckpoint] = [
        {
            "label": column.label,
            "ingested_days": column.ingested_days,
            **hallucination(at.get(column.label, [])),
        }
        for column in columns(plan)
    ]
    return _split(own, row)


def _split(records: Sequence[QuestionRecord], row: list[RateAtCheckpoint]) -> RateSeries:
    return {"overall": hallucination(records), "checkpoints": row, "trend": trend(row)}


def _counts(records: Sequence[QuestionRecord]) -> dict[Key, tuple[int, int]]:
    """Count for each question how often it was hallucinated and how often it was judged."""
    counts: dict[Key, tuple[int, int]] = {}
    for record in records:
        if score := record.score:
            key = (record.scenario, record.question.id)
            invented, judged = counts.get(key, (0, 0))
            counts[key] = (invented + (score.hallucination == 0), judged + 1)
    return counts


def _about(records: Sequence[QuestionRecord]) -> dict[Key, AskedQuestion]:
    return {
        (record.scenario, record.question.id): {
            "persona": record.scenario,
            "question": record.question.id,
            "category": record.question.category,
            "text": record.question.text,
        }
        for record in records
        if record.score
    }


def _or_none(value: float) -> float | None:
    return None if isnan(value) else rounded(value)
