"""What one client may use of a server: time, bytes, connections, spaces. The server lives on."""

from __future__ import annotations

import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.serving.raw_client import ask, connected, is_closed, read_reply, request
from tests.waiting import eventually

from mnemoscope._store.errors import UsageError
from mnemoscope._store.json_server import JsonServer, ServerLimits
from mnemoscope._store.spec import Spec
from mnemoscope.models.openai_server import OpenAIServer
from mnemoscope.serving.http_server import HttpServer
from mnemoscope.serving.sessions import NoSuchSession, Sessions
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query

Start = Callable[..., str]
SHORT = ServerLimits(
    header_seconds=0.3, body_seconds=0.3, idle_seconds=0.3, reply_seconds=0.3, waiting_seconds=0.1
)


def big(request: Any) -> str:
    return "x" * (32 << 20)


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[JsonServer] = []

    def started(routes: dict[str, Any] | None = None, **limits: Any) -> str:
        served = {"POST /echo": lambda request: request.body, "GET /big": big, **(routes or {})}
        servers.append(JsonServer(served, limits=SHORT._replace(**limits)))
        return servers[-1].start().url

    yield started
    for server in servers:
        server.close()


def lives(url: str) -> bool:
    return bool(ask(url, request("POST", "/echo", b'"still here"')).body == "still here")


# Time


@pytest.mark.parametrize(
    "sent",
    [b"", b"POST", b"POST /echo HTTP/1.1\r\nHost: localhost\r\nX-Slow: "],
    ids=["nothing", "half a line", "headers without end"],
)
def test_a_client_that_does_not_finish_its_headers_is_disconnected(
    start: Start, sent: bytes
) -> None:
    url = start()
    with connected(url) as connection:
        connection.sendall(sent)
        assert is_closed(connection)
    assert lives(url)


@pytest.mark.parametrize("where", ["headers", "body"])
def test_a_client_that_sends_a_byte_now_and_then_is_disconnected(start: Start, where: str) -> None:
    """Each byte comes in time, the whole request does not."""
    url = start()
    over = threading.Event()
    with connected(url) as connection:
        connection.sendall(b"POST /echo HTTP/1.1\r\nHost: localhost\r\n")
        if where == "body":
            connection.sendall(b"Content-Type: application/json\r\nContent-Length: 9999\r\n\r\n")

        def drip() -> None:
            while not over.wait(0.02):
                try:
                    connection.send(b"1")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            if where == "body":
                reply = read_reply(connection)
                assert (reply.status, reply.headers["connection"]) == (408, "close")
                assert "did not arrive within 0.3 s" in reply.message
            else:
                assert is_closed(connection)
        finally:
            over.set()
            dripping.join()
    assert lives(url)


def test_an_idle_connection_is_closed_and_a_used_one_is_kept(start: Start) -> None:
    url = start(idle_seconds=1.0, header_seconds=20.0)
    with connected(url) as connection:
        for _ in range(3):
            connection.sendall(request("POST", "/echo", b"1"))
            assert read_reply(connection).body == 1
        assert is_closed(connection)


def test_a_client_that_does_not_read_its_reply_is_disconnected(start: Start) -> None:
    url = start(connections=1, waiting_seconds=20.0)
    with connected(url) as connection:
        connection.sendall(request("GET", "/big"))
        assert lives(url)  # the only connection is free again


# Bytes


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Length": "1001"}, 413),
        ({"Content-Length": "99999999999999999999999"}, 413),
        ({"Content-Length": "-1"}, 413),
        ({"Content-Length": "1e3"}, 413),
        ({"Content-Length": "1\r\nContent-Length: 2"}, 413),
        ({"Content-Length": "", "Transfer-Encoding": "chunked"}, 411),
        ({"Transfer-Encoding": "gzip"}, 411),
    ],
)
def test_bodies_of_other_sizes_are_refused(
    start: Start, headers: dict[str, str], status: int
) -> None:
    url = start(body_bytes=1000)
    assert ask(url, request("POST", "/echo", b"", headers)).status == status
    assert ask(url, request("POST", "/echo", b'"%s"' % (b"x" * 998))).status == 200


