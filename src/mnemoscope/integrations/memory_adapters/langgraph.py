"""LangGraph's InMemoryStore: one namespace a scope, our ids as keys."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .common import Endpoint, MemoryAdapter


class LangGraph(MemoryAdapter):
    """Exact cosine over whole texts."""

    packages = ("langgraph", "langgraph-checkpoint", "numpy")

    def __init__(self) -> None:
        super().__init__(store="InMemoryStore")

    def reset(self, scope: str) -> None:
        self._namespace = namespace(scope)
        self._store = store(self._endpoint, "text")

    def remember(self, memories: Sequence[Any]) -> None:
        from langgraph.store.base import PutOp

        self._store.batch(
            [PutOp(self._namespace, memory.id, {"text": memory.text}) for memory in memories]
        )

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        found = self._store.search(self._namespace, query=query.text, limit=k)
        return [{"id": item.key, "score": item.score} for item in found]

    def forget(self, selector: Any) -> None:
        for id in selector.ids:
            self._store.delete(self._namespace, id)

    def stats(self) -> dict[str, int]:
        """Empty: the store is in memory and does not count its bytes."""
        return {}


def namespace(scope: str) -> tuple[str, str]:
    """The scope as a valid namespace: not empty, and without full stops."""
    return ("memories", scope.replace(".", "·") or "empty")


def store(endpoint: Endpoint, field: str) -> Any:
    """An empty store that embeds this field of its items."""
    from langgraph.store.memory import InMemoryStore

    index = {"dims": endpoint.dimensions, "embed": endpoint.embed, "fields": [field]}
    return InMemoryStore(index=index)
