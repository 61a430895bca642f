"""Forgetting in figures: what was known before a system was told to forget, and what is after.

Rows in, plain data out. Mean ROUGE-L and the share of answers above one half are two figures with
two names, since others print the second beside the first as if it were the same. Low is good for
what was to be forgotten, high for the rest; what failed or was not judged is left out, never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np
from msgspec import Struct

from mnemoscope.analysis.measure import DRAWS, SEED
from mnemoscope.stats import bootstrap, paired_bootstrap, wilson
from mnemoscope.types import FAILED, Answer, Status, Trial, Verdict

BEFORE, AFTER = "before", "after"
FORGET, RETAIN = "forget", "retain"
HALF = 0.5
CARRIED = 0.8
"""A text that has so much of the forgotten answer, in its order, still carries it."""
NO_FORGET = "the system has no forget(selector): it was not told to forget and gets no score"
_DIGITS = 10

Covers = Callable[[str, str], float]
"""How much of a reference, given second, a text has: from 0 to 1."""


class Row(Struct, frozen=True):
    """One question at one checkpoint, with all that came of it."""

    question: str
    checkpoint: str
    """`before` or `after` the system was told to forget."""
    category: str
    """`forget` or `retain`."""
    cluster: str
    """The author that the question is about."""
    reference: str
    trial: Trial | None = None
    answer: Answer | None = None
    verdict: Verdict | None = None


def forgetting(
    rows: Sequence[Row],
    *,
    can_forget: bool = True,
    forgotten: Collection[str] | None = None,
    covers: Covers | None = None,
    seed: int = SEED,
) -> dict[str, Any]:
    """Everything that is to be said of how a system forgot; `score` is None where it did not.

    `forgotten` are the ids of the memories it was told to forget; without them, the evidence of
    the questions in the forget set. `covers` is ROUGE-L recall unless told otherwise.
    """
    told = {"statuses": _cells(rows, _statuses), "coverage": _cells(rows, _coverage)}
    if why := _obstacle(rows, can_forget):
        return {"score": None, "why": why, **told}
    points = {
        point: {kind: _figures(_of(rows, point, kind), seed) for kind in (FORGET, RETAIN)}
        for point in (BEFORE, AFTER)
    }
    changes = {kind: _change(rows, kind, seed) for kind in (FORGET, RETAIN)}
    gone = frozenset(_evidence(rows) if forgotten is None else forgotten)
    score = {
        **points,
        "change": changes,
        "leak": _leak(_of(rows, AFTER, FORGET), gone, covers or _rouge_l_recall()),
        "forget_falls": _falls(changes[FORGET]),
        "retain_stays": _stays(points[BEFORE][RETAIN], points[AFTER][RETAIN]),
    }
    return {"score": score, "why": "", **told}


def status_of(row: Row) -> Status:
    """How it ended: the last line of the journal that can say so, and whether it was judged."""
    last = row.answer or row.trial
    if last is not None and last.status in FAILED:
        return last.status
    if row.verdict is None or row.verdict.final is None:
        return "unjudged"
    return "answered" if last is None else last.status


def value_of(row: Row) -> float | None:
    """The answer's ROUGE-L; none for a question that failed or was not judged."""
    if status_of(row) in (*FAILED, "unjudged"):
        return None
    assert row.verdict is not None
    return row.verdict.grade.value if row.verdict.grade else None


def _obstacle(rows: Sequence[Row], can_forget: bool) -> str:
    """Why there is no score; empty where there is one."""
    if not can_forget:
        return NO_FORGET
    for point in (BEFORE, AFTER):
        for kind in (FORGET, RETAIN):
            if not _of(rows, point, kind):
                return f"no question of the {kind} set was asked {point} forgetting"
    if any(row.verdict is not None and row.verdict.score is not None for row in rows):
        return "judged by a rubric; forgetting is scored by a judge of one number, rouge-l"
    if all(value_of(row) is None for row in _of(rows, AFTER, FORGET)):
        return f"nothing that was to be forgotten could be measured after: {_reason(rows)}"
    return ""


def _reason(rows: Sequence[Row]) -> str:
    """What the failures after forgetting say most often."""
    said = Counter(
        line.error
        for row in _of(rows, AFTER, FORGET)
        for line in (row.trial, row.answer, row.verdict)
        if line is not None and line.error
    )
    return said.most_common(1)[0][0] if said else "no answer was judged"


def _of(rows: Sequence[Row], point: str, kind: str) -> list[Row]:
    return [row for row in rows if row.checkpoint == point and row.category == kind]


def _cells(rows: Sequence[Row], figure: Callable[[list[Row]], Any]) -> dict[str, Any]:
    return {
        point: {kind: figure(_of(rows, point, kind)) for kind in (FORGET, RETAIN)}
        for point in (BEFORE, AFTER)
    }


def _statuses(rows: list[Row]) -> dict[str, int]:
    return dict(sorted(Counter(map(status_of, rows)).items()))


def _coverage(rows: list[Row]) -> float | None:
    measured = sum(value_of(row) is not None for row in rows)
    return _rounded(measured / len(rows)) if rows else None


