"""Stores behind JSON lines, started as `python stores.py KIND FOLDER`; they use no packages.

A memory is found by its whole text. The folder has what an earlier process of the store wrote.
"""

from __future__ import annotations

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any


class FullySynchronised:
    """SQLite that commits each write with full synchronisation before it acknowledges it."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "memories.sqlite", isolation_level=None)
        self._db.execute("PRAGMA synchronous = FULL")
        self._db.execute("CREATE TABLE IF NOT EXISTS memories (id TEXT PRIMARY KEY, text TEXT)")

    def reset(self, scope: str) -> None:
        self._db.execute("DELETE FROM memories")

    def remember(self, memories: list[dict[str, str]]) -> None:
        self._db.execute("BEGIN")
        rows = [(memory["id"], memory["text"]) for memory in memories]
        self._db.executemany("INSERT INTO memories VALUES (?, ?)", rows)
        self._db.execute("COMMIT")

    def recall(self, query: dict[str, str], k: int) -> list[str]:
        rows = self._db.execute("SELECT id FROM memories WHERE text = ?", (query["text"],))
        return [id for (id,) in rows][:k]

    def forget(self, memories: list[dict[str, str]]) -> None:
        rows = [(memory["id"],) for memory in memories]
        self._db.executemany("DELETE FROM memories WHERE id = ?", rows)

    def close(self) -> None:
        self._db.close()


class AcknowledgesBeforeWriting:
    """Writes wait in a buffer of this process until it ends in the usual way."""

    def __init__(self, folder: Path) -> None:
        path = folder / "memories.jsonl"
        path.touch()
        lines = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        self._memories = {memory["id"]: memory["text"] for memory in lines}
        self._file = path.open("a", encoding="utf-8", buffering=1 << 20)

    def reset(self, scope: str) -> None:
        self._memories = {}
        self._file.truncate(0)

    def remember(self, memories: list[dict[str, str]]) -> None:
        for memory in memories:
            self._memories[memory["id"]] = memory["text"]
            self._file.write(json.dumps(memory) + "\n")

    def recall(self, query: dict[str, str], k: int) -> list[str]:
        return [id for id, text in self._memories.items() if text == query["text"]][:k]

    def close(self) -> None:
        self._file.close()


class ForgetsOnlyInMemory(AcknowledgesBeforeWriting):
    """Every write reaches the file, and no deletion does."""

    def remember(self, memories: list[dict[str, str]]) -> None:
        super().remember(memories)
        self._file.flush()

    def forget(self, memories: list[dict[str, str]]) -> None:
        for memory in memories:
            del self._memories[memory["id"]]


class KeepsNothing(AcknowledgesBeforeWriting):
    """Reads nothing when it starts."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._memories = {}


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (FullySynchronised, AcknowledgesBeforeWriting, ForgetsOnlyInMemory, KeepsNothing)
}


def main() -> None:
    store = KINDS[sys.argv[1]](Path(sys.argv[2]))
    verbs = ("reset", "remember", "recall", "forget", "close")
    for line in sys.stdin:
        order = json.loads(line)
        if order["method"] == "hello":
            methods = [verb for verb in verbs if hasattr(store, verb)]
            result: Any = {"name": sys.argv[1], "version": "1", "methods": methods}
        else:
            result = getattr(store, order["method"])(**order["params"])
        reply = {"jsonrpc": "2.0", "id": order["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
