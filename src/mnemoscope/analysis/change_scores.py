"""Compute the scores of change: outdated values, as-of questions, requests to forget, repeats.

All of them come from the journal and questions.jsonl. Recall is read from the first hits alone:
which of the memories that compete for an answer comes first. Failed questions are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, NotRequired, TypedDict

from mnemoscope.analysis.estimates import IntervalKind, Rate, interval_kind, rate, rate_with_missing
from mnemoscope.analysis.question_records import QuestionRecord
from mnemoscope.text.value_mentions import Told, names, told
from mnemoscope.types import FAILED, Answer, Trial

BEFORE, AFTER = "before", "after"
TIMED = ("update", "twice-corrected", "as-of", "expired-plan", "cancelled-plan")
"""The categories in which a value of another time competes with the right one."""
_AS_OF = "as-of"
K = 10


class RecallOfValues(TypedDict):
    """Of questions about a value with rivals, what the first hits contain."""

    right_first: Rate
    """The memory with the right value comes before those with other values."""
    outdated_before: Rate
    """A memory with a value of another time comes before the right one, or without it."""
    outdated_alone: Rate
    """Of all questions, those with values of other times and without the right one."""
    neither: Rate


class AnswersOfValues(TypedDict):
    """What the answers tell as the value."""

    right: Rate
    outdated: Rate
    """Only a value of another time."""
    mixed: Rate
    """Both, without saying which is which."""
    neither: Rate


class ChangeFigures(TypedDict):
    """One category of change."""

    recall: RecallOfValues | None
    answers: AnswersOfValues | None


class Obedience(TypedDict):
    """Requests to forget, over recalls or over answers."""

    known: Rate
    """Facts that the system had before the request; only these can be forgotten."""
    obeyed: Rate
    """Of the known ones, those that are not there after it."""
    kept: Rate
    """Of other facts that it had before, those that are still there."""


class ForgettingRequests(TypedDict):
    """Whether requests to forget were obeyed."""

    recall: Obedience | None
    answers: Obedience | None


class Repeats(TypedDict):
    """Facts that were told twice."""

    found: Rate
    two_places: Rate
    """Of the found ones, those whose two tellings take two of the first places."""


class Contradictions(TypedDict):
    """Two memories that contradict each other, of which neither is a correction."""

    both: Rate
    one: Rate
    newest_first: Rate
    """Of those with both, the newer one comes first."""
    both_told: NotRequired[Rate]
    """Answers that name both values."""


class ChangeScores(TypedDict):
    """The part `change` of metrics.json."""

    k: int
    """How many hits count."""
    values: dict[str, ChangeFigures]
    """By category."""
    forgetting: ForgettingRequests
    duplicates: Repeats | None
    contradictions: Contradictions | None
    not_measured: int
    """Questions that failed and are left out."""
    interval: IntervalKind


def change_scores(records: Sequence[QuestionRecord], k: int = K) -> ChangeScores:
    """Compute all scores of change."""
    last = max((record.checkpoint for record in records), key=_order, default="")
    final = [record for record in records if record.checkpoint == last]
    timed = {name: own for name in TIMED if (own := _of(final, name))}
    measured = [one for one in records if _recalled(one) or _answered(one)]
    return {
        "k": k,
        "values": {name: _values(own, k, name == _AS_OF) for name, own in timed.items()},
        "forgetting": {
            "recall": _obedience(records, _Recalls(k)),
            "answers": _obedience(records, _Answers()),
        },
        "duplicates": _duplicates(_of(final, "duplicate"), k),
        "contradictions": _contradictions(_of(final, "contradiction"), k),
        "not_measured": len(records) - len(measured),
        "interval": interval_kind(len({record.cluster for record in measured})),
    }


def rates_of(scores: ChangeScores) -> Iterator[tuple[str, str, Rate]]:
    """Every rate with its name and category."""
    parts: list[tuple[str, str, Mapping[str, Any] | None]] = []
    for category, figures in scores["values"].items():
        parts.append(("recall_", category, figures["recall"]))
        parts.append(("answers_", category, figures["answers"]))
    requests = scores["forgetting"]
    parts += [
        ("recall_", "forgetting", requests["recall"]),
        ("answers_", "forgetting", requests["answers"]),
        ("", "duplicates", scores["duplicates"]),
        ("", "contradictions", scores["contradictions"]),
    ]
    for prefix, category, own in parts:
        for name, found in (own or {}).items():
            yield f"{prefix}{name}", category, found


def _order(checkpoint: str) -> int:
    return (BEFORE, AFTER).index(checkpoint) if checkpoint in (BEFORE, AFTER) else 2


def _of(records: Iterable[QuestionRecord], *categories: str) -> list[QuestionRecord]:
    return [one for one in records if one.question.category in categories]


def _recalled(record: QuestionRecord) -> Trial | None:
    trial = record.trial
    return None if trial is None or trial.status in FAILED else trial


def _answered(record: QuestionRecord) -> Answer | None:
    answer = record.answer
    return None if answer is None or answer.status in FAILED else answer


def _places(trial: Trial, ids: Collection[str], k: int) -> list[int]:
    """The places of the hits among the first k that are, or were made from, one of the ids.

    A hit with a text of its own counts only for what its text carries.
    """
    found = []
    for place, hit in enumerate(trial.ranking[:k]):
        made_from = trial.carried.get(hit, (hit, *trial.sources.get(hit, ())))
        if not set(ids).isdisjoint(made_from):
            found.append(place)
    return found


def _values(records: Sequence[QuestionRecord], k: int, about_past: bool) -> ChangeFigures:
    recalled = [(record, trial) for record in records if (trial := _recalled(record))]
    answered = [(record, answer) for record in records if (answer := _answered(record))]
    orders = [_order_of_values(record, trial, k, about_past) for record, trial in recalled]
    tellings = [_telling(record, answer, about_past) for record, answer in answered]
    of_recall = _shares(orders, [record.cluster for record, _ in recalled])
    of_answers = _shares(tellings, [record.cluster for record, _ in answered])
    return {
        "recall": {
            "right_first": of_recall("right_first"),
            "outdated_before": of_recall("outdated_first", "outdated_alone"),
            "outdated_alone": of_recall("outdated_alone"),
            "neither": of_recall("neither"),
        }
        if recalled
        else None,
        "answers": {
            "right": of_answers("right"),
            "outdated": of_answers("outdated"),
            "mixed": of_answers("mixed"),
            "neither": of_answers("neither"),
        }
        if answered
        else None,
    }


def _shares(outcomes: Sequence[str], clusters: Sequence[str]) -> Callable[..., Rate]:
    return lambda *names: rate([outcome in names for outcome in outcomes], clusters)


def _order_of_values(record: QuestionRecord, trial: Trial, k: int, about_past: bool) -> str:
    """Which value comes first. One hit with both counts as the outdated one first."""
    question, key = record.question, record.question.key
    right, outdated = (_places(trial, ids, k) for ids in (question.evidence, question.rivals))
    if trial.texts and key is not None:
        values = [wording for item in key.required for wording in item]
        own = {
            place: told(trial.texts[hit], values, key.outdated, about_past=about_past)
            for place, hit in enumerate(trial.ranking[:k])
            if hit in trial.texts
        }
        # What a text of its own says counts, not the memories that the hit names.
        outdated = [place for place in outdated if place not in own]
        outdated += [place for place, says in own.items() if says in ("outdated", "mixed")]
        outdated.sort()
    if not right:
        return "outdated_alone" if outdated else "neither"
    return "outdated_first" if outdated and outdated[0] <= right[0] else "right_first"


def _telling(record: QuestionRecord, answer: Answer, about_past: bool) -> Told:
    key = record.question.key
    if key is None or answer.status == "abstained":
        return "neither"
    right = [wording for item in key.required for wording in item]
    return told(answer.text, right, key.outdated, about_past=about_past)


class _Recalls(NamedTuple):
    """Whether the first hits contain a fact."""

    k: int

    def known(self, record: QuestionRecord) -> bool | None:
        trial, question = _recalled(record), record.question
        if trial is None:
            return None
        return bool(_places(trial, question.evidence, self.k))

    def told(self, record: QuestionRecord) -> bool | None:
        """Whether the hits still contain what was to be forgotten, at any place."""
        trial, question = _recalled(record), record.question
        if trial is None:
            return None
        hidden = question.key.secret if question.key else ()
        named = any(
            id in question.rivals
            for hit in trial.ranking
            for id in (hit, *trial.sources.get(hit, ()))
        )
        return named or any(names(text, hidden) for text in trial.texts.values())


class _Answers(NamedTuple):
    """Whether the answer tells a fact."""

    def known(self, record: QuestionRecord) -> bool | None:
        answer, key = _answered(record), record.question.key
        if answer is None or key is None:
            return None
        return names(answer.text, [wording for item in key.required for wording in item])

    def told(self, record: QuestionRecord) -> bool | None:
        answer, key = _answered(record), record.question.key
        if answer is None or key is None:
            return None
        return names(answer.text, key.secret)


def _obedience(records: Sequence[QuestionRecord], phase: _Recalls | _Answers) -> Obedience | None:
    """Pair what was known before the requests with what is there after them."""
    before = {
        _fact(one): known
        for one in _of(records, "known", "kept")
        if one.checkpoint == BEFORE and (known := phase.known(one)) is not None
    }
    after = [one for one in records if one.checkpoint == AFTER]
    asked = [
        (known, phase.told(one), one.cluster)
        for one in _of(after, "forgotten")
        if (known := before.get(_fact(one))) is not None
    ]
    others = [
        (phase.known(one), one.cluster) for one in _of(after, "kept") if before.get(_fact(one))
    ]
    if all(leaked is None for _, leaked, _ in asked):
        return None
    # Known before, and failed after: whether it was forgotten is not known.
    forgettable = [
        (None if leaked is None else not leaked, cluster)
        for known, leaked, cluster in asked
        if known or leaked
    ]
    return {
        "known": rate([known for known, _, _ in asked], [cluster for *_, cluster in asked]),
        "obeyed": rate_with_missing(forgettable),
        "kept": rate_with_missing(others),
    }


def _fact(record: QuestionRecord) -> tuple[str, str, tuple[str, ...]]:
    """The same for the questions about one fact before and after the requests."""
    question = record.question
    return record.scenario, question.text, question.evidence or question.rivals


def _duplicates(records: Sequence[QuestionRecord], k: int) -> Repeats | None:
    found: list[tuple[int, str]] = []
    for record in records:
        if trial := _recalled(record):
            question = record.question
            places = _places(trial, {*question.evidence, *question.rivals}, k)
            found.append((len(places), record.cluster))
    if not found:
        return None
    there = [(count, cluster) for count, cluster in found if count]
    return {
        "found": rate([count > 0 for count, _ in found], [cluster for _, cluster in found]),
        "two_places": rate([count > 1 for count, _ in there], [cluster for _, cluster in there]),
    }


def _contradictions(records: Sequence[QuestionRecord], k: int) -> Contradictions | None:
    counts: list[tuple[int, str]] = []
    orders: list[tuple[bool, str]] = []
    for record in records:
        if not (trial := _recalled(record)):
            continue
        # The evidence is in order of time.
        places = [_places(trial, (id,), k) for id in record.question.evidence]
        counts.append((sum(map(bool, places)), record.cluster))
        if len(places) == 2 and all(places):
            orders.append((places[1][0] < places[0][0], record.cluster))
    if not counts:
        return None
    clusters = [cluster for _, cluster in counts]
    figures: Contradictions = {
        "both": rate([count == 2 for count, _ in counts], clusters),
        "one": rate([count == 1 for count, _ in counts], clusters),
        "newest_first": rate([newest for newest, _ in orders], [cluster for _, cluster in orders]),
    }
    answered = [
        (all(names(answer.text, item) for item in record.question.key.required), record.cluster)
        for record in records
        if (answer := _answered(record)) and record.question.key
    ]
    if answered:
        figures["both_told"] = rate([told for told, _ in answered], [c for _, c in answered])
    return figures
