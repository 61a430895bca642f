"""Multi-hop search: personalised PageRank over memories that share entities.

Entities are names (capitalised inside a sentence), numbers and rare words. A walk starts at the
question's entities and alternates between entities and the memories that mention them, so a memory
is found through another memory that shares a name with it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.scored import FloatArray, Scored, TokenCache
from mnemoscope.text.english import STOP_WORDS
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Memory, Query

_NAME = re.compile(r"(?<=[\w,;] )[A-Z]\w+|\b\w*\d\w*\b")
_ITERATIONS = 20


def entities(text: str) -> list[str]:
    """Stems of names and numbers, marked, followed by the stems of all words."""
    names = " ".join(name for name in _NAME.findall(text) if name.lower() not in STOP_WORDS)
    return [f"!{stem}" for stem in stems(names)] + stems(text)


class EntityGraph(Scored):
    """Ranks memories by the stationary probability of the walk."""

    def __init__(self, restart: float = 0.5, rare: float = 0.1, cache: bool = True) -> None:
        if not 0 <= restart <= 1:
            raise UsageError(
                f"restart={restart}: the walk's restart probability must be between 0 and 1"
            )
        if not 0 <= rare <= 1:
            raise UsageError(
                f"rare={rare}: the share of memories with a rare word must be between 0 and 1"
            )
        self.restart = restart
        self.rare = rare
        self._tokens = TokenCache(entities, "entities-1", on_disk=cache)

    def clear(self) -> None:
        self._mentions: list[Counter[str]] = []

    def add(self, memories: Sequence[Memory]) -> None:
        new = map(Counter, self._tokens.of([memory.text for memory in memories]))
        self._mentions = [*self._mentions, *new]
        self._connect()

    def keep(self, kept: NDArray[np.bool_]) -> None:
        self._mentions = [
            own for own, stays in zip(self._mentions, kept.tolist(), strict=True) if stays
        ]
        self._connect()

    def _connect(self) -> None:
        mentions = memories = self._mentions
        frequency = Counter(entity for own in mentions for entity in own)
        names = {entity[1:] for entity in frequency if entity.startswith("!")}
        limit = max(2, self.rare * len(memories))
        kept = sorted(
            stem
            for stem, n in frequency.items()
            if not stem.startswith("!") and (stem in names or n <= limit) and n < len(memories)
        )
        self._place = {entity: place for place, entity in enumerate(kept)}
        self._idf = np.array(
            [np.log(1 + len(memories) / frequency[entity]) for entity in kept], dtype=np.float32
        )
        edges = [
            (memory, self._place[entity])
            for memory, own in enumerate(mentions)
            for entity in own
            if entity in self._place
        ]
        pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
        self._memory_of, self._entity_of = pairs[:, 0], pairs[:, 1]
        weight = self._idf[self._entity_of] if len(pairs) else np.zeros(0, dtype=np.float32)
        self._to_memory = weight / _sums(self._entity_of, weight, len(kept))[self._entity_of]
        self._to_entity = weight / _sums(self._memory_of, weight, len(memories))[self._memory_of]

    def scores(self, query: Query) -> FloatArray:
        seeds = [self._place[stem] for stem in set(stems(query.text)) if stem in self._place]
        if not seeds:
            return np.zeros(len(self._mentions), dtype=np.float32)
        start = np.zeros(len(self._place), dtype=np.float32)
        start[sorted(seeds)] = self._idf[sorted(seeds)]
        start /= start.sum()
        walk = start
        for _ in range(_ITERATIONS):
            at_memories = self._step(walk)
            back = _sums(
                self._entity_of, at_memories[self._memory_of] * self._to_entity, len(start)
            )
            walk = self.restart * start + (1 - self.restart) * back
        return self._step(walk)

    def stats(self) -> dict[str, int]:
        size = self._memory_of.nbytes + self._entity_of.nbytes + self._to_memory.nbytes * 2
        return {
            "index_bytes": size,
            "index_operations": self.index_operations,
            "texts_tokenised": self._tokens.computed,
            "tokens_reused": self._tokens.reused,
        }

    def _step(self, walk: FloatArray) -> FloatArray:
        return _sums(self._memory_of, walk[self._entity_of] * self._to_memory, len(self._mentions))


def _sums(places: NDArray[np.int64], values: FloatArray, size: int) -> FloatArray:
    return np.bincount(places, weights=values, minlength=size).astype(np.float32)
