"""LangMem: what an agent would do with its manage and search tools, over InMemoryStore."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from .common import MemoryAdapter, dated
from .langgraph import namespace, store

_KEY = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class LangMem(MemoryAdapter):
    """Cosine over whole texts. The manage tool names the key it made; we keep whose it is."""

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
            order = {"content": dated(memory), "action": "create"}
            if memory.id in self._keys:
                order |= {"action": "update", "id": self._keys[memory.id]}
            said = self._manage.invoke(order)
            key = _KEY.search(said)
            if key is None:
                raise RuntimeError(f"the manage tool names no key: {said!r:.200}")
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
        """Of its own nothing: all is in memory, and it counts no bytes."""
        return {}
