"""Where and when a system invents: the six views that Recall Bench asks for.

Records in, plain data out. The rate at each checkpoint is the first view; the others are by kind of
question, its trend, the questions that bring it out, against recall, and by persona.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import atanh, isnan, sqrt, tanh
from typing import Any, Literal

import numpy as np

from mnemoscope.analysis.longitudinal import (
    Plan,
    Record,
    by_label,
    columns,
    hallucination,
    score_of,
)
from mnemoscope.stats import linear_trend

Reading = Literal["healthy", "pathological", "cannot tell"]
Key = tuple[str, str]

_Z95 = 1.959963984540054
_DIGITS = 10
_EXACT = 1e-9
"""So near to 1, points lie on a line, which says nothing of how sure that is."""


def views(records: Sequence[Record], plan: Plan, figures: Mapping[str, Any]) -> dict[str, Any]:
    """All views of one run; the figures are what `longitudinal` made of the same records."""
    row = by_checkpoint(figures["checkpoints"])
    return {
        "by_checkpoint": row,
        "by_category": {
            category: _of_category(category, records, plan) for category in figures["categories"]
        },
        "trend": trend(row),
        "canaries": steadfast(records),
        "against_recall": against_recall(figures["checkpoints"]),
        "by_persona": {
            persona: _split([r for r in records if r.persona == persona], by_checkpoint(own))
            for persona, own in figures["personas"].items()
        },
    }


def by_checkpoint(checkpoints: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The row below the heatmap."""
    return [
        {
            "label": point["label"],
            "ingested_days": point["ingested_days"],
            **point["hallucination"],
        }
        for point in checkpoints
    ]


def trend(row: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A line of the rate over the days ingested: where it starts and how fast it rises.

    Both with 95 % intervals, in shares and shares a day. Checkpoints are taken as independent,
    which they are not wholly: they ask some of the same questions of a growing history.
    """
    told = _once_a_day(row)
    days = [float(point["ingested_days"]) for point in told]
    rates = [np.nan if point["rate"] is None else float(point["rate"]) for point in told]
    line = linear_trend(days, rates)
    # Points that lie on a line by chance would make it look certain.
    sure = not isnan(line.slope_low) and line.slope_low < line.slope_high
    return {
        "intercept": _known(line.intercept),
        "intercept_ci95": [_known(line.intercept_low), _known(line.intercept_high)]
        if sure
        else None,
        "slope_per_day": _known(line.slope),
        "slope_per_day_ci95": [_known(line.slope_low), _known(line.slope_high)] if sure else None,
        "p": line.p if sure else None,
        "n": line.n,
    }


def against_recall(checkpoints: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Each checkpoint's recall quality and hallucination rate, how they go together, what it means.

    Recall Bench's reading: in a healthy system hallucination rises as recall falls; where both fall
    together, what is invented may be passing for recalled.
    """
    points = [
        {
            "label": point["label"],
            "ingested_days": point["ingested_days"],
            "recall_quality": point["recall_quality"]["mean"],
            "recall_quality_ci95": point["recall_quality"]["ci95"],
            "rate": point["hallucination"]["rate"],
            "rate_ci95": point["hallucination"]["ci95"],
            "n": point["judged"],
        }
        for point in _once_a_day(checkpoints)
        if point["judged"]
    ]
    r, interval = _correlation(
        [point["recall_quality"] for point in points], [point["rate"] for point in points]
    )
    return {
        "points": points,
        "correlation": r,
        "correlation_ci95": interval,
        "reading": read(interval),
    }


def read(interval: Sequence[float] | None) -> Reading:
    """What an interval of the correlation allows to say."""
    if interval is None or interval[0] <= 0 <= interval[1]:
        return "cannot tell"
    return "healthy" if interval[1] < 0 else "pathological"


def steadfast(records: Sequence[Record]) -> list[dict[str, Any]]:
    """A run's own canaries: asked at several checkpoints, answered with an invention at each."""
    counts = _counts(records)
    about = _about(records)
    return [
        {**about[key], "invented": invented, "judged": judged}
        for key, (invented, judged) in counts.items()
        if invented == judged > 1
    ]


def canaries(runs: Mapping[str, Sequence[Record]]) -> dict[str, Any]:
    """What questions do across runs, the oldest first: which always invent, newly, no longer.

    A question invents in a run if it does at any checkpoint. Compared is what the last run and at
    least one earlier judged: "always" invents in every run that judged it, "newly" in the last
    alone, "no_longer" in all but the last, "unsteady" in some, "never" in none.
    """
    counts = {label: _counts(records) for label, records in runs.items()}
    about = {key: told for records in runs.values() for key, told in _about(records).items()}
    found: dict[str, list[dict[str, Any]]] = {
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
        **found,
        "counts": {**{kind: len(told) for kind, told in found.items()}, "never": never},
        "not_compared": alone,
    }


def _kind(earlier: Sequence[bool], now: bool) -> str:
    if all(earlier):
        return "always" if now else "no_longer"
    if any(earlier):
        return "unsteady"
    return "newly" if now else ""


def _of_category(category: str, records: Sequence[Record], plan: Plan) -> dict[str, Any]:
    own = [record for record in records if record.question.category == category]
    at = by_label(own)
    row = [
        {
            "label": column.label,
            "ingested_days": column.ingested_days,
            **hallucination(at.get(column.label, [])),
        }
        for column in columns(plan)
    ]
    return _split(own, row)


def _split(records: Sequence[Record], row: list[dict[str, Any]]) -> dict[str, Any]:
    return {"overall": hallucination(records), "checkpoints": row, "trend": trend(row)}


def _counts(records: Sequence[Record]) -> dict[Key, tuple[int, int]]:
    """Per question how often it was answered with an invention, and how often it was judged."""
    counts: dict[Key, tuple[int, int]] = {}
    for record in records:
        if score := score_of(record):
            key = (record.persona, record.question.id)
            invented, judged = counts.get(key, (0, 0))
            counts[key] = (invented + (score.hallucination == 0), judged + 1)
    return counts


def _about(records: Sequence[Record]) -> dict[Key, dict[str, Any]]:
    return {
        (record.persona, record.question.id): {
            "persona": record.persona,
            "question": record.question.id,
            "category": record.question.category,
            "text": record.question.text,
        }
        for record in records
        if score_of(record)
    }


def _once_a_day(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of checkpoints that remember the same days the last: more of them are no more evidence."""
    return list({point["ingested_days"]: point for point in points}.values())


def _correlation(x: Sequence[float], y: Sequence[float]) -> tuple[float | None, list[float] | None]:
    """Pearson's r and its interval by Fisher's z = atanh r, of error 1 / sqrt(n - 3)."""
    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return None, None
    r = float(np.corrcoef(x, y)[0, 1])
    if len(x) < 4 or abs(r) > 1 - _EXACT:
        return _known(r), None
    centre = atanh(r)
    reach = _Z95 / sqrt(len(x) - 3)
    return _known(r), [round(tanh(centre - reach), _DIGITS), round(tanh(centre + reach), _DIGITS)]


def _known(value: float) -> float | None:
    return None if isnan(value) else round(value, _DIGITS)
