"""A server with OpenAI's protocol for the memory systems under test.

It serves Mnemoscope's embeddings and, if the system uses one, a language model: offline, cached by
content, with every token counted for the system.
"""

from __future__ import annotations

import threading
from base64 import b64encode
from collections.abc import Collection, Sequence
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.json_server import JsonRequest, JsonServer, Refused, ServerLimits
from mnemoscope._store.jsonl import printable
from mnemoscope._store.server_access import check_reach
from mnemoscope.models.cache import ContentCache, text_cache
from mnemoscope.models.chat import ModelFailure, Prompt, metered, total
from mnemoscope.models.embedders import Embedder
from mnemoscope.models.http_errors import PerProcess
from mnemoscope.models.model import Model
from mnemoscope.text.token_estimate import estimate_tokens
from mnemoscope.types import Usage

_REPLY_TOKENS = 4096
"""The limit of a reply, if the request has none."""
_MOST_NUMBERS = 16 << 20
"""In the vectors of one reply; the longer a vector that a client asks for, the fewer texts."""
_OF_A_SYSTEM = ServerLimits(idle_seconds=3600.0)
"""A slow system may take minutes between two requests of one connection."""


class OpenAIServer(JsonServer):
    """`/v1/embeddings`, `/v1/models` and, with a model, `/v1/chat/completions` on loopback."""

    def __init__(
        self,
        embedder: Embedder | None,
        model: Model | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        cache: bool = True,
        key: str = "",
        allow_hosts: Collection[str] = (),
        limits: ServerLimits | None = None,
    ) -> None:
        """Without a `key` any key of a client is accepted, and only this machine can connect."""
        check_reach(host, key)
        self._embedder = embedder
        self._model = model
        path = text_cache("vectors.sqlite") if cache else None
        about = embedder.identity() if embedder else {}
        self._vectors = ContentCache(path, f"{about} whole texts")
        self._embedding = threading.Lock()
        self._usage_lock = threading.Lock()
        self._usages: list[Usage] = []
        self._stopped: MnemoscopeError | None = None
        super().__init__(
            {
                "POST /v1/embeddings": self._embeddings,
                "POST /v1/chat/completions": self._chat,
                "GET /v1/models": self._models,
            },
            host=host,
            port=port,
            key=key,
            allow_hosts=allow_hosts,
            limits=limits,
        )

    @property
    def url(self) -> str:
        return f"{super().url}/v1"

    @property
    def counters(self) -> dict[str, int]:
        counted = {
            "texts_embedded": self._vectors.computed,
            "vectors_reused": self._vectors.reused,
        }
        cut = getattr(self._embedder, "truncated", 0)
        return {**counted, **({"texts_cut_by_the_embedder": cut} if cut else {})}

    def settle(self) -> list[Usage]:
        """The usage of the model since the last call.

        Raises an error that must stop the run: the system may have hidden it as a usual failure.
        """
        with self._usage_lock:
            usages, self._usages = self._usages, []
            stopped, self._stopped = self._stopped, None
        if stopped is not None:
            raise stopped
        return usages

    def close(self) -> None:
        super().close()
        self._vectors.close()

    def _models(self, request: JsonRequest) -> dict[str, Any]:
        names = [part.name for part in (self._embedder, self._model) if part is not None]
        return {"object": "list", "data": [{"id": name, "object": "model"} for name in names]}

    def _embeddings(self, request: JsonRequest) -> dict[str, Any]:
        if self._embedder is None:
            raise Refused(400, "no embedding model is configured")
        given = request.body.get("input") if isinstance(request.body, dict) else None
        texts = [given] if isinstance(given, str) else given
        if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
            raise Refused(
                400, "input must be a text or a list of texts; token numbers are not supported"
            )
        texts = list(map(printable, texts))
        vectors = self._embed(texts, self._embedder)
        own = vectors.shape[1]
        wanted = request.body.get("dimensions") or own
        if not isinstance(wanted, int) or wanted < own:
            raise Refused(
                400, f"{wanted!r:.40} dimensions: vectors of {self._embedder.name} have {own}"
            )
        if wanted * len(texts) > _MOST_NUMBERS:
            raise Refused(413, f"a reply has at most {_MOST_NUMBERS:,} numbers: send fewer texts")
        # Zeros at the end of a vector change no cosine, and some systems need a fixed length.
        vectors = np.pad(vectors, ((0, 0), (0, wanted - own)))
        packed = request.body.get("encoding_format") == "base64"
        tokens = sum(map(estimate_tokens, texts))
        return {
            "object": "list",
            "model": self._embedder.name,
            "data": [
                {
                    "object": "embedding",
                    "index": index,
                    "embedding": b64encode(vector.astype("<f4").tobytes()).decode()
                    if packed
                    else vector.tolist(),
                }
                for index, vector in enumerate(vectors)
            ],
            "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        }

    def _embed(self, texts: Sequence[str], embedder: Embedder) -> NDArray[np.float32]:
        def compute(fresh: list[str]) -> list[bytes]:
            with self._embedding:
                vectors = embedder.embed(fresh)
            return [vector.astype("<f4").tobytes() for vector in vectors]

        rows = self._vectors.get_or_compute(texts, compute)
        return np.stack([np.frombuffer(row, "<f4") for row in rows])

    def _chat(self, request: JsonRequest) -> dict[str, Any]:
        if self._model is None:
            raise Refused(
                400, "no language model is configured: give the system one, as in llm=openai:MODEL"
            )
        prompt = _prompt(request.body)
        with metered() as usages:
            try:
                text = self._model.ask(prompt)
            except ModelFailure as failure:
                raise Refused(502, str(failure)) from None
            except MnemoscopeError as error:
                self._stopped = error
                raise Refused(503, str(error)) from None
            finally:
                with self._usage_lock:
                    self._usages += usages
        used = total(usages) or Usage()
        return {
            "id": "mnemoscope",
            "object": "chat.completion",
            "created": 0,
            "model": self._model.name,
            "choices": [
                {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": text},
                }
            ],
            "usage": {
                "prompt_tokens": used.input_tokens,
                "completion_tokens": used.output_tokens,
                "total_tokens": used.input_tokens + used.output_tokens,
            },
        }


class _ChatMessage(msgspec.Struct):
    role: str
    content: str | list[dict[str, Any]] | None = None


class _ChatRequest(msgspec.Struct):
    """The fields of OpenAI's protocol that affect a reply here."""

    messages: list[_ChatMessage]
    tools: list[Any] | None = None
    functions: list[Any] | None = None
    stream: bool | None = None
    max_completion_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    max_tokens: Annotated[int, msgspec.Meta(ge=1)] | None = None
    response_format: dict[str, Any] | None = None


def _prompt(body: Any) -> Prompt:
    """A chat as one prompt: the instructions apart, the turns in order."""
    try:
        chat = msgspec.convert(body, _ChatRequest)
        wanted = msgspec.convert((chat.response_format or {}).get("json_schema") or {}, dict)
    except msgspec.ValidationError as error:
        raise Refused(400, f"the request cannot be read: {error}") from None
    if chat.tools or chat.functions:
        raise Refused(
            400, "tools are not supported: choose plain text or JSON in the system's settings"
        )
    if chat.stream:
        raise Refused(400, "streaming is not supported: switch it off in the system's settings")
    turns = [(turn.role, _text(turn)) for turn in chat.messages]
    instructions = "\n\n".join(text for role, text in turns if role in ("system", "developer"))
    rest = [(role, text) for role, text in turns if role not in ("system", "developer")]
    asked = rest[0][1] if len(rest) == 1 else "\n\n".join(f"{role}: {text}" for role, text in rest)
    limit = chat.max_completion_tokens or chat.max_tokens or _REPLY_TOKENS
    return Prompt(instructions, asked, max_tokens=limit, schema=wanted.get("schema"))


def _text(turn: _ChatMessage) -> str:
    if isinstance(turn.content, list):
        return printable("\n".join(str(part.get("text", "")) for part in turn.content))
    return printable(turn.content or "")


class ServedModels:
    """The server that gives an installed system its models, one in each process.

    It starts at its first use: a fork would inherit the socket but not the server's thread.
    """

    def __init__(self, embedder: Embedder | None, model: Model | None = None) -> None:
        self.embedder = embedder
        self.model = model
        self._servers = PerProcess(self._serve)

    def __bool__(self) -> bool:
        """Whether it has a model or an embedder to serve."""
        return self.embedder is not None or self.model is not None

    @property
    def server(self) -> OpenAIServer:
        return self._servers.get()

    def _serve(self) -> OpenAIServer:
        server = OpenAIServer(self.embedder, self.model, limits=_OF_A_SYSTEM)
        server.start()
        return server

    def identity(self) -> dict[str, object]:
        return {
            **({"embedder": self.embedder.identity()} if self.embedder else {}),
            **({"model": self.model.identity()} if self.model else {}),
        }

    def close(self) -> None:
        if (server := self._servers.drop()) is not None:
            server.close()
