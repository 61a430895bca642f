"""Records of runs with any number of checkpoints, unasked cells and failed cells."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import pytest

from mnemoscope.analysis.hallucination import views
from mnemoscope.analysis.longitudinal import longitudinal
from mnemoscope.analysis.question_records import Plan, QuestionRecord
from mnemoscope.types import CORE_CATEGORIES, Answer, Checkpoint, Question, Score, Trial, Verdict


@dataclass
class History:
    records: list[QuestionRecord]
    plan: Plan

    @cached_property
    def figures(self) -> dict[str, Any]:
        figures = longitudinal(self.records, self.plan)
        return {**figures, "hallucination": views(self.records, self.plan, figures)}


@pytest.fixture(scope="session")
def make_history() -> Callable[..., History]:
    """Two questions for each category and checkpoint, with scores that fall by checkpoint.

    `unasked` and `failed` are pairs of checkpoint and category index.
    """

    @cache
    def make(
        count: int,
        *,
        personas: tuple[str, ...] = ("ada",),
        unasked: frozenset[tuple[int, int]] = frozenset(),
        failed: frozenset[tuple[int, int]] = frozenset(),
        categories: tuple[str, ...] = CORE_CATEGORIES,
    ) -> History:
        records, plan = [], {}
        for persona in personas:
            points = []
            for at in range(count):
                days = 7 * (at + 1)
                label = f"{days}d"
                questions = [
                    _record(persona, label, at, count, kind, category, twin, (at, kind) in failed)
                    for kind, category in enumerate(categories)
                    if (at, kind) not in unasked
                    for twin in range(2)
                ]
                records += questions
                ids = tuple(record.question.id for record in questions)
                eligible = dict.fromkeys(categories, 2)
                points.append(
                    Checkpoint(label, days, days, ids, ingested_days=days, eligible=eligible, new=4)
                )
            plan[persona] = points
        return History(records, plan)

    return make


def _record(
    persona: str, label: str, at: int, count: int, kind: int, category: str, twin: int, failed: bool
) -> QuestionRecord:
    question = Question(
        f"q{kind}{twin}",
        "Which one?",
        reference="This one.",
        category=category,
        difficulty="easy",
        cluster=f"c{kind}",
        relevant_days=(1,),
        evidence=("m0",),
        expects="refuse" if category == "information-boundary" else "answer",
        session="main" if category == "information-boundary" else "",
        forbidden=("board",) if category == "information-boundary" else (),
    )
    named = (persona, question.id)
    if failed:
        trial = Trial(*named, "timeout", checkpoint=label)
        return QuestionRecord(question, trial, scenario=persona, checkpoint=label)
    fall = round(3 * at / count)
    score = Score(3 - fall, 2 - twin, int((at + kind + twin) % 5 > 0))
    return QuestionRecord(
        question,
        Trial(*named, "answered", evidence=("m0",), ranking=("m1", "m0"), checkpoint=label),
        Answer(*named, "answered", "This one.", checkpoint=label),
        Verdict(*named, score, checkpoint=label),
        persona,
        label,
        10.0,
    )
