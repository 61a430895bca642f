"""Lexical search: bm25s over English stems with stop words dropped, or over plain words."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.scored import FloatArray, Scored
from mnemoscope.systems.builtin.token_cache import TokenCache
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Memory, Query


@contextmanager
def _hidden(*packages: str) -> Iterator[None]:
    """As if these were not installed."""
    modules: dict[str, Any] = sys.modules
    kept = {name: modules[name] for name in packages if name in modules}
    modules.update(dict.fromkeys(packages))
    try:
        yield
    finally:
        for name in packages:
            del modules[name]
        modules.update(kept)


# It imports them where they are, which takes longer than the rest of a small run, and uses neither.
with _hidden("numba", "scipy"):
    import bm25s

_PLAIN = re.compile("[a-z0-9]+")


def plain_words(text: str) -> list[str]:
    """Words as the simplest published baselines cut them: no stop words, no stems."""
    return _PLAIN.findall(text.lower())


class Bm25(Scored):
    """The plain baseline that headline numbers have to beat."""

    def __init__(
        self,
        k1: float = 1.5,
        b: float = 0.75,
        cache: bool = True,
        tokens: Literal["stems", "plain"] = "stems",
    ) -> None:
        if not k1 >= 0:
            raise UsageError(f"k1={k1}: it is 0 or more")
        if not 0 <= b <= 1:
            raise UsageError(f"b={b}: it is between 0 and 1")
        self.k1 = k1
        self.b = b
        self._tokenise = {"stems": stems, "plain": plain_words}[tokens]
        self._tokens = TokenCache(self._tokenise, f"{tokens}-1", on_disk=cache)

    def index(self, memories: Sequence[Memory]) -> None:
        tokens = self._tokens.of([memory.text for memory in memories])
        self._empty = not any(tokens)
        # Anew even where nothing is left to index: an old one would keep forgotten words.
        self._bm25 = bm25s.BM25(k1=self.k1, b=self.b)
        if not self._empty:
            self._bm25.index(tokens, show_progress=False)

    def scores(self, query: Query) -> FloatArray:
        known = [] if self._empty else self._bm25.get_tokens_ids(self._tokenise(query.text))
        if not known:
            return np.zeros(len(self.memories), dtype=np.float32)
        found: FloatArray = self._bm25.get_scores_from_ids(known)
        return found

    def stats(self) -> dict[str, int]:
        arrays: dict[str, Any] = {} if self._empty else self._bm25.scores
        size = sum(value.nbytes for value in arrays.values() if isinstance(value, np.ndarray))
        return {"index_bytes": size, **self._tokens.counters()}
