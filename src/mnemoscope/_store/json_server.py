"""A small JSON-over-HTTP server on the standard library, for services on the loopback interface.

Connections are kept alive and each reply is one write without Nagle's delay. Otherwise every call
would take 40 ms longer, and measured latencies would be wrong.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.lenient_json import decoded, encoded

_LARGEST = 256 << 20
"""Bytes of a request."""


class JsonRequest(NamedTuple):
    """A request to the server."""

    body: Any
    """Decoded; None if the request has no body."""
    headers: Mapping[str, str]
    """Names in lower case."""


class JsonReply(NamedTuple):
    """A reply with a status or headers other than a plain 200."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}


class Refused(Exception):
    """A request that cannot be served, with the HTTP status to return."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


Handler = Callable[[JsonRequest], Any]


class JsonServer:
    """Routes such as `POST /v1/embeddings` to functions that take a request and return JSON."""

    def __init__(
        self, routes: Mapping[str, Handler], *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        kind = _ThreadingServerV6 if ":" in host else _ThreadingServer
        try:
            self._server = kind((host, port), _RequestHandler)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise MnemoscopeError(
                f"cannot listen on {host}:{port}: {reason}; choose another port or host"
            ) from None
        self._server.routes = dict(routes)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, port = map(str, self._server.server_address[:2])
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    def start(self) -> JsonServer:
        """Serve in a thread of this process."""
        self._thread = threading.Thread(target=self.serve_forever, daemon=True)
        self._thread.start()
        return self

    def serve_forever(self) -> None:
        self._server.serve_forever(poll_interval=0.1)

    def close(self) -> None:
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join()
        self._server.server_close()


class _ThreadingServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    routes: dict[str, Handler]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing when a client closes the connection."""


class _ThreadingServerV6(_ThreadingServer):
    address_family = socket.AF_INET6


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _ThreadingServer

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a line for each request would hide other messages on stderr."""

    def _serve(self) -> None:
        try:
            reply = self._reply()
            body = encoded(reply.body)
        except Exception as error:
            reply = _failure(error)
            body = encoded(reply.body)
        self.send_response(reply.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _reply(self) -> JsonReply:
        given = self._body()  # always: unread bytes would be taken for the next request
        path = self.path.partition("?")[0].rstrip("/") or "/"
        handler = self.server.routes.get(f"{self.command} {path}")
        if handler is None:
            known = ", ".join(sorted(self.server.routes))
            raise Refused(404, f"{self.command} {path} is not served here; available: {known}")
        try:
            body = decoded(given) if given else None
        except ValueError:
            raise Refused(400, "the request is not JSON") from None
        headers = {name.lower(): value for name, value in self.headers.items()}
        answer = handler(JsonRequest(body, headers))
        return answer if isinstance(answer, JsonReply) else JsonReply(answer)

    def _body(self) -> bytes:
        length = self.headers.get("Content-Length", "0")
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            self.close_connection = True
            raise Refused(411, "send Content-Length: chunked requests are not supported")
        if not length.isdecimal() or int(length) > _LARGEST:
            self.close_connection = True
            raise Refused(413, f"a request of {length} bytes; at most {_LARGEST} are accepted")
        return self.rfile.read(int(length))


def _failure(error: Exception) -> JsonReply:
    """The error as JSON, in the shape that OpenAI clients read."""
    status, message = 500, f"{type(error).__name__}: {error}"
    if isinstance(error, Refused):
        status, message = error.status, str(error)
    return JsonReply({"error": {"message": message, "type": "mnemoscope"}}, status)
