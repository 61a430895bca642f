"""How the score of a run changes as the history grows, and why.

The cohort is followed through the checkpoints, and the change of the mean of all questions is split
into interference, supersession and composition; `stats.score_change` defines them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, NotRequired, TypedDict

from mnemoscope.analysis.estimates import interval_of_change, rounded, rounded_all
from mnemoscope.analysis.list_ends import may_have_more
from mnemoscope.analysis.measure import evidence_ranks
from mnemoscope.analysis.question_cohort import (
    AskedValues,
    FollowedQuestions,
    Key,
    QuestionCohort,
    cohort_of,
    followed_questions,
    key_of,
)
from mnemoscope.analysis.question_records import (
    BEST_SCORE,
    Plan,
    QuestionRecord,
    by_checkpoint,
)
from mnemoscope.stats.score_change import Group, Part, split_change
from mnemoscope.types import FAILED

Measure = Literal["composite", "hit@10"]
_BOUNDED: tuple[Part, ...] = ("total", "interference")
"""Parts that lie between minus the best score and the best score."""


class ChangePart(TypedDict):
    """A part of the change; `first` and `last` count its questions at the two checkpoints."""

    change: float | None
    ci95: list[float] | None
    """None if no question could change the part."""
    first: int
    last: int
    bounds: NotRequired[list[float]]
    """What the part may be if failed questions had been scored."""


class ScoreChange(TypedDict):
    """The change of the mean of all questions between two checkpoints; its parts add up to it.

    Without questions of both checkpoints, the parts are None.
    """

    first: str
    last: str
    total: ChangePart
    interference: ChangePart
    """The same questions with the same right answer."""
    supersession: ChangePart
    """Questions whose answer has expired, and those that ask for what has replaced it."""
    composition: ChangePart
    """Questions that were asked, or have a value, at one of the two checkpoints only."""


class AgeingFigures(TypedDict):
    """The cohort and the changes of one measure."""

    best: int
    cohort: QuestionCohort | None
    """None if no question was asked at several checkpoints up to the last."""
    changes: list[ScoreChange]
    """From the first checkpoint to the last, then from the start of the cohort if it is later."""


def ageing(
    records: Sequence[QuestionRecord], plan: Plan, days: Mapping[str, int], depth: int
) -> dict[Measure, AgeingFigures]:
    """Compute the ageing of each measure that two checkpoints have.

    `days` are the checkpoints in order, with the days ingested by then; `depth` is how many hits
    were asked for.
    """
    cohort = followed_questions(records, plan, days)
    # A recall that failed may have recorded no evidence.
    evident = {key_of(one) for one in records if one.trial is not None and one.trial.evidence}
    with_evidence = [one for one in records if key_of(one) in evident]
    found: dict[Measure, AgeingFigures | None] = {
        "composite": _figures(records, plan, days, cohort, _composite, BEST_SCORE),
        "hit@10": _figures(with_evidence, plan, days, cohort, lambda one: _hit(one, depth), 1),
    }
    return {name: own for name, own in found.items() if own is not None}


def _composite(record: QuestionRecord) -> int | None:
    return record.score.composite if record.score else None


def _hit(record: QuestionRecord, depth: int) -> int | None:
    """Whether evidence is among the first ten hits; None if that is not known."""
    trial = record.trial
    if trial is None or trial.status in FAILED:
        return None
    ranks = evidence_ranks(trial)
    if any(rank <= 10 for rank in ranks):
        return 1
    return None if may_have_more(trial, ranks, depth) else 0


def _figures(
    records: Sequence[QuestionRecord],
    plan: Plan,
    days: Mapping[str, int],
    followed: FollowedQuestions | None,
    value: Callable[[QuestionRecord], int | None],
    best: int,
) -> AgeingFigures | None:
    """Follow the records through the checkpoints; None with fewer than two that have values.

    A value is from 0 to `best`, and None where a question failed or was not judged.
    """
    at = by_checkpoint(records)
    values = {
        label: {key_of(one): value(one) for one in at[label]} for label in days if label in at
    }
    if sum(any(one is not None for one in own.values()) for own in values.values()) < 2:
        return None
    clusters = {key_of(record): record.cluster for record in records}
    asked = AskedValues({label: days[label] for label in values}, values, clusters, best)
    cohort = None
    firsts = [asked.labels[0]]
    if followed is not None and (keys := sorted(followed.keys & clusters.keys())):
        cohort = cohort_of(asked, followed.start, keys)
        firsts += [followed.start] if followed.start != firsts[0] else []
    return {
        "best": best,
        "cohort": cohort,
        "changes": [_change(asked, records, plan, first, asked.labels[-1]) for first in firsts],
    }


def _change(
    asked: AskedValues,
    records: Sequence[QuestionRecord],
    plan: Plan,
    first: str,
    last: str,
) -> ScoreChange:
    expired, successors = _replaced(records, plan, first, last)
    before, after = asked.values[first], asked.values[last]
    judged = split_change(_with_value(before), _with_value(after), expired, successors)
    whole = split_change(before, after, expired, successors)
    has_failed = None in (*before.values(), *after.values())

    def part(name: Part, *groups: Group) -> ChangePart:
        counts = [
            0 if judged is None else sum(judged.size(group, is_last=end) for group in groups)
            for end in (False, True)
        ]
        found: ChangePart = {"change": None, "ci95": None, "first": counts[0], "last": counts[1]}
        if judged is not None and (name == "total" or judged.size("same", is_last=True)):
            found["change"] = rounded(float(judged.part(name)))
            if interval := judged.interval(name, asked.clusters, asked.best):
                found["ci95"] = interval_of_change(
                    interval, asked.best * (1 if name in _BOUNDED else 2)
                )
        if has_failed and whole is not None and name in _BOUNDED:
            found["bounds"] = rounded_all(list(map(float, whole.bounds(name, asked.best))))
        return found

    return {
        "first": first,
        "last": last,
        "total": part("total", "same", "replaced", "other"),
        "interference": part("interference", "same"),
        "supersession": part("supersession", "replaced"),
        "composition": part("composition", "other"),
    }


def _with_value(values: Mapping[Key, int | None]) -> dict[Key, int | None]:
    return {key: value for key, value in values.items() if value is not None}


def _replaced(
    records: Sequence[QuestionRecord],
    plan: Plan,
    first: str,
    last: str,
) -> tuple[set[Key], set[Key]]:
    """Questions of `first` that have expired by `last`, and those of `last` that replace them."""
    now = {
        persona: point.now for persona, own in plan.items() for point in own if point.label == last
    }
    at = {label: [one for one in records if one.checkpoint == label] for label in (first, last)}
    still = {key_of(one) for one in at[last]}
    expired = {
        key_of(one)
        for one in at[first]
        if key_of(one) not in still
        and (end := one.question.expires_after) is not None
        and (then := now.get(one.scenario)) is not None
        and then > end
    }
    successors = {
        key_of(one)
        for one in at[last]
        if any((one.scenario, id) in expired for id in one.question.replaces)
    }
    return expired, successors
