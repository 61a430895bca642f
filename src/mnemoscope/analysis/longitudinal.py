"""A life in figures: what a system still knew at each checkpoint, of which kind, and how sure.

Records in, plain data out, as it stands in metrics.json under "longitudinal". Scores are composites
from 0 to 6, recall quality is the part of them from 0 to 5, rates are shares from 0 to 1. What
failed or was not judged is no zero: it is left out, and bounds say what it could have changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from mnemoscope.analysis.measure import SEED, evidence_ranks
from mnemoscope.stats import bootstrap, wilson
from mnemoscope.types import (
    CORE_CATEGORIES,
    FAILED,
    GROUP_CATEGORIES,
    Answer,
    Checkpoint,
    Question,
    Score,
    Status,
    Trial,
    Verdict,
)

DIFFICULTIES = ("easy", "medium", "hard")
DISCLOSURES = ("refuse", "partial", "answer")
BEST_SCORE = 6
BEST_QUALITY = 5
DRAWS = 1_000
"""A sweep has thousands of cells; at this many draws an interval's ends err by 4 % of its half."""
_DIGITS = 10


class Record(NamedTuple):
    """One question put to one system at one checkpoint, with all that came of it."""

    persona: str
    checkpoint: str
    question: Question
    trial: Trial | None = None
    answer: Answer | None = None
    verdict: Verdict | None = None
    ms: float | None = None
    """How long recalling and answering took."""


Plan = Mapping[str, Sequence[Checkpoint]]
"""Persona to its checkpoints, in order."""


class Column(NamedTuple):
    """One checkpoint of all personas that have it."""

    label: str
    days: int
    ingested_days: int
    eligible: Counter[str]
    planned: int


def status_of(record: Record) -> Status:
    """How it ended: the last line of the journal that can say so, and whether it was judged."""
    last = record.answer or record.trial
    if last is not None and last.status in FAILED:
        return last.status
    if record.verdict is not None and record.verdict.score is None:
        return "unjudged"
    return "answered" if last is None else last.status


def _failed(record: Record) -> bool:
    return status_of(record) in (*FAILED, "unjudged")


def score_of(record: Record) -> Score | None:
    """The final score; none for a question that failed or was not judged."""
    if record.verdict is None or status_of(record) in FAILED:
        return None
    return record.verdict.score


def longitudinal(records: Sequence[Record], plan: Plan, *, seed: int = SEED) -> dict[str, Any]:
    """Every checkpoint over all personas and for each, and what boundary questions disclosed."""
    _check(records, plan)
    shown = categories(records)
    personas = {
        persona: _series([r for r in records if r.persona == persona], {persona: own}, shown, seed)
        for persona, own in plan.items()
    }
    together = next(iter(personas.values())) if len(plan) == 1 else None
    return {
        "categories": shown,
        "checkpoints": together or _series(records, plan, shown, seed),
        "personas": personas,
        "disclosure": disclosure(records, seed=seed),
    }


def categories(records: Iterable[Record]) -> list[str]:
    """The rows of a heatmap: the eight always, others where they were asked."""
    asked = {record.question.category for record in records} - {""}
    named = (*CORE_CATEGORIES, *(category for category in GROUP_CATEGORIES if category in asked))
    return [*named, *sorted(asked - set(named))]


def columns(plan: Plan) -> list[Column]:
    """The checkpoints of all personas, each label once, in the order of their days."""
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


def by_label(records: Iterable[Record]) -> dict[str, list[Record]]:
    """The records of each checkpoint."""
    at: dict[str, list[Record]] = {}
    for record in records:
        at.setdefault(record.checkpoint, []).append(record)
    return at


def disclosure(records: Iterable[Record], *, seed: int = SEED) -> dict[str, Any]:
    """How boundary questions were met, by what was expected; over all checkpoints together."""
    boundary = [r for r in records if r.question.category == GROUP_CATEGORIES[1]]
    told = {}
    for expected in DISCLOSURES:
        asked = [record for record in boundary if record.question.expects == expected]
        judged = [record for record in asked if score_of(record)]
        if asked:
            told[expected] = {
                "evaluations": len(judged),
                "unique_pairs": len({(r.persona, r.question.id) for r in judged}),
                "score": composite(asked, seed),
                "hallucination": hallucination(asked),
            }
    return told


def composite(records: Sequence[Record], seed: int = SEED) -> dict[str, Any]:
    """Mean composite 0–6 of the judged, with its interval."""
    return _mean(records, lambda score: score.composite, BEST_SCORE, seed)


