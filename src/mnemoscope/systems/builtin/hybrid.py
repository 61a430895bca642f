"""Lexical and semantic search, fused by min–max scores or by reciprocal ranks.

The defaults were chosen on BEAM, which our reports do not use (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.dense import Dense
from mnemoscope.systems.builtin.graph import EntityGraph
from mnemoscope.systems.builtin.scored import FloatArray, Scored
from mnemoscope.text.tokenize import CHUNK_WORDS
from mnemoscope.types import Memory, Query


class Hybrid(Scored):
    """bm25 and dense, and graph as a third retriever if its weight is above 0."""

    floor = -np.inf

    def __init__(
        self,
        fusion: Literal["minmax", "rrf"] = "minmax",
        weight: float = 0.5,
        graph: float = 0.0,
        rrf_k: int = 60,
        k1: float = 1.5,
        b: float = 0.75,
        model: str = "wordllama",
        chunk: int = CHUNK_WORDS,
        cache: bool = True,
    ) -> None:
        if fusion not in ("minmax", "rrf"):
            raise UsageError(f"fusion={fusion!r}: must be minmax or rrf")
        if not 0 <= weight <= 1:
            raise UsageError(
                f"weight={weight}: the dense retriever's share must be between 0 and 1"
            )
        if not graph >= 0:
            raise UsageError(f"graph={graph}: the graph retriever's weight must be 0 (off) or more")
        if rrf_k < 0:
            raise UsageError(f"rrf_k={rrf_k}: must be 0 or more")
        self.fusion = fusion
        self.rrf_k = rrf_k
        self.dense = Dense(model=model, chunk=chunk, cache=cache)
        self.retrievers: list[tuple[float, Scored]] = [
            (1 - weight, Bm25(k1=k1, b=b, cache=cache)),
            (weight, self.dense),
        ]
        if graph > 0:
            self.retrievers.append((graph, EntityGraph(cache=cache)))

    def identity(self) -> dict[str, Any]:
        return self.dense.identity()

    def clear(self) -> None:
        for _, retriever in self.retrievers:
            retriever.clear()

    def add(self, memories: Sequence[Memory]) -> None:
        for _, retriever in self.retrievers:
            retriever.add(memories)
            retriever.index_operations += len(memories)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        for _, retriever in self.retrievers:
            retriever.keep(kept)

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin.retrievers = [(weight, one.fork_index()) for weight, one in self.retrievers]
        return twin

    def scores(self, query: Query) -> FloatArray:
        total = np.zeros(len(self.memories), dtype=np.float32)
        found = np.zeros(len(self.memories), dtype=bool)
        for weight, retriever in self.retrievers:
            own = retriever.scores(query)
            if self.fusion == "rrf":
                total += weight * self._reciprocal_ranks(own, retriever.floor)
            elif (low := own.min()) != (high := own.max()):
                total += weight * ((own - low) / (high - low))
            found |= (own > retriever.floor) & (weight > 0)
        # The lowest hit of a retriever has a min–max score of 0, as do memories that none found.
        return np.where(found, total, -np.inf).astype(np.float32)

    def stats(self) -> dict[str, int]:
        merged: dict[str, int] = {}
        for _, retriever in self.retrievers:
            for key, value in retriever.stats().items():
                merged[key] = merged.get(key, 0) + value
        return merged

    def _reciprocal_ranks(self, scores: FloatArray, floor: float) -> FloatArray:
        """1 / (k + rank) for the memories that a retriever found, 0 for the others."""
        order = np.argsort(-scores, kind="stable")
        ranks = np.empty(len(scores), dtype=np.float32)
        ranks[order] = np.arange(1, len(scores) + 1, dtype=np.float32)
        return np.where(scores > floor, 1 / (self.rrf_k + ranks), 0).astype(np.float32)
