"""LangGraph's InMemoryStore: one namespace a scope, our ids as keys."""

from __future__ import annotations

from collections import Counter
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

        for batch in distinct_texts(memories):
            self._store.batch(
                [PutOp(self._namespace, memory.id, {"text": memory.text}) for memory in batch]
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


def distinct_texts(memories: Sequence[Any]) -> list[list[Any]]:
    """The memories in batches without equal texts, which the store refuses in one batch.

    A user who calls `put` for each memory can store them.
    """
    batches: list[list[Any]] = []
    seen: Counter[str] = Counter()
    for memory in memories:
        if seen[memory.text] == len(batches):
            batches.append([])
        batches[seen[memory.text]].append(memory)
        seen[memory.text] += 1
    return batches


def namespace(scope: str) -> tuple[str, str]:
    """The scope as a valid namespace: not empty, and without full stops."""
    return ("memories", scope.replace(".", "·") or "empty")


def store(endpoint: Endpoint, field: str) -> Any:
    """An empty store that embeds this field of its items."""
    from langgraph.store.memory import InMemoryStore

    index = {"dims": endpoint.dimensions, "embed": endpoint.embed, "fields": [field]}
    return InMemoryStore(index=index)
