"""Questions of all categories, in fair shares, numbered in the order in which they can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from random import Random
from typing import Any

from mnemoscope.personas.simulate import arc_questions, fact_questions
from mnemoscope.personas.simulate.known_facts import Draft, KnownFacts
from mnemoscope.personas.simulate.negative_questions import negatives

_PER_ARC = 6.5
"""Core questions for each arc."""
_SHARES: Mapping[str, float] = {
    "factual-recall": 0.21,
    "temporal-reasoning": 0.12,
    "decision-tracking": 0.10,
    "contradiction-resolution": 0.13,
    "cross-reference": 0.08,
    "recency-bias-resistance": 0.10,
    "synthesis": 0.12,
    "negative-recall": 0.14,
    "group-session-attribution": 0.08,
    "information-boundary": 1.0,
}


def make_questions(known: KnownFacts) -> list[dict[str, Any]]:
    """All questions of a life as they stand in questions.yaml."""
    total = _PER_ARC * len(known.plots)
    seen: set[str] = set()
    drafts: list[Draft] = []
    for category, candidates in _candidates(known, total):
        drafts += islice(_unlike(candidates, seen), round(total * _SHARES[category]))
    drafts.sort(key=lambda draft: (max(draft.days), draft.category, draft.question))
    width = max(3, len(str(len(drafts))))
    prefix = known.story.persona.id
    return [_entry(f"{prefix}-q{n:0{width}}", draft) for n, draft in enumerate(drafts, 1)]


def _candidates(known: KnownFacts, total: float) -> Iterator[tuple[str, Iterable[Draft]]]:
    """Categories in the order in which they may choose their facts, rare ones first."""
    spared: set[str] = set()
    in_vain = round(total * _SHARES["negative-recall"])
    makers: Mapping[str, Callable[[Random], Iterable[Draft]]] = {
        "recency-bias-resistance": lambda r: fact_questions.recency(known, r, spared),
        "contradiction-resolution": lambda r: fact_questions.contradiction(known, r),
        "information-boundary": lambda r: arc_questions.boundaries(known, r),
        "factual-recall": lambda r: fact_questions.factual(known, r, spared),
        "temporal-reasoning": lambda r: fact_questions.temporal(known, r),
        "decision-tracking": lambda r: arc_questions.decisions(known, r),
        "cross-reference": lambda r: arc_questions.crossings(known, r),
        "synthesis": lambda r: fact_questions.synthesis(known, r),
        "negative-recall": lambda r: negatives(known, r, in_vain),
        "group-session-attribution": lambda r: arc_questions.attributions(known, r),
    }
    for category, make in makers.items():
        yield category, make(known.chance.stream("questions", category))


def _unlike(drafts: Iterable[Draft], seen: set[str]) -> Iterator[Draft]:
    for draft in drafts:
        if draft.question not in seen:
            seen.add(draft.question)
            yield draft


def _entry(id: str, draft: Draft) -> dict[str, Any]:
    days = sorted(set(draft.days))
    difficulty = "easy"
    if len(days) > 2:
        difficulty = "hard"
    elif len(days) == 2 or draft.described:
        difficulty = "medium"
    entry: dict[str, Any] = {
        "id": id,
        "question": draft.question,
        "answer": draft.answer,
        "category": draft.category,
        "difficulty": difficulty,
        "relevant_days": days,
        "requires_synthesis": len(days) > 1,
    }
    optional = {
        "irrelevant_after": draft.irrelevant_after,
        "no_evidence": draft.no_evidence,
        "query_session": draft.query_session,
        "forbidden_sessions": list(draft.forbidden_sessions),
        "expected_disclosure": draft.expected_disclosure,
    }
    entry |= {key: value for key, value in optional.items() if value}
    entry["key"] = list(draft.key)
    if draft.secret:
        entry["secret"] = list(draft.secret)
    if draft.arc:
        entry["arc"] = draft.arc
    return entry
