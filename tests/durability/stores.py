"""Stores started as `python stores.py KIND FOLDER [PORT]`; they use no packages.

They read JSON lines, or serve HTTP at the port.

A memory is found by its whole text. The folder has what an earlier process of the store wrote.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import sqlite3
import sys
import zlib
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


class LeavesDeletedRows(FullySynchronised):
    """SQLite as it is built by default: a deleted row stays in its page."""

    pragmas: tuple[str, ...] = ("secure_delete = OFF",)

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        for pragma in self.pragmas:
            self._db.execute(f"PRAGMA {pragma}")


class OverwritesDeletedRows(LeavesDeletedRows):
    """SQLite that overwrites deleted rows and writes its file anew."""

    pragmas = ("secure_delete = ON",)

    def forget(self, memories: list[dict[str, str]]) -> None:
        super().forget(memories)
        self._db.execute("VACUUM")


class CheckpointsAtTheEnd(LeavesDeletedRows):
    """The log has every version of a page until the last connection is closed."""

    pragmas = ("secure_delete = ON", "journal_mode = WAL", "wal_autocheckpoint = 0")


class KeepsACopy(OverwritesDeletedRows):
    """Overwrites deleted rows, and has written each text to another file before."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._folder = folder

    def remember(self, memories: list[dict[str, str]]) -> None:
        super().remember(memories)
        for memory in memories:
            path = self.folder() / f"{memory['id']}.bin"
            path.write_bytes(self.encoded(memory["text"].encode()))

    def folder(self) -> Path:
        return self._folder

    def encoded(self, text: bytes) -> bytes:
        return base64.b64encode(text)


class KeepsACompressedCopy(KeepsACopy):
    """The copy is compressed twice, behind a header of its own."""

    def encoded(self, text: bytes) -> bytes:
        return b"log:" + zlib.compress(b"entry " + gzip.compress(text))


class KeepsACopyAtHome(KeepsACopy):
    """The copy is in the home of the process, where caches and logs are."""

    def folder(self) -> Path:
        return Path.home()

    def encoded(self, text: bytes) -> bytes:
        return text.decode().encode("utf-16-le")


class KeepsACopyThatLooksPacked(KeepsACopy):
    """The copy hides behind more starts of compressed data than are tried."""

    def encoded(self, text: bytes) -> bytes:
        return b"x\x9c" * 100 + zlib.compress(text)


class KeepsOnlyCodedTexts(KeepsACopy):
    """No text can be read in its files, kept or forgotten."""

    def remember(self, memories: list[dict[str, str]]) -> None:
        hidden = [
            dict(one, text=hashlib.sha256(one["text"].encode()).hexdigest()) for one in memories
        ]
        FullySynchronised.remember(self, hidden)
        for memory in memories:
            path = self.folder() / f"{memory['id']}.bin"
            path.write_bytes(bytes(byte ^ 0x5A for byte in memory["text"].encode()))

    def recall(self, query: dict[str, str], k: int) -> list[str]:
        return super().recall({"text": hashlib.sha256(query["text"].encode()).hexdigest()}, k)


KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(FullySynchronised, AcknowledgesBeforeWriting, ForgetsOnlyInMemory, KeepsNothing),
        *(LeavesDeletedRows, OverwritesDeletedRows, CheckpointsAtTheEnd, KeepsACopy),
        *(KeepsACompressedCopy, KeepsACopyAtHome, KeepsOnlyCodedTexts, KeepsACopyThatLooksPacked),
    )
}


VERBS = ("reset", "remember", "recall", "forget", "close")


def main() -> None:
    store = KINDS[sys.argv[1]](Path(sys.argv[2]))
    methods = [verb for verb in VERBS if hasattr(store, verb)]
    hello = {"name": sys.argv[1], "version": "1", "methods": methods}
    if len(sys.argv) > 3:
        serve_http(store, hello, int(sys.argv[3]))
        return
    for line in sys.stdin:
        order = json.loads(line)
        is_hello = order["method"] == "hello"
        result = hello if is_hello else getattr(store, order["method"])(**order["params"])
        reply = {"jsonrpc": "2.0", "id": order["id"], "result": result}
        sys.stdout.write(json.dumps(reply) + "\n")
        sys.stdout.flush()


def serve_http(store: Any, hello: dict[str, Any], port: int) -> None:
    """Serve Mnemoscope's HTTP contract, with one space for all; end in the usual way on SIGTERM."""
    import signal
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # a reply in one packet: two would wait for an acknowledgement in between

        def do_GET(self) -> None:
            self.reply(hello)

        def do_POST(self) -> None:
            order = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            del order["space"]
            verb = self.path.rpartition("/")[2]
            result: Any = getattr(store, verb)(**order) if verb in hello["methods"] else None
            self.reply({"hits": [{"id": id} for id in result]} if verb == "recall" else {})

        def reply(self, content: dict[str, Any]) -> None:
            body = json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *about: object) -> None:
            pass

    def stop(*_: object) -> None:
        store.close()
        sys.exit()

    signal.signal(signal.SIGTERM, stop)
    HTTPServer(("127.0.0.1", port), Handler).serve_forever()


if __name__ == "__main__":
    main()
