"""An HTTP server on a real socket that sends the replies of a test, valid or not, and counts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import MappingProxyType
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit


class Call(NamedTuple):
    """One request."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: Any


class Said(NamedTuple):
    body: Any = None
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})


Script = Callable[[Call], Said | bytes | None]
"""A reply; bytes to send before the connection is closed; or None to close it at once."""


class RawServer:
    """`with RawServer(script) as server`; with a port, it can reuse that of an earlier server."""

    def __init__(self, script: Script, port: int = 0) -> None:
        self.calls: list[Call] = []
        self.connections = 0
        self.ended = 0
        """Connections that were closed."""
        self.hangs_up = False
        """Whether it closes each connection after a reply, without announcing it."""
        outer = self

        class Connection(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1

            def setup(self) -> None:
                super().setup()
                outer.connections += 1

            def do_POST(self) -> None:
                given = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                parts = urlsplit(self.path)
                call = Call(
                    self.command,
                    unquote(parts.path),
                    dict(parse_qsl(parts.query)),
                    dict(self.headers),
                    json.loads(given) if given else None,
                )
                outer.calls.append(call)
                said = script(call)
                if not isinstance(said, Said):
                    self.close_connection = True
                    if said:
                        self.wfile.write(said)
                    return
                body = said.body if isinstance(said.body, bytes) else json.dumps(said.body).encode()
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)
                self.wfile.flush()
                self.close_connection = self.close_connection or outer.hangs_up

            do_GET = do_PUT = do_PATCH = do_DELETE = do_POST

            def log_message(self, format: str, *args: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def shutdown_request(self, request: Any) -> None:
                super().shutdown_request(request)
                outer.ended += 1

            def handle_error(self, request: Any, client_address: Any) -> None:
                pass

        self._server = Server(("127.0.0.1", port), Connection)
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def paths(self) -> list[str]:
        return [f"{call.method} {call.path}" for call in self.calls]

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def __enter__(self) -> RawServer:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(Exception):
            self.close()
