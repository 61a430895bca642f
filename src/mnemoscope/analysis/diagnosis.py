"""Why an answer failed: where on its way from the memory to the verdict the evidence was lost.

The classes are tried in the order of that way, so each failure is laid to the first step that did
not hold. A class is a suspicion with a reason, no second verdict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from mnemoscope.analysis.answer_figures import Answered, changed, ordered, rate
from mnemoscope.text.english import STOP_WORDS, stem_words
from mnemoscope.types import Grade, Ingestion, Receipt, Score

NOT_INGESTED = "not ingested"
NOT_RECALLED = "not recalled"
PARTLY_RECALLED = "partly recalled"
CUT = "cut by the budget"
DOUBTFUL = "doubtful verdict"
WRONG = "answered wrongly with the evidence in hand"
UNSEEN = "recall not seen"
"""The system answers by itself and does not say what it recalled."""
NO_EVIDENCE = "no evidence known"
CONFABULATED = "confabulated"
BOUNDARY = "boundary missed"
"""What should have been refused, wholly or in part, and was not, or was refused too far."""
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
"""From which vote on, a share of the best mark, a judge of a panel lets an answer pass."""


def receipts_of(ingestions: Iterable[Ingestion]) -> dict[str, Receipt]:
    """Scenario to what became of its memories; the last line of a scenario tells of them all."""
    return {line.scenario: line.receipt for line in ingestions}


def diagnose(rows: Iterable[Answered], receipts: Mapping[str, Receipt]) -> dict[str, Any]:
    """How many failures of each class, overall and by category, with a few to look at."""
    rows = ordered(rows)
    found = [(kind, row) for row in rows if (kind := classify(row, receipts.get(row.scenario)))]
    counts = Counter(kind for kind, _ in found)
    # Where nothing should be answered, having the evidence is no reproach.
    answerable = [row for _, row in found if row.question.expects == "answer"]
    categories = sorted({row.question.category for _, row in found} - {""})
    return {
        "judged": sum(row.final is not None for row in rows),
        "failures": len(found),
        "classes": {
            kind: {**rate(counts[kind], len(found)), "examples": _examples(kind, found)}
            for kind in CLASSES
        },
        "by_category": {
            category: {
                kind: own[kind]
                for own in [Counter(k for k, row in found if row.question.category == category)]
                for kind in CLASSES
                if own[kind]
            }
            for category in categories
        },
        "in_hand": rate(
            sum(in_hand(row, receipts.get(row.scenario)) for row in answerable), len(answerable)
        ),
    }


def classify(row: Answered, receipt: Receipt | None = None) -> str | None:
    """Where a judged failure went wrong; none where the answer passed or was not judged."""
    if row.final is None or not row.final.fails:
        return None
    if row.question.expects == "abstain":
        # To say nothing was right: a judge that fails it is the one to look at.
        return CONFABULATED if row.status == "answered" else DOUBTFUL
    if row.question.expects != "answer":
        return BOUNDARY
    if not _evidence(row):
        return NO_EVIDENCE
    lost = _lost(row, receipt or Receipt())
    if lost in (None, UNSEEN) and _doubtful(row):
        return DOUBTFUL
    return lost or WRONG


def in_hand(row: Answered, receipt: Receipt | None = None) -> bool:
    """Whether whoever answered had all the evidence before them."""
    return bool(_evidence(row)) and _lost(row, receipt or Receipt()) is None


def _lost(row: Answered, receipt: Receipt) -> str | None:
    """The step at which evidence was lost; none where all of it reached the reader."""
    evidence = _evidence(row)
    ranks = _ranks(row, evidence)
    unreachable = row.trial is not None and row.trial.reachable < len(evidence)
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
    shown = row.answer.shown if row.answer is not None else None
    if shown is not None and max(ranks.values()) > shown:
        return CUT
    return None


def _evidence(row: Answered) -> tuple[str, ...]:
    """As the question has it, or the trial: a question read back from a run has lost it."""
    known = row.question.evidence or (row.trial.evidence if row.trial else ())
    return tuple(dict.fromkeys(known))


def _ranks(row: Answered, evidence: tuple[str, ...]) -> dict[str, int] | None:
    """Evidence that was recalled, with its rank, repetitions removed; none where nobody saw."""
    trial = row.trial
    if trial is not None:
        hits = [trial.sources.get(id, (id,)) for id in dict.fromkeys(trial.ranking)]
    elif row.answer is not None and row.answer.sources:
        hits = [(id,) for id in row.answer.sources]
    else:
        return None
    ranks: dict[str, int] = {}
    for rank, sources in enumerate(hits, 1):
        for id in sources:
            if id in evidence:
                ranks.setdefault(id, rank)
    return ranks


def _doubtful(row: Answered) -> bool:
    final = row.final
    assert final is not None
    if any(vote >= _PASSING[type(final)] for vote in final.votes.values()):
        return True
    if row.primary is not None and changed(row.primary, final):
        return True
    return _says_it_all(row)


def _says_it_all(row: Answered) -> bool:
    """Whether every word of the reference that means something is in the answer."""
    if row.answer is None or row.answer.status != "answered":
        return False
    said, wanted = (_WORD.findall(t.casefold()) for t in (row.answer.text, row.question.reference))
    telling = [word for word in wanted if word not in STOP_WORDS] or wanted
    return bool(telling) and set(stem_words(telling)) <= set(stem_words(said))


def _examples(kind: str, found: Iterable[tuple[str, Answered]]) -> list[str]:
    ids = dict.fromkeys(row.question.id for own, row in found if own == kind)
    return list(ids)[:EXAMPLES]