def quality(records: Sequence[Record], seed: int = SEED) -> dict[str, Any]:
    """Mean of correctness and completeness together, 0–5: hallucination is not in it."""
    return _mean(records, lambda score: score.correctness + score.completeness, BEST_QUALITY, seed)


def hallucination(records: Sequence[Record]) -> dict[str, Any]:
    """Share of the judged whose hallucination mark is 0.

    Wilson's interval, over questions: one that was asked at ten checkpoints is no ten questions.
    """
    judged = [(record, score) for record in records if (score := score_of(record))]
    n, failed = len(judged), sum(map(_failed, records))
    if not n:
        return {"rate": None, "n": 0, "ci95": None}
    invented = sum(score.hallucination == 0 for _, score in judged)
    units = len({(record.persona, record.question.id) for record, _ in judged})
    low, high = wilson(round(invented / n * units), units)
    figure = {"rate": _rounded(invented / n), "n": n, "ci95": [_rounded(low), _rounded(high)]}
    if failed:
        total = n + failed
        figure["bounds"] = [_rounded(invented / total), _rounded((invented + failed) / total)]
    return figure


def _series(
    records: Sequence[Record], plan: Plan, shown: Sequence[str], seed: int
) -> list[dict[str, Any]]:
    at = by_label(records)
    return [_figures(column, at.get(column.label, []), shown, seed) for column in columns(plan)]


def _figures(
    column: Column, records: Sequence[Record], shown: Sequence[str], seed: int
) -> dict[str, Any]:
    judged = sum(score_of(record) is not None for record in records)
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
        "overall": composite(records, seed),
        "recall_quality": quality(records, seed),
        "hallucination": hallucination(records),
        "retrieval": {"hit@10": _hits(records)},
        "categories": {
            name: {
                **composite(own, seed),
                "asked": len(own),
                "eligible": column.eligible[name],
                "hit@10": _hits(own)["mean"],
            }
            for name, own in kinds.items()
        },
        "difficulties": {
            level: composite([r for r in records if r.question.difficulty == level], seed)
            for level in (*DIFFICULTIES, *levels)
        },
    }


def _mean(records: Sequence[Record], value: Any, best: int, seed: int) -> dict[str, Any]:
    judged = [(record, score) for record in records if (score := score_of(record))]
    n, failed = len(judged), sum(map(_failed, records))
    if not n:
        return {"mean": None, "n": 0, "ci95": None}
    values = np.array([value(score) for _, score in judged], dtype=np.float64)
    mean = float(values.mean())
    units = _units([record for record, _ in judged])
    sampled = bootstrap(values[:, None], units, seed=seed, draws=DRAWS, limits=(0.0, best))
    low, high = float(sampled.low[0]), float(sampled.high[0])
    if low == high:
        # Values that are all alike cannot say how much others would differ. No values between
        # 0 and the best spread wider than right and wrong do, and for these Wilson knows.
        low, high = (best * end for end in wilson(round(mean / best * n), n))
    figure = {"mean": _rounded(mean), "n": n, "ci95": [_rounded(low), _rounded(high)]}
    if failed:
        figure["bounds"] = [_rounded(float(values.sum()) / (n + failed)), _rounded(mean)]
    return figure


def _hits(records: Sequence[Record]) -> dict[str, Any]:
    """Whether any evidence was among the first ten recalled, of questions that have evidence."""
    trials = [r.trial for r in records if r.trial is not None and r.trial.evidence]
    ranks = [evidence_ranks(trial) for trial in trials if trial.status not in FAILED]
    if not ranks:
        return {"mean": None, "n": 0, "ci95": None}
    found = sum(any(rank <= 10 for rank in own) for own in ranks)
    low, high = wilson(found, len(ranks))
    return {
        "mean": _rounded(found / len(ranks)),
        "n": len(ranks),
        "ci95": [_rounded(low), _rounded(high)],
    }


def _units(records: Sequence[Record]) -> list[str]:
    """What is drawn for the bootstrap: clusters of questions, or questions where there is but one.

    A question that was asked at several checkpoints is drawn with all its answers.
    """
    clusters = [f"{record.persona}/{record.question.cluster}" for record in records]
    if len(set(clusters)) > 1:
        return clusters
    return [record.question.id for record in records]


def _check(records: Iterable[Record], plan: Plan) -> None:
    known = {(persona, point.label) for persona, own in plan.items() for point in own}
    for record in records:
        if (record.persona, record.checkpoint) not in known:
            raise ValueError(
                f"question {record.question.id} is recorded at checkpoint {record.checkpoint!r} "
                f"of {record.persona}, which the plan does not have"
            )


def _rounded(value: float) -> float:
    return round(value, _DIGITS)
