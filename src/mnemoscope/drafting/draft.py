"""A drafted question before its rules are checked."""

from __future__ import annotations

from typing import NamedTuple


class Draft(NamedTuple):
    """A candidate for a question of one stratum."""

    stratum: str
    text: str
    gold: tuple[str, ...]
    superseded: tuple[str, ...] = ()
    note: str = ""
    """How it was made."""
    answer: str = ""
