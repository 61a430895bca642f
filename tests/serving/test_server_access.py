"""Who may use our servers: web pages may not, other machines need a key."""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.serving.raw_client import ask, request

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.json_server import JsonServer
from mnemoscope._store.server_access import check_host, check_reach, is_loopback, read_key
from mnemoscope._store.spec import Spec
from mnemoscope.cli.app import invoke
from mnemoscope.models.openai_server import OpenAIServer
from mnemoscope.serving.http_server import HttpServer
from mnemoscope.systems.loader import plan

KEY = "0123456789abcdef-key"
Start = Callable[..., str]


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[JsonServer] = []

    def started(**options: Any) -> str:
        routes = {"POST /echo": lambda request: request.body, "GET /echo": lambda request: {}}
        servers.append(JsonServer(routes, **options))
        return servers[-1].start().url

    yield started
    for server in servers:
        server.close()


# The Host header, against DNS rebinding


@pytest.mark.parametrize(
    "host",
    ["localhost", "LOCALHOST:8000", "127.0.0.1:1", "127.9.9.9", "[::1]:80", "app.localhost"],
)
def test_names_of_loopback_are_allowed(start: Start, host: str) -> None:
    assert ask(start(), request("POST", "/echo", b"1", {"Host": host})).status == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "evil.example#localhost",
        "169.254.169.254",
        "0.0.0.0",
        "",
    ],
)
def test_any_other_name_is_refused_before_the_route(start: Start, host: str) -> None:
    for sent in (request("POST", "/echo", b"1", {"Host": host}), request("GET", "/no", b"")):
        reply = ask(start(), sent.replace(b"Host: localhost", f"Host: {host}".encode()))
        assert reply.status == 421
        assert "is not a name of this server" in reply.message


def test_two_host_headers_are_refused(start: Start) -> None:
    sent = request("GET", "/echo").replace(
        b"Host: localhost", b"Host: localhost\r\nHost: evil.example"
    )
    assert ask(start(), sent).status == 421


def test_further_names_can_be_allowed(start: Start) -> None:
    url = start(allow_hosts=["Memory.Internal"])
    assert ask(url, request("GET", "/echo", headers={"Host": "memory.internal:80"})).status == 200
    assert ask(url, request("GET", "/echo", headers={"Host": "other.internal"})).status == 421


def test_the_address_that_a_client_connected_to_is_a_name_of_the_server() -> None:
    assert check_host("192.0.2.7:8000", (), "192.0.2.7") == ""
    assert check_host("192.0.2.8:8000", (), "192.0.2.7")
    assert check_host("[2001:db8::1]:8000", (), "2001:db8::1") == ""


# Requests of web pages


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:3000"},
        {"Origin": "http://localhost.evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "http://localhost", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_web_page_of_another_site_is_refused(
    start: Start, method: str, headers: dict[str, str]
) -> None:
    reply = ask(start(), request(method, "/echo", b"1", headers))
    assert reply.status == 403
    assert "access-control-allow-origin" not in reply.headers


def test_a_page_of_the_server_itself_and_a_typed_address_are_allowed(start: Start) -> None:
    url = start()
    own = {"Host": "localhost:8000", "Origin": "http://localhost:8000"}
    assert ask(url, request("POST", "/echo", b"1", own)).status == 200
    assert ask(url, request("GET", "/echo", headers={"Sec-Fetch-Site": "none"})).status == 200


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "", "json"]
)
def test_a_post_that_a_page_can_send_without_asking_is_refused(start: Start, kind: str) -> None:
    for body in (b'{"a": 1}', b""):
        reply = ask(start(), request("POST", "/echo", body, {"Content-Type": kind}))
        assert reply.status == 415
        assert "Content-Type: application/json" in reply.message


def test_json_with_a_charset_is_accepted(start: Start) -> None:
    sent = request("POST", "/echo", b"[1]", {"Content-Type": "Application/JSON; charset=utf-8"})
    assert ask(start(), sent).body == [1]


# Keys


def test_the_key_is_needed_before_the_body_is_read(start: Start) -> None:
    url = start(key=KEY, keyless=["GET /echo"])
    assert ask(url, request("GET", "/echo")).status == 200
    for sent in ("", "Bearer wrong", f"Basic {KEY}", KEY, f"Bearer {KEY}x"):
        headers = {"Authorization": sent, "Content-Length": "100000000"}
        assert ask(url, request("POST", "/echo", b"", headers)).status == 401
    right = {"Authorization": f"Bearer {KEY}"}
    assert ask(url, request("POST", "/echo", b"1", right)).status == 200


