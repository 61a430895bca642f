"""forgetting.json: what was known before a system was told to forget, and what is after.

Mean ROUGE-L and the share of answers above one half are two figures with two names, since others
print the second beside the first as if it were the same. Low is good for what was to be forgotten,
high for the rest; what failed or was not judged is left out, never zero.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from typing import NotRequired, TypedDict, TypeVar

import numpy as np

from mnemoscope.analysis.estimates import DRAWS, SEED, rounded, rounded_all, share_interval
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.stats import bootstrap, paired_bootstrap
from mnemoscope.types import FAILED, Grade, Status, Trial

BEFORE, AFTER = "before", "after"
FORGET, RETAIN = "forget", "retain"
HALF = 0.5
CARRIED = 0.8
"""A text that has so much of the forgotten answer, in its order, still carries it."""
NO_FORGET = "the system has no forget(selector): it was not told to forget and gets no score"

T = TypeVar("T")
Cells = dict[str, dict[str, T]]
"""`before` and `after`, of each `forget` and `retain`."""
Covers = Callable[[str, str], float]
"""How much of a reference, given second, a text has: from 0 to 1."""


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
    """What is known of one set at one checkpoint."""

    asked: int
    n: int
    clusters: NotRequired[int]
    mean_rouge_l: MeanRouge | None
    share_above_half: ShareAboveHalf | None


class Change(TypedDict):
    """After less before, question by question."""

    n: int
    mean_rouge_l: MeanRouge | None
    share_above_half: MeanRouge | None


class Leak(TypedDict):
    """How many questions of the forget set still bring back what was to be forgotten."""

    n: int
    leaked: int
    share: float | None
    ci95: list[float] | None
    by_id: int
    by_text: int
    questions: list[str]


class ForgettingScore(TypedDict):
    """How a system forgot."""

    before: dict[str, Knowledge]
    after: dict[str, Knowledge]
    change: dict[str, Change]
    leak: Leak
    forget_falls: bool | None
    retain_stays: bool | None


class Forgetting(TypedDict):
    """The content of forgetting.json; without a score, why there is none."""

    score: ForgettingScore | None
    why: str
    statuses: NotRequired[Cells[dict[Status, int]]]
    coverage: NotRequired[Cells[float | None]]


def forgetting(
    records: Sequence[QuestionRecord],
    *,
    can_forget: bool = True,
    forgotten: Collection[str] | None = None,
    covers: Covers | None = None,
    seed: int = SEED,
) -> Forgetting:
    """Everything that is to be said of how a system forgot; `score` is None where it did not.

    `forgotten` are the ids of the memories it was told to forget; without them, the evidence of
    the questions in the forget set. `covers` is ROUGE-L recall unless told otherwise.
    """
    statuses, coverage = _cells(records, _statuses), _cells(records, _coverage)
    if why := _obstacle(records, can_forget):
        return {"score": None, "why": why, "statuses": statuses, "coverage": coverage}
    known = _cells(records, lambda own: _knowledge(own, seed))
    changes = {kind: _change(records, kind, seed) for kind in (FORGET, RETAIN)}
    gone = frozenset(_evidence(records) if forgotten is None else forgotten)
    score: ForgettingScore = {
        "before": known[BEFORE],
        "after": known[AFTER],
        "change": changes,
        "leak": _leak(_of(records, AFTER, FORGET), gone, covers or _rouge_l_recall()),
        "forget_falls": _falls(changes[FORGET]),
        "retain_stays": _stays(known[BEFORE][RETAIN], known[AFTER][RETAIN]),
    }
    return {"score": score, "why": "", "statuses": statuses, "coverage": coverage}


def status_of(record: QuestionRecord) -> Status:
    """How it ended: the last line of the journal that can say so, and whether it was judged."""
    last = record.answer or record.trial
    if last is not None and last.status in FAILED:
        return last.status
    if record.verdict is None or record.verdict.final is None:
        return "unjudged"
    return "answered" if last is None else last.status


def rouge_of(record: QuestionRecord) -> float | None:
    """The answer's ROUGE-L; None for a question that failed or was not judged by one number."""
    final = record.final
    return final.value if isinstance(final, Grade) else None


