"""Mnemoscope's server, called by OpenAI's client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest
from tests.scripted_server import ScriptedServer, failing

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.models.embedders import load_embedder
from mnemoscope.models.model_loader import load_model
from mnemoscope.models.openai_server import OpenAIServer, ServedModels

if TYPE_CHECKING:
    import openai

EMBEDDER = load_embedder("wordllama")


@pytest.fixture
def endpoint() -> Iterator[OpenAIServer]:
    served = OpenAIServer(EMBEDDER, cache=False)
    served.start()
    yield served
    served.close()


def _client(endpoint: OpenAIServer) -> openai.OpenAI:
    import openai  # takes a second, so only where it is used

    return openai.OpenAI(base_url=endpoint.url, api_key="x", max_retries=0)


def _refusal() -> type[Exception]:
    import openai

    refusal: type[Exception] = openai.BadRequestError
    return refusal


def _post(url: str, body: Any) -> tuple[int, Any]:
    request = Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    try:
        with urlopen(request, timeout=10) as reply:
            return reply.status, json.load(reply)
    except HTTPError as error:
        return error.code, json.load(error)


def test_vectors_are_the_embedders_own(endpoint: OpenAIServer) -> None:
    texts = ["a dog called Rex", "the piano", "a dog called Rex"]
    said = _client(endpoint).embeddings.create(model="any", input=texts)
    assert [one.index for one in said.data] == [0, 1, 2]
    np.testing.assert_array_equal(
        np.array([one.embedding for one in said.data], np.float32), EMBEDDER.embed(texts)
    )
    assert endpoint.counters == {"texts_embedded": 2, "vectors_reused": 1}


def test_vectors_are_numbers_unless_base64_is_requested(endpoint: OpenAIServer) -> None:
    status, body = _post(f"{endpoint.url}/embeddings", {"input": "the piano"})
    assert status == 200
    np.testing.assert_array_equal(
        np.array(body["data"][0]["embedding"], np.float32), EMBEDDER.embed(["the piano"])[0]
    )


def test_longer_vectors_keep_their_cosine_and_shorter_ones_are_refused(
    endpoint: OpenAIServer,
) -> None:
    client = _client(endpoint)
    [long] = client.embeddings.create(model="m", input="the piano", dimensions=1024).data
    assert len(long.embedding) == 1024
    assert np.isclose(np.linalg.norm(long.embedding), 1.0)
    with pytest.raises(_refusal(), match="8 dimensions: vectors of wordllama have 256"):
        client.embeddings.create(model="m", input="the piano", dimensions=8)


@pytest.mark.parametrize("given", [[], [[1, 2, 3]], None, 7, ["text", 3]])
def test_input_that_is_not_text_is_refused(endpoint: OpenAIServer, given: object) -> None:
    status, body = _post(f"{endpoint.url}/embeddings", {"input": given})
    assert status == 400
    assert "input must be a text" in body["error"]["message"]


def test_without_a_model_the_error_names_the_option(endpoint: OpenAIServer) -> None:
    with pytest.raises(_refusal(), match="llm=openai:MODEL"):
        _client(endpoint).chat.completions.create(
            model="m", messages=[{"role": "user", "content": "hello"}]
        )


def test_chat_replies_come_from_the_model_and_its_tokens_are_counted() -> None:
    with ScriptedServer() as server:
        model = load_model(f"toy@{server.url}?price_in=1&price_out=1", cache=False)
        endpoint = OpenAIServer(EMBEDDER, model, cache=False)
        endpoint.start()
        try:
            said = _client(endpoint).chat.completions.create(
                model="m",
                max_tokens=50,
                messages=[
                    {"role": "system", "content": "Be brief."},
                    {"role": "user", "content": [{"type": "text", "text": "Who is Rex?"}]},
                ],
            )
            [asked] = server.seen
            assert (asked.system, asked.text) == ("Be brief.", "Who is Rex?")
            assert said.choices[0].message.content
            assert said.usage
            [usage] = endpoint.settle()
            assert usage.requests == 1
            assert usage.input_tokens == said.usage.prompt_tokens > 0
            assert usage.paid > 0
            assert endpoint.settle() == []
        finally:
            endpoint.close()


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"tools": [{"type": "function"}]}, "system's settings"),
        ({"stream": True}, "system's settings"),
        ({"messages": ["hello"]}, "Expected `object`"),
        ({"max_tokens": "many"}, "Expected `int"),
        ({"response_format": {"json_schema": 7}}, "Expected `object`"),
    ],
)
def test_unsupported_requests_are_refused_with_a_reason(more: dict[str, Any], says: str) -> None:
    with ScriptedServer() as server:
        endpoint = OpenAIServer(None, load_model(f"toy@{server.url}", cache=False), cache=False)
        endpoint.start()
        try:
            body = {"messages": [{"role": "user", "content": "x"}], **more}
            status, said = _post(f"{endpoint.url}/chat/completions", body)
            assert status == 400
            assert says in said["error"]["message"]
            assert server.requests == 0
        finally:
            endpoint.close()


def test_an_error_that_must_stop_the_run_is_raised_by_settle() -> None:
    """A key that is refused: the system under test may swallow the error, the run must not."""
    with ScriptedServer() as server:
        server.when(lambda request: True, failing(401))
        endpoint = OpenAIServer(None, load_model(f"toy@{server.url}", cache=False), cache=False)
        endpoint.start()
        try:
            body = {"messages": [{"role": "user", "content": "x"}]}
            assert _post(f"{endpoint.url}/chat/completions", body)[0] == 503
            with pytest.raises(MnemoscopeError, match="the key is not accepted"):
                endpoint.settle()
            assert endpoint.settle() == []
        finally:
            endpoint.close()


def test_a_slow_system_keeps_its_connection() -> None:
    """Minutes may pass between two of its requests, and clients do not expect a closed one."""
    models = ServedModels(load_embedder("wordllama"))
    try:
        assert models.server.limits.idle_seconds >= 3600
    finally:
        models.close()