def test_models_are_served_with_a_key_too() -> None:
    server = OpenAIServer(None, cache=False, key=KEY)
    server.start()
    try:
        url = server.url.removesuffix("/v1")
        assert ask(url, request("GET", "/v1/models")).status == 401
        assert (
            ask(url, request("GET", "/v1/models", b"", {"Authorization": f"Bearer {KEY}"})).status
            == 200
        )
    finally:
        server.close()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.0.2.1"])
def test_a_server_beyond_loopback_needs_a_key(host: str) -> None:
    with pytest.raises(UsageError, match=r"other machines can reach .*--key MEMORY_KEY"):
        JsonServer({}, host=host)
    with pytest.raises(UsageError, match="--key MEMORY_KEY"):
        HttpServer(plan(Spec.parse("bm25")), host=host)
    with pytest.raises(UsageError, match="--key MEMORY_KEY"):
        OpenAIServer(None, cache=False, host=host)
    with pytest.raises(UsageError, match="has 5 characters, and other machines can try") as caught:
        check_reach(host, "short")
    assert "short" not in str(caught.value)


def test_with_a_key_a_server_listens_on_all_addresses(start: Start) -> None:
    url = start(host="0.0.0.0", key=KEY).replace("0.0.0.0", "127.0.0.1")
    assert ask(url, request("GET", "/echo")).status == 401
    right = {"Authorization": f"Bearer {KEY}"}
    assert ask(url, request("GET", "/echo", b"", right)).status == 200


def test_hosts_that_only_this_machine_reaches(monkeypatch: pytest.MonkeyPatch) -> None:
    assert all(map(is_loopback, ["127.0.0.1", "127.3.2.1", "::1", "[::1]", "localhost"]))

    def resolved(*_: object) -> list[Any]:
        return [(0, 0, 0, "", ("127.0.0.1", 0)), (0, 0, 0, "", ("192.0.2.1", 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolved)
    assert not is_loopback("two-addresses.example")


@pytest.mark.parametrize("variable", ["NOT_SET_ANYWHERE", "sk-live-0815", "EMPTY", "WITH_NEWLINE"])
def test_a_key_that_cannot_be_read_is_not_repeated(
    variable: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EMPTY", " ")
    monkeypatch.setenv("WITH_NEWLINE", "secret\r\nX-Other: 1")
    with pytest.raises(UsageError, match="--key") as caught:
        read_key(variable, "--key")
    assert "sk-live" not in str(caught.value)
    assert "secret" not in str(caught.value)


# The commands


@pytest.mark.parametrize(
    "words",
    [
        ["http", "bm25"],
        ["grpc", "bm25"],
        ["embeddings", "no-such-model"],  # refused before the model is loaded
    ],
)
def test_the_commands_refuse_other_machines_without_a_key(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["serve", *words, "--host", "0.0.0.0"]) == 2
    assert "other machines can reach a server on 0.0.0.0: give a key" in _said(capsys)
    assert invoke(["serve", *words, "--key", "sk-live-0815"]) == 2
    said = _said(capsys)
    assert "--key takes the name of the environment variable with the key" in said
    assert "sk-live" not in said


@pytest.mark.parametrize("command", ["http", "grpc", "embeddings"])
def test_the_help_shows_how_to_serve_other_machines(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert invoke(["serve", command, "--help"]) == 0
    said = _said(capsys)
    assert "--host 0.0.0.0 --key" in said
    assert "openssl rand -hex 16" in said


def test_a_key_is_neither_printed_nor_logged(
    start: Start,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    with caplog.at_level(logging.DEBUG):
        url = start(key=KEY)
        for given in (KEY, "wrong"):
            ask(url, request("GET", "/echo", b"", {"Authorization": f"Bearer {given}"}))
    out, err = capfd.readouterr()
    assert KEY not in out + err + caplog.text
    assert list(tmp_path.rglob("*")) == []


def test_a_port_that_is_taken_is_named_after_the_key_was_checked() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MnemoscopeError, match=f"cannot listen on 127.0.0.1:{port}"):
            JsonServer({}, port=port, key=KEY)


def _said(capsys: pytest.CaptureFixture[str]) -> str:
    both = capsys.readouterr()
    return " ".join((both.out + both.err).replace("│", " ").split())
