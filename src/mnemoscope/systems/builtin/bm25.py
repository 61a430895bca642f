"""Lexical search: bm25s over English stems without stop words, or over plain words."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from mnemoscope._store.errors import UsageError
from mnemoscope.systems.builtin.scored import FloatArray, Scored, TokenCache
from mnemoscope.text.tokenize import stems
from mnemoscope.types import Memory, Query

# bm25s imports numba, scipy and tqdm (with asyncio) if they are installed, which takes longer than
# the rest of a small run, and uses none here. None in sys.modules makes an import fail as if they
# were absent.
_modules: dict[str, Any] = sys.modules
_hidden = {name: _modules.get(name) for name in ("numba", "scipy", "tqdm")}
_modules.update(dict.fromkeys(_hidden))
try:
    import bm25s
finally:
    for _name, _module in _hidden.items():
        del _modules[_name]
        if _module is not None:
            _modules[_name] = _module

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

    def index(self, memories: Sequence[Memory]) -> None:
        tokens = self._tokens.of([memory.text for memory in memories])
        self._empty = not any(tokens)
        # A new one even if nothing is left to index: the old one would keep forgotten words.
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
        return {
            "index_bytes": size,
            "texts_tokenised": self._tokens.computed,
            "tokens_reused": self._tokens.reused,
        }
