"""Where and when a system invents: the six views that Recall Bench asks for.

The rate at each checkpoint is the first view; the others are by kind of question, its trend, the
questions that bring it out, against recall, and by persona.
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
    Plan,
    columns,
    hallucination,
)
from mnemoscope.analysis.question_records import QuestionRecord, by_checkpoint
from mnemoscope.stats import linear_trend, pearson

Reading = Literal["healthy", "pathological", "cannot tell"]
Key = tuple[str, str]


class RateAtCheckpoint(HallucinationRate):
    """The rate at one checkpoint."""

    label: str
    ingested_days: int


class HallucinationTrend(TypedDict):
    """A line of the rate over the days ingested: where it starts and how fast it rises."""

    intercept: float | None
    intercept_ci95: list[float] | None
    slope_per_day: float | None
    slope_per_day_ci95: list[float] | None
    p: float | None
    n: int


class RateSeries(TypedDict):
    """The rate of one category or persona."""

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
    """How recall quality and hallucination go together."""

    points: list[QualityAndRate]
    correlation: float | None
    correlation_ci95: list[float] | None
    reading: Reading


class AskedQuestion(TypedDict):
    """A question, as readers of the views know it."""

    persona: str
    question: str
    category: str
    text: str


class SteadyCanary(AskedQuestion):
    """A question that brought an invention every time it was judged."""

    invented: int
    judged: int


class Canary(AskedQuestion):
    """What a question did in each run: how often it invented, and how often it was judged."""

    runs: dict[str, list[int]]


class Canaries(TypedDict):
    """Questions across runs, the oldest run first."""

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
    """All views of one run; the figures are what `longitudinal` made of the same records."""
    row = rates(figures["checkpoints"])
    return {
        "by_checkpoint": row,
        "by_category": {
            category: _of_category(category, records, plan) for category in figures["categories"]
        },
        "trend": trend(row),
        "canaries": steadfast(records),
        "against_recall": against_recall(figures["checkpoints"]),
        "by_persona": {
            persona: _split([r for r in records if r.scenario == persona], rates(own))
            for persona, own in figures["personas"].items()
        },
    }


def rates(checkpoints: Sequence[CheckpointFigures]) -> list[RateAtCheckpoint]:
    """The row below the heatmap."""
    return [
        {
            "label": point["label"],
            "ingested_days": point["ingested_days"],
            **point["hallucination"],
        }
        for point in checkpoints
    ]


def trend(row: Sequence[RateAtCheckpoint]) -> HallucinationTrend:
    """The line with 95 % intervals, in shares and shares a day.

    Checkpoints are taken as independent, which they are not wholly: they ask some of the same
    questions of a growing history.
    """
    # Of checkpoints that remember the same days the last: more of them are no more evidence.
    told = {point["ingested_days"]: point["rate"] for point in row}
    line = linear_trend(list(told), [nan if rate is None else rate for rate in told.values()])
    # Points that lie on a line by chance would make it look certain.
    sure = not isnan(line.slope_low) and line.slope_low < line.slope_high
    return {
        "intercept": _known(line.intercept),
        "intercept_ci95": rounded_all((line.intercept_low, line.intercept_high)) if sure else None,
        "slope_per_day": _known(line.slope),
        "slope_per_day_ci95": rounded_all((line.slope_low, line.slope_high)) if sure else None,
        "p": line.p if sure else None,
        "n": line.n,
    }


def against_recall(checkpoints: Sequence[CheckpointFigures]) -> AgainstRecall:
    """Each checkpoint's recall quality and hallucination rate, how they go together, what it means.

    Recall Bench's reading: in a healthy system hallucination rises as recall falls; where both fall
    together, what is invented may be passing for recalled.
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
        "correlation": _known(found.r),
        "correlation_ci95": interval,
        "reading": read(interval),
    }


def read(interval: Sequence[float] | None) -> Reading:
    """What an interval of the correlation allows to say."""
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "cannot tell"
    return "healthy" if interval[1] < 0 else "pathological"


def steadfast(records: Sequence[QuestionRecord]) -> list[SteadyCanary]:
    """A run's own canaries: asked at several checkpoints, answered with an invention at each."""
    counts = _counts(records)
    about = _about(records)
    return [
        {**about[key], "invented": invented, "judged": judged}
        for key, (invented, judged) in counts.items()
        if invented == judged > 1
    ]


def canaries(runs: Mapping[str, Sequence[QuestionRecord]]) -> Canaries:
    """What questions do across runs, the oldest first: which always invent, newly, no longer.

    A question invents in a run if it does at any checkpoint. Compared is what the last run and at
    least one earlier judged: "always" invents in every run that judged it, "newly" in the last
    alone, "no_longer" in all but the last, "unsteady" in some, "never" in none.
    """
    counts = {label: _counts(records) for label, records in runs.items()}
    about = {key: told for records in runs.values() for key, told in _about(records).items()}
    found: dict[str, list[Canary]] = {
        kind: [] for kind in ("always", "newly", "no_longer", "unsteady")
    }
    never = alone = 0
    last = next(reversed(counts), "")
    for key in sorted(about):
        own = {label: count[key] for label, count in counts.items() if key in count}
        if last not in own or len(own) < 2:
            alone += 1
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
        "counts": {**{kind: len(told) for kind, told in found.items()}, "never": never},
        "not_compared": alone,
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
    """Per question how often it was answered with an invention, and how often it was judged."""
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


def _known(value: float) -> float | None:
    return None if isnan(value) else rounded(value)
