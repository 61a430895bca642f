"""Systems that give every memory a score: the shared way from scores to hits.

Equal scores keep the memories' own order, so the same scores always give the same ranking.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

FloatArray = NDArray[np.float32]


class Scored(ABC):
    """Indexes what it remembers before the first recall, and ranks by score."""

    def reset(self, scope: str) -> None:
        self.memories: list[Memory] = []
        self._stale = False

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        self.memories.extend(memories)
        self._stale = True
        return None

    def ready(self) -> None:
        if self._stale:
            self.index(self.memories)
            self._stale = False

    def recall(self, query: Query, k: int) -> list[Hit]:
        self.ready()
        if not self.memories:
            return []
        scores = self.scores(query)
        places = np.argsort(-scores, kind="stable")[:k]
        best = scores[places]
        found = np.count_nonzero(best > self.floor)
        rounded = best[:found].astype(np.float64).round(6).tolist()
        return [
            Hit(self.memories[place].id, score)
            for place, score in zip(places[:found].tolist(), rounded, strict=True)
        ]

    def forget(self, selector: Selector) -> None:
        """Drop the memories and index what is left, as if they had never been given."""
        gone = selector.ids
        self.memories = [memory for memory in self.memories if memory.id not in gone]
        self._stale = True

    def fork(self) -> Self:
        """A copy that goes its own way; the index is shared, since indexing makes a new one."""
        self.ready()
        twin = copy.copy(self)
        twin.memories = list(self.memories)
        return twin

    floor = 0.0
    """A memory scored no higher than this is not recalled."""

    @abstractmethod
    def index(self, memories: Sequence[Memory]) -> None: ...

    @abstractmethod
    def scores(self, query: Query) -> FloatArray: ...

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """`index_bytes` and whatever else the system counted since it was built."""
