"""llama.cpp's server in this process, with one model file: chat, token ids, likelihoods.

Replies depend on the prompt alone. The part of a prompt that stays the same from request to request
may be kept (`kept`), because the server is always brought to one state before it is reused.
"""

from __future__ import annotations

import functools
import http.client
import itertools
import secrets
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import ModelFailure
from mnemoscope.models.http_errors import PerProcess, TooLong

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


class LlamaFile(NamedTuple):
    """A model file and how it is run."""

    name: str
    """How errors name it."""
    path: Path
    context: int
    """Tokens of prompt and reply together."""
    threads: int
    beginning: int
    """The id of the token that stands before a text whose likelihood is asked for."""

    def too_long(self, tokens: int) -> TooLong:
        return TooLong(
            f"the prompt has {tokens} tokens, and {self.name} takes {self.context} together with "
            "its reply; give it fewer memories"
        )


class LlamaServer:
    """llama.cpp's server with one model; it handles one request at a time."""

    def __init__(self, file: LlamaFile) -> None:
        import xllamacpp

        self._file = file
        self._kept: list[dict[str, str]] | None = None
        self.turn = threading.Lock()
        # The server always listens on a loopback port; the key keeps other processes out.
        self._key = secrets.token_hex()
        params = xllamacpp.CommonParams()
        params.model.path = str(file.path)
        params.api_keys = [self._key]
        params.n_ctx = file.context
        params.n_parallel = 1
        params.n_gpu_layers = 0
        params.fit_params = False
        params.cpuparams.n_threads = file.threads
        params.cpuparams_batch.n_threads = file.threads
        params.n_threads_http = 1
        params.cache_ram_mib = 0
        params.warmup = False
        params.ui = False
        params.endpoint_slots = False
        params.verbosity = -1
        try:
            self._native = xllamacpp.Server(params)
        except RuntimeError as error:
            raise MnemoscopeError(f"{file.path} could not be loaded: {error}") from None
        self._address = self._native.listening_address.removeprefix("http://")
        self.beginning = file.beginning
        self._filler = self._tokens("a", special=False)[0].id

    def chat(self, body: dict[str, Any], *, keep: bool) -> dict[str, Any]:
        """The reply to a chat. With `keep`, all before the last message is read only once.

        Which numbers a prompt gets depends on the batches that it was read in. So the start is read
        in one way: from scratch with an empty last message, at its first use. Before each request
        the server gets that short prompt again, which drops what is left of the request before.
        """
        if keep:
            messages = body["messages"]
            start = [*messages[:-1], {**messages[-1], "content": ""}]
            if start != self._kept:
                self._kept = None
                self._read_only(start, again=False)
                self._kept = start
            self._read_only(start, again=True)
        else:
            self._kept = None
        body = {**body, **_DETERMINISTIC, "cache_prompt": keep}
        return self._answered(self._native.handle_chat_completions, body)

    def _read_only(self, messages: list[dict[str, str]], *, again: bool) -> None:
        body = {"messages": messages, "max_tokens": 1, **_DETERMINISTIC, "cache_prompt": again}
        self._answered(self._native.handle_chat_completions, body)

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
            raise ModelFailure(
                f"{self._file.name} could not be forced to emit a text of {len(ids)} tokens"
            )
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
        self._kept = None
        reply = self._answered(self._native.handle_completions, body)
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
            _TokenPiece(token["id"], _bytes(token["piece"]))
            for token in self._whole(reply)["tokens"]
        ]

    def _answered(
        self, handle: Callable[[dict[str, Any]], Any], body: dict[str, Any]
    ) -> dict[str, Any]:
        try:
            return self._whole(handle(body))
        except (ValueError, RuntimeError) as error:  # for example a schema that it does not support
            raise ModelFailure(f"{self._file.name} refused: {error}") from None

    def _whole(self, reply: dict[str, Any]) -> dict[str, Any]:
        error = reply.get("error")
        if error is None:
            return reply
        if error.get("type") == "exceed_context_size_error":
            raise self._file.too_long(error["n_prompt_tokens"])
        raise ModelFailure(f"{self._file.name} refused: {error.get('message', error)}")


@functools.cache
def servers(file: LlamaFile) -> PerProcess[LlamaServer]:
    """A server for each process.

    A fork does not inherit its threads, and llama.cpp waits for them at exit. So a child of a
    process that has used it must end by `os._exit`, as multiprocessing's children do.
    """
    return PerProcess(lambda: LlamaServer(file))


def _bytes(piece: str | list[int]) -> bytes:
    return piece.encode() if isinstance(piece, str) else bytes(piece)
