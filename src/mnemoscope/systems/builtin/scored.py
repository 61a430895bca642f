"""The base of systems that score every memory, and the token cache that they share.

Memories with equal scores keep their order, so the same scores always give the same ranking.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Self

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.cache import ContentCache, default_cache_dir
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

FloatArray = NDArray[np.float32]
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode


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
        """Remove the memories, and index the rest before the next recall."""
        gone = selector.ids
        self.memories = [memory for memory in self.memories if memory.id not in gone]
        self._stale = True

    def fork(self) -> Self:
        """An independent copy; it shares the index, because indexing makes a new one."""
        self.ready()
        twin = copy.copy(self)
        twin.memories = list(self.memories)
        return twin

    floor = 0.0
    """A memory is recalled only if its score is higher than this."""

    @abstractmethod
    def index(self, memories: Sequence[Memory]) -> None: ...

    @abstractmethod
    def scores(self, query: Query) -> FloatArray: ...

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """`index_bytes`, and the counters since the system was built."""


class TokenCache(ContentCache):
    """A tokeniser whose results all worker processes share: each text is tokenised once."""

    def __init__(
        self, tokenise: Callable[[str], list[str]], namespace: str, *, on_disk: bool = True
    ) -> None:
        super().__init__(default_cache_dir() / "tokens.sqlite" if on_disk else None, namespace)
        self._tokenise = tokenise

    def of(self, texts: Sequence[str]) -> list[list[str]]:
        packed = self.get_or_compute(
            texts, lambda missing: [_encode(self._tokenise(text)) for text in missing]
        )
        return [_decode(blob) for blob in packed]
