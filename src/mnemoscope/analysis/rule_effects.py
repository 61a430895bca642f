"""How much a judging rule moves the figure: the same answers, judged under two sets of rules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from mnemoscope.analysis.estimates import rounded, rounded_all
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.stats.clustered import cluster_sums, difference


class RuleEffect(Struct, frozen=True):
    """The figure under one set of rules, and what changed against the first set."""

    rules: str
    """What differs from the first set: `guess=reject`."""
    about: str
    mean: float | None
    """Over the answers that were judged under these rules."""
    n: int
    unjudged: int
    delta: float | None = None
    """Over the answers that were judged under both; None for the first set."""
    ci95: list[float] | None = None
    to_right: int = 0
    to_wrong: int = 0


def effect_of(
    rules: str,
    about: str,
    records: Sequence[QuestionRecord],
    base: Sequence[QuestionRecord] | None = None,
) -> RuleEffect:
    """The effect of these rules against those of `base`, answer by answer."""
    values = [value for record in records if (value := record.value) is not None]
    answered = sum(record.status in ("answered", "abstained", "empty") for record in records)
    mean = rounded(sum(values) / len(values)) if values else None
    found = RuleEffect(rules, about, mean, len(values), answered - len(values))
    if base is None:
        return found
    before = {record.question.id: record for record in base}
    pairs = [
        (record, old, new)
        for record in records
        if (new := record.value) is not None
        and record.question.id in before
        and (old := before[record.question.id].value) is not None
    ]
    if not pairs:
        return found
    deltas = np.array([[new - old] for _, old, new in pairs])
    column = cluster_sums(deltas, [record.cluster for record, _, _ in pairs]).column(0)
    apart = difference(column, 1.0)
    interval = apart.interval(apart.critical())
    passed = [
        (not one.fails, not other.fails)
        for record, _, _ in pairs
        if (one := before[record.question.id].final) is not None
        and (other := record.final) is not None
    ]
    return RuleEffect(
        *(rules, about, mean, len(values), answered - len(values)),
        delta=rounded(float(deltas.mean())),
        ci95=rounded_all((max(-1.0, interval.low), min(1.0, interval.high))),
        to_right=passed.count((False, True)),
        to_wrong=passed.count((True, False)),
    )
