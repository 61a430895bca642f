"""A small JSON-over-HTTP server on the standard library, with limits on what clients may use.

Connections are kept alive and each reply is one write without Nagle's delay. Otherwise every call
would take 40 ms longer, and measured latencies would be wrong.
"""

from __future__ import annotations

import io
import socket
import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.lenient_json import decoded, encoded
from mnemoscope._store.server_access import check_host, check_origin, check_reach, has_key

_BLOCK = 1 << 20
_DISCARDED = 1 << 20
"""Bytes of a refused body that are read, so that the client can read the reply."""
_SHOWN = 500
"""Characters of an error message."""
_ALLOW_HOST = "; if clients must use this name, start the server with --allow-host"


class ServerLimits(NamedTuple):
    """What clients may use of a server."""

    connections: int = 256
    waiting_seconds: float = 5.0
    """How long a further connection waits for one that ends."""
    body_bytes: int = 256 << 20
    total_bytes: int = 512 << 20
    """Of all requests together that are received or served at one time."""
    header_seconds: float = 10.0
    """From the first byte of a request, and from a new connection, to the end of the headers."""
    body_seconds: float = 60.0
    reply_seconds: float = 60.0
    """How long a client may take to receive a reply."""
    idle_seconds: float = 60.0
    """How long a connection is kept between two requests."""


class JsonRequest(NamedTuple):
    """A request to the server."""

    body: Any
    """Decoded; None if the request has no body."""
    headers: Mapping[str, str]
    """Names in lower case."""
    query: str = ""
    """What follows `?` in the address, as it was sent."""


