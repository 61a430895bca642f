"""A question as the simulator and the writing passes put it into questions.yaml.

`datasets.persona_folder` reads such files, other people's included, and has its own type for that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import UNSET, Struct, UnsetType

Difficulty = Literal["easy", "medium", "hard"]
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
Disclosure = Literal["", "refuse", "partial", "answer"]


class AuthoredQuestion(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One entry of questions.yaml; the order of the fields is that of the file."""

    id: str = ""
    """Empty until the question has its number."""
    question: str
    answer: str
    category: str
    difficulty: Difficulty
    relevant_days: tuple[int, ...]
    requires_synthesis: bool
    irrelevant_after: int | None = None
    """The last day on which the answer is still true."""
    no_evidence: bool = False
    """The relevant days only say from when it may be asked; no day has an answer."""
    query_session: str = ""
    forbidden_sessions: tuple[str, ...] = ()
    expected_disclosure: Disclosure = ""
    key: tuple[str, ...] | UnsetType = UNSET
    """References into the ledger that a right answer names; only simulated histories have one."""
    secret: tuple[str, ...] = ()
    """Facts of the ledger that may not be told."""
    arc: str = ""


def difficulty_of(days: Sequence[int], described: bool) -> Difficulty:
    """By the days of evidence; a description in place of a name makes a question harder."""
    if len(days) > 2:
        return "hard"
    return "medium" if len(days) == 2 or described else "easy"
