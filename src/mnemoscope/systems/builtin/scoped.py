"""Search among the memories that may be told where the question is asked.

It obeys the policy of a store: `told_in` of a memory's metadata lists the sessions in which it may
be told. It shows that an honest system is possible; it understands nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.dense import Dense
from mnemoscope.systems.builtin.hybrid import Hybrid
from mnemoscope.systems.builtin.scored import FloatArray, Scored
from mnemoscope.types import TOLD_IN, Memory, Query

_RETRIEVERS: dict[str, type[Scored]] = {"bm25": Bm25, "dense": Dense, "hybrid": Hybrid}


class Scoped(Scored):
    """A retriever whose hits are limited to some sessions.

    Args:
        retriever: What ranks the memories.
        sessions: told: memories that may be told in the session of the question, by their
            `told_in`, and those without one; own: memories of that session only.
    """

    floor = -np.inf

    def __init__(
        self,
        retriever: Literal["bm25", "dense", "hybrid"] = "bm25",
        sessions: Literal["told", "own"] = "told",
    ) -> None:
        self.sessions = sessions
        self._retriever = _RETRIEVERS[retriever]()

    def clear(self) -> None:
        self._retriever.clear()
        self._scopes: list[frozenset[str] | None] = []

    def add(self, memories: Sequence[Memory]) -> None:
        self._retriever.add(memories)
        self._scopes += map(self._scope, memories)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        self._retriever.keep(kept)
        self._scopes = [scope for scope, stays in zip(self._scopes, kept, strict=True) if stays]

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin._retriever = self._retriever.fork_index()
        twin._scopes = [*self._scopes]
        return twin

    def scores(self, query: Query) -> FloatArray:
        self._retriever.memories = self.memories
        scores = self._retriever.scores(query)
        allowed = np.array([scope is None or query.session in scope for scope in self._scopes])
        found = allowed & (scores > self._retriever.floor)
        return np.where(found, scores, -np.inf).astype(np.float32)

    def stats(self) -> dict[str, int]:
        return self._retriever.stats()

    def _scope(self, memory: Memory) -> frozenset[str] | None:
        """The sessions in which it may be recalled; None for all."""
        if self.sessions == "own":
            return frozenset({memory.session})
        told_in = memory.metadata.get(TOLD_IN)
        return None if told_in is None else frozenset(str(told_in).split(","))
