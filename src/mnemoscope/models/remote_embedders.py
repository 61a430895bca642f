"""Embedders outside the package: an OpenAI-compatible endpoint, and sentence-transformers.

They connect only to the endpoint or model that the user named. The key comes from OPENAI_API_KEY
only. It is sent in the request and never shown in errors or identities.
"""

from __future__ import annotations

import functools
import os
import random
import time
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.models.chat import ModelFailure, Transient
from mnemoscope.models.embedders import require, unit_rows, weights_sha256
from mnemoscope.models.http_client import HttpClient, HttpFailure
from mnemoscope.models.http_errors import retry_after, shortened
from mnemoscope.models.providers.http_chat import error_details
from mnemoscope.models.providers.openai_chat import account_headers

_OPENAI = "https://api.openai.com/v1"
_BATCH = 64
_SECONDS = 60.0
_RETRIES = 2
_LONGEST_WAIT = 120.0
"""Seconds that a server may ask to wait before the same texts are sent again."""
_ADVICE = {
    400: "a text may be longer than the model's limit, or not accepted by it",
    401: "set OPENAI_API_KEY to a key that this endpoint accepts",
    403: "the key may not use this model",
    404: "check the model's name, and that the address is the part before /embeddings",
    413: "a text is longer than the endpoint accepts",
    429: "the rate limit or the account's budget is used up; wait, then resume",
}


class OpenAIEmbedder:
    """POST {base_url}/embeddings, 64 texts at a time.

    The endpoint must return the same vector for the same text. The content cache keeps the first
    answer, so a resumed run gets the same bytes.
    """

    def __init__(self, model: str, base_url: str = _OPENAI) -> None:
        address = urlsplit(base_url)
        if address.scheme not in ("http", "https") or not address.hostname:
            raise UsageError(f"{base_url!r} is not an address; write openai@MODEL@http://host/v1")
        if address.username or address.password or address.query:
            raise UsageError(
                "an endpoint's address is recorded with the run, so it may not contain a user, "
                "password or query; put the key into OPENAI_API_KEY"
            )
        self.name = f"openai@{model}@{base_url}"
        self._model = model
        self._base_url = base_url.rstrip("/")
        self._client = HttpClient(self._base_url, proxies=True, redirects=True)

    def identity(self) -> dict[str, str | int]:
        return {"model": self._model, "endpoint": self._base_url}

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        # Endpoints refuse empty inputs.
        filled = [index for index, text in enumerate(texts) if text.strip()]
        vectors: list[list[float]] = []
        for start in range(0, len(filled), _BATCH):
            vectors += self._ask([texts[index] for index in filled[start : start + _BATCH]])
        width = len(vectors[0]) if vectors else self._width
        rows = np.zeros((len(texts), width), np.float32)
        for index, vector in zip(filled, vectors, strict=True):
            if len(vector) != width:
                raise MnemoscopeError(
                    f"{self._base_url} returned vectors of {width} and of {len(vector)} numbers "
                    f"for {self._model!r}; the endpoint serves several models under this name"
                )
            rows[index] = vector
        if not np.isfinite(rows).all():
            raise MnemoscopeError(
                f"{self._base_url} returned vectors with infinite numbers for {self._model!r}"
            )
        return unit_rows(rows)

    @functools.cached_property
    def _width(self) -> int:
        return len(self._ask(["width"])[0])

    def _ask(self, texts: list[str]) -> list[list[float]]:
        tried = 0
        while True:
            try:
                return self._request(texts)
            except ModelFailure as failure:
                if tried == _RETRIES or not isinstance(failure, Transient):
                    raise MnemoscopeError(
                        f"embedding {len(texts)} texts with {self._model!r} at {self._base_url}: "
                        f"{failure}"
                    ) from None
                pause = min(8.0, 0.5 * 2**tried) * (1 - random.random() / 4)
                time.sleep(failure.retry_after or pause)
                tried += 1

    def _request(self, texts: list[str]) -> list[list[float]]:
        key = os.environ.get("OPENAI_API_KEY", "")
        if not key and self._base_url == _OPENAI:
            raise UsageError("the openai embedder needs a key; set OPENAI_API_KEY")
        body = {"model": self._model, "input": texts, "encoding_format": "float"}
        # Local servers need no key; some need the header.
        headers = {"Authorization": f"Bearer {key or 'none'}", **account_headers()}
        url = f"{self._base_url}/embeddings"
        try:
            reply = self._client.post_json(url, body, headers, _SECONDS)
        except HttpFailure as failure:
            problem = (
                f"no answer within {_SECONDS:.0f} seconds; resume the run later"
                if failure.kind in ("timeout", "connect timeout")
                else f"no connection ({shortened(failure.cause or failure)}); check the address, "
                "and that the server runs"
            )
            raise Transient(problem) from None
        if reply.status >= 300:
            message = shortened(error_details(reply)[0])
            advice = _ADVICE.get(reply.status, "the endpoint failed; resume the run later")
            problem = f"status {reply.status} ({message}); {advice}"
            wait = retry_after(reply.headers) or 0.0
            is_transient = reply.status in (408, 409, 429) or reply.status >= 500
            if is_transient and wait <= _LONGEST_WAIT:
                raise Transient(problem, retry_after=wait)
            raise ModelFailure(problem)
        try:
            answer = msgspec.json.decode(reply.data, type=_Embeddings)
            vectors = {item.index: item.embedding for item in answer.data}
            return [vectors[index] for index in range(len(texts))]
        except (msgspec.MsgspecError, KeyError, ValueError, RecursionError) as error:
            raise ModelFailure(
                f"the answer does not follow the embeddings protocol ({type(error).__name__}); "
                "check the address"
            ) from None


class _EmbeddingItem(msgspec.Struct):
    index: int
    embedding: list[float]


class _Embeddings(msgspec.Struct):
    data: list[_EmbeddingItem]


class SentenceTransformersEmbedder:
    """A sentence-transformers model; `truncated` counts the texts longer than its limit."""

    def __init__(self, model: str) -> None:
        require(
            ("sentence_transformers",),
            "the sentence-transformers embedder",
            "pip install 'mnemoscope[sentence-transformers]'",
        )
        self.name = f"sentence-transformers@{model}"
        self.truncated = 0
        self._name = model

    def identity(self) -> dict[str, str | int]:
        weights = Path(self._name).expanduser() / "model.safetensors"
        known: dict[str, str | int] = {
            "model": self._name,
            "package": f"sentence-transformers {version('sentence-transformers')}",
        }
        return known | ({"weights_sha256": weights_sha256(weights)} if weights.is_file() else {})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        rows = np.zeros((len(texts), self._width), np.float32)
        # One text a call: padding a batch to its longest text changes the last bits.
        for row, text in zip(rows, texts, strict=True):
            if text.strip():
                self.truncated += self._too_long(text)
                row[:] = self._model.encode(text, show_progress_bar=False)
        return unit_rows(rows)

    def _too_long(self, text: str) -> bool:
        limit = self._model.max_seq_length
        return limit is not None and len(self._model.tokenizer(text)["input_ids"]) > limit

    @functools.cached_property
    def _width(self) -> int:
        return len(self._model.encode("width", show_progress_bar=False))

    @functools.cached_property
    def _model(self) -> Any:
        from sentence_transformers import SentenceTransformer

        return SentenceTransformer(str(Path(self._name).expanduser()))