def test_a_refused_body_is_not_stored(start: Start) -> None:
    url = start(body_bytes=1000)
    tracemalloc.start()
    try:
        with connected(url) as connection:
            connection.sendall(request("POST", "/echo", b"", {"Content-Length": str(1 << 33)}))
            assert read_reply(connection).status == 413
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_all_requests_together_are_bounded_and_their_bytes_are_released(start: Start) -> None:
    url = start(total_bytes=5_000, body_seconds=20.0)
    text = b'"%s"' % (b"x" * 2998)
    held: list[socket.socket] = []

    def is_refused() -> bool:
        """Whether a request is refused beside a slow one, which the server may meet second."""
        if held:
            held.pop().close()
        held.append(connected(url))
        held[0].sendall(request("POST", "/echo", text)[:-1])
        return ask(url, request("POST", "/echo", text)).status == 503

    assert eventually(is_refused)
    with held[0] as slow:
        assert lives(url)
        slow.sendall(b'"')
        assert read_reply(slow).status == 200
    assert eventually(lambda: ask(url, request("POST", "/echo", text)).status == 200)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /" + b"x" * 70_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 200 + b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"BREW /echo HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"GET /echo HTTP/9.9\r\n\r\n",
        b"GET /echo HTTP/one\r\n\r\n",
    ],
    ids=["long line", "long header", "many headers", "tls", "method", "version", "no version"],
)
def test_a_request_that_is_not_ours_gets_one_error(start: Start, sent: bytes) -> None:
    url = start()
    reply = ask(url, sent)
    assert 400 <= reply.status <= 505
    assert "the request is not served" in reply.message
    assert reply.headers["connection"] == "close"
    assert lives(url)


# Connections


def test_a_connection_too_many_waits_and_is_then_refused(start: Start) -> None:
    url = start(connections=2, header_seconds=20.0, idle_seconds=20.0)
    held = [connected(url), connected(url)]
    for one in held:
        one.sendall(request("POST", "/echo", b"1"))
        read_reply(one)
    with connected(url) as third:
        reply = read_reply(third)
    assert (reply.status, reply.message) == (503, "too many connections; try again")
    held[0].close()
    assert eventually(lambda: _lives(url))
    held[1].close()


def _lives(url: str) -> bool:
    try:
        return lives(url)
    except (OSError, TypeError, IndexError):
        return False


# What is in a body


@pytest.fixture(scope="module")
def bm25() -> Iterator[str]:
    server = HttpServer(plan(Spec.parse("bm25")))
    yield server.start().url
    server.close()


