"""Nexus's memory API in process: one agent a scope, our ids as path keys."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any, Literal

from .common import NO_TIME, Endpoint, MemoryAdapter, scratch

_PLACE = "memories"
_KEYWORD = (
    "keyword search looks at the first 3 × k memories only, in the order of the database, "
    "as Nexus does"
)


class Nexus(MemoryAdapter):
    """Whole texts, scored one by one.

    `search` is Nexus's search mode: hybrid is 0.7 cosine + 0.3 share of the question's words.
    """

    packages = ("nexus-ai-fs",)

    def __init__(self, search: Literal["hybrid", "semantic", "keyword"] = "hybrid") -> None:
        super().__init__(search=search)
        self._search = search
        self._vectors = _Vectors(self._endpoint)
        self._nexus: Any = None
        if search == "keyword":
            self.notes = (NO_TIME, _KEYWORD)

    def reset(self, scope: str) -> None:
        import nexus
        from nexus.core.entity_registry import EntityRegistry
        from nexus.core.memory_api import Memory

        self.close()
        # It warns about missing sandboxes each time it is opened.
        logging.getLogger("nexus").setLevel(logging.ERROR)
        self._folder = scratch()
        self._nexus = nexus.connect(
            config={"mode": "embedded", "data_dir": str(self._folder), "auto_parse": False}
        )
        sessions = self._nexus.metadata.SessionLocal
        self._memory = Memory(
            session=sessions(),
            backend=self._nexus.backend,
            user_id=scope,
            agent_id=scope,
            entity_registry=EntityRegistry(sessions),
        )

    def remember(self, memories: Sequence[Any]) -> None:
        texts = [memory.text for memory in memories]
        # Nexus embeds one text at a time and stores it without a vector if that fails.
        self._vectors.prepare(texts)
        for memory, text in zip(memories, texts, strict=True):
            self._memory.store(
                text, namespace=_PLACE, path_key=memory.id, embedding_provider=self._vectors
            )

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        found = self._memory.search(
            query.text, limit=k, search_mode=self._search, embedding_provider=self._vectors
        )
        return [{"id": one["path_key"], "score": one["score"]} for one in found]

    def forget(self, selector: Any) -> None:
        for id in selector.ids:
            stored = self._memory.retrieve(namespace=_PLACE, path_key=id)
            if stored is None:
                continue
            self._memory.delete(stored["memory_id"])
            # Deleting a memory leaves its text in a file.
            self._nexus.backend.delete_content(stored["content_hash"])

    def close(self) -> None:
        if self._nexus is not None:
            self._memory.session.close()
            self._nexus.close()


class _Vectors:
    """An embedding provider for Nexus, with vectors made in batches."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._endpoint = endpoint
        self._prepared: dict[str, list[float]] = {}

    @property
    def model(self) -> str:
        return self._endpoint.embedder

    def prepare(self, texts: Sequence[str]) -> None:
        self._prepared = dict(zip(texts, self._endpoint.embed(list(texts)), strict=True))

    async def embed_text(self, text: str) -> list[float]:
        known = self._prepared.get(text)
        return self._endpoint.embed([text])[0] if known is None else known
