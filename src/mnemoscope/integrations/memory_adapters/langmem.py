"""LangMem's manage and search tools, called as an agent would, over InMemoryStore."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from .common import MemoryAdapter
from .langgraph import namespace, store

_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class LangMem(MemoryAdapter):
    """Cosine over whole texts. The manage tool returns its key for a memory, which we store."""

    packages = ("langmem", "langgraph", "langgraph-checkpoint", "numpy")

    def __init__(self) -> None:
        super().__init__(store="InMemoryStore")

    def reset(self, scope: str) -> None:
        from langmem import create_manage_memory_tool, create_search_memory_tool

        where = {"namespace": namespace(scope), "store": store(self._endpoint, "content")}
        self._manage = create_manage_memory_tool(**where)
        self._search = create_search_memory_tool(**where)
        self._keys: dict[str, str] = {}
        self._ids: dict[str, str] = {}

    def remember(self, memories: Sequence[Any]) -> None:
        for memory in memories:
            order = {"content": memory.text, "action": "create"}
            if memory.id in self._keys:
                order |= {"action": "update", "id": self._keys[memory.id]}
            answer = self._manage.invoke(order)
            key = _KEY.search(answer)
            if key is None:
                raise RuntimeError(f"the manage tool returned no key: {answer!r:.200}")
            self._keys[memory.id] = key[0]
            self._ids[key[0]] = memory.id

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        found = json.loads(self._search.invoke({"query": query.text, "limit": k}))
        return [{"id": self._ids[item["key"]], "score": item.get("score")} for item in found]

    def forget(self, selector: Any) -> None:
        for id in selector.ids:
            key = self._keys.pop(id, "")
            if key:
                self._manage.invoke({"action": "delete", "id": key})
                del self._ids[key]

    def stats(self) -> dict[str, int]:
        """Empty: the store is in memory and does not count its bytes."""
        return {}
