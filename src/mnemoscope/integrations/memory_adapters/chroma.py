"""Chroma in process: a collection in its own folder, our ids as Chroma's."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

from .common import NO_TIME, MemoryAdapter

_COLLECTION = "memories"
_DELETED = 3
"""The code of a deletion in Chroma's log."""


class Chroma(MemoryAdapter):
    """HNSW by cosine over whole texts; `search_ef` is the size of the search's candidate list."""

    packages = ("chromadb",)
    notes = (
        NO_TIME,
        "forgetting also clears Chroma's log, where its deletion leaves texts",
    )

    def __init__(self, search_ef: int = 100, storage: str = "") -> None:
        super().__init__(storage, space="cosine", search_ef=search_ef)
        self._search_ef = search_ef
        self._client: Any = None
        if self._has_files():
            self._open()

    def reset(self, scope: str) -> None:
        self.close()
        self._folder = self._empty_folder()
        self._open()

    def _open(self) -> None:
        import chromadb
        from chromadb.config import Settings

        settings = Settings(anonymized_telemetry=False)
        self._client = chromadb.PersistentClient(str(self._folder), settings)
        self._collection = self._client.get_or_create_collection(
            _COLLECTION,
            configuration={"hnsw": {"space": "cosine", "ef_search": self._search_ef}},
            embedding_function=None,  # the default one would be downloaded
        )

    def remember(self, memories: Sequence[Any]) -> None:
        most = self._client.get_max_batch_size()
        for start in range(0, len(memories), most):
            batch = self._endpoint.embed_memories(memories[start : start + most])
            self._collection.upsert(
                ids=[memory.id for memory, _, _ in batch],
                documents=[text for _, text, _ in batch],
                embeddings=[vector for _, _, vector in batch],
            )

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        found = self._collection.query(
            query_embeddings=self._endpoint.embed([query.text]),
            n_results=k,
            include=["distances"],
        )
        return [
            {"id": id, "score": 1 - distance}
            for id, distance in zip(found["ids"][0], found["distances"][0], strict=True)
        ]

    def forget(self, selector: Any) -> None:
        """Delete the records, and the texts that Chroma's deletion leaves in its file."""
        gone = sorted(selector.ids)
        if not gone:
            return
        self._collection.delete(ids=gone)
        with closing(sqlite3.connect(self._folder / "chroma.sqlite3")) as db:
            # The deletions stay in the log: the index reads them with the next query.
            clear = "DELETE FROM embeddings_queue WHERE id = ? AND operation != ?"
            with db:
                db.executemany(clear, [(id, _DELETED) for id in gone])
            db.execute("VACUUM")

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
