"""A server for the HTTP connector, in Python, with only the standard library.

    python examples/adapters/http_adapter.py 8000 &
    mnemoscope run locomo --system http:http://localhost:8000 --out runs/toy

The same toy as python_adapter.py: it ranks memories by shared words. Put your own system in its
place; `mnemoscope serve http --contract` prints what is asked of it.
"""

from __future__ import annotations

import json
import re
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HELLO = {
    "name": "shared-words",
    "version": "1.0",
    "methods": ["reset", "remember", "recall", "forget", "close"],
}
spaces: dict[str, dict[str, set[str]]] = {}


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def reply(path: str, asked: Any) -> tuple[int, Any]:
    if path in ("/health", "/v1/hello"):
        return 200, HELLO
    space = asked["space"]
    if path == "/v1/reset":
        spaces[space] = {}
        return 200, {}
    if path == "/v1/close":
        spaces.pop(space, None)
        return 200, {}
    if space not in spaces:  # after a restart; Mnemoscope then sends all memories again
        return 410, {"error": {"message": "reset this space first"}}
    held = spaces[space]
    if path == "/v1/remember":
        silent = [memory["id"] for memory in asked["memories"] if not words(memory["text"])]
        held.update({m["id"]: words(m["text"]) for m in asked["memories"] if m["id"] not in silent})
        return 200, {"rejected": dict.fromkeys(silent, "no words in it")}
    if path == "/v1/forget":
        for memory in asked["memories"]:
            held.pop(memory["id"], None)
        return 200, {}
    if path == "/v1/recall":
        query = words(asked["query"]["text"])
        scored = [(id, len(query & said)) for id, said in reversed(held.items())]
        return 200, {"hits": sorted(scored, key=lambda hit: -hit[1])[: asked["k"]]}
    return 404, {"error": {"message": f"{path} is not served here"}}


class Connection(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"  # keeps connections open, which saves a millisecond a call
    disable_nagle_algorithm = True  # saves 40 milliseconds a call
    wbufsize = -1

    def do_POST(self) -> None:
        try:
            given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = reply(self.path, json.loads(given or b"{}"))
        except Exception as error:
            status, body = 500, {"error": {"message": f"{type(error).__name__}: {error}"}}
        said = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        self.wfile.write(said)
        self.wfile.flush()

    do_GET = do_POST

    def log_message(self, format: str, *args: Any) -> None:
        pass


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Connection)
    sys.stderr.write(f"at http://127.0.0.1:{server.server_port}\n")
    server.serve_forever()
