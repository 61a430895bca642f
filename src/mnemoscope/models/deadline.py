"""A transport for the SDKs' HTTP clients that keeps a deadline for the whole exchange.

HTTP clients time single reads, so a server that sends a byte now and then is waited for for ever.
Here each read and write of a thread gets what is left of that thread's time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import httpcore2
import httpx2

_local = threading.local()


@contextmanager
def within(seconds: float) -> Iterator[None]:
    """What this thread sends and receives in the block must be done by then."""
    _local.deadline = time.monotonic() + seconds
    try:
        yield
    finally:
        _local.deadline = None


def _left(timeout: float | None) -> float | None:
    deadline: float | None = getattr(_local, "deadline", None)
    if deadline is None:
        return timeout
    left = deadline - time.monotonic()
    if left <= 0:
        raise httpcore2.ReadTimeout("the time for the whole exchange is over")
    return left if timeout is None else min(timeout, left)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, inner: httpcore2.NetworkStream) -> None:
        self._inner = inner

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return self._inner.read(max_bytes, _left(timeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._inner.write(buffer, _left(timeout))

    def close(self) -> None:
        self._inner.close()

    def start_tls(
        self,
        ssl_context: Any,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore2.NetworkStream:
        return _Stream(self._inner.start_tls(ssl_context, server_hostname, _left(timeout)))

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
        made = super().connect_tcp(host, port, _left(timeout), local_address, socket_options)
        return _Stream(made)


@contextmanager
def _as_the_sdks_know_it() -> Iterator[None]:
    """The core's failures under the names of the client that the SDKs are written for."""
    try:
        yield
    except tuple(_NAMES) as error:
        kind = next(_NAMES[one] for one in type(error).__mro__ if one in _NAMES)
        raise kind(str(error)) from error


_NAMES: dict[type[Exception], type[httpx2.TransportError]] = {
    getattr(httpcore2, name): getattr(httpx2, name)
    for name in (
        "TimeoutException",
        "ConnectTimeout",
        "ReadTimeout",
        "WriteTimeout",
        "PoolTimeout",
        "NetworkError",
        "ConnectError",
        "ReadError",
        "WriteError",
        "ProxyError",
        "ProtocolError",
        "RemoteProtocolError",
        "LocalProtocolError",
        "UnsupportedProtocol",
    )
}


class _Body(httpx2.SyncByteStream):
    def __init__(self, stream: Iterable[bytes]) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[bytes]:
        with _as_the_sdks_know_it():
            yield from self._stream

    def close(self) -> None:
        if hasattr(self._stream, "close"):
            self._stream.close()


class _Transport(httpx2.BaseTransport):
    def __init__(self, base_url: str) -> None:
        self._pool = httpcore2.ConnectionPool(
            ssl_context=httpx2.create_ssl_context(),
            proxy=_proxy_for(base_url),
            max_connections=None,
            keepalive_expiry=30.0,
            network_backend=_Backend(),
        )

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        assert isinstance(request.stream, httpx2.SyncByteStream)
        wanted = httpcore2.Request(
            method=request.method,
            url=httpcore2.URL(
                scheme=request.url.raw_scheme,
                host=request.url.raw_host,
                port=request.url.port,
                target=request.url.raw_path,
            ),
            headers=request.headers.raw,
            content=request.stream,
            extensions=request.extensions,
        )
        with _as_the_sdks_know_it():
            response = self._pool.handle_request(wanted)
        assert isinstance(response.stream, Iterable)
        return httpx2.Response(
            response.status,
            headers=response.headers,
            stream=_Body(response.stream),
            extensions=response.extensions,
        )

    def close(self) -> None:
        self._pool.close()


def client_for(base_url: str) -> httpx2.Client:
    """A client for one server, with as many connections as are asked for at once."""
    return httpx2.Client(transport=_Transport(base_url), timeout=None, follow_redirects=True)


def _proxy_for(base_url: str) -> httpcore2.Proxy | None:
    """The proxy that the environment names for this address."""
    address = urlsplit(base_url)
    host = address.hostname or ""
    named = getproxies()
    url = named.get(address.scheme) or named.get("all")
    return httpcore2.Proxy(url) if url and not proxy_bypass(host) else None
