"""A client that sends bytes to a server, valid HTTP or not, and reads the reply."""

from __future__ import annotations

import json
import socket
from typing import Any, NamedTuple
from urllib.parse import urlsplit


class RawReply(NamedTuple):
    status: int
    headers: dict[str, str]
    """Names in lower case."""
    body: Any

    @property
    def message(self) -> str:
        return str(self.body["error"]["message"])


def connected(url: str) -> socket.socket:
    where = urlsplit(url)
    return socket.create_connection((where.hostname or "", where.port or 0), timeout=20)


def request(
    method: str, path: str, body: bytes = b"", headers: dict[str, str] | None = None
) -> bytes:
    """The bytes of a request; a header that is empty is left out."""
    sent = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        **(headers or {}),
    }
    lines = [f"{method} {path} HTTP/1.1", *(f"{n}: {v}" for n, v in sent.items() if v), "", ""]
    return "\r\n".join(lines).encode("latin-1") + body


def read_reply(connection: socket.socket) -> RawReply:
    with connection.makefile("rb") as stream:
        status = int(stream.readline().split()[1])
        headers = {}
        while line := stream.readline().strip():
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        return RawReply(status, headers, json.loads(stream.read(int(headers["content-length"]))))


def ask(url: str, sent: bytes) -> RawReply:
    with connected(url) as connection:
        connection.sendall(sent)
        return read_reply(connection)


def is_closed(connection: socket.socket) -> bool:
    """Wait until the server closes the connection; False if it says anything first."""
    try:
        return connection.recv(1) == b""
    except ConnectionResetError:
        return True
