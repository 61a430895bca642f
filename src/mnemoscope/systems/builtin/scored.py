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

from mnemoscope.models.cache import ContentCache, text_cache
from mnemoscope.systems.builtin.growing_list import GrowingList
from mnemoscope.systems.plain_hits import PlainHits
from mnemoscope.systems.system_replies import are_usual_ids
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

FloatArray = NDArray[np.float32]
_BATCH = 16_384
"""Memories that are indexed at a time: their tokens or vectors are in memory together."""
_SORT_ALL = 200
"""Up to this many scores, sorting all is faster than finding the best first."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[str]).decode


class Scored(ABC):
    """Indexes what it remembers before the first recall, and ranks by score."""

    def reset(self, scope: str) -> None:
        self.memories: GrowingList[Memory] = GrowingList()
        self._ids: GrowingList[str] = GrowingList()
        self._ids_are_usual = True
        self._indexed = 0
        self.clear()

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        ids = [memory.id for memory in memories]
        self.memories.extend(memories)
        self._ids.extend(ids)
        self._ids_are_usual &= are_usual_ids(ids)
        return None

    def ready(self) -> None:
        """Index what was remembered since the last time."""
        new = self.memories.since(self._indexed)
        for start in range(0, len(new), _BATCH):
            self.add(new[start : start + _BATCH])
        self._indexed = len(self.memories)
        self.index_operations += len(new)

    def recall(self, query: Query, k: int) -> list[Hit]:
        return list(map(Hit, *self._ranked(query, k)))

    def plain_recall(self, query: Query, k: int) -> PlainHits | None:
        """The same without an object a hit; None if ids need the checks of other systems' ids."""
        return PlainHits(*self._ranked(query, k)) if self._ids_are_usual else None

    def _ranked(self, query: Query, k: int) -> tuple[list[str], list[float]]:
        """Ids and scores, best first."""
        if self._indexed < len(self.memories):
            self.ready()
        if not self.memories:
            return [], []
        scores = self.scores(query)
        places = best_places(scores, k, self.floor)
        rounded = scores[places].astype(np.float64).round(6).tolist()
        return self._ids.at(places.tolist()), rounded

    def forget(self, selector: Selector) -> None:
        """Remove the memories from the list and from the index."""
        self.ready()
        gone = selector.ids
        kept = np.array([memory.id not in gone for memory in self.memories], dtype=bool)
        if not kept.all():
            self.memories = GrowingList(memory for memory in self.memories if memory.id not in gone)
            self._ids = GrowingList(memory.id for memory in self.memories)
            self._indexed = len(self.memories)
            self.keep(kept)

    def fork(self) -> Self:
        """An independent copy that shares the index until one of the two adds or forgets."""
        self.ready()
        twin = self.fork_index()
        twin.memories, twin._ids = self.memories.fork(), self._ids.fork()
        return twin

    floor = 0.0
    """A memory is recalled only if its score is higher than this."""
    index_operations = 0
    """How many memories were added to an index since the system was built."""

    @abstractmethod
    def clear(self) -> None:
        """Begin with an empty index."""

    @abstractmethod
    def add(self, memories: Sequence[Memory]) -> None:
        """Index further memories."""

    @abstractmethod
    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Remove the other memories from the index, and all that only they contain."""

    def fork_index(self) -> Self:
        """A copy whose index changes independently."""
        return copy.copy(self)

    @abstractmethod
    def scores(self, query: Query) -> FloatArray: ...

    @abstractmethod
    def stats(self) -> dict[str, int]:
        """`index_bytes`, and the counters since the system was built."""


def best_places(scores: FloatArray, k: int, floor: float) -> NDArray[np.int64]:
    """The places of the k highest scores above the floor, best first, equal ones in order."""
    if len(scores) <= _SORT_ALL:
        places = (-scores).argsort(kind="stable")[:k]
        # The scores are in descending order, and most lists end above the floor.
        if len(places) and not scores[places[-1]] > floor:
            places = places[: np.count_nonzero(scores[places] > floor)]
        return places
    places = (scores > floor).nonzero()[0]
    found = scores[places]
    if 0 < k < len(found):
        # All that are as good as the k-th, so that of equal scores the first in order are chosen.
        is_good = found >= np.partition(found, len(found) - k)[len(found) - k]
        places, found = places[is_good], found[is_good]
    return places[(-found).argsort(kind="stable")[:k]]


class TokenCache(ContentCache):
    """A tokeniser whose results all worker processes share: each text is tokenised once."""

    def __init__(
        self, tokenise: Callable[[str], list[str]], namespace: str, *, on_disk: bool = True
    ) -> None:
        place = text_cache("tokens.sqlite") if on_disk else None
        super().__init__(place, namespace)
        self._tokenise = tokenise
        self._known: dict[str, list[str]] | None = None if place or self._is_off else {}

    def of(self, texts: Sequence[str]) -> list[list[str]]:
        if self._known is not None:
            return self._in_memory(self._known, texts)
        packed = self.get_or_compute(
            texts, lambda missing: [_encode(self._tokenise(text)) for text in missing]
        )
        return [_decode(blob) for blob in packed]

    def _in_memory(self, known: dict[str, list[str]], texts: Sequence[str]) -> list[list[str]]:
        before = len(known)
        for text in texts:
            if text not in known:
                known[text] = self._tokenise(text)
        fresh = len(known) - before
        self.computed += fresh
        self.reused += len(texts) - fresh
        return [known[text] for text in texts]

    def close(self) -> None:
        super().close()
        if self._known is not None:
            self._known.clear()
