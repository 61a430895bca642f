"""WordLlama's static token vectors, pooled by the mean: the default embedder, offline and fast.

Only the wheel's data files are read. Importing the package itself would switch the root logger to
INFO and pull in an HTTP client.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mnemoscope.models.embedders import package_folder, require, unit_rows, weights_sha256

_INSTALL = "pip install wordllama"
_MODEL = "l2_supercat"
_DIMENSIONS = 256
# About 40 MB of remembered pieces; a vocabulary beyond that starts again from nothing.
_MEMO_PIECES = 200_000


class WordLlamaEmbedder:
    """The mean of a text's token vectors, as `WordLlama.embed(norm=True)` computes it."""

    name = "wordllama"

    def __init__(self) -> None:
        folder = package_folder("wordllama", "the wordllama embedder", _INSTALL)
        require(("tokenizers", "safetensors"), "the wordllama embedder", _INSTALL)
        self._weights = folder / "weights" / f"{_MODEL}_{_DIMENSIONS}.safetensors"
        self._tokenizer = folder / "tokenizers" / f"{_MODEL}_tokenizer_config.json"

    def identity(self) -> dict[str, str | int]:
        return {
            "model": f"wordllama {_MODEL}",
            "dimensions": _DIMENSIONS,
            "package": f"wordllama {version('wordllama')}",
            "weights_sha256": weights_sha256(self._weights),
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        table, tokenise = self._table, self._tokenise
        rows = np.zeros((len(texts), _DIMENSIONS), np.float32)
        # Text by text: nothing is shared between rows, memory stays at one text's tokens, and it
        # takes a sixteenth of np.add.reduceat's time, which sums column by column.
        for row, text in zip(rows, texts, strict=True):
            if tokens := tokenise(text):
                np.add.reduce(table.take(tokens, axis=0), axis=0, out=row)
                row /= np.float32(len(tokens))
        return unit_rows(rows)

    @functools.cached_property
    def _table(self) -> NDArray[np.float32]:
        from safetensors.numpy import load_file

        table: NDArray[Any] = load_file(self._weights)["embedding.weight"]
        return table.astype(np.float32)

    @functools.cached_property
    def _tokenise(self) -> Callable[[str], list[int]]:
        from tokenizers import Tokenizer

        return _PieceTokenizer(Tokenizer.from_file(str(self._tokenizer)))


class _PieceTokenizer:
    """Llama 2's tokenizer with a memory for pieces, five times as fast as `encode_batch`.

    In this vocabulary a space (written ▁) stands only at the beginning of a token, so no merge
    reaches from a word into the space behind it, and tokenising word by word gives the same ids.
    """

    def __init__(self, tokenizer: Any) -> None:
        self._tokenizer = tokenizer
        self._pieces = re.compile("▁+[^▁]*").findall
        special = tokenizer.get_added_tokens_decoder().values()
        self._special = re.compile("|".join(re.escape(token.content) for token in special)).search
        self._memo = _PieceMemo(tokenizer.model.tokenize)

    def __call__(self, text: str) -> list[int]:
        if not text:
            return []
        if self._special(text):
            ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
            return ids
        pieces = self._pieces("▁" + text.replace(" ", "▁"))
        return list(chain.from_iterable(map(self._memo.__getitem__, pieces)))


class _PieceMemo(dict[str, list[int]]):
    def __init__(self, tokenise: Callable[[str], Iterable[Any]]) -> None:
        super().__init__()
        self._tokenise = tokenise

    def __missing__(self, piece: str) -> list[int]:
        if len(self) >= _MEMO_PIECES:
            self.clear()
        ids = self[piece] = [token.id for token in self._tokenise(piece)]
        return ids
