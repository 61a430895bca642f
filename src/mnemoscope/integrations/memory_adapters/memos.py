"""MemOS general_text memory: one collection a scope, our ids in the tags of its items."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

from .common import NO_TIME, MemoryAdapter, bytes_in, scratch, uuid_of


class MemOS(MemoryAdapter):
    """Unchanged texts by cosine, in Qdrant in process. It returns no scores."""

    packages = ("MemoryOS", "qdrant-client")
    provenance = "tags"
    notes = (
        NO_TIME,
        "only the general_text memory of MemOS is used, without a language model: texts are stored "
        "unchanged; its tree memory needs a graph database",
    )

    def __init__(self) -> None:
        super().__init__(memory="general_text")
        self._memory: Any = None

    def reset(self, scope: str) -> None:
        self.close()
        self._folder = scratch("memos")
        # It writes its log below this folder; the default is the working folder.
        os.environ["MEMOS_BASE_PATH"] = str(self._folder / "log")
        from memos.configs.memory import GeneralTextMemoryConfig
        from memos.memories.textual.general import GeneralTextMemory

        self._memory = GeneralTextMemory(
            GeneralTextMemoryConfig(
                # Used by extract() only, which is not called.
                extractor_llm={
                    "backend": "openai",
                    "config": {
                        "model_name_or_path": "none",
                        "api_key": self._endpoint.key,
                        "api_base": self._endpoint.url,
                    },
                },
                embedder={
                    "backend": "universal_api",
                    "config": {
                        "provider": "openai",
                        "model_name_or_path": self._endpoint.embedder,
                        "api_key": self._endpoint.key,
                        "base_url": self._endpoint.url,
                        # Otherwise it truncates texts silently.
                        "max_tokens": None,
                    },
                },
                vector_db={
                    "backend": "qdrant",
                    "config": {
                        "collection_name": self._folder.name,
                        "vector_dimension": self._endpoint.dimensions,
                        "distance_metric": "cosine",
                        "path": str(self._folder / "qdrant"),
                    },
                },
            )
        )

    def remember(self, memories: Sequence[Any]) -> None:
        items = [
            {
                "id": uuid_of(memory.id),
                "memory": memory.text,
                "metadata": {"tags": [memory.id], "session_id": memory.session},
            }
            for memory in memories
        ]
        if items:
            self._memory.add(items)

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        return [{"id": item.metadata.tags[0]} for item in self._memory.search(query.text, k)]

    def forget(self, selector: Any) -> None:
        self._memory.delete([uuid_of(id) for id in selector.ids])

    def stats(self) -> dict[str, int]:
        return {"index_bytes": bytes_in(self._folder / "qdrant")}

    def close(self) -> None:
        if self._memory is not None:
            self._memory.vector_db.client.close()
