"""A question as the simulator and the writing passes write it into questions.yaml.

`datasets.persona_folder` reads such files, including those of other projects, with its own type.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from msgspec import UNSET, Struct, UnsetType

Difficulty = Literal["easy", "medium", "hard"]
DIFFICULTIES: tuple[Difficulty, ...] = get_args(Difficulty)
Disclosure = Literal["", "refuse", "partial", "answer"]


class AuthoredQuestion(Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One entry of questions.yaml, with the fields in the order of the file."""

    id: str = ""
    """Empty until the question is numbered."""
    question: str
    answer: str
    category: str
    difficulty: Difficulty
    relevant_days: tuple[int, ...]
    requires_synthesis: bool
    irrelevant_after: int | None = None
    """The last day on which the answer is still true."""
    no_evidence: bool = False
    """No day has an answer; the relevant days only say from when it may be asked."""
    query_session: str = ""
    forbidden_sessions: tuple[str, ...] = ()
    expected_disclosure: Disclosure = ""
    key: tuple[str, ...] | UnsetType = UNSET
    """Ledger references that a correct answer states; only simulated histories have one."""
    secret: tuple[str, ...] = ()
    """Ledger facts that may not be disclosed."""
    arc: str = ""


def difficulty_of(days: Sequence[int], described: bool) -> Difficulty:
    """The difficulty by days of evidence; a description instead of a name makes it harder."""
    if len(days) > 2:
        return "hard"
    return "medium" if len(days) == 2 or described else "easy"
