"""The HTTP client: persistent connections, a deadline for the whole exchange, a size limit.

HTTP libraries limit the time of single reads, so a server that sends a byte now and then is waited
for without end. Here each read and write gets the time that is left for the exchange.
"""

from __future__ import annotations

import re
import threading
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, Literal, NamedTuple
from urllib.parse import quote, urljoin, urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2
import msgspec

from mnemoscope import __version__
from mnemoscope._store.errors import UsageError
from mnemoscope.models.http_errors import PerProcess

LARGEST_REPLY = 256 << 20
"""Bytes."""
_IDLE_SECONDS = 30.0
_MOST_REDIRECTS = 5
_PORTS = {"http": 80, "https": 443}
_PIECE = 1 << 20
"""Bytes that are unpacked at once."""
_GZIP_OR_ZLIB = 47
"""For zlib: a window of 32 KiB, and either header."""
_PRINTABLE = "".join(map(chr, range(33, 127)))
_HEADER_NAME = re.compile(r"[!#-'*+.^-z|~\w-]+", re.ASCII)
_HEADER_VALUE = re.compile(r"[\t -~\xa0-\xff]*")


class HttpReply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    data: bytes


FailureKind = Literal["connect", "connect timeout", "timeout", "lost", "stale", "protocol", "size"]
"""`stale`: the server closed the persistent connection before it could see the request."""


class HttpFailure(Exception):
    """No complete reply came. It contains no part of the request, and so no key."""

    def __init__(self, kind: FailureKind, reason: str, cause: BaseException | None = None) -> None:
        super().__init__(reason)
        self.kind = kind
        self.cause = cause
        """The first error in the chain, from the operating system or the parser."""


class HttpClient:
    """All exchanges with one server. Threads share its connections, processes do not."""

    def __init__(
        self, base_url: str, *, proxies: bool, redirects: bool, connect: float | None = None
    ) -> None:
        """`connect` limits the seconds for making a connection; None means no separate limit.

        With `redirects`, a request is repeated at another path of the same server, if the server
        says so. It is never sent to another one, which would get the key.
        """
        self._base_url = base_url
        self._proxies = proxies
        self._redirects = redirects
        self._connect = connect
        self._client = PerProcess(self._open)

    def exchange(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str],
        seconds: float,
    ) -> HttpReply:
        """The reply to one request, of any status; HttpFailure if none comes in time."""
        sent = _encoded(headers)
        with _within(seconds) as exchange:
            try:
                reply = self._received(method, url, body, sent)
                for _ in range(_MOST_REDIRECTS if self._redirects else 0):
                    if (target := _same_server(reply, url)) is None:
                        break
                    url = target
                    reply = self._received(method, url, body, sent)
                return reply
            except (httpx2.RequestError, httpx2.InvalidURL) as error:
                failure = _failure(error, exchange)
        # Not inside the block: the library's error contains the request with its headers.
        raise failure

    def _received(
        self, method: str, url: str, body: bytes | None, headers: list[tuple[bytes, bytes]]
    ) -> HttpReply:
        # The target is passed unchanged, because the library refuses a long URL.
        target = urlsplit(url)._replace(scheme="", netloc="").geturl()
        extensions = {"target": quote(target, safe=_PRINTABLE)}
        how: dict[str, Any] = {"content": body, "headers": headers, "extensions": extensions}
        data = bytearray()
        with self._client.get().stream(method, self._base_url, **how) as reply:
            for piece in _unpacked(reply):
                data += piece
                if len(data) > LARGEST_REPLY:
                    raise HttpFailure("size", f"a reply of more than {LARGEST_REPLY >> 20} MiB")
        return HttpReply(reply.status_code, dict(reply.headers), bytes(data))

    def post_json(
        self, url: str, body: Any, headers: Mapping[str, str], seconds: float
    ) -> HttpReply:
        json = {"Accept": "application/json", "Content-Type": "application/json"}
        content = msgspec.json.encode(body)
        return self.exchange("POST", url, content, headers={**headers, **json}, seconds=seconds)

    def connect(self, seconds: float) -> None:
        """Check that the server accepts a connection, without sending a request."""
        url = httpx2.URL(self._base_url)
        is_secure = url.scheme == "https"
        with _within(seconds) as exchange:
            try:
                port = url.port or (443 if is_secure else 80)
                made = _Backend().connect_tcp(url.host, port, self._connect)
                if is_secure:
                    made = made.start_tls(httpx2.create_ssl_context(), url.host, self._connect)
                made.close()
                return
            except (httpcore2.ConnectError, httpcore2.TimeoutException) as error:
                failure = _failure(error, exchange)
        raise failure

    def close(self) -> None:
        """Close all connections of this process; the next exchange makes new ones."""
        if (client := self._client.drop()) is not None:
            client.close()

    def _open(self) -> httpx2.Client:
        return httpx2.Client(
            transport=_Transport(self._base_url, self._proxies),
            timeout=httpx2.Timeout(None, connect=self._connect),
            follow_redirects=False,
            headers={
                "User-Agent": f"mnemoscope/{__version__}",
                "Accept-Encoding": "gzip, deflate",
            },
            # A cookie would carry state from one exchange to the next.
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            trust_env=False,
        )


