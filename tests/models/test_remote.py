"""The openai embedder with a loopback server, and sentence-transformers with a stand-in."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mnemoscope._store.errors import MissingExtra, MnemoscopeError, UsageError
from mnemoscope.models import load_embedder
from mnemoscope.models.remote_embedders import OpenAIEmbedder, SentenceTransformersEmbedder

KEY = "sk-not-a-real-key"


def vector(text: str) -> list[float]:
    return [byte - 127.5 for byte in sha256(text.encode()).digest()[:8]]


class Server(ThreadingHTTPServer):
    """An embeddings endpoint; `status` or `answer` make it misbehave."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.status = 200
        self.answer: dict[str, Any] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append({"path": self.path, **body})
        self.server.keys.append(self.headers["Authorization"])
        if self.server.status != 200:
            self.reply({"error": {"message": f"no, {KEY} is not welcome"}})
            return
        items = [
            {"object": "embedding", "index": index, "embedding": vector(text)}
            for index, text in enumerate(body["input"])
        ]
        # Backwards: the protocol gives an index, and promises no order.
        well = {"object": "list", "model": body["model"], "data": items[::-1], "usage": {}}
        self.reply(well if self.server.answer is None else self.server.answer)

    def reply(self, answer: dict[str, Any]) -> None:
        content = json.dumps(answer).encode()
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("mnemoscope.models.remote_embedders._RETRIES", 0)
    for proxy in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(proxy, raising=False)
    with Server() as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield running
        running.shutdown()
        thread.join()


def test_texts_go_out_in_batches_and_come_back_in_order(server: Server) -> None:
    texts = [f"text {n}" for n in range(150)]
    embedder = load_embedder(f"openai@some/model@{server.url}")
    rows = embedder.embed(texts)
    expected = np.array([vector(text) for text in texts], np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(rows, expected, atol=1e-6)
    assert [len(request["input"]) for request in server.requests] == [64, 64, 22]
    assert {request["path"] for request in server.requests} == {"/v1/embeddings"}
    assert {request["model"] for request in server.requests} == {"some/model"}


def test_an_empty_text_is_not_sent_and_gives_zeros(server: Server) -> None:
    rows = OpenAIEmbedder("m", server.url).embed(["", "a", "  "])
    assert [request["input"] for request in server.requests] == [["a"]]
    assert rows[1].any() and not rows[0].any() and not rows[2].any()


def test_only_empty_texts_still_have_the_models_width(server: Server) -> None:
    embedder = OpenAIEmbedder("m", server.url)
    assert embedder.embed([""]).shape == (1, 8)
    assert embedder.embed([]).shape == (0, 8)


def test_the_key_is_sent_but_never_shown(server: Server) -> None:
    embedder = OpenAIEmbedder("m", server.url)
    embedder.embed(["a"])
    assert server.keys == [f"Bearer {KEY}"]
    assert KEY not in f"{embedder.name} {embedder.identity()} {vars(embedder)}"
    server.status = 401
    with pytest.raises(MnemoscopeError) as caught:
        embedder.embed(["b"])
    assert KEY not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "advice"),
    [(401, "set OPENAI_API_KEY"), (404, "check the model's name"), (429, "rate limit"), (500, "")],
)
def test_a_refusal_names_the_status_and_what_to_do(
    server: Server, status: int, advice: str
) -> None:
    server.status = status
    with pytest.raises(MnemoscopeError, match=f"'m' at {server.url}: status {status}.*{advice}"):
        OpenAIEmbedder("m", server.url).embed(["a"])


@pytest.mark.parametrize(
    "answer",
    [
        {"hello": "world"},
        {"object": "list", "data": []},
        {"object": "list", "data": [{"object": "embedding", "index": 7, "embedding": [1.0]}]},
    ],
)
def test_an_answer_outside_the_protocol_is_an_error(server: Server, answer: dict[str, Any]) -> None:
    server.answer = answer
    with pytest.raises(MnemoscopeError, match="does not follow the embeddings protocol"):
        OpenAIEmbedder("m", server.url).embed(["a"])


