"""The System contract: a few verbs, of which a system has those it can do.

The smallest useful system has `remember` and `recall`. Methods may be async. A hit is ranked by
its position; scores are decoration.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

from mnemoscope.core.nouns import Hit, Memory, Query, Receipt


@runtime_checkable
class System(Protocol):
    """What every built-in system has. Third-party ones may return plain ids from `recall`."""

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        """Take in memories, in time order. None means: all stored, whole."""
        ...

    def recall(self, query: Query, k: int) -> Sequence[Hit]:
        """Up to k hits, best first."""
        ...


@runtime_checkable
class Resettable(Protocol):
    """Can start over in a fresh, isolated space; others are built anew for each scenario."""

    def reset(self, scope: str) -> None: ...


@runtime_checkable
class Identifiable(Protocol):
    """Can say, cheaply, what beyond its arguments decides its results: model, weights, version."""

    def identity(self) -> dict[str, Any]: ...


@runtime_checkable
class Countable(Protocol):
    """Reports on itself after `remember`: `index_bytes`, texts tokenised, texts embedded."""

    def stats(self) -> dict[str, int]: ...