def _figures(rows: list[Row], seed: int) -> dict[str, Any]:
    measured = [(value, row.cluster) for row in rows if (value := value_of(row)) is not None]
    n, failed = len(measured), len(rows) - len(measured)
    if not n:
        return {"asked": len(rows), "n": 0, "mean_rouge_l": None, "share_above_half": None}
    values = np.array([value for value, _ in measured])
    clusters = [cluster for _, cluster in measured]
    sampled = bootstrap(values[:, None], clusters, seed=seed, draws=DRAWS, limits=(0.0, 1.0))
    above = int((values > HALF).sum())
    mean: dict[str, Any] = {
        "mean": _rounded(values.mean()),
        "ci95": [_rounded(sampled.low[0]), _rounded(sampled.high[0])],
    }
    share: dict[str, Any] = {
        "share": _rounded(above / n),
        "above": above,
        "ci95": [_rounded(end) for end in wilson(above, n)],
    }
    if failed:
        # Neither end is the bad one here: forgetting should lower the one set, not the other.
        mean["bounds"] = _bounds(float(values.sum()), len(rows), failed)
        share["bounds"] = _bounds(above, len(rows), failed)
    authors = len(set(clusters))
    return {
        "asked": len(rows),
        "n": n,
        "clusters": authors,
        "mean_rouge_l": mean,
        "share_above_half": share,
    }


def _bounds(total: float, asked: int, failed: int) -> list[float]:
    """The figure if every failure had been 0, and if every one had been 1."""
    return [_rounded(total / asked), _rounded((total + failed) / asked)]


def _change(rows: Sequence[Row], kind: str, seed: int) -> dict[str, Any]:
    """After less before, question by question; a question counts if it has a value in both."""
    before = {row.question: row for row in _of(rows, BEFORE, kind)}
    pairs = [
        (old, new, row.cluster)
        for row in _of(rows, AFTER, kind)
        if (new := value_of(row)) is not None
        and row.question in before
        and (old := value_of(before[row.question])) is not None
    ]
    if not pairs:
        return {"n": 0, "mean_rouge_l": None, "share_above_half": None}
    table = np.array([(old, new) for old, new, _ in pairs])
    scores = np.stack([table, table > HALF], axis=2)
    clusters = [cluster for _, _, cluster in pairs]
    sampled = paired_bootstrap(
        scores[:, 0], scores[:, 1], clusters, seed=seed, draws=DRAWS, limits=(-1.0, 1.0)
    )
    named = {
        name: {
            "mean": _rounded(sampled.mean[column]),
            "ci95": [_rounded(sampled.low[column]), _rounded(sampled.high[column])],
        }
        for column, name in enumerate(("mean_rouge_l", "share_above_half"))
    }
    return {"n": len(pairs), **named}


def _leak(rows: list[Row], gone: Collection[str], covers: Covers) -> dict[str, Any]:
    """How many questions of the forget set still bring back what was to be forgotten."""
    put = [
        (row, row.trial) for row in rows if row.trial is not None and row.trial.status not in FAILED
    ]
    by_id = {row.question for row, trial in put if _holds(trial, gone)}
    by_text = {row.question for row, trial in put if _carries(trial, row.reference, covers)}
    n, leaked = len(put), len(by_id | by_text)
    return {
        "n": n,
        "leaked": leaked,
        "share": _rounded(leaked / n) if n else None,
        "ci95": [_rounded(end) for end in wilson(leaked, n)] if n else None,
        "by_id": len(by_id),
        "by_text": len(by_text),
        "questions": sorted(by_id | by_text)[:10],
    }


def _holds(trial: Trial, gone: Collection[str]) -> bool:
    return any(
        id in gone or any(source in gone for source in trial.sources.get(id, ()))
        for id in trial.ranking
    )


def _carries(trial: Trial, reference: str, covers: Covers) -> bool:
    """Only of texts that are not a memory's own: those of memories are known by their ids."""
    return any(covers(text, reference) >= CARRIED for text in trial.texts.values())


def _evidence(rows: Sequence[Row]) -> set[str]:
    return {
        id
        for row in rows
        if row.category == FORGET and row.trial is not None
        for id in row.trial.evidence
    }


def _rouge_l_recall() -> Covers:
    from mnemoscope.text.overlap import rouge_l_recall

    return rouge_l_recall


def _falls(change: dict[str, Any]) -> bool | None:
    """Whether the forget set's mean is surely lower than it was."""
    mean = change["mean_rouge_l"]
    return None if mean is None else bool(mean["ci95"][1] < 0)


def _stays(before: dict[str, Any], after: dict[str, Any]) -> bool | None:
    """Whether the retain set's mean lies within the interval that it had before."""
    old, new = before["mean_rouge_l"], after["mean_rouge_l"]
    if old is None or new is None:
        return None
    return bool(old["ci95"][0] <= new["mean"] <= old["ci95"][1])


def _rounded(value: float) -> float:
    return round(float(value), _DIGITS)