def test_vectors_of_two_widths_are_an_error(server: Server) -> None:
    server.answer = {
        "object": "list",
        "data": [{"index": 0, "embedding": [1.0, 2.0]}, {"index": 1, "embedding": [1.0]}],
    }
    with pytest.raises(MnemoscopeError, match="vectors of 2 and of 1 numbers"):
        OpenAIEmbedder("m", server.url).embed(["a", "b"])


def test_no_server_is_an_error_that_names_the_address(server: Server) -> None:
    url = server.url
    server.server_close()
    with pytest.raises(MnemoscopeError, match=f"at {url}: no connection"):
        OpenAIEmbedder("m", url).embed(["a"])


def test_a_local_server_needs_no_key(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    OpenAIEmbedder("m", server.url).embed(["a"])
    assert server.keys == ["Bearer none"]


def test_openai_itself_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match="set OPENAI_API_KEY"):
        load_embedder("openai@text-embedding-3-small").embed(["a"])


@pytest.mark.parametrize("address", ["localhost:80", "ftp://host", "http://"])
def test_a_wrong_address_is_refused(address: str) -> None:
    with pytest.raises(UsageError, match="is not an address"):
        OpenAIEmbedder("m", address)


@pytest.mark.parametrize("address", ["http://me:secret@host/v1", "http://host/v1?key=secret"])
def test_an_address_with_a_secret_is_refused_and_not_shown(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        load_embedder(f"openai@m@{address}")
    assert "secret" not in str(caught.value)


def test_identity_is_model_and_endpoint(server: Server) -> None:
    embedder = OpenAIEmbedder("m", f"{server.url}/")
    assert embedder.identity() == {"model": "m", "endpoint": server.url}
    assert server.requests == []


def test_a_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemoscope.models.embedders.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'mnemoscope\[sentence-transformers\]'"):
        load_embedder("sentence-transformers@m")


def test_the_openai_embedder_needs_no_sdk(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    assert load_embedder(f"openai@m@{server.url}").embed(["a"]).any()


def test_a_server_error_is_retried(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemoscope.models.remote_embedders._RETRIES", 2)
    waits: list[float] = []

    def recovered(seconds: float) -> None:
        waits.append(seconds)
        server.status = 200 if len(waits) == 2 else 503

    monkeypatch.setattr("mnemoscope.models.remote_embedders.time.sleep", recovered)
    server.status = 500
    assert OpenAIEmbedder("m", server.url).embed(["a"]).any()
    assert len(server.requests) == 3
    assert 0.375 <= waits[0] <= 0.5 and 0.75 <= waits[1] <= 1


def test_a_refusal_is_not_retried(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mnemoscope.models.remote_embedders._RETRIES", 2)
    server.status = 401
    with pytest.raises(MnemoscopeError, match="status 401"):
        OpenAIEmbedder("m", server.url).embed(["a"])
    assert len(server.requests) == 1


class StandIn:
    """What the embedder uses of a SentenceTransformer, without torch."""

    max_seq_length = 4

    def __init__(self, name: str) -> None:
        self.name = name

    def encode(self, text: str, show_progress_bar: bool) -> NDArray[np.float32]:
        return np.array(vector(text), np.float32)

    def tokenizer(self, text: str) -> dict[str, list[str]]:
        return {"input_ids": text.split()}


def test_sentence_transformers_rows_have_length_one_and_cuts_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    module = ModuleType("sentence_transformers")
    module.SentenceTransformer = StandIn  # type: ignore[attr-defined]
    spec = ModuleSpec("sentence_transformers", None, origin="/here/__init__.py")
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    monkeypatch.setattr("mnemoscope.models.embedders.find_spec", lambda name: spec)
    embedder = load_embedder("sentence-transformers@org/model")
    assert isinstance(embedder, SentenceTransformersEmbedder)
    rows = embedder.embed(["one two", "", "one two three four five"])
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 0, 1], atol=1e-6)
    assert embedder.truncated == 1