class _Exchange:
    """The time that one exchange of a thread has left, and its progress."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self.connected = False
        """Whether it made a new connection; else it uses a persistent one."""
        self.received = False
        self.ended = False
        """Whether the server closed the connection."""

    def left(self, timeout: float | None) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise httpcore2.ReadTimeout("the time for the whole exchange is over")
        return left if timeout is None else min(timeout, left)


_local = threading.local()


@contextmanager
def _within(seconds: float) -> Iterator[_Exchange]:
    _local.exchange = _Exchange(seconds)
    try:
        yield _local.exchange
    finally:
        del _local.exchange


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data = self._inner.read(max_bytes, _local.exchange.left(timeout))
        if data:
            _local.exchange.received = True
        else:
            _local.exchange.ended = True
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _local.exchange.left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = _local.exchange.left(timeout)
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class _Backend(httpcore2.SyncBackend):
    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.NetworkStream:
        left = _local.exchange.left(timeout)
        made = super().connect_tcp(host, port, left, local_address, socket_options)
        _local.exchange.connected = True
        return _Stream(made)


class _Transport(httpx2.HTTPTransport):
    """httpx2's transport with a pool whose connections keep the deadline."""

    def __init__(self, base_url: str, proxies: bool) -> None:
        is_secure = base_url.startswith("https:")
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context() if is_secure else None,
            proxy=_proxy_for(base_url) if proxies else None,
            max_connections=None,
            keepalive_expiry=_IDLE_SECONDS,
            network_backend=_Backend(),
        )


def _same_server(reply: HttpReply, url: str) -> str | None:
    """Where a reply sends the same request, if that is on the same server."""
    if reply.status not in (307, 308) or "location" not in reply.headers:
        return None
    try:
        target = urljoin(url, reply.headers["location"])
        return target if _origin(target) == _origin(url) else None
    except ValueError:
        return None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or _PORTS.get(parts.scheme)


def _unpacked(reply: httpx2.Response) -> Iterator[bytes]:
    """The body in pieces of limited size: the library would unpack gigabytes at once."""
    encoding = reply.headers.get("content-encoding", "").strip().lower() or "identity"
    if encoding == "identity":
        yield from reply.iter_raw()
        return
    if encoding not in ("gzip", "x-gzip", "deflate"):
        raise HttpFailure("protocol", f"its reply is encoded as {encoding!r:.40}, unasked")
    unpack = zlib.decompressobj(_GZIP_OR_ZLIB)
    try:
        for piece in reply.iter_raw():
            left = piece
            while left:
                yield unpack.decompress(left, _PIECE)
                left = unpack.unconsumed_tail
    except zlib.error as error:
        raise HttpFailure("protocol", f"its reply cannot be unpacked: {error}") from None
    if not unpack.eof:
        raise HttpFailure("protocol", "its compressed reply is incomplete")


def _proxy_for(base_url: str) -> httpcore2.Proxy | None:
    """The proxy that the environment names for this address."""
    address = urlsplit(base_url)
    named = getproxies()
    url = named.get(address.scheme) or named.get("all")
    return httpcore2.Proxy(url) if url and not proxy_bypass(address.hostname or "") else None


def _encoded(headers: Mapping[str, str]) -> list[tuple[bytes, bytes]]:
    """The headers as bytes. The library's error for a wrong one would show the key in it."""
    for name, value in headers.items():
        if not _HEADER_VALUE.fullmatch(value) or not _HEADER_NAME.fullmatch(name):
            raise UsageError(f"the header {name!r:.80} contains characters that are not allowed")
    return [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]


def _failure(error: Exception, exchange: _Exchange) -> HttpFailure:
    cause: BaseException = error
    while (earlier := cause.__cause__ or cause.__context__) is not None:
        cause = earlier
    kind: FailureKind = "stale" if not (exchange.connected or exchange.received) else "lost"
    match error:
        case httpx2.ConnectTimeout() | httpcore2.ConnectTimeout():
            kind = "connect timeout"
        case httpx2.TimeoutException() | httpcore2.TimeoutException():
            kind = "timeout"
        case httpx2.ConnectError() | httpcore2.ConnectError():
            kind = "connect"
        case httpx2.ProtocolError() | httpx2.InvalidURL() if not exchange.ended:
            kind = "protocol"
    return HttpFailure(kind, str(error), cause)
