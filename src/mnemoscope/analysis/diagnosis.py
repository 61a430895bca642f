"""Classify failed answers by the step that lost the evidence, from ingestion to verdict.

The classes follow the order of the pipeline, and a failure gets the first class that applies. A
class is a likely cause, not a second verdict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import TypedDict

from mnemoscope.analysis.credit import credited
from mnemoscope.analysis.estimates import Rate, rate
from mnemoscope.analysis.question_records import QuestionRecord, by_category, changed, in_order
from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.types import Grade, Ingestion, Receipt, Score

NOT_INGESTED = "not ingested"
NOT_RECALLED = "not recalled"
PARTLY_RECALLED = "partly recalled"
CUT = "cut by the budget"
DOUBTFUL = "doubtful verdict"
WRONG = "answered wrongly with the evidence in hand"
UNSEEN = "recall not seen"
"""The system answers by itself and does not report its hits."""
NO_EVIDENCE = "no evidence known"
CONFABULATED = "confabulated"
BOUNDARY = "boundary missed"
"""The answer disclosed what should have been refused, or refused more than it should."""
CLASSES = (
    NOT_INGESTED,
    NOT_RECALLED,
    PARTLY_RECALLED,
    CUT,
    DOUBTFUL,
    WRONG,
    UNSEEN,
    NO_EVIDENCE,
    CONFABULATED,
    BOUNDARY,
)
EXAMPLES = 5
_WORD = re.compile(r"[^\W_]+")
_PASSING = {Score: 4 / 6, Grade: 0.5}
"""A panel judge's vote, as a share of the best mark, passes an answer from this value on."""


class FailureClass(Rate):
    """The share of failures in one class, with example question ids."""

    examples: list[str]


class Diagnosis(TypedDict):
    """The failed answers by class and category."""

    judged: int
    failures: int
    classes: dict[str, FailureClass]
    by_category: dict[str, dict[str, int]]
    in_hand: Rate
    """Failures on answerable questions for which the reader was shown all the evidence."""


def receipts_of(ingestions: Iterable[Ingestion]) -> dict[str, Receipt]:
    """Map each scenario to its receipt; its last line in the journal covers all its memories."""
    return {line.scenario: line.receipt for line in ingestions}


def diagnose(records: Iterable[QuestionRecord], receipts: Mapping[str, Receipt]) -> Diagnosis:
    """Count the failures of each class, overall and by category, with examples."""
    records = in_order(records)
    kinds = [classify(record, receipts.get(record.scenario)) for record in records]
    found = [(kind, one) for kind, one in zip(kinds, records, strict=True) if kind]
    failed = [record for _, record in found]
    clusters = [record.cluster for record in failed]
    # Evidence in hand is relevant only where the question should be answered.
    answerable = [record for record in failed if record.question.expects == "answer"]
    counts = {
        category: Counter(kind for kind, one in found if one.question.category == category)
        for category in by_category(failed)
    }
    return {
        "judged": sum(record.final is not None for record in records),
        "failures": len(found),
        "classes": {
            kind: {
                **rate([own == kind for own, _ in found], clusters),
                "examples": list(
                    dict.fromkeys(one.question.id for own, one in found if own == kind)
                )[:EXAMPLES],
            }
            for kind in CLASSES
        },
        "by_category": {
            category: {kind: own[kind] for kind in CLASSES if own[kind]}
            for category, own in counts.items()
        },
        "in_hand": rate(
            [in_hand(one, receipts.get(one.scenario)) for one in answerable],
            [one.cluster for one in answerable],
        ),
    }


def classify(record: QuestionRecord, receipt: Receipt | None = None) -> str | None:
    """Return the class of a judged failure; None if the answer passed or was not judged."""
    if record.final is None or not record.final.fails:
        return None
    if record.question.expects == "abstain":
        # Abstaining was correct, so a failing verdict is doubtful.
        return CONFABULATED if record.status in ("answered", "truncated") else DOUBTFUL
    if record.question.expects != "answer":
        return BOUNDARY
    if not _evidence(record):
        return NO_EVIDENCE
    lost = _lost(record, receipt or Receipt())
    if lost in (None, UNSEEN) and _doubtful(record):
        return DOUBTFUL
    return lost or WRONG


def in_hand(record: QuestionRecord, receipt: Receipt | None = None) -> bool:
    """Whether the reader was shown all the evidence."""
    return bool(_evidence(record)) and _lost(record, receipt or Receipt()) is None


def _lost(record: QuestionRecord, receipt: Receipt) -> str | None:
    """Return the step that lost evidence; None if all of it reached the reader."""
    evidence = _evidence(record)
    ranks = _ranks(record, evidence)
    unreachable = record.trial is not None and record.trial.reachable < len(evidence)
    if (
        any(id in receipt.rejected for id in evidence)
        or all(receipt.truncated.get(id, 1.0) < 1 for id in evidence)
        or (unreachable and not ranks)
    ):
        return NOT_INGESTED
    if ranks is None:
        return UNSEEN
    if not ranks:
        return NOT_RECALLED
    if len(ranks) < len(evidence):
        return PARTLY_RECALLED
    shown = record.answer.shown if record.answer is not None else None
    if shown is not None and max(ranks.values()) > shown:
        return CUT
    return None


def _evidence(record: QuestionRecord) -> tuple[str, ...]:
    """Return the evidence ids of the question, or of its trial.

    A question that was read back from a run has no evidence.
    """
    known = record.question.evidence or (record.trial.evidence if record.trial else ())
    return tuple(dict.fromkeys(known))


def _ranks(record: QuestionRecord, evidence: tuple[str, ...]) -> dict[str, int] | None:
    """Map recalled evidence to its rank, repetitions removed; None if the hits are unknown."""
    trial = record.trial
    if trial is not None:
        hits = [credited(trial, id) for id in dict.fromkeys(trial.ranking)]
    elif record.answer is not None and record.answer.sources:
        hits = [(id,) for id in record.answer.sources]
    else:
        return None
    ranks: dict[str, int] = {}
    for rank, sources in enumerate(hits, 1):
        for id in sources:
            if id in evidence:
                ranks.setdefault(id, rank)
    return ranks


def _doubtful(record: QuestionRecord) -> bool:
    final = record.final
    assert final is not None
    if any(vote >= _PASSING[type(final)] for vote in final.votes.values()):
        return True
    if record.primary is not None and changed(record.primary, final):
        return True
    if record.answer is None or record.answer.status not in ("answered", "truncated"):
        return False
    # An answer that contains every content word of the reference is probably right.
    answer, reference = (
        _WORD.findall(t.casefold()) for t in (record.answer.text, record.question.reference)
    )
    content = [word for word in reference if word not in STOP_WORDS] or reference
    return bool(content) and set(stem_words(content)) <= set(stem_words(answer))
