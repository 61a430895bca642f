"""A person accepts, edits or rejects drafted questions; every decision is kept at once."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import Journal
from mnemoscope.datasets.review_log import (
    REVIEW,
    Choice,
    ReviewDecision,
    confirmed,
    decisions,
    question_sha256,
)
from mnemoscope.datasets.strata import StrataQuery
from mnemoscope.datasets.strata_rules import BrokenRule, StrataRules, StratumQuestion
from mnemoscope.drafting.question_files import QuestionFiles, asked, read_memories
from mnemoscope.types import Memory


class ReviewItem(NamedTuple):
    """One question with the memories that a person needs to decide."""

    question: StratumQuestion
    gold: list[Memory]
    superseded: list[Memory]
    broken: list[BrokenRule]
    """The rules of its stratum that it breaks."""


class ReviewSession:
    """The drafted questions of a folder that wait for a decision.

    Decisions are appended to review.jsonl before the questions change, so that an interrupted
    review continues where it ended.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._files = QuestionFiles.read(folder)
        if not self._files.queries:
            raise UsageError(
                f"{folder} has no questions: run `mnemoscope questions draft {folder}`"
            )
        memories = read_memories(folder)
        self._memories = {memory.id: memory for memory in memories}
        self._rules = StrataRules(memories)
        self._remove_rejected()

    @property
    def total(self) -> int:
        return len(self._files.queries)

    @property
    def confirmed(self) -> int:
        return len(confirmed(map(asked, self._files.queries), self._folder))

    def waiting(self) -> list[ReviewItem]:
        """The drafted questions without a decision about them as they are now."""
        made = decisions(self._folder)
        found = []
        for query in self._files.queries:
            question = asked(query)
            own = made.get(question.id)
            if query.drafted_by and (
                own is None or own.question_sha256 != question_sha256(question)
            ):
                found.append(
                    ReviewItem(
                        question,
                        [self._memories[id] for id in question.gold if id in self._memories],
                        [self._memories[id] for id in question.superseded if id in self._memories],
                        self._rules.broken(question),
                    )
                )
        return found

    def accept(self, question: StratumQuestion) -> None:
        self._decide("accept", question)

    def reject(self, question: StratumQuestion) -> None:
        """The question is removed, and will not be drafted again."""
        self._decide("reject", question)
        self._remove_rejected()

    def edit(self, question: StratumQuestion, text: str) -> list[BrokenRule]:
        """Give the question another text, unless that breaks a rule of its stratum.

        Returns the broken rules; then nothing has changed.
        """
        edited = question._replace(text=" ".join(text.split()))
        if not edited.text:
            raise UsageError("the text of a question cannot be empty")
        if broken := self._rules.broken(edited):
            return broken
        self._files.queries = [
            msgspec.structs.replace(query, text=edited.text)
            if query.query_id == question.id
            else query
            for query in self._files.queries
        ]
        self._files.save()
        self._decide("edit", edited)
        return []

    def _decide(self, choice: Choice, question: StratumQuestion) -> None:
        made = ReviewDecision(question.id, choice, question_sha256(question), datetime.now(UTC))
        with Journal(self._folder / REVIEW) as journal:
            journal.append(made)

    def _remove_rejected(self) -> None:
        made = decisions(self._folder)

        def is_rejected(query: StrataQuery) -> bool:
            own = made.get(query.query_id)
            return (
                own is not None
                and own.choice == "reject"
                and own.question_sha256 == question_sha256(asked(query))
            )

        left = [query for query in self._files.queries if not is_rejected(query)]
        if len(left) < len(self._files.queries):
            self._files.queries = left
            self._files.save()
