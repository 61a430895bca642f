"""The small JSON server: what it serves, what it refuses, and that it keeps connections."""

from __future__ import annotations

import http.client
import json
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.json_server import JsonReply, JsonRequest, JsonServer, Refused


def _echo(request: JsonRequest) -> Any:
    return {"body": request.body, "said": request.headers.get("x-said", "")}


def _half(request: JsonRequest) -> Any:
    return {"half": "\ud83d", "taken": request.body}


def _unspeakable(request: JsonRequest) -> Any:
    return object()


def _refuse(request: JsonRequest) -> Any:
    raise Refused(409, "not today")


def _break(request: JsonRequest) -> Any:
    raise ValueError("a bug")


def _wait(request: JsonRequest) -> Any:
    return JsonReply({"state": "indexing"}, 202, {"Retry-After": "1"})


@pytest.fixture
def server() -> Iterator[JsonServer]:
    running = JsonServer(
        {
            "POST /echo": _echo,
            "GET /echo": _echo,
            "POST /half": _half,
            "POST /unspeakable": _unspeakable,
            "POST /refuse": _refuse,
            "POST /break": _break,
            "POST /wait": _wait,
        }
    ).start()
    yield running
    running.close()


@pytest.fixture
def connection(server: JsonServer) -> Iterator[http.client.HTTPConnection]:
    where = urlsplit(server.url)
    assert where.hostname
    made = http.client.HTTPConnection(where.hostname, where.port, timeout=10)
    yield made
    made.close()


def _ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None
) -> tuple[int, Any, dict[str, str]]:
    headers = {"X-Said": "hello", "Content-Type": "application/json"}
    connection.request(method, path, body, headers)
    reply = connection.getresponse()
    return reply.status, json.loads(reply.read()), dict(reply.headers)


def test_requests_reach_their_handlers(connection: http.client.HTTPConnection) -> None:
    assert _ask(connection, "POST", "/echo", b'{"a": [1, "\xc3\xa4"]}')[:2] == (
        200,
        {"body": {"a": [1, "ä"]}, "said": "hello"},
    )
    assert _ask(connection, "GET", "/echo/?x=1")[:2] == (200, {"body": None, "said": "hello"})


def test_statuses_and_headers_are_the_handlers(connection: http.client.HTTPConnection) -> None:
    status, body, headers = _ask(connection, "POST", "/wait")
    assert (status, body, headers["Retry-After"]) == (202, {"state": "indexing"}, "1")
    assert _ask(connection, "POST", "/refuse")[:2] == (
        409,
        {"error": {"message": "not today", "type": "mnemoscope"}},
    )
    status, body, _ = _ask(connection, "POST", "/break")
    assert status == 500
    assert body["error"]["message"] == "ValueError: a bug"


def test_invalid_requests_are_refused_and_the_connection_stays_open(
    connection: http.client.HTTPConnection,
) -> None:
    connection.connect()
    kept = connection.sock
    assert _ask(connection, "POST", "/echo", b"{no json")[0] == 400
    status, body, _ = _ask(connection, "POST", "/nowhere", b'{"unread": 1}')
    assert status == 404
    assert "POST /echo" in body["error"]["message"]
    assert _ask(connection, "POST", "/echo", b"1")[1]["body"] == 1
    assert connection.sock is kept


def test_chunked_and_too_large_requests_are_refused(server: JsonServer) -> None:
    where = urlsplit(server.url)
    for header, status in (
        (b"Transfer-Encoding: chunked", b"411"),
        (b"Content-Length: 99999999999", b"413"),
        (b"Content-Length: many", b"413"),
    ):
        with socket.create_connection((where.hostname, where.port or 0), timeout=10) as raw:
            raw.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\n" + header + b"\r\n\r\n")
            assert raw.recv(100).split()[1] == status


def test_values_outside_strict_json_are_sent_and_read(
    connection: http.client.HTTPConnection,
) -> None:
    """A dropped connection would be taken for a server that died."""
    said = _ask(connection, "POST", "/half", b'["\\ud83d", 1]')
    assert said[:2] == (200, {"half": "\ud83d", "taken": ["\ud83d", 1]})
    assert _ask(connection, "POST", "/unspeakable")[0] == 500
    assert _ask(connection, "POST", "/echo", b"[" * 100_000)[0] == 400


def test_an_unusable_address_is_named() -> None:
    for host, port in (("127.0.0.1", 70_000), ("256.0.0.1", 0), ("a" * 80, 0)):
        with pytest.raises(MnemoscopeError, match=f"cannot listen on {host}:{port}: "):
            JsonServer({}, host=host, port=port)


def test_a_port_that_is_taken_is_named(server: JsonServer) -> None:
    port = urlsplit(server.url).port
    assert port
    with pytest.raises(MnemoscopeError, match=f"127.0.0.1:{port}: .*choose another port"):
        JsonServer({}, port=port)
