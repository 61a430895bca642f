"""Questions of the second edition, in pairs of families: the same words with and without an answer.

Each family words what the logs state and what they leave out in the same way and in the same
proportion, so that the text of a question does not tell whether it has an answer. A confidential
fact is asked in the same words inside its session and outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random

import msgspec

from mnemoscope.personas.authored_question import AuthoredQuestion
from mnemoscope.personas.simulate.known_facts import KnownFacts
from mnemoscope.personas.simulate.question_wording import QuestionFamily
from mnemoscope.personas.simulate.scene_book import SceneBook
from mnemoscope.personas.simulate.scene_fact_questions import FactQuestions
from mnemoscope.personas.simulate.scene_people_questions import PeopleQuestions
from mnemoscope.personas.simulate.scene_timeline import SceneRecord

_PER_ARC = 6.5
"""Core questions for each arc."""
_NEGATIVE = 0.15
"""The share of each family that has no answer."""
_SHARES: Mapping[str, float] = {
    "value": 0.20,
    "latest": 0.12,
    "date": 0.08,
    "first": 0.05,
    "why": 0.06,
    "course": 0.05,
    "both": 0.08,
    "outcome": 0.05,
    "objection": 0.05,
    "who": 0.08,
    "common": 0.07,
    "team": 0.10,
    "preference": 0.06,
}


def scene_questions(
    known: KnownFacts, record: SceneRecord, book: SceneBook
) -> tuple[AuthoredQuestion, ...]:
    """All questions of a history of the second edition."""
    facts, people = FactQuestions(known, record, book), PeopleQuestions(known, record, book)
    total = _PER_ARC * len(known.arcs)
    seen: set[str] = set()
    drafts: list[AuthoredQuestion] = []
    for name, share in _SHARES.items():
        make: Callable[[Random], QuestionFamily] = getattr(
            facts if hasattr(facts, name) else people, name
        )
        drafts += _mixed(make(known.rng.stream("questions", name)), round(total * share), seen)
    drafts += people.boundaries(known.rng.stream("questions", "information-boundary"))
    drafts.sort(key=lambda one: (max(one.relevant_days), one.question, one.query_session))
    width = max(3, len(str(len(drafts))))
    prefix = known.story.persona.id
    return tuple(
        msgspec.structs.replace(draft, id=f"{prefix}-q{number:0{width}}")
        for number, draft in enumerate(drafts, 1)
    )


def _mixed(family: QuestionFamily, count: int, seen: set[str]) -> Iterator[AuthoredQuestion]:
    """Questions with and without an answer in the fixed proportion."""
    answered = list(_distinct(family.answered, seen))
    unanswered = list(_distinct(family.unanswered, seen))
    count = min(count, round(len(answered) / (1 - _NEGATIVE)), round(len(unanswered) / _NEGATIVE))
    without = round(count * _NEGATIVE)
    yield from unanswered[:without]
    yield from answered[: count - without]


def _distinct(drafts: Sequence[AuthoredQuestion], seen: set[str]) -> Iterator[AuthoredQuestion]:
    for draft in drafts:
        if draft.question not in seen:
            seen.add(draft.question)
            yield draft
