"""mem0 on Qdrant in process: one user a scope, our ids in the metadata."""

from __future__ import annotations

import os
import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from typing import Any
from urllib.parse import quote

from .common import NO_TIME, MemoryAdapter, scratch

_COLLECTION = "memories"
_USER = "user"
"""The file with the name of mem0's user, which a process that is started again needs."""
_NOTES = (
    NO_TIME,
    "mem0 never returns hits below threshold, and threshold cannot be below 0",
    "its keyword and entity scores are off: the models they need would be downloaded",
    "forgetting also clears history.db, where mem0's deletion keeps texts",
)
_INFERRED = (
    "mem0 gives its model today as the date of all memories, even of texts with a date",
    "a fact may contain parts of the ten messages before it: forgetting those does not change it",
)


class Mem0(MemoryAdapter):
    """Cosine over whole texts, or with `infer` over the facts that a model extracts from them.

    `threshold` drops hits below a similarity; mem0's default is 0.1.
    """

    packages = ("mem0ai", "qdrant-client")
    provenance = "metadata"

    def __init__(self, infer: bool = False, threshold: float = 0.0, storage: str = "") -> None:
        super().__init__(storage, infer=infer, threshold=threshold)
        self._infer = infer
        self._threshold = threshold
        self._memory: Any = None
        self.notes = (*_NOTES, *(_INFERRED if infer else ()))
        self._own: dict[str, list[str]] = {}
        """The ids of mem0's facts by the memory that they come from."""
        self._names: dict[str, str] = {}
        self._events: Counter[str] = Counter()
        if self._has_files():
            self._user = (self._folder / _USER).read_text(encoding="utf-8")
            self._memory = self._open()
            self._find_facts()

    def reset(self, scope: str) -> None:
        self.close()
        self._folder = self._empty_folder()
        self._user = quote(scope, safe="") or "empty"  # mem0 takes no spaces
        (self._folder / _USER).write_text(self._user, encoding="utf-8")
        self._memory = self._open()
        self._own, self._names, self._events = {}, {}, Counter()

    def _find_facts(self) -> None:
        """Read which facts are there, and name them, as `remember` does."""
        most = self._memory.vector_store.client.count(_COLLECTION).count
        if not most:
            return
        found = self._memory.get_all(filters={"user_id": self._user}, top_k=most)
        for one in found["results"]:
            memory = one["metadata"]["memory"]
            own = self._own.setdefault(memory, [])
            own.append(one["id"])
            self._names[one["id"]] = f"{memory}/fact-{len(own)}" if self._infer else memory

    def _open(self) -> Any:
        os.environ["MEM0_TELEMETRY"] = "False"
        os.environ.setdefault("MEM0_DIR", str(scratch("mem0")))
        from mem0 import Memory

        server = {"api_key": self._endpoint.key, "openai_base_url": self._endpoint.url}
        size = self._endpoint.dimensions
        vectors = {
            "collection_name": _COLLECTION,
            "path": str(self._folder / "qdrant"),
            "embedding_model_dims": size,
            "on_disk": True,
        }
        embedder = {"model": self._endpoint.embedder, "embedding_dims": size, **server}
        llm = {"model": self._endpoint.llm or "none", **server}
        return Memory.from_config(
            {
                "llm": {"provider": "openai", "config": llm},
                "embedder": {"provider": "openai", "config": embedder},
                "vector_store": {"provider": "qdrant", "config": vectors},
                "history_db_path": str(self._folder / "history.db"),
            }
        )

    def remember(self, memories: Sequence[Any]) -> dict[str, Any]:
        from mem0.exceptions import LLMError

        rejected, merged = {}, {}
        for memory in memories:
            try:
                made = self._add(memory)
            except LLMError as error:
                rejected[memory.id] = str(error)
                continue
            self._events.update(f"facts_{fact['event'].lower()}" for fact in made)
            added = [fact["id"] for fact in made if fact["event"] == "ADD"]
            changed = [fact["id"] for fact in made if fact["event"] in ("UPDATE", "DELETE")]
            self._own.setdefault(memory.id, []).extend(added)
            for number, id in enumerate(added, 1):
                self._names[id] = f"{memory.id}/fact-{number}" if self._infer else memory.id
            if not added and changed:
                merged[memory.id] = ", ".join(self._names.get(id, id) for id in changed)
            elif not added:
                rejected[memory.id] = "mem0 found nothing new in it"
        return {"rejected": rejected, "merged": merged}

    def _add(self, memory: Any) -> list[dict[str, Any]]:
        metadata = {"memory": memory.id}
        if memory.at:
            metadata["created_at"] = memory.at.isoformat()
        message = {"role": "user", "content": memory.text}
        made = self._memory.add([message], user_id=self._user, metadata=metadata, infer=self._infer)
        return list(made["results"])

    def recall(self, query: Any, k: int) -> list[dict[str, Any]]:
        found = self._memory.search(
            query.text, top_k=k, filters={"user_id": self._user}, threshold=self._threshold
        )["results"]
        if not self._infer:
            return [{"id": one["metadata"]["memory"], "score": one["score"]} for one in found]
        return [
            {
                "id": self._names[one["id"]],
                "score": one["score"],
                "text": one["memory"],
                "sources": [one["metadata"]["memory"]],
            }
            for one in found
        ]

    def forget(self, selector: Any) -> None:
        """Delete the facts of the memories, and the copies that mem0 and Qdrant would keep."""
        for memory in selector.memories:
            gone = self._own.pop(memory.id, [])
            for id in gone:
                self._memory.delete(id)
            history = self._memory.db.connection
            with history:
                rows = [(id,) for id in gone]
                history.executemany("DELETE FROM history WHERE memory_id = ?", rows)
                history.execute("DELETE FROM messages WHERE content = ?", (memory.text,))
        # Some builds of SQLite leave deleted rows on free pages.
        for file in (self._folder / "history.db", *self._folder.rglob("storage.sqlite")):
            with closing(sqlite3.connect(file)) as db:
                db.execute("VACUUM")

    def stats(self) -> dict[str, int]:
        return {**super().stats(), **self._events}

    def close(self) -> None:
        if self._memory is not None:
            self._memory.close()
            self._memory.vector_store.client.close()
