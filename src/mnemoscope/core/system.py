"""The System contract, for those who want a type checker to look over their adapter.

The smallest useful system has `remember` and `recall`; docs/systems.md lists what else it may have.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from mnemoscope.core.nouns import Hit, Memory, Query, Receipt


class System(Protocol):
    """What is under test: it remembers memories and recalls them."""

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        """Take in memories, in time order. None means: all stored, whole."""
        ...

    def recall(self, query: Query, k: int) -> Sequence[Hit]:
        """Up to k hits, best first: rank is position, scores are decoration."""
        ...
