"""Semantic search: embeddings of chunks; a memory scores as its best chunk.

Long texts are split into chunks. `truncate` cuts them instead, and the loss is in the receipt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import UsageError
from mnemoscope.models.cache import ContentCache, text_cache
from mnemoscope.models.embedders import embed_query, load_embedder
from mnemoscope.systems.builtin.growing_array import GrowingArray
from mnemoscope.systems.builtin.scored import FloatArray, Scored
from mnemoscope.text.tokenize import CHUNK_WORDS, CHUNKING, chunks
from mnemoscope.types import Memory, Query, Receipt


class Dense(Scored):
    """Exact cosine similarity over chunk vectors, without an approximate index."""

    floor = -np.inf

    def __init__(
        self,
        model: str = "wordllama",
        chunk: int = CHUNK_WORDS,
        truncate: int = 0,
        cache: bool = True,
    ) -> None:
        if chunk < 1:
            raise UsageError(f"chunk={chunk}: a chunk must have at least one word")
        if truncate < 0:
            raise UsageError(
                f"truncate={truncate}: must be the number of words to keep, or 0 to keep all"
            )
        self.chunk = chunk
        self.truncate = truncate
        self._embedder = load_embedder(model)
        self._dimensions = 0
        path = text_cache("vectors.sqlite") if cache else None
        self._cache = ContentCache(path, f"{self._embedder.identity()} {CHUNKING} {chunk}")

    def identity(self) -> dict[str, Any]:
        return {"embedder": self._embedder.identity()}

    def remember(self, memories: Sequence[Memory]) -> Receipt | None:
        super().remember(memories)
        lengths = {memory.id: len(memory.text.split()) for memory in memories if self.truncate}
        cut = {id: self.truncate / n for id, n in lengths.items() if n > self.truncate}
        return Receipt(truncated=cut) if cut else None

    def clear(self) -> None:
        self._vectors: GrowingArray | None = None
        self._starts = GrowingArray(np.int64)

    def add(self, memories: Sequence[Memory]) -> None:
        texts = [memory.text for memory in memories]
        if self.truncate:
            texts = [" ".join(text.split()[: self.truncate]) for text in texts]
        if not self._dimensions:
            self._dimensions = len(self._embedder.embed(["how long is a vector?"])[0])
        if self._vectors is None:
            self._vectors = GrowingArray(np.float32, (self._dimensions,))
        packed = self._cache.get_or_compute(texts, self._embed_each)
        vectors = np.frombuffer(b"".join(packed), dtype=np.float16).reshape(-1, self._dimensions)
        sizes = np.array([len(blob) for blob in packed]) // (2 * self._dimensions)
        self._starts.append(len(self._vectors.values) + np.cumsum(sizes) - sizes)
        self._vectors.append(vectors)

    def keep(self, kept: NDArray[np.bool_]) -> None:
        assert self._vectors is not None
        starts = self._starts.values
        sizes = np.diff(starts, append=len(self._vectors.values))
        self._vectors.keep(np.repeat(kept, sizes))
        sizes = sizes[kept]
        self._starts = GrowingArray(np.int64)
        self._starts.append(np.cumsum(sizes) - sizes)

    def fork_index(self) -> Self:
        twin = super().fork_index()
        twin._vectors = self._vectors and self._vectors.fork()
        twin._starts = self._starts.fork()
        return twin

    def scores(self, query: Query) -> FloatArray:
        best: FloatArray = np.maximum.reduceat(self.similar(query), self._starts.values)
        return best

    def similar(self, query: Query) -> FloatArray:
        """The cosine of each chunk to the query."""
        assert self._vectors is not None
        vector = embed_query(self._embedder, query.text)
        # Always one product of all vectors: the last bits of BLAS depend on the shape.
        product: FloatArray = self._vectors.values @ vector
        return product

    def stats(self) -> dict[str, int]:
        return {
            "index_bytes": self._vectors.values.nbytes if self._vectors else 0,
            "index_operations": self.index_operations,
            "texts_embedded": self._cache.computed,
            "vectors_reused": self._cache.reused,
        }

    def _embed_each(self, texts: list[str]) -> list[bytes]:
        """The chunk vectors of each text as float16 bytes; ranking uses half precision."""
        pieces = [chunks(text, self.chunk) for text in texts]
        vectors = self._embedder.embed([piece for own in pieces for piece in own])
        bounds = np.cumsum([len(own) for own in pieces])[:-1]
        return [part.astype(np.float16).tobytes() for part in np.split(vectors, bounds)]
