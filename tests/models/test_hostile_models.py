"""Model servers that reply with anything: an error with its cause, bounded memory, kept keys."""

from __future__ import annotations

import gzip
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from tests.connectors.hostile_server import CASES, SECRET, HostileServer, Reply, http

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope.models import http_client
from mnemoscope.models.chat import ModelFailure, Prompt
from mnemoscope.models.providers.anthropic_chat import AnthropicProvider
from mnemoscope.models.providers.openai_chat import CompatibleProvider
from mnemoscope.models.remote_embedders import OpenAIEmbedder

LARGEST = 2 << 20
PROMPT = Prompt("", "Who likes the garden?", max_tokens=5)


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[HostileServer]:
    with HostileServer({"else": http({})}) as server:
        yield server


@pytest.fixture(scope="module")
def server(elsewhere: HostileServer) -> Iterator[HostileServer]:
    cases: dict[str, Reply] = {
        **CASES,
        **{
            f"redirect {status}": http(b"", status, Location=elsewhere.url("else/chat/completions"))
            for status in (301, 302, 303, 307, 308)
        },
        "no choices": http({"choices": []}),
        "choices are a text": http({"choices": "yes"}),
        "text is a number": http({"choices": [{"message": {"content": 7}}]}),
        "negative tokens": http(
            {"choices": [{"message": {"content": "yes"}}], "usage": {"prompt_tokens": -7}}
        ),
    }
    with HostileServer(cases) as running:
        yield running


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_client, "LARGEST_REPLY", LARGEST)
    monkeypatch.setenv("MNEMOSCOPE_MODEL_KEY", SECRET)
    monkeypatch.setenv("ANTHROPIC_API_KEY", SECRET)
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)


OTHERS = "redirect 302", "redirect 307", "no choices", "choices are a text", "text is a number"


@pytest.mark.parametrize("case", [*CASES, *OTHERS])
def test_each_reply_is_an_error_with_its_cause(case: str, server: HostileServer) -> None:
    model = CompatibleProvider("toy", base_url=server.url(case), timeout=1.0)
    tracemalloc.start()
    try:
        with pytest.raises((ModelFailure, MnemoscopeError)) as caught:
            model.complete(PROMPT)
        assert tracemalloc.get_traced_memory()[1] < 60 << 20
    finally:
        tracemalloc.stop()
    assert len(str(caught.value)) < 800
    assert SECRET not in str(caught.value)


def test_counts_that_are_not_counts_are_ignored(server: HostileServer) -> None:
    said = CompatibleProvider("toy", base_url=server.url("negative tokens")).complete(PROMPT)
    assert (said.text, said.input_tokens) == ("yes", None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", [CompatibleProvider, AnthropicProvider])
def test_no_request_and_no_key_go_to_another_server(
    status: int, kind: type, server: HostileServer, elsewhere: HostileServer
) -> None:
    """Libraries remove Authorization on the way, and not x-api-key."""
    model = kind("toy", base_url=server.url(f"redirect {status}"), timeout=5.0)
    with pytest.raises((ModelFailure, MnemoscopeError), match=f"status {status}|404|405"):
        model.complete(PROMPT)
    assert elsewhere.seen == []


def test_a_redirect_to_another_path_of_the_same_server_is_followed_with_its_body() -> None:
    right = http({"choices": [{"message": {"content": "yes"}}]})
    with HostileServer({"new": right}) as server:
        server.cases["old"] = http(b"", 308, Location="/new/chat/completions")
        said = CompatibleProvider("toy", base_url=server.url("old"), timeout=5.0).complete(PROMPT)
        assert said.text == "yes"
        assert [asked.case for asked in server.seen] == ["old", "new"]
        assert server.seen[0].body == server.seen[1].body


def test_redirects_have_an_end() -> None:
    with HostileServer({}) as server:
        server.cases["round"] = http(b"", 307, Location="/round/chat/completions")
        with pytest.raises(ModelFailure, match="status 307"):
            CompatibleProvider("toy", base_url=server.url("round"), timeout=5.0).complete(PROMPT)
        assert len(server.seen) == 6


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_compressed_replies_are_read(encoding: str) -> None:
    body = b'{"choices": [{"message": {"content": "yes"}}]}'
    packed = gzip.compress(body) if encoding == "gzip" else zlib.compress(body)
    with HostileServer({"ok": http(packed, Content_Encoding=encoding)}) as server:
        said = CompatibleProvider("toy", base_url=server.url("ok"), timeout=5.0).complete(PROMPT)
    assert said.text == "yes"


@pytest.mark.parametrize("case", ["gzip bomb", "deep JSON", "invalid bytes", "two lengths"])
def test_an_embedder_names_the_cause(
    case: str, server: HostileServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mnemoscope.models.remote_embedders._RETRIES", 0)
    with pytest.raises(MnemoscopeError) as caught:
        OpenAIEmbedder("toy", server.url(case)).embed(["text"])
    assert len(str(caught.value)) < 800
    assert "None" not in str(caught.value)


def test_infinite_vectors_are_refused() -> None:
    body = b'{"data": [{"index": 0, "embedding": [1e39, 1.0]}]}'
    with (
        HostileServer({"big": http(body)}) as server,
        pytest.raises(MnemoscopeError, match="vectors with infinite numbers"),
    ):
        OpenAIEmbedder("toy", server.url("big")).embed(["text"])
