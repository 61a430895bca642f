"""Qdrant in process: one collection a scope, our ids in the payload."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .common import MemoryAdapter, uuid_of

_COLLECTION = "memories"


class Qdrant(MemoryAdapter):
    """Exact cosine over whole texts. `threshold` drops hits below a similarity; 0 drops none."""

    packages = ("qdrant-client",)
    provenance = "payload"

    def __init__(self, threshold: float = 0.0, storage: str = "") -> None:
        super().__init__(storage, threshold=threshold)
        self._threshold = threshold
        self._client: Any = None
        if self._has_files():
            self._open()

    def _open(self) -> None:
        from qdrant_client import QdrantClient

        self._client = QdrantClient(path=str(self._folder))

    def reset(self, scope: str) -> None:
        from qdrant_client.models import Distance, VectorParams

        self.close()
        self._folder = self._empty_folder()
        self._open()
        vectors = VectorParams(size=self._endpoint.dimensions, distance=Distance.COSINE)
        self._client.create_collection(_COLLECTION, vectors_config=vectors)

    def remember(self, memories: Sequence[Any]) -> None:
        from qdrant_client.models import PointStruct

        points = [
            PointStruct(
                id=uuid_of(memory.id), vector=vector, payload={"id": memory.id, "text": text}
            )
            for memory, text, vector in self._endpoint.embed_memories(memories)
        ]
        if points:
            self._client.upsert(_COLLECTION, points=points)

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        found = self._client.query_points(
            _COLLECTION,
            query=self._endpoint.embed([query.text])[0],
            limit=k,
            score_threshold=self._threshold or None,
        )
        return [{"id": p.payload["id"], "score": p.score} for p in found.points]

    def forget(self, selector: Any) -> None:
        from qdrant_client.models import PointIdsList

        points: list[Any] = [uuid_of(id) for id in selector.ids]
        self._client.delete(_COLLECTION, points_selector=PointIdsList(points=points))

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
