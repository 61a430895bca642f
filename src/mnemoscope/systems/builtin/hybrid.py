"""Lexical and semantic search fused, by min–max scores or by reciprocal ranks.

The defaults were chosen on BEAM, which no report of ours is made on (docs/decisions/0004).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, Self

import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.systems.builtin.dense import Dense
from mnemoscope.systems.builtin.graph import EntityGraph
from mnemoscope.systems.builtin.scored import FloatArray, Scored
from mnemoscope.text.tokenize import CHUNK_WORDS
from mnemoscope.types import Memory, Query, Receipt, Selector


class Hybrid(Scored):
    """bm25 + dense, and graph as a third leg where its weight is above 0."""

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
            raise UsageError(f"fusion={fusion!r}: it is minmax or rrf")
        if not 0 <= weight <= 1:
            raise UsageError(f"weight={weight}: the dense leg's share is between 0 and 1")
        if not graph >= 0:
            raise UsageError(f"graph={graph}: the graph leg's weight is 0 (off) or more")
        if rrf_k < 0:
            raise UsageError(f"rrf_k={rrf_k}: it is 0 or more")
        self.fusion = fusion
        self.rrf_k = rrf_k
        self.dense = Dense(model=model, chunk=chunk, cache=cache)
        self.legs: list[tuple[float, Scored]] = [
            (1 - weight, Bm25(k1=k1, b=b, cache=cache)),
            (weight, self.dense),
        ]
        if graph > 0:
            self.legs.append((graph, EntityGraph(cache=cache)))

    def identity(self) -> dict[str, Any]:
        return self.dense.identity()

    def reset(self, scope: str) -> None:
        super().reset(scope)
        for _, leg in self.legs:
            leg.reset(scope)

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        for _, leg in self.legs:
            leg.remember(memories)
        return super().remember(memories)

    def forget(self, selector: Selector) -> None:
        for _, leg in self.legs:
            leg.forget(selector)
        super().forget(selector)

    def fork(self) -> Self:
        twin = super().fork()
        twin.legs = [(weight, leg.fork()) for weight, leg in self.legs]
        return twin

    def index(self, memories: Sequence[Memory]) -> None:
        for _, leg in self.legs:
            leg.ready()

    def scores(self, query: Query) -> FloatArray:
        fuse = self._minmax if self.fusion == "minmax" else self._reciprocal
        total = np.zeros(len(self.memories), dtype=np.float32)
        found = np.zeros(len(self.memories), dtype=bool)
        for weight, leg in self.legs:
            own = leg.scores(query)
            total += weight * fuse(own, leg.floor)
            found |= (own > leg.floor) & (weight > 0)
        # A leg's last hit has a min–max score of 0, like what no leg has found at all.
        return np.where(found, total, -np.inf).astype(np.float32)

    def stats(self) -> dict[str, int]:
        merged: dict[str, int] = {}
        for _, leg in self.legs:
            for key, value in leg.stats().items():
                merged[key] = merged.get(key, 0) + value
        return merged

    def _minmax(self, scores: FloatArray, floor: float) -> FloatArray:
        low, high = scores.min(), scores.max()
        return np.zeros_like(scores) if low == high else (scores - low) / (high - low)

    def _reciprocal(self, scores: FloatArray, floor: float) -> FloatArray:
        """1 / (k + rank) among those a leg found; ranking its misses would be noise."""
        order = np.argsort(-scores, kind="stable")
        ranks = np.empty(len(scores), dtype=np.float32)
        ranks[order] = np.arange(1, len(scores) + 1, dtype=np.float32)
        return np.where(scores > floor, 1 / (self.rrf_k + ranks), 0).astype(np.float32)
