"""Connections: one for each thread of a process, and a whole exchange within its time.

HTTP libraries time single reads; here a server that sends a byte now and then is not waited for.
"""

from __future__ import annotations

import io
import select
import socket
import threading
import time
import weakref
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection, IncompleteRead
from typing import Any, NamedTuple
from urllib.parse import SplitResult

from mnemoscope._store.errors import BadReply

_LARGEST = 256 << 20
"""Bytes of a reply."""


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    data: bytes


class Sent(NamedTuple):
    method: str
    target: str
    body: bytes | None
    headers: Mapping[str, str]
    repeatable: bool


class Lines:
    """This process's connections, one for each thread."""

    def __init__(self) -> None:
        self._local = threading.local()
        # A thread that ends lets go of its connection.
        self._all: weakref.WeakSet[HTTPConnection] = weakref.WeakSet()

    def mine(self, parts: SplitResult) -> HTTPConnection:
        line: HTTPConnection | None = getattr(self._local, "line", None)
        if line is None:
            kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
            line = self._local.line = kind(parts.hostname or "", parts.port)
            self._all.add(line)
        return line

    def close(self) -> None:
        for line in list(self._all):
            line.close()


class _UntilFile(io.RawIOBase):
    """What a socket says until a moment, however slowly it says it."""

    def __init__(self, sock: socket.socket, until: float) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self._until = until

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        _leave_time(self._sock, self._until)
        return self._file.readinto(buffer)

    def close(self) -> None:
        self._file.close()
        super().close()


class _Until(NamedTuple):
    """The one thing that an HTTPResponse wants of a socket."""

    sock: socket.socket
    until: float

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_UntilFile(self.sock, self.until))


def exchanged(line: HTTPConnection, sent: Sent, until: float) -> Reply:
    assert line.sock is not None
    _leave_time(line.sock, until)
    headers = dict(sent.headers)
    if sent.body is not None:
        headers.setdefault("Content-Type", "application/json")
    line.response_class = lambda sock, **how: HTTPResponse(  # type: ignore[assignment]
        _Until(sock, until),  # type: ignore[arg-type]
        **how,
    )
    line.request(sent.method, sent.target, sent.body, headers)
    with line.getresponse() as response:
        data = response.read(_LARGEST)
        if not response.isclosed() and response.read(1):
            raise BadReply(f"a reply of more than {_LARGEST >> 20} MiB")
        if (response.length or 0) > 0:  # a read of so many bytes is content with fewer
            raise IncompleteRead(data, response.length)
    named = {name.lower(): value for name, value in response.getheaders()}
    return Reply(response.status, named, data)


def _leave_time(sock: socket.socket, until: float) -> None:
    left = until - time.monotonic()
    if left <= 0:
        raise TimeoutError
    sock.settimeout(left)


def has_something_to_read(sock: socket.socket) -> bool:
    watch = select.poll()
    watch.register(sock, select.POLLIN)
    return bool(watch.poll(0))
