"""Questions of all categories in fixed shares, numbered in the order in which they can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import islice
from random import Random

import msgspec

from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.simulate import arc_questions, fact_questions
from mnemoscope.personas.simulate.known_facts import KnownFacts

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


def make_questions(known: KnownFacts) -> tuple[AuthoredQuestion, ...]:
    """All questions of a simulated history."""
    total = _PER_ARC * len(known.arcs)
    spared: set[str] = set()
    unanswered = round(total * _SHARES["negative-recall"])
    # Rare categories choose their facts first.
    makers: Mapping[str, Callable[[KnownFacts, Random], Iterable[AuthoredQuestion]]] = {
        "recency-bias-resistance": partial(fact_questions.recency, spared=spared),
        "contradiction-resolution": fact_questions.contradiction,
        "information-boundary": arc_questions.boundaries,
        "factual-recall": partial(fact_questions.factual, spared=spared),
        "temporal-reasoning": fact_questions.temporal,
        "decision-tracking": arc_questions.decisions,
        "cross-reference": arc_questions.crossings,
        "synthesis": fact_questions.synthesis,
        "negative-recall": partial(fact_questions.negatives, count=unanswered),
        "group-session-attribution": arc_questions.attributions,
    }
    seen: set[str] = set()
    drafts: list[AuthoredQuestion] = []
    for category, make in makers.items():
        made = make(known, known.rng.stream("questions", category))
        drafts += islice(_distinct(made, seen), round(total * _SHARES[category]))
    drafts.sort(key=lambda draft: (max(draft.relevant_days), draft.category, draft.question))
    width = max(3, len(str(len(drafts))))
    prefix = known.story.persona.id
    return tuple(
        msgspec.structs.replace(draft, id=f"{prefix}-q{number:0{width}}")
        for number, draft in enumerate(drafts, 1)
    )


def _distinct(drafts: Iterable[AuthoredQuestion], seen: set[str]) -> Iterator[AuthoredQuestion]:
    for draft in drafts:
        if draft.question not in seen:
            seen.add(draft.question)
            yield draft
