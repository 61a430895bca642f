"""A person's decisions about drafted questions, one line each, in the order they were made.

A decision is about a question as it was shown: its hash covers the text, the stratum and the
memories. A question that changed afterwards counts as not confirmed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.jsonl import read_lines
from mnemoscope.datasets.strata_rules import StratumQuestion

REVIEW = "review.jsonl"
Choice = Literal["accept", "edit", "reject"]


class ReviewDecision(msgspec.Struct, frozen=True):
    """One line of review.jsonl."""

    query_id: str
    choice: Choice
    question_sha256: str
    """Of the question that was accepted or rejected; of an edit, as it is afterwards."""
    at: datetime


def question_sha256(question: StratumQuestion) -> str:
    """The hash of all that a person sees of a question; its id is a name only."""
    shown = [
        question.text,
        question.stratum,
        sorted(question.gold),
        sorted(question.superseded),
        question.answer,
    ]
    return hashlib.sha256(msgspec.json.encode(shown)).hexdigest()


def decisions(folder: Path) -> dict[str, ReviewDecision]:
    """The last decision about each question."""
    path = folder / REVIEW
    if not path.exists():
        return {}
    content = path.read_bytes()
    # A killed process may leave half a line: that decision was not made.
    whole = content[: content.rfind(b"\n") + 1]
    try:
        return {one.query_id: one for one in read_lines(whole, ReviewDecision)}
    except msgspec.DecodeError as error:
        raise DataError(
            f"is not what `mnemoscope questions review` wrote: {error}", file=path
        ) from None


def confirmed(questions: Iterable[StratumQuestion], folder: Path) -> set[str]:
    """The questions that a person accepted or edited, and that are still as they were then."""
    made = decisions(folder)
    return {
        one.id
        for one in questions
        if (own := made.get(one.id)) is not None
        and own.choice != "reject"
        and own.question_sha256 == question_sha256(one)
    }
