"""One HTTP server on a real socket that behaves in as many hostile ways as it has paths.

`/CASE/v1/…` is our contract, `/CASE/rest/…` a REST API for a mapping, `/CASE/mcp` an MCP server,
`/CASE/chat/completions` a chat model. Everything works, except the call that a case attacks: there
the bytes of the case are sent, from a generator, so that no large reply is ever in memory.
"""

from __future__ import annotations

import gzip
import json
import socket
import struct
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, NamedTuple

SECRET = "sk-the-key-of-a-test-4711"
ESCAPES = "\x1b[2J\x1b]0;owned\x07\x9b31m\r\n| fake | row |\u202e<script>alert(1)</script>"
HELLO = {"name": "hostile", "methods": ["reset", "remember", "recall", "stats", "close"]}
ATTACKED = ("v1/recall", "rest/find", "chat/completions", "messages", "v1/messages", "embeddings")
TOOLS = {"store": ["key", "text"], "search": ["query", "limit"], "clear": []}


class Asked(NamedTuple):
    case: str
    path: str
    """After the case."""
    headers: dict[str, str]
    body: Any

    @property
    def key(self) -> str:
        return self.headers.get("authorization", "")

    @property
    def is_attacked(self) -> bool:
        tool = self.body.get("params", {}).get("name") if isinstance(self.body, dict) else ""
        return tool == "search" or self.path in ATTACKED


Reply = Callable[[Asked], Iterator[bytes]]
"""The bytes of a reply; then the connection is closed."""


def http(
    body: bytes | str | object, status: int = 200, length: int | None = None, **headers: str
) -> Reply:
    def reply(asked: Asked) -> Iterator[bytes]:
        content = body(asked) if callable(body) else body
        sent = content if isinstance(content, bytes) else json.dumps(content).encode()
        yield _head(status, {"Content-Length": str(length or len(sent)), **headers}) + sent

    return reply


def _head(status: int, headers: dict[str, str]) -> bytes:
    # Without it a client may send its next request on a connection that is being closed.
    named = {"Content-Type": "application/json", "Connection": "close", **headers}
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in named.items()]
    return "\r\n".join([f"HTTP/1.1 {status} X", *lines, "", ""]).encode("latin-1")


def in_tool(value: Any) -> Callable[[Asked], Any]:
    """A reply of MCP that contains this value as JSON in a text."""

    def reply(asked: Asked) -> Any:
        content = [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}]
        return {"jsonrpc": "2.0", "id": asked.body["id"], "result": {"content": content}}

    return reply


def without_end(first: bytes, piece: bytes) -> Reply:
    def reply(asked: Asked) -> Iterator[bytes]:
        yield first
        while True:
            yield piece

    return reply


def dripping(asked: Asked) -> Iterator[bytes]:
    yield _head(200, {"Content-Length": "1000000"})
    while True:
        threading.Event().wait(0.02)
        yield b" "


def silent(asked: Asked) -> Iterator[bytes]:
    threading.Event().wait(5)
    yield b""


def too_few(asked: Asked) -> Iterator[bytes]:
    yield _head(200, {"Content-Length": "9"}) + b"{"
    yield from silent(asked)


def nothing(asked: Asked) -> Iterator[bytes]:
    yield b""


@cache
def bomb(megabytes: int = 512) -> bytes:
    """A gzip of that many megabytes of spaces, made without having them in memory."""
    spaces = b" " * (1 << 20)
    pack = zlib.compressobj(9, zlib.DEFLATED, -15)
    # After a full flush, equal megabytes become equal bytes: one is compressed, and repeated.
    packed = pack.compress(spaces) + pack.flush(zlib.Z_FULL_FLUSH)
    check = 0
    for _ in range(megabytes):
        check = zlib.crc32(spaces, check)
    size = megabytes << 20
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    return head + packed * megabytes + pack.flush() + struct.pack("<II", check, size)


_BLOCK = b" " * (1 << 16)
_CHUNK = b"%x\r\n%s\r\n" % (len(_BLOCK), _BLOCK)
_GIGABYTES = str(10 << 30)

