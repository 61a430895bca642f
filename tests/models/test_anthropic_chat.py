"""Anthropic's protocol against a scripted server on a real socket."""

from __future__ import annotations

import json
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.scripted_server import (
    Fault,
    ScriptedServer,
    dropped,
    empty,
    failing,
    rate_limited,
    replies_json,
    says,
    slow,
    torn,
    truncated,
)

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.chat import Prompt
from mnemoscope.models.http_errors import EmptyReply, TooLong
from mnemoscope.models.model import Model, RequestPacer
from mnemoscope.models.prices import FREE
from mnemoscope.models.providers.anthropic_chat import AnthropicProvider

KEY = "sk-ant-not-a-real-key"
HELLO = Prompt("Be brief.", "Hello?", max_tokens=50)
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"verdict": {"type": "string"}}}


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def server(
    running: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ScriptedServer:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    running.reset()
    running.reply(lambda request: f"echo: {request.text}")
    return running


def retrying(server: ScriptedServer, timeout: float = 20) -> tuple[Model, list[float]]:
    naps: list[float] = []
    provider = AnthropicProvider("m", base_url=server.root, timeout=timeout)
    pacer = RequestPacer(lambda: sum(naps), naps.append, lambda: 0.5)
    return Model("m", provider, price=FREE, pacer=pacer), naps


def test_a_prompt_is_sent_unchanged_and_the_reply_has_its_counts(
    server: ScriptedServer,
) -> None:
    reply = AnthropicProvider("m", base_url=server.root).complete(HELLO)
    assert (reply.text, reply.finish) == ("echo: Hello?", "end_turn")
    assert (reply.input_tokens, reply.output_tokens) == (4, 3)
    [request] = server.seen
    assert request.body == {
        "model": "m",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Hello?"}],
        "max_tokens": 50,
        "temperature": 0.0,
    }


FAULTS = {
    "rate limit": rate_limited(3),
    "server error": failing(500),
    "overloaded": failing(529),
    "dropped": dropped(),
    "torn": torn(),
    "truncated": truncated(),
    "empty": empty(),
    "other JSON": replies_json({"result": "?"}),
    "a list": replies_json([1, 2]),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_transient_faults_are_retried(server: ScriptedServer, fault: Fault) -> None:
    server.at(1, fault, fault)
    model, naps = retrying(server)
    assert model.ask(HELLO) == "echo: Hello?"
    assert server.requests == 3
    assert naps


def test_a_slow_reply_is_ended_at_the_deadline(server: ScriptedServer) -> None:
    server.at(1, slow(0.1))
    assert retrying(server, timeout=3)[0].ask(HELLO) == "echo: Hello?"
    assert (server.requests, server.delivered) == (2, 1)


def test_a_reply_with_a_schema_is_the_input_of_a_forced_tool(server: ScriptedServer) -> None:
    server.reply(lambda request: '{"verdict": "CORRECT"}')
    provider = AnthropicProvider("m", base_url=server.root)
    reply = provider.complete(Prompt("s", "u", schema=SCHEMA))
    assert json.loads(reply.text) == {"verdict": "CORRECT"}
    [request] = server.seen
    assert request.body["tool_choice"] == {"type": "tool", "name": "reply"}
    assert request.body["tools"][0]["input_schema"] == SCHEMA


def test_refused_tools_or_temperature_are_omitted_from_then_on(
    server: ScriptedServer,
) -> None:
    server.when(
        lambda request: "temperature" in request.body,
        failing(400, "temperature: Extra inputs are not permitted"),
    )
    server.when(
        lambda request: "tools" in request.body,
        failing(400, "tool_choice: forcing a tool is not supported by this model"),
    )
    provider = AnthropicProvider("m", base_url=server.root)
    for _ in range(2):
        assert provider.complete(Prompt("s", "u", schema=SCHEMA)).text == "echo: u"
    assert server.requests == 4
    assert set(server.seen[-1].body) == {"model", "system", "messages", "max_tokens"}
    assert '"verdict"' in server.seen[-1].system


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (failing(401, f"wrong key {KEY}"), "ANTHROPIC_API_KEY"),
        (failing(404), "model's name"),
        (failing(400, "Your credit balance is too low to access the API"), "a retry cannot help"),
    ],
)
def test_permanent_failures_stop_the_run_at_once(
    server: ScriptedServer, fault: Fault, advice: str
) -> None:
    server.when(lambda _: True, fault)
    with pytest.raises(MnemoscopeError, match=advice) as caught:
        retrying(server)[0].ask(HELLO)
    assert server.requests == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_prompt_that_is_too_long_fails_and_the_run_continues(server: ScriptedServer) -> None:
    server.at(1, failing(400, "prompt is too long: 250000 tokens > 200000 maximum"))
    with pytest.raises(TooLong):
        retrying(server)[0].ask(HELLO)


def test_an_empty_reply_at_the_limit_says_what_to_raise(server: ScriptedServer) -> None:
    server.at(1, says("", finish="length"))
    with pytest.raises(EmptyReply, match="max_tokens"):
        AnthropicProvider("m", base_url=server.root).complete(HELLO)


def test_a_missing_key_is_an_error_at_the_first_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set ANTHROPIC_API_KEY"):
        AnthropicProvider("m").complete(HELLO)


def test_the_key_is_sent_and_not_stored(server: ScriptedServer, tmp_path: Path) -> None:
    model, _ = retrying(server)
    model.ask(HELLO)
    assert KEY in str(server.seen[0].headers)
    assert KEY not in json.dumps(model.identity())
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files
    assert not any(KEY.encode() in path.read_bytes() for path in files)
