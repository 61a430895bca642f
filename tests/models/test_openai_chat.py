"""OpenAI's protocol against a scripted server on a real socket: every way it can go wrong."""

from __future__ import annotations

import json
import os
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
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
from mnemoscope.models.chat import ModelFailure, Prompt, Transient, metered, total
from mnemoscope.models.http_errors import EmptyReply, TooLong, retry_after
from mnemoscope.models.model import Model, RequestPacer
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.prices import FREE
from mnemoscope.models.providers.openai_chat import (
    AzureProvider,
    CompatibleProvider,
    OpenAIProvider,
)

KEY = "sk-not-a-real-key"
HELLO = Prompt("Be brief.", "Hello?", max_tokens=50)
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"verdict": {"type": "string"}},
    "required": ["verdict"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def running() -> Iterator[ScriptedServer]:
    with ScriptedServer() as server:
        yield server


@pytest.fixture
def server(
    running: ScriptedServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> ScriptedServer:
    monkeypatch.setenv("MNEMOSCOPE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    running.reset()
    running.reply(lambda request: f"echo: {request.text}")
    return running


def retrying(server: ScriptedServer, naps: list[float], timeout: float = 20) -> Model:
    """A model that sleeps on paper only."""
    now = [0.0]
    lock = threading.Lock()

    def sleep(seconds: float) -> None:
        with lock:
            naps.append(seconds)
            now[0] += seconds

    provider = CompatibleProvider("m", base_url=server.url, timeout=timeout)
    return Model("m", provider, price=FREE, pacer=RequestPacer(lambda: now[0], sleep, lambda: 0.5))


def test_a_prompt_is_sent_unchanged_and_the_reply_has_its_counts(
    server: ScriptedServer,
) -> None:
    reply = CompatibleProvider("m", base_url=server.url).complete(HELLO)
    assert (reply.text, reply.finish) == ("echo: Hello?", "stop")
    assert (reply.input_tokens, reply.output_tokens) == (4, 3)
    [request] = server.seen
    assert request.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Hello?"},
        ],
        "max_tokens": 50,
        "temperature": 0.0,
    }


FAULTS = {
    "rate limit": rate_limited(3),
    "rate limit without a time": rate_limited(None),
    "server error": failing(500),
    "overloaded": failing(503),
    "conflict": failing(409),
    "dropped": dropped(),
    "torn": torn(),
    "truncated": truncated(),
    "empty": empty(),
    "no content": says(None),
    "blank": says(" \n"),
    "other JSON": replies_json({"result": "?"}),
    "no choices": replies_json({"choices": []}),
    "a list": replies_json([1, 2]),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_transient_faults_are_retried(server: ScriptedServer, fault: Fault) -> None:
    server.at(1, fault, fault)
    naps: list[float] = []
    with metered() as usages:
        assert retrying(server, naps).ask(HELLO) == "echo: Hello?"
    usage = total(usages)
    assert usage is not None
    assert (usage.requests, usage.retries, server.requests) == (1, 2, 3)
    assert server.wait_for(lambda s: s.answered["Hello?"] == 1)
    assert naps


def test_a_slow_reply_is_ended_at_the_deadline(server: ScriptedServer) -> None:
    server.at(1, slow(0.1))
    assert retrying(server, [], timeout=3).ask(HELLO) == "echo: Hello?"
    assert (server.requests, server.delivered) == (2, 1)


def test_no_reply_at_all_is_a_timeout(server: ScriptedServer) -> None:
    server.hold()
    try:
        provider = CompatibleProvider("m", base_url=server.url, timeout=0.2)
        with pytest.raises(Transient, match=r"within 0\.2 seconds") as caught:
            provider.complete(HELLO)
    finally:
        server.release()
    assert caught.value.timed_out


def test_the_server_decides_how_long_to_wait(server: ScriptedServer) -> None:
    server.at(1, rate_limited(42))
    naps: list[float] = []
    retrying(server, naps).ask(HELLO)
    assert sum(naps) >= 42


def test_all_formats_of_retry_after_are_read() -> None:
    now = datetime(2026, 11, 1, tzinfo=UTC)
    later = format_datetime(now + timedelta(seconds=90), usegmt=True)

    def seconds(**headers: str) -> float | None:
        given = {key.replace("_", "-"): value for key, value in headers.items()}
        return retry_after(given, now.timestamp)

    assert seconds(retry_after="1.5") == 1.5
    assert seconds(retry_after=later) == 90
    assert seconds(retry_after_ms="250", retry_after="9") == 0.25
    assert seconds(retry_after="-3") == 0
    assert seconds(retry_after="soon") is None
    assert seconds(retry_after="inf") is None
    assert seconds() is None


@pytest.mark.parametrize(
    ("fault", "advice"),
    [
        (failing(401, f"wrong key {KEY}"), "MNEMOSCOPE_MODEL_KEY"),
        (failing(403), "may not use this model"),
        (failing(404), "model's name"),
        (rate_limited(5, code="insufficient_quota"), "a retry cannot help"),
        (failing(400, "API key not valid. Please pass a valid one."), "is not accepted"),
    ],
)
def test_permanent_failures_stop_the_run_at_once(
    server: ScriptedServer, fault: Fault, advice: str
) -> None:
    server.when(lambda _: True, fault)
    with pytest.raises(MnemoscopeError, match=advice) as caught:
        retrying(server, []).ask(HELLO)
    assert server.requests == 1
    assert KEY not in "".join(traceback.format_exception(caught.value))


def test_a_prompt_that_is_too_long_fails_and_the_run_continues(server: ScriptedServer) -> None:
    said = "'max_tokens' is too large: 300. This model's maximum context length is 8192 tokens"
    server.at(1, failing(400, said, param="max_tokens"))
    model = retrying(server, [])
    with pytest.raises(TooLong, match="8192"):
        model.ask(HELLO)
    assert model.ask(Prompt("s", "shorter")) == "echo: shorter"
    assert "max_tokens" in server.seen[-1].body


def test_an_unreachable_server_stops_the_run_at_once(server: ScriptedServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    provider = CompatibleProvider("m", base_url=f"http://127.0.0.1:{port}/v1")
    with pytest.raises(MnemoscopeError, match=r"no connection .* resume"):
        Model("m", provider, price=FREE).ask(HELLO)


def test_an_empty_reply_at_the_limit_says_what_to_raise(server: ScriptedServer) -> None:
    server.at(1, says("", finish="length"))
    with pytest.raises(EmptyReply, match="raise the prompt's max_tokens"):
        CompatibleProvider("m", base_url=server.url).complete(HELLO)


def test_a_filtered_reply_is_not_retried(server: ScriptedServer) -> None:
    server.at(1, says(None, finish="content_filter"))
    with pytest.raises(ModelFailure, match="withheld the reply"):
        retrying(server, []).ask(HELLO)
    assert server.requests == 1


def test_a_refused_parameter_is_omitted_from_then_on(server: ScriptedServer) -> None:
    no_limit = "Unsupported parameter: 'max_completion_tokens'. Use 'max_tokens' instead."
    no_temperature = "Unsupported value: 'temperature' does not support 0 with this model."
    no_format = "response_format of type json_schema is not supported"
    for name, said in (
        ("max_completion_tokens", no_limit),
        ("temperature", no_temperature),
        ("response_format", no_format),
    ):
        server.when(lambda request, name=name: name in request.body, failing(400, said))  # type: ignore[misc]
    provider = OpenAIProvider("m", base_url=server.url)
    asked = Prompt("Judge.", "Is it?", 50, SCHEMA)
    assert provider.complete(asked).text == "echo: Is it?"
    assert server.requests == 4
    assert provider.complete(asked).text == "echo: Is it?"
    last = server.seen[-1]
    assert server.requests == 5
    assert set(last.body) == {"model", "messages", "max_tokens"}
    assert '"verdict"' in last.system


def test_a_schema_is_sent_to_the_server(server: ScriptedServer) -> None:
    provider = CompatibleProvider("m", base_url=server.url)
    provider.complete(Prompt("s", "u", schema=SCHEMA))
    provider.complete(Prompt("s", "u", schema={"type": "object"}))
    closed, open_ = (request.body["response_format"]["json_schema"] for request in server.seen)
    assert closed == {"name": "reply", "schema": SCHEMA, "strict": True}
    assert open_ == {"name": "reply", "schema": {"type": "object"}}


def test_openais_key_goes_to_openai_alone(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", "org-secret")
    monkeypatch.delenv("MNEMOSCOPE_MODEL_KEY", raising=False)
    OpenAIProvider("m", base_url=server.url).complete(HELLO)
    CompatibleProvider("m", base_url=server.url).complete(HELLO)
    monkeypatch.setenv("MNEMOSCOPE_MODEL_KEY", "for-this-server")
    CompatibleProvider("m", base_url=server.url).complete(HELLO)
    keys = [request.headers["authorization"] for request in server.seen]
    assert keys == [f"Bearer {KEY}", "Bearer none", "Bearer for-this-server"]
    assert "org-secret" not in str(server.seen[1].headers)


def test_a_missing_key_is_an_error_at_the_first_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    model = load_model("openai:gpt-4o-mini", cache=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        model.ask(HELLO)


def test_azure_names_all_missing_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AZURE_OPENAI_API_KEY", "AZURE_OPENAI_ENDPOINT", "OPENAI_API_VERSION"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(UsageError, match=r"AZURE_OPENAI_API_KEY and AZURE_OPENAI_ENDPOINT and"):
        AzureProvider("deployment").complete(HELLO)


def test_azure_asks_its_own_address(
    server: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-key")
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", server.root)
    monkeypatch.setenv("OPENAI_API_VERSION", "2024-10-21")
    assert AzureProvider("deployed").complete(HELLO).text == "echo: Hello?"
    [request] = server.seen
    assert "/deployments/deployed/chat/completions" in request.path
    assert request.headers["api-key"] == "azure-key"


def test_no_key_is_in_any_error_identity_or_cache_file(
    server: ScriptedServer, tmp_path: Path
) -> None:
    server.at(1, failing(400, f"what is {KEY}?"))
    provider = OpenAIProvider("m", base_url=server.url)
    model = Model("m", provider, price=FREE)
    with pytest.raises(ModelFailure) as caught:
        model.ask(HELLO)
    model.ask(HELLO)
    assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in json.dumps(model.identity())
    files = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert files
    assert not any(KEY.encode() in path.read_bytes() for path in files)


def test_sixty_four_threads_ask_at_once(server: ScriptedServer) -> None:
    model = load_model(f"m@{server.url}")
    with ThreadPoolExecutor(64) as pool:
        server.hold()
        try:
            replies = [pool.submit(model.ask, Prompt("s", f"q{n}")) for n in range(64)]
            assert server.wait_for(lambda seen: seen.most_at_once == 64)
        finally:
            server.release()
        assert [reply.result() for reply in replies] == [f"echo: q{n}" for n in range(64)]


def in_child(work: Callable[[], str]) -> str:
    """What `work` gives in a forked process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(writing, work().encode())
        except BaseException as error:
            os.write(writing, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        said = pipe.read()
    os.waitpid(child, 0)
    return said


def test_a_forked_process_has_its_own_connections(server: ScriptedServer) -> None:
    model = load_model(f"m@{server.url}", cache=False)
    model.ask(Prompt("s", "parent"))
    assert in_child(lambda: model.ask(Prompt("s", "child"))) == "echo: child"
    assert model.ask(Prompt("s", "parent again")) == "echo: parent again"
    assert server.connections == 2


def test_a_cached_reply_sends_no_request(server: ScriptedServer) -> None:
    load_model(f"m@{server.url}").ask(HELLO)
    with metered() as usages:
        assert load_model(f"m@{server.url}").ask(HELLO) == "echo: Hello?"
    assert server.requests == 1
    assert [(usage.requests, usage.cached, usage.paid) for usage in usages] == [(0, 1, 0.0)]


def test_instant_mode_replies_to_every_request() -> None:
    with ScriptedServer(instant="yes", instant_when={"Judge": "CORRECT"}) as server:
        provider = CompatibleProvider("m", base_url=server.url)
        assert provider.complete(HELLO).text == "yes"
        assert provider.complete(Prompt("Judge it.", "u")).text == "CORRECT"
        assert server.counts()["delivered"] == 2