def _obstacle(records: Sequence[QuestionRecord], can_forget: bool) -> str:
    """Why there is no score; empty where there is one."""
    if not can_forget:
        return NO_FORGET
    for point in (BEFORE, AFTER):
        for kind in (FORGET, RETAIN):
            if not _of(records, point, kind):
                return f"no question of the {kind} set was asked {point} forgetting"
    if any(record.verdict is not None and record.verdict.score is not None for record in records):
        return "judged by a rubric; forgetting is scored by a judge of one number, rouge-l"
    if all(rouge_of(record) is None for record in _of(records, AFTER, FORGET)):
        return f"nothing that was to be forgotten could be measured after: {_reason(records)}"
    return ""


def _reason(records: Sequence[QuestionRecord]) -> str:
    """What the failures after forgetting say most often."""
    said = Counter(error for record in _of(records, AFTER, FORGET) for error in record.errors)
    return said.most_common(1)[0][0] if said else "no answer was judged"


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


def _statuses(records: Sequence[QuestionRecord]) -> dict[Status, int]:
    return dict(sorted(Counter(map(status_of, records)).items()))


def _coverage(records: Sequence[QuestionRecord]) -> float | None:
    measured = sum(rouge_of(record) is not None for record in records)
    return rounded(measured / len(records)) if records else None


def _knowledge(records: Sequence[QuestionRecord], seed: int) -> Knowledge:
    measured = [
        (value, one.question.cluster) for one in records if (value := rouge_of(one)) is not None
    ]
    asked, n = len(records), len(measured)
    if not n:
        return {"asked": asked, "n": 0, "mean_rouge_l": None, "share_above_half": None}
    values = np.array([value for value, _ in measured])
    clusters = [cluster for _, cluster in measured]
    sampled = bootstrap(values[:, None], clusters, seed=seed, draws=DRAWS, limits=(0.0, 1.0))
    above = int((values > HALF).sum())
    mean: MeanRouge = {
        "mean": rounded(values.mean()),
        "ci95": rounded_all((sampled.low[0], sampled.high[0])),
    }
    share: ShareAboveHalf = {
        "share": rounded(above / n),
        "above": above,
        "ci95": share_interval(above, n),
    }
    if failed := asked - n:
        # Neither end is the bad one here: forgetting should lower the one set, not the other.
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
    """The figure if every failure had been 0, and if every one had been 1."""
    return rounded_all((total / asked, (total + failed) / asked))


def _change(records: Sequence[QuestionRecord], kind: str, seed: int) -> Change:
    """After less before, question by question; a question counts if it has a value in both."""
    before = {record.question.id: record for record in _of(records, BEFORE, kind)}
    pairs = [
        (old, new, record.question.cluster)
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
    sampled = paired_bootstrap(
        scores[:, 0], scores[:, 1], clusters, seed=seed, draws=DRAWS, limits=(-1.0, 1.0)
    )
    mean, share = (
        MeanRouge(
            mean=rounded(sampled.mean[column]),
            ci95=rounded_all((sampled.low[column], sampled.high[column])),
        )
        for column in range(2)
    )
    return {"n": len(pairs), "mean_rouge_l": mean, "share_above_half": share}


def _leak(records: Sequence[QuestionRecord], gone: Collection[str], covers: Covers) -> Leak:
    put = [(one, one.trial) for one in records if one.trial and one.trial.status not in FAILED]
    by_id = {one.question.id for one, trial in put if _holds(trial, gone)}
    by_text = {
        one.question.id for one, trial in put if _carries(trial, one.question.reference, covers)
    }
    n, leaked = len(put), len(by_id | by_text)
    return {
        "n": n,
        "leaked": leaked,
        "share": rounded(leaked / n) if n else None,
        "ci95": share_interval(leaked, n) if n else None,
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


def _evidence(records: Sequence[QuestionRecord]) -> set[str]:
    return {
        id
        for record in records
        if record.question.category == FORGET and record.trial is not None
        for id in record.trial.evidence
    }


def _rouge_l_recall() -> Covers:
    from mnemoscope.text.overlap import rouge_l_recall

    return rouge_l_recall


def _falls(change: Change) -> bool | None:
    """Whether the forget set's mean is surely lower than it was."""
    mean = change["mean_rouge_l"]
    return None if mean is None else bool(mean["ci95"][1] < 0)


def _stays(before: Knowledge, after: Knowledge) -> bool | None:
    """Whether the retain set's mean lies within the interval that it had before."""
    old, new = before["mean_rouge_l"], after["mean_rouge_l"]
    if old is None or new is None:
        return None
    return bool(old["ci95"][0] <= new["mean"] <= old["ci95"][1])
