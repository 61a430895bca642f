"""LlamaIndex: one VectorStoreIndex a scope, our ids as the ids of its nodes."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from typing import Any

from .common import NO_TIME, Endpoint, MemoryAdapter, bytes_in, scratch


class LlamaIndex(MemoryAdapter):
    """One node a memory, not split, in the index's in-memory vector store: exact cosine.

    `threshold` drops hits below a similarity (SimilarityPostprocessor); 0 drops none.
    """

    packages = ("llama-index-core",)
    notes = (
        NO_TIME,
        "memories are given as nodes, so LlamaIndex does not split them into chunks; no metadata "
        "goes into the embedded text",
    )

    def __init__(self, threshold: float = 0.0) -> None:
        super().__init__(threshold=threshold)
        self._threshold = threshold
        self._index: Any = None

    def reset(self, scope: str) -> None:
        from llama_index.core import VectorStoreIndex

        self._index = VectorStoreIndex(nodes=[], embed_model=_embedding(self._endpoint))

    def remember(self, memories: Sequence[Any]) -> None:
        from llama_index.core.schema import TextNode

        metadata = {memory.id: _metadata(memory) for memory in memories}
        nodes = [
            TextNode(
                id_=memory.id,
                text=memory.text,
                metadata=metadata[memory.id],
                # Metadata that is not excluded is embedded with the text and changes the ranks.
                excluded_embed_metadata_keys=[*metadata[memory.id]],
            )
            for memory in memories
        ]
        self._index.insert_nodes(nodes)

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        from llama_index.core.postprocessor import SimilarityPostprocessor

        found = self._index.as_retriever(similarity_top_k=k).retrieve(query.text)
        if self._threshold:
            cut = SimilarityPostprocessor(similarity_cutoff=self._threshold)
            found = cut.postprocess_nodes(found)
        return [{"id": hit.node.node_id, "score": hit.score} for hit in found]

    def forget(self, selector: Any) -> None:
        self._index.delete_nodes(sorted(selector.ids), delete_from_docstore=True)

    def stats(self) -> dict[str, int]:
        """The size of the index when it is written to disk."""
        place = scratch("persisted")
        self._index.storage_context.persist(persist_dir=str(place))
        written = bytes_in(place)
        shutil.rmtree(place)
        return {"index_bytes": written}


def _metadata(memory: Any) -> dict[str, Any]:
    given = {"session": memory.session, "speaker": memory.speaker, **memory.metadata}
    return {**given, **({"at": memory.at.isoformat()} if memory.at else {})}


def _embedding(endpoint: Endpoint) -> Any:
    """LlamaIndex's embedding interface over Mnemoscope's endpoint."""
    from llama_index.core.embeddings import BaseEmbedding

    class ServedEmbedding(BaseEmbedding):  # type: ignore[misc]
        def _get_text_embedding(self, text: str) -> list[float]:
            return endpoint.embed([text])[0]

        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            return endpoint.embed(texts)

        def _get_query_embedding(self, query: str) -> list[float]:
            return endpoint.embed([query])[0]

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return endpoint.embed([query])[0]

    return ServedEmbedding(model_name=endpoint.embedder, embed_batch_size=256)
