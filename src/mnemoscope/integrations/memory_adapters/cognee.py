"""cognee: one dataset a scope, one document a memory, which carries our id."""

from __future__ import annotations

import os
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from uuid import UUID

from .common import NO_TIME, Endpoint, MemoryAdapter, bytes_in, scratch, uuid_of


class Cognee(MemoryAdapter):
    """Vector search over chunks (SearchType.CHUNKS) after `add` and `cognify`.

    `chunk_tokens` is the longest chunk; with 0 cognee chooses it by the embedder.
    """

    packages = ("cognee", "lancedb", "ladybug")
    provenance = "tags"
    notes = (
        NO_TIME,
        "chunks are searched, not the graph: the language model affects the graph, not the chunks "
        "that come back",
    )

    def __init__(self, chunk_tokens: int = 0) -> None:
        super().__init__(search="CHUNKS", chunk_tokens=chunk_tokens)
        self._chunk_tokens = chunk_tokens
        self._dataset = ""
        self._root: Path | None = None
        self._stored: set[str] = set()

    async def reset(self, scope: str) -> None:
        if self._root is None:
            self._root = _configured(self._endpoint)
        elif self._stored:
            import cognee

            await cognee.forget(dataset=self._dataset)
        self._dataset = scratch("dataset").name
        self._stored = set()

    async def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        import cognee
        from cognee.tasks.ingestion.data_item import DataItem

        texts = {memory.id: memory.text for memory in memories}
        rejected = {id: "cognee takes no empty text" for id in texts if not texts[id].strip()}
        items = [
            DataItem(data=text, data_id=self._uuid(id), node_set=[id], literal_text=True)
            for id, text in texts.items()
            if id not in rejected
        ]
        if items:
            await cognee.add(items, dataset_name=self._dataset)
            await cognee.cognify(datasets=[self._dataset], chunk_size=self._chunk_tokens or None)
            self._stored |= texts.keys() - rejected.keys()
        return {"rejected": rejected}

    async def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        import cognee
        from cognee import SearchType

        if not self._stored:
            return []
        wanted = k
        while True:
            answers = await cognee.search(
                query.text,
                query_type=SearchType.CHUNKS,
                datasets=[self._dataset],
                top_k=wanted,
            )
            found = [chunk for answer in answers for chunk in answer["search_result"]]
            hits: dict[str, dict[str, Any]] = {}
            for chunk in found:
                for id in chunk["belongs_to_set"]:
                    # cognee's score is a distance.
                    hit = hits.setdefault(id, {"id": id, "score": 1 - chunk["score"], "text": ""})
                    hit["text"] += chunk["text"]
            # Several chunks may belong to one memory; k counts memories.
            if len(hits) >= k or len(found) < wanted:
                return list(hits.values())[:k]
            wanted *= 2

    async def forget(self, selector: Any) -> None:
        import cognee

        for id in sorted(selector.ids & self._stored):
            await cognee.forget(data_id=self._uuid(id), dataset=self._dataset)
            self._stored.remove(id)

    def stats(self) -> dict[str, int]:
        return {"index_bytes": bytes_in(self._root) if self._root else 0}

    def _uuid(self, id: str) -> UUID:
        return UUID(uuid_of(self._dataset, id))


def _configured(endpoint: Endpoint) -> Path:
    """Set the settings that cognee reads at its import; returns the folder it writes to."""
    folder = scratch("cognee")
    settings = folder / "settings.env"
    settings.touch()
    spec = find_spec("litellm")
    assert spec is not None and spec.submodule_search_locations
    os.environ |= {
        # An empty file: otherwise the first .env in a folder above overrides these settings.
        "COGNEE_ENV_FILE": str(settings),
        "TELEMETRY_DISABLED": "1",
        "COGNEE_TRACING_ENABLED": "false",
        "COGNEE_LOG_FILE": "false",
        "COGNEE_LOGS_DIR": str(folder / "logs"),
        "COGNEE_SKIP_CONNECTION_TEST": "true",
        "DATA_ROOT_DIRECTORY": str(folder / "data"),
        "SYSTEM_ROOT_DIRECTORY": str(folder / "system"),
        "CACHE_ROOT_DIRECTORY": str(folder / "cache"),
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        "TIKTOKEN_CACHE_DIR": str(
            Path(spec.submodule_search_locations[0]) / "litellm_core_utils" / "tokenizers"
        ),
        "LLM_PROVIDER": "custom",
        "LLM_MODEL": f"openai/{endpoint.llm}",
        "LLM_ENDPOINT": endpoint.url,
        "LLM_API_KEY": endpoint.key,
        "EMBEDDING_PROVIDER": "openai_compatible",
        "EMBEDDING_MODEL": endpoint.embedder,
        "EMBEDDING_ENDPOINT": endpoint.url,
        "EMBEDDING_API_KEY": endpoint.key,
        "EMBEDDING_DIMENSIONS": str(endpoint.dimensions),
    }
    return folder