HOSTILE = {
    "deep list": (b"[" * 100_000 + b"]" * 100_000, "too many lists or objects within each other"),
    "deep object": (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "too many lists or objects"),
    "deep within": (b'{"space": %s1%s}' % (b"[" * 900, b"]" * 900), "Expected `str`, got `array`"),
    "NaN": (b'{"space": "s", "k": NaN}', "not JSON"),
    "Infinity": (b'{"space": "s", "k": -Infinity}', "not JSON"),
    "huge number": (b'{"space": "s", "query": {"text": "x"}, "k": 1' + b"0" * 50 + b"}", "k"),
    "huger number": (b'{"space": "s", "query": {"text": "x"}, "k": ' + b"9" * 5000 + b"}", "JSON"),
    "huge exponent": (b'{"space": "s", "query": {"text": "x"}, "k": 1e999}', "Expected `int`"),
    "negative k": (b'{"space": "s", "query": {"text": "x"}, "k": -1}', ">= 0"),
    "text as k": (b'{"space": "s", "query": {"text": "x"}, "k": "5"}', "Expected `int`, got `str`"),
    "invalid UTF-8": (b'{"space": "\xff\xfe"}', "not JSON"),
    "UTF-16": ('{"space": 1}'.encode("utf-16"), "cannot be read"),
    "NUL": (b'{"space": "s\x00"}', "not JSON"),
    "list": (b"[]", "Expected `object`, got `array`"),
    "null": (b"null", "Expected `object`, got `null`"),
    "nothing": (b"", "Expected `object`, got `null`"),
    "two values": (b"{} {}", "not JSON"),
    "long name": (b'{"space": "%s"}' % (b"s" * 201), "length <= 200"),
    "no name": (b'{"space": ""}', "length >= 1"),
    "duplicated key": (b'{"space": 1, "space": 2}', "Expected `str`, got `int`"),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_body_is_one_clear_error_and_the_server_lives(case: str, bm25: str) -> None:
    body, says = HOSTILE[case]
    reply = ask(bm25, request("POST", "/v1/recall", body))
    assert reply.status == 400
    assert says in reply.message
    assert ask(bm25, request("GET", "/v1/hello")).status == 200


@pytest.mark.parametrize("text", ["\\u0000", "\\u001b[2J", "\\uffff"], ids=["NUL", "escape", "f"])
def test_unusual_texts_are_stored_and_found(text: str, bm25: str) -> None:
    ids = f"id{text}"
    sent = [
        ("reset", f'{{"space": "s{text}", "scope": "{text}"}}'),
        ("remember", f'{{"space": "s{text}", "memories": [{{"id": "{ids}", "text": "dog"}}]}}'),
        ("recall", f'{{"space": "s{text}", "query": {{"text": "dog {text}"}}, "k": 1}}'),
    ]
    replies = [ask(bm25, request("POST", f"/v1/{verb}", body.encode())) for verb, body in sent]
    assert [reply.status for reply in replies] == [200, 200, 200]
    assert replies[-1].body["hits"][0]["id"].startswith("id")


def test_an_id_that_is_not_valid_unicode_is_one_clear_error(bm25: str) -> None:
    memory = '{"space": "s", "memories": [{"id": "id\\ud83d", "text": "dog"}]}'
    assert ask(bm25, request("POST", "/v1/reset", b'{"space": "s", "scope": ""}')).status == 200
    assert ask(bm25, request("POST", "/v1/remember", memory.encode())).status == 200
    query = b'{"space": "s", "query": {"text": "dog"}, "k": 1}'
    reply = ask(bm25, request("POST", "/v1/recall", query))
    assert reply.status == 500
    assert "an id that is not valid Unicode" in reply.message
    assert ask(bm25, request("GET", "/v1/hello")).status == 200


class Failing:
    """Raises what the question names."""

    def reset(self, scope: str) -> None: ...

    def remember(self, memories: list[Memory]) -> None: ...

    def recall(self, query: Query, k: int) -> list[str]:
        if query.text == "secret":
            raise ValueError("the key is hunter2-hunter2, \x1b[2J" + "x" * 10_000)
        raise {"exit": SystemExit, "late": TimeoutError, "interrupt": KeyboardInterrupt}[query.text]


def test_whatever_a_system_raises_is_a_reply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter2-hunter2")
    server = HttpServer(plan(Spec.parse("tests.serving.test_server_limits:Failing")))
    url = server.start().url
    try:
        ask(url, request("POST", "/v1/reset", b'{"space": "s", "scope": ""}'))
        for text in ("exit", "late", "interrupt", "secret"):
            body = f'{{"space": "s", "query": {{"text": "{text}"}}, "k": 1}}'.encode()
            reply = ask(url, request("POST", "/v1/recall", body))
            assert reply.status == 500
            assert "Error" in reply.message or "Exit" in reply.message or "Interr" in reply.message
            assert "hunter2" not in reply.message
            assert len(reply.message) <= 500
    finally:
        server.close()


class _Embedder:
    name = "two"

    def identity(self) -> dict[str, str]:
        return {"name": "two"}

    def embed(self, texts: list[str]) -> NDArray[np.float32]:
        return np.ones((len(texts), 2), np.float32)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"input": "x", "dimensions": 1000000000000}', 413),
        (b'{"input": "x", "dimensions": "many"}', 400),
        (b'{"input": "x", "dimensions": -3}', 400),
        (b'{"input": {"a": 1}}', 400),
        (b'{"input": [[["x"]]]}', 400),
        (b'{"input": []}', 400),
        (b"[" * 100_000, 400),
        (b'{"input": "x", "dimensions": 4}', 200),
    ],
)
def test_embeddings_of_a_hostile_request(body: bytes, status: int) -> None:
    server = OpenAIServer(_Embedder(), cache=False)  # type: ignore[arg-type]
    server.start()
    try:
        url = server.url.removesuffix("/v1")
        assert ask(url, request("POST", "/v1/embeddings", body)).status == status
        assert ask(url, request("GET", "/v1/models")).status == 200
    finally:
        server.close()


# Spaces


def test_abandoned_spaces_expire_and_used_ones_do_not() -> None:
    held = Sessions(plan(Spec("bm25")).build, idle_seconds=0.2)
    used, over = threading.Event(), threading.Event()
    try:
        held.reset("left", "scope")
        held.reset("busy", "scope")

        def work(driver: object) -> None:
            used.set()
            over.wait(60)

        busy = threading.Thread(target=held.get("busy").do, args=(work,))
        busy.start()
        assert used.wait(60)
        assert eventually(lambda: "left" not in held)
        with pytest.raises(NoSuchSession, match="reset it, and send all memories again"):
            held.get("left")
        assert "busy" in held  # its call is longer than the limit
        over.set()
        busy.join()
        assert eventually(lambda: "busy" not in held)
    finally:
        over.set()
        held.close()


def test_the_number_and_the_names_of_spaces_are_bounded() -> None:
    held = Sessions(plan(Spec("bm25")).build, most=3)
    for number in range(20):
        held.reset(f"space {number}", "scope")
    assert sum(f"space {number}" in held for number in range(20)) == 3
    with pytest.raises(UsageError, match="at most 200 characters"):
        held.reset("x" * 201, "scope")
    held.close()


def test_a_client_that_leaves_in_the_middle_of_a_body_costs_nothing(start: Start) -> None:
    url = start(total_bytes=2_000, body_seconds=20.0)
    for _ in range(5):
        with connected(url) as connection:
            connection.sendall(request("POST", "/echo", b"", {"Content-Length": "1500"}) + b"x")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
    full = b'"%s"' % (b"x" * 1498)
    assert eventually(lambda: ask(url, request("POST", "/echo", full)).status == 200)