class JsonReply(NamedTuple):
    """A reply with a status or headers other than a plain 200."""

    body: Any
    """Bytes are sent as they are, and the headers then have their Content-Type."""
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
        self,
        routes: Mapping[str, Handler],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str = "",
        keyless: Collection[str] = (),
        allow_hosts: Collection[str] | None = (),
        limits: ServerLimits | None = None,
    ) -> None:
        """With a `key`, clients must send it as a Bearer token, except to the `keyless` routes.

        Beyond loopback a key is required. `allow_hosts` are further names that clients may use for
        this server; None if its command has no option for them.
        """
        check_reach(host, key)
        kind = _ThreadingServerV6 if ":" in host else _ThreadingServer
        try:
            self._server = kind((host, port), _RequestHandler)
        except (OSError, OverflowError, UnicodeError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise MnemoscopeError(
                f"cannot listen on {host}:{port}: {reason}; choose another port or host"
            ) from None
        self._server.serve(
            dict(routes),
            key,
            frozenset(keyless),
            frozenset(name.lower() for name in (host, *(allow_hosts or ())) if name),
            limits or ServerLimits(),
        )
        self._server.can_allow_hosts = allow_hosts is not None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        host, port = map(str, self._server.server_address[:2])
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def limits(self) -> ServerLimits:
        return self._server.limits

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
    can_allow_hosts = True

    def serve(
        self,
        routes: dict[str, Handler],
        key: str,
        keyless: frozenset[str],
        hosts: frozenset[str],
        limits: ServerLimits,
    ) -> None:
        """Set what is served to whom; call it before the first request."""
        self.routes, self.key, self.keyless, self.hosts = routes, key, keyless, hosts
        self.limits = limits
        self._free = threading.BoundedSemaphore(limits.connections)
        self._bytes = 0
        self._bytes_lock = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve a connection in a thread; if too many are open, wait for one that ends."""
        if self._free.acquire(timeout=self.limits.waiting_seconds):
            super().process_request(request, client_address)
            return
        with suppress(OSError):
            request.settimeout(0)
            request.send(_TOO_MANY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def hold(self, size: int) -> bool:
        """Count the bytes of a request; False if all requests together would have too many."""
        with self._bytes_lock:
            if size > 0 and self._bytes + size > self.limits.total_bytes:
                return False
            self._bytes += size
            return True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing when a client closes the connection."""


class _ThreadingServerV6(_ThreadingServer):
    address_family = socket.AF_INET6


class _DeadlineReader(io.RawIOBase):
    """Reads from a socket until a deadline, however many reads that takes.

    A timeout for single reads would wait without end for a client that sends a byte now and then.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.until = 0.0
        self.seconds_after_first = 0.0
        """If not 0, the first bytes move the deadline to this many seconds from then."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self._connection.settimeout(left)
        size = self._connection.recv_into(buffer)
        if self.seconds_after_first:
            self.until = time.monotonic() + self.seconds_after_first
            self.seconds_after_first = 0.0
        return size


class _ClientGone(Exception):
    """The client closed the connection before its request was complete."""


class _RequestHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    server: _ThreadingServer

    def setup(self) -> None:
        super().setup()
        self._limits = self.server.limits
        self._input = _DeadlineReader(self.connection)
        self._input.until = time.monotonic() + self._limits.header_seconds
        self.rfile = io.BufferedReader(self._input)

    def handle_one_request(self) -> None:
        self._held = self._unread = 0
        try:
            super().handle_one_request()
            self._discard()
        finally:
            self.server.hold(-self._held)
        self._input.until = time.monotonic() + self._limits.idle_seconds
        self._input.seconds_after_first = self._limits.header_seconds

    def do_GET(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def log_message(self, format: str, *args: Any) -> None:
        """Print nothing: a line for each request would hide other messages on stderr."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Reply to a request that is not HTTP, or whose method is not known."""
        self.close_connection, self.request_version = True, self.protocol_version
        reply = _failure(Refused(code, f"the request is not served: {message or code}"))
        self._send(reply, encoded(reply.body))

    def _serve(self) -> None:
        try:
            reply = self._reply()
            body = reply.body if isinstance(reply.body, bytes) else encoded(reply.body)
        except _ClientGone:
            self._unread, self.close_connection = 0, True
            return
        except BaseException as error:  # a system may raise SystemExit; this is not the main thread
            reply = _failure(error)
            body = encoded(reply.body)
        self._send(reply, body)

    def _send(self, reply: JsonReply, body: bytes) -> None:
        self.connection.settimeout(self._limits.reply_seconds)
        self.send_response(reply.status)
        if not isinstance(reply.body, bytes):
            self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _reply(self) -> JsonReply:
        self._unread = self._length()
        path, _, query = self.path.partition("?")
        route = f"{self.command} {path.rstrip('/') or '/'}"
        headers = {name.lower(): value for name, value in self.headers.items()}
        self._check_client(route, headers)
        given = self._body()
        handler = self.server.routes.get(route)
        if handler is None:
            known = ", ".join(sorted(self.server.routes))
            raise Refused(404, f"{route} is not served here; available: {known}")
        try:
            body = decoded(given, nan=False) if given else None
        except ValueError as error:
            raise Refused(400, f"the request cannot be read: {error}") from None
        answer = handler(JsonRequest(body, headers, query))
        return answer if isinstance(answer, JsonReply) else JsonReply(answer)

    def _check_client(self, route: str, headers: Mapping[str, str]) -> None:
        """Refuse web pages and clients without the key, before the body is read."""
        hosts = self.headers.get_all("Host", [])
        local = str(self.connection.getsockname()[0]).removeprefix("::ffff:")
        given = hosts[0] if len(hosts) == 1 else ""
        if wrong := check_host(given, self.server.hosts, local):
            raise Refused(421, f"{wrong}{_ALLOW_HOST if self.server.can_allow_hosts else ''}")
        if wrong := check_origin(headers):
            raise Refused(403, wrong)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        # A web page can send other types without asking the server first.
        if self.command == "POST" and kind != "application/json":
            raise Refused(415, "send the header Content-Type: application/json")
        if route not in self.server.keyless and not has_key(
            headers.get("authorization", ""), self.server.key
        ):
            raise Refused(401, "this server requires its key as a Bearer token")

    def _length(self) -> int:
        given = self.headers.get_all("Content-Length", ["0"])
        length = given[0].strip()
        ends = self.close_connection
        self.close_connection = True  # where a body of unknown length ends cannot be known
        if "Transfer-Encoding" in self.headers:
            raise Refused(411, "send Content-Length: chunked requests are not supported")
        most = self._limits.body_bytes
        is_number = length.isascii() and length.isdecimal() and len(length) < 19
        if len(set(given)) > 1 or not is_number or int(length) > most:
            raise Refused(413, f"a request of {length:.40} bytes; at most {most} are accepted")
        self.close_connection = ends
        return int(length)

    def _body(self) -> bytes:
        self._input.until = time.monotonic() + self._limits.body_seconds
        body = bytearray()
        try:
            while self._unread:
                size = min(self._unread, _BLOCK)
                if not self.server.hold(size):
                    raise Refused(503, "the server is receiving too much at once; try again later")
                self._held += size
                block = self.rfile.read(size)
                if len(block) < size:
                    raise _ClientGone
                body += block
                self._unread -= size
        except TimeoutError:
            self._unread, self.close_connection = 0, True
            seconds = self._limits.body_seconds
            raise Refused(408, f"the request did not arrive within {seconds:g} s") from None
        except ConnectionError:
            raise _ClientGone from None
        return bytes(body)

    def _discard(self) -> None:
        """Read the rest of a refused body; after a long one the connection is closed."""
        self.close_connection = self.close_connection or self._unread > _DISCARDED
        self._input.until = time.monotonic() + self._limits.header_seconds
        with suppress(TimeoutError, ConnectionError):
            self.rfile.read(min(self._unread, _DISCARDED))


def _failure(error: BaseException) -> JsonReply:
    """The error as JSON, in the shape that OpenAI clients read."""
    status, message = 500, f"{type(error).__name__}: {error}"
    if isinstance(error, Refused):
        status, message = error.status, str(error)
    headers = {"Retry-After": "1"} if status == 503 else {}
    shown = {"message": message[:_SHOWN], "type": "mnemoscope"}
    return JsonReply({"error": shown}, status, headers)


_TOO_MANY = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: 79\r\n"
    b"Retry-After: 1\r\nConnection: close\r\n\r\n"
    b'{"error": {"message": "too many connections; try again", "type": "mnemoscope"}}'
)
