"""Lexical search: BM25 over English stems without stop words, or over plain words.

The scores are those of bm25s to the last bit, which tests compare (docs/decisions/0025).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.bm25_index import Bm25Index
from mnemoscope.systems.builtin.scored import FloatArray, Scored, TokenCache
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Memory, Query

_PLAIN = re.compile("[a-z0-9]+")


def plain_words(text: str) -> list[str]:
    """Words as the simplest published baselines split them: stop words kept, not stemmed."""
    return _PLAIN.findall(text.lower())


class Bm25(Scored):
    """The lexical baseline."""

    def __init__(
        self,
        k1: float = 1.5,
        b: float = 0.75,
        cache: bool = True,
        tokens: Literal["stems", "plain"] = "stems",
    ) -> None:
        if not k1 >= 0:
            raise UsageError(f"k1={k1}: must be 0 or more")
        if not 0 <= b <= 1:
            raise UsageError(f"b={b}: must be between 0 and 1")
        self.k1 = k1
        self.b = b
        self._tokenise = {"stems": stems, "plain": plain_words}[tokens]
        self._tokens = TokenCache(self._tokenise, f"{tokens}-1", on_disk=cache)

    def clear(self) -> None:
        self._index = Bm25Index(self.k1, self.b)

    def add(self, memories: Sequence[Memory]) -> None:
        self._index.add(self._tokens.of([memory.text for memory in memories]))

    def keep(self, kept: NDArray[np.bool_]) -> None:
        self._index.keep(kept)

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin._index = self._index.fork()
        return twin

    def scores(self, query: Query) -> FloatArray:
        return self._index.scores(self._tokenise(query.text))

    def stats(self) -> dict[str, int]:
        return {
            "index_bytes": self._index.nbytes,
            "index_operations": self.index_operations,
            "texts_tokenised": self._tokens.computed,
            "tokens_reused": self._tokens.reused,
        }
