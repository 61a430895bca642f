"""LightRAG: one workspace a scope, one document a memory, our ids as its file names."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import count
from typing import Any, Literal
from urllib.parse import quote, unquote

from .common import NO_TIME, Endpoint, MemoryAdapter, scratch

_MOST_TOKENS = 100_000_000
_PIECE = 4
"""Characters that count as one token: about the average of GPT models."""


class LightRAG(MemoryAdapter):
    """`mode` auto is naive (vectors of chunks) without a model and mix (those and the graph) with
    one. `threshold` is the least cosine of a hit, 0 for none; `chunk_tokens` is the longest chunk;
    `top_k` is the number of entities and relations that are searched."""

    packages = ("lightrag-hku", "nano-vectordb", "networkx")
    provenance = "metadata"
    notes = (
        NO_TIME,
        f"tokens are counted as {_PIECE} characters each: LightRAG's own tokenizer is a download",
    )

    def __init__(
        self,
        mode: Literal["auto", "naive", "local", "global", "hybrid", "mix"] = "auto",
        threshold: float = 0.0,
        chunk_tokens: int = 1200,
        top_k: int = 40,
    ) -> None:
        super().__init__()
        self._mode = ("mix" if self._endpoint.llm else "naive") if mode == "auto" else mode
        if self._mode != "naive" and not self._endpoint.llm:
            raise SystemExit(
                f"mode={mode} needs a language model: give it one with llm=, or use mode=naive"
            )
        self._threshold = threshold
        self._chunk_tokens = chunk_tokens
        self._top_k = top_k
        self._rag: Any = None
        self._settings = {
            "mode": self._mode,
            "threshold": threshold,
            "chunk_tokens": chunk_tokens,
            "top_k": top_k,
            "max_total_tokens": _MOST_TOKENS,
        }

    async def reset(self, scope: str) -> None:
        from lightrag import LightRAG as System
        from lightrag.utils import EmbeddingFunc, Tokenizer

        await self.close()
        self._folder = scratch("lightrag")
        self._duplicates: dict[str, list[Any]] = {}
        self._chunks = 1
        self._batches = count(1)
        self._rag = System(
            working_dir=str(self._folder),
            # Storages of one workspace share memory, even with different folders.
            workspace=self._folder.name.replace("-", "_"),
            embedding_func=EmbeddingFunc(self._endpoint.dimensions, _embedding(self._endpoint)),
            llm_model_func=_asking(self._endpoint),
            tokenizer=Tokenizer("pieces", _Pieces()),
            chunk_token_size=self._chunk_tokens,
            # nano-vectordb drops hits below this; cosines are at least -1.
            cosine_better_than_threshold=self._threshold or -1.0,
        )
        await self._rag.initialize_storages()

    async def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        texts = {memory.id: memory.text for memory in memories}
        rejected = {id: "LightRAG takes no empty text" for id in texts if not texts[id].strip()}
        taken = [memory for memory in memories if memory.id not in rejected]
        if not taken:
            return {"rejected": rejected}
        await self._rag.apipeline_enqueue_documents(
            [texts[memory.id] for memory in taken],
            ids=[memory.id for memory in taken],
            file_paths=[_file(memory.id) for memory in taken],
            track_id=(track := f"batch-{next(self._batches)}"),
            # "!" skips the graph, which naive search does not use.
            process_options="!" if self._mode == "naive" else None,
        )
        await self._rag.apipeline_process_enqueue_documents()
        merged = {}
        records = await self._rag.aget_docs_by_track_id(track)
        for record in records.values():
            if (record.metadata or {}).get("is_duplicate"):
                merged[_id(record.file_path)] = record.metadata["original_doc_id"]
        for memory in taken:
            if memory.id in merged:
                self._duplicates.setdefault(merged[memory.id], []).append(memory)
                continue
            record = records.get(memory.id)
            if record is None or record.status.value != "processed":
                rejected[memory.id] = (record and record.error_msg) or "LightRAG did not process it"
            else:
                self._chunks = max(self._chunks, record.chunks_count or 1)
        return {"rejected": rejected, "merged": merged}

    async def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        from lightrag import QueryParam

        # Several chunks may belong to one memory; k counts memories.
        chunks = k * self._chunks
        param = QueryParam(
            mode=self._mode,
            top_k=self._top_k,
            chunk_top_k=chunks,
            max_total_tokens=_MOST_TOKENS,
            enable_rerank=False,
        )
        found = await self._rag.aquery_data(query.text, param)
        texts: dict[str, list[str]] = {}
        for chunk in found.get("data", {}).get("chunks", []):
            texts.setdefault(_id(chunk["file_path"]), []).append(chunk["content"])
        return [
            {"id": id, "text": "\n".join(parts), **self._sources(id)}
            for id, parts in list(texts.items())[:k]
        ]

    async def forget(self, selector: Any) -> None:
        orphans: list[Any] = []
        for id in sorted(selector.ids):
            for duplicates in self._duplicates.values():
                duplicates[:] = [memory for memory in duplicates if memory.id != id]
            if await self._rag.doc_status.get_by_id(id) is None:
                continue
            ended = await self._rag.adelete_by_doc_id(id, delete_llm_cache=True)
            if ended.status != "success":
                raise RuntimeError(f"LightRAG did not delete {id}: {ended.message}")
            orphans += self._duplicates.pop(id, [])
        if left := [memory for memory in orphans if memory.id not in selector.ids]:
            receipt = await self.remember(left)
            if receipt["rejected"]:
                raise RuntimeError(
                    f"LightRAG lost duplicates of a deleted text: {receipt['rejected']}"
                )

    async def close(self) -> None:
        if self._rag is not None:
            rag, self._rag = self._rag, None
            await rag.finalize_storages()

    def _sources(self, id: str) -> dict[str, list[str]]:
        duplicates = [memory.id for memory in self._duplicates.get(id, [])]
        return {"sources": [id, *duplicates]} if duplicates else {}


def _file(id: str) -> str:
    """A file name that LightRAG does not change: without folders and brackets."""
    return quote(id, safe="") + ".txt"


def _id(file: str) -> str:
    return unquote(file.removesuffix(".txt"))


def _embedding(endpoint: Endpoint) -> Any:
    # A function, not a method: LightRAG deep-copies its settings, and a method's object with them.
    async def embed(texts: list[str]) -> Any:
        import numpy

        return numpy.array(endpoint.embed(list(texts)), dtype=numpy.float32)

    return embed


def _asking(endpoint: Endpoint) -> Any:
    model, url, key = endpoint.llm, endpoint.url, endpoint.key

    async def ask(
        prompt: str,
        system_prompt: str | None = None,
        history_messages: Any = None,
        **settings: Any,
    ) -> Any:
        if not model:
            raise RuntimeError("no language model is configured: give the system one with llm=")
        from lightrag.llm.openai import openai_complete_if_cache

        known = {
            name: value
            for name, value in settings.items()
            if name in ("response_format", "max_tokens", "temperature")
        }
        return await openai_complete_if_cache(
            model, prompt, system_prompt, history_messages, base_url=url, api_key=key, **known
        )

    return ask


class _Pieces:
    """A tokenizer without a vocabulary: a token is a piece of text, encoded as a number."""

    def encode(self, content: str) -> list[int]:
        units = content.encode("utf-16-le", "surrogatepass")
        return array("Q", units + bytes(-len(units) % (2 * _PIECE))).tolist()

    def decode(self, tokens: list[int]) -> str:
        # A cut may split a character of two units.
        return array("Q", tokens).tobytes().decode("utf-16-le", "ignore").rstrip("\0")