CASES: dict[str, Reply] = {
    # sizes
    "endless body": without_end(b"HTTP/1.1 200 OK\r\n\r\n", _BLOCK),
    "endless chunks": without_end(_head(200, {"Transfer-Encoding": "chunked"}), _CHUNK),
    "gigabytes": without_end(_head(200, {"Content-Length": _GIGABYTES}), _BLOCK),
    "error of gigabytes": without_end(_head(500, {"Content-Length": _GIGABYTES}), _BLOCK),
    "gzip bomb": http(lambda asked: bomb(), Content_Encoding="gzip"),
    "deflate bomb": http(lambda asked: bomb(), Content_Encoding="deflate"),
    "unknown encoding": http(b"xyz", Content_Encoding="br"),
    "broken gzip": http(gzip.compress(b"[]")[:-9], Content_Encoding="gzip"),
    "huge header": http({}, X_Huge="x" * 1_000_000),
    "endless headers": without_end(b"HTTP/1.1 200 OK\r\n", b"X-Y: %s\r\n" % (b"y" * 1000)),
    "endless 100": without_end(b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    # time
    "slow drip": dripping,
    "never replies": silent,
    "too few bytes": too_few,
    "asks to wait": http({"detail": "later"}, 503, Retry_After="86400"),
    # broken connections
    "closes midway": http(b'{"hits": [', length=5000),
    "closes at once": nothing,
    "too many bytes": http(b'{"hits": []}', length=5),
    "not HTTP": lambda asked: iter([b"\x16\x03\x01\x02\x00" * 100]),
    "no status": lambda asked: iter([b"HTTP/1.1 \r\n\r\n"]),
    "two lengths": http(b"[]", Content_length="7"),
    # texts
    "invalid bytes": http(b'{"hits": ["\xff\xfe\x80"]}'),
    "invalid JSON": http(b'{"hits": ["m1", }'),
    "deep JSON": http(b'{"hits": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "deep error": http(b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}", 500),
    "escapes": http({"error": {"message": ESCAPES}}, 500),
    "escapes in JSON": http(ESCAPES.encode()),
    "secret in 500": http(lambda asked: {"detail": f"bad {asked.key}"}, 500),
    "secret in JSON": http(lambda asked: f"not {asked.key}".encode()),
    "refuses the key": http({"detail": "no"}, 407),
}
"""Ways to reply that any client may meet."""

HITS: dict[str, Any] = {
    "reply to another call": {},
    "hits are a text": {"hits": "m1"},
    "hits are an object": {"hits": {"m1": 1}},
    "hit is null": {"hits": [None]},
    "hit is true": {"hits": [True]},
    "id is a list": {"hits": [{"id": ["m1"]}]},
    "id is null": {"hits": [{"id": None}]},
    "score is a text": {"hits": [{"id": "m1", "score": "high"}]},
    "score is a list": {"hits": [["m1", []]]},
    "sources are numbers": {"hits": [{"id": "m1", "sources": [1, 2]}]},
    "text is a number": {"hits": [{"id": "m1", "text": 7}]},
    "list within a list": {"hits": [[["m1"]]]},
}
"""Bodies of a recall that are valid JSON and not hits."""


class HostileServer:
    """`with HostileServer() as server`: `server.url` is followed by a case with - for spaces."""

    def __init__(self, cases: dict[str, Reply]) -> None:
        self.cases = cases
        if "gzip bomb" in cases:
            bomb()  # now, and not while a client waits for it
        self.seen: list[Asked] = []
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, case: str) -> str:
        return f"http://127.0.0.1:{self.port}/{case.replace(' ', '-')}"

    def __enter__(self) -> HostileServer:
        return self

    def __exit__(self, *_: object) -> None:
        self._listening.close()

    def _accept(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(line,), daemon=True).start()

    def _serve(self, line: socket.socket) -> None:
        with line, line.makefile("rb") as stream, suppress(OSError, IndexError, ValueError):
            while asked := _read(stream):
                self.seen.append(asked)
                if asked.is_attacked:
                    for piece in self.cases[asked.case](asked):
                        line.sendall(piece)
                    line.shutdown(socket.SHUT_WR)
                    stream.read()  # without it the client might not get the last bytes
                    return
                line.sendall(b"".join(_well(asked)))


def _read(stream: Any) -> Asked | None:
    first = stream.readline().decode("latin-1").split()
    if len(first) < 2:
        return None
    headers = {}
    while text := stream.readline().decode("latin-1").strip():
        name, _, value = text.partition(":")
        headers[name.lower()] = value.strip()
    given = stream.read(int(headers.get("content-length", 0)))
    _, case, path = first[1].partition("?")[0].split("/", 2)
    return Asked(case.replace("-", " "), path, headers, json.loads(given) if given else None)


def _well(asked: Asked) -> Iterator[bytes]:
    """The reply of a server that works."""
    if asked.path != "mcp":
        replies: dict[str, Any] = {"v1/hello": HELLO, "v1/stats": {"index_bytes": -5, "x": -1}}
        return http(replies.get(asked.path, {}))(asked)
    method = asked.body.get("method") if asked.body else None
    if not asked.body or "id" not in asked.body:
        return http(b"", 202 if asked.body else 405)(asked)
    about = {"name": "hostile", "version": "1"}
    listed = [
        {"name": n, "inputSchema": {"type": "object", "properties": {k: {} for k in has}}}
        for n, has in TOOLS.items()
    ]
    results: dict[Any, Any] = {
        "initialize": {
            "protocolVersion": asked.body.get("params", {}).get("protocolVersion"),
            "capabilities": {"tools": {}},
            "serverInfo": about,
        },
        "tools/list": {"tools": listed},
    }
    result = results.get(method, {"content": [{"type": "text", "text": "{}"}]})
    return http({"jsonrpc": "2.0", "id": asked.body["id"], "result": result})(asked)
