"""Real MCP memory servers of different shapes, for the tests of the connector and of the probe.

`python mcp_servers.py KIND [PLACE]` over stdio, `python mcp_servers.py KIND --port N` over
streamable HTTP. A server leaves a file named after its process in PLACE. `plain` is one without
the SDK, which starts in no time.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, TypeVar


class ToolError(Exception):
    """The error of a server without the SDK; the SDK has another one."""


def overlap(query: str, text: str) -> int:
    asked = set(re.findall(r"\w+", query.lower()))
    return len(asked & set(re.findall(r"\w+", text.lower())))


F = TypeVar("F", bound=Callable[..., Any])


def offer(server: Any, about: str | None = None, *, structured: bool = True) -> Callable[[F], F]:
    def offered(tool: F) -> F:
        server.tool(description=about, structured_output=structured)(tool)
        return tool

    return offered


def ranked(server: Any) -> None:
    """Structured hits, best first, with our metadata; namespaces; the server's own ids."""
    kept: dict[int, tuple[str, str, dict[str, Any]]] = {}
    numbers = iter(range(1, 1_000_000))

    @offer(server, "Store a memory in a namespace.")
    def add_memory(
        text: str, namespace: str = "default", metadata: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        if text == "refuse me":
            raise ToolError("not this one")
        number = next(numbers)
        kept[number] = (namespace, text, metadata or {})
        return {"id": f"own-{number}", "status": "stored"}

    @offer(server, "Search memories by relevance.")
    def search_memories(query: str, limit: int = 10, namespace: str = "default") -> dict[str, Any]:
        trouble(query)
        found = [
            {"id": f"own-{number}", "memory": text, "score": overlap(query, text), "metadata": data}
            for number, (space, text, data) in kept.items()
            if space == namespace
        ]
        found.sort(key=lambda hit: -int(str(hit["score"])))
        return {"results": found[: max(limit, 0)]}

    @offer(server, "Delete one memory by its id.")
    def delete_memory(memory_id: str) -> dict[str, Any]:
        del kept[int(memory_id.removeprefix("own-"))]
        return {"deleted": memory_id}

    @offer(server, "Delete all memories of every namespace.")
    def delete_all_memories() -> dict[str, str]:
        kept.clear()
        return {"status": "all gone"}


def tags(server: Any) -> None:
    """Text replies, with lower-case tags in brackets; rejects duplicates."""
    kept: dict[str, list[str]] = {}

    @offer(server, structured=False)
    def store_note(content: str, tags: list[str] | None = None) -> str:
        """Save a note for later."""
        if content in kept:
            return "Not stored: duplicate of an earlier note"
        kept[content] = [tag.lower() for tag in tags or []]
        return "Stored."

    @offer(server, structured=False)
    def find_notes(query: str, max_results: int = 5) -> str:
        """Find notes that fit a query."""
        trouble(query)
        best = sorted(kept, key=lambda text: -overlap(query, text))[:max_results]
        lines = [f"{n}. {text}\n   [{', '.join(kept[text])}]" for n, text in enumerate(best, 1)]
        return f"Found {len(best)} notes\n\n" + "\n\n".join(lines)

    @offer(server, structured=False)
    def remove_notes(tags: list[str]) -> str:
        """Remove all notes that have one of the tags."""
        gone = [text for text, has in kept.items() if {t.lower() for t in tags} & set(has)]
        for text in gone:
            del kept[text]
        return f"Removed {len(gone)}."


@dataclass
class Entity:
    name: str
    kind: str
    observations: list[str]


def substring(server: Any) -> None:
    """Entities, found by the whole query as a substring."""
    kept: dict[str, list[str]] = {}

    @offer(server, "Create entities with observations.")
    def create_entities(entities: list[Entity]) -> dict[str, Any]:
        kept.update({entity.name: entity.observations for entity in entities})
        return {"created": len(entities)}

    @offer(server, "Search for nodes that contain the query.")
    def search_nodes(query: str) -> dict[str, Any]:
        found = [
            {"name": name, "observations": texts}
            for name, texts in kept.items()
            if any(query.lower() in text.lower() for text in texts)
        ]
        return {"entities": found}

    @offer(server, "Delete entities by name.")
    def delete_entities(entity_names: list[str]) -> dict[str, str]:
        for name in entity_names:
            kept.pop(name, None)
        return {"status": "ok"}


def trouble(query: str) -> None:
    """Failures that a query can ask for."""
    if "die now" in query:
        sys.stderr.write("the index is\nnot what it was\n")
        sys.stderr.flush()
        os._exit(7)
    if "be killed" in query:
        os.kill(os.getpid(), signal.SIGKILL)
    slow = os.environ.get("SLOW_WITH", "").split()
    if "be slow" in query or query.split()[0] in slow:
        time.sleep(600)
    if "print rubbish" in query:
        for line in ("loading 50%", '{"loss": 0.5}', '{"jsonrpc": "2.0", "result":'):
            os.write(1, f"{line}\n".encode())
    if "refuse" in query:
        raise ToolError("no idea")


class Plain:
    """A memory that uses only the standard library; replies are JSON in a text."""

    def __init__(self) -> None:
        self._kept: dict[str, str] = {}

    def reply(self, method: str, params: dict[str, Any]) -> Any:
        if method == "initialize":
            about = {"name": "plain", "version": "0.1"}
            version = params["protocolVersion"]
            return {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
        if method == "tools/list":
            text, number = {"type": "string"}, {"type": "integer"}
            tools = {
                "store": {"key": text, "text": text},
                "search": {"query": text, "limit": number},
                "delete": {"key": text},
                "clear": {},
                "ask": {"question": text},
            }
            return {
                "tools": [
                    {"name": name, "inputSchema": {"type": "object", "properties": has}}
                    for name, has in tools.items()
                ]
            }
        try:
            said = json.dumps(self._call(params["name"], params.get("arguments", {})))
        except ToolError as error:
            return {"content": [{"type": "text", "text": str(error)}], "isError": True}
        return {"content": [{"type": "text", "text": said}]}

    def _call(self, name: str, given: dict[str, Any]) -> Any:
        if name == "store":
            if "die storing" in given["text"]:
                os._exit(9)
            if "refuse me" in given["text"]:
                raise ToolError("not this one")
            self._kept[given["key"]] = given["text"]
            return {"stored": given["key"]}
        if name == "search":
            trouble(given["query"])
            best = sorted(self._kept, key=lambda key: -overlap(given["query"], self._kept[key]))
            return [{"key": key, "text": self._kept[key]} for key in best[: given["limit"]]]
        if name == "ask":
            return {"reply": f"{len(self._kept)} things: {given['question']}"}
        if name == "clear":
            self._kept.clear()
        elif given["key"] not in self._kept:
            raise ToolError(f"there is no {given['key']}")
        else:
            del self._kept[given["key"]]
        return {"status": "done"}


def over_stdio(memory: Plain) -> None:
    for line in sys.stdin:
        order = json.loads(line)
        if "id" in order:
            result = memory.reply(order["method"], order.get("params", {}))
            answer = {"jsonrpc": "2.0", "id": order["id"], "result": result}
            os.write(1, json.dumps(answer).encode() + b"\n")


def over_http(memory: Plain, port: int) -> None:
    """Needs a session and the key in $PLAIN_KEY; exits by $PLAIN_FATE: WORD before|after MARK.

    That happens once, in the call whose query has the word in it, before or after its reply.
    """
    sessions: set[str] = set()
    fate = os.environ.get("PLAIN_FATE", "").split()
    key = os.environ.get("PLAIN_KEY")

    def is_fatal(params: dict[str, Any]) -> bool:
        query = str(params.get("arguments", {}).get("query"))
        if not fate or fate[0] not in query or Path(fate[2]).exists():
            return False
        Path(fate[2]).touch()
        return True

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1  # in two pieces a reply waits for the client's acknowledgement

        def do_POST(self) -> None:
            order = json.loads(self.rfile.read(int(self.headers["content-length"])))
            session = self.headers.get("mcp-session-id") or f"of-{os.getpid()}-{len(sessions)}"
            if order["method"] == "initialize":
                sessions.add(session)
            if key and self.headers.get("authorization") != f"Bearer {key}":
                self._say(401)
            elif session not in sessions:
                self._say(404)
            elif "id" not in order:
                self._say(202)
            else:
                self._answer(order, order.get("params", {}), session)

        def _answer(self, order: dict[str, Any], params: dict[str, Any], session: str) -> None:
            dies = fate[1] if is_fatal(params) else ""
            if dies == "before":
                os._exit(1)
            result = memory.reply(order["method"], params)
            self._say(200, {"jsonrpc": "2.0", "id": order["id"], "result": result}, session)
            if dies == "after":
                self.wfile.flush()
                os._exit(1)

        def do_GET(self) -> None:
            self._say(405)

        def do_DELETE(self) -> None:
            self._say(200)

        def _say(self, status: int, body: Any = None, session: str = "") -> None:
            said = b"" if body is None else json.dumps(body).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(said)))
            if session:
                self.send_header("mcp-session-id", session)
            self.end_headers()
            self.wfile.write(said)

        def log_message(self, format: str, *args: object) -> None:
            pass

    ThreadingHTTPServer(("127.0.0.1", port), Handler).serve_forever()


KINDS: dict[str, Callable[[Any], None]] = {"ranked": ranked, "tags": tags, "substring": substring}


def main(kind: str, *words: str) -> None:
    if words and words[0] != "--port":
        # A child of the server, which would go on after the server's end.
        started = subprocess.Popen(["sleep", "600"], stdin=subprocess.DEVNULL)
        for pid in (os.getpid(), started.pid):
            (Path(words[0]) / str(pid)).touch()
    if kind == "plain":
        over_http(Plain(), int(words[1])) if words[:1] == ("--port",) else over_stdio(Plain())
        return
    global ToolError
    from mcp.server.mcpserver import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server: Any = MCPServer(name=f"test-{kind}", version="1.0", log_level="CRITICAL")
    KINDS[kind](server)
    if words[:1] == ("--port",):
        server.run("streamable-http", port=int(words[1]))
    else:
        server.run("stdio")


if __name__ == "__main__":
    main(*sys.argv[1:])
