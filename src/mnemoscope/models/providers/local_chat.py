"""Models in a GGUF file on this machine, run by llama.cpp in this process, without a network.

The model's own chat template is used. Its control tokens are plain text inside a prompt, so no
passage and no answer can end its turn.
"""

from __future__ import annotations

import re
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import printable
from mnemoscope.models.chat import Completion, ModelFailure, Prompt
from mnemoscope.models.embedders import require, weights_sha256
from mnemoscope.models.gguf_header import gguf_header
from mnemoscope.models.providers.llama_server import Likelihood, LlamaFile, servers

CONTEXT = 16_384
"""Tokens of context by default; a memory system's own prompt may have 8,000."""
_RUNTIME = "pip install 'mnemoscope[local]'"


class LocalProvider:
    """A GGUF file on `threads` threads; the first request of a process loads it.

    One thread is the default: several processes of one thread are faster than one process of
    several threads on a machine with other work, where the threads wait for each other.

    Args:
        path: The model file.
        context: Tokens of prompt and reply together; 0 for 16,384, or less if the model has less.
        threads: Threads of each process.
    """

    keeps_start: ClassVar = True
    """Whether what is the same in all prompts, the system message, is read only once."""

    def __init__(self, path: Path, context: int = 0, threads: int = 1) -> None:
        require(("xllamacpp",), "a local model", _RUNTIME)
        self._path = path
        header = gguf_header(path)
        self._name = header.name
        if header.context and context > header.context:
            raise UsageError(
                f"context={context}: {path.name} was trained with {header.context} tokens"
            )
        if not header.chat_template:
            raise DataError(
                "has no chat template: it is no model that answers questions", file=path
            )
        tokens = context or min(CONTEXT, header.context or CONTEXT)
        self._file = LlamaFile(path.stem, path, tokens, threads, header.beginning)
        self._control = re.compile("|".join(map(re.escape, header.control_tokens)) or r"\Z\A")
        self._server = servers(self._file)

    def identity(self) -> dict[str, Any]:
        return {
            "model": self._name,
            "runtime": f"xllamacpp {version('xllamacpp')}",
            "context": self._file.context,
            "threads": self._file.threads,
            "temperature": 0,
            "weights sha256": weights_sha256(self._path),
        }

    def complete(self, prompt: Prompt) -> Completion:
        parts = (("system", prompt.system), ("user", prompt.user))
        body: dict[str, Any] = {
            "messages": [
                {"role": role, "content": self._escaped(text)} for role, text in parts if text
            ],
            "max_tokens": prompt.max_tokens,
        }
        if prompt.schema is not None:
            wanted = {"name": "reply", "schema": prompt.schema, "strict": True}
            body["response_format"] = {"type": "json_schema", "json_schema": wanted}
        if prompt.alternatives:
            body |= {"logprobs": True, "top_logprobs": prompt.alternatives}
        served = self._server.get()
        with served.turn:
            reply = served.chat(body, keep=self.keeps_start and bool(prompt.system))
        choice, usage = reply["choices"][0], reply["usage"]
        text: str = choice["message"].get("content") or ""
        if not text.strip():  # a retry would be empty too
            raise ModelFailure(f"{self._file.name}: empty reply")
        first = _first_token(choice) if prompt.alternatives else {}
        return Completion(
            text,
            usage["prompt_tokens"],
            usage["completion_tokens"],
            choice["finish_reason"],
            first_token=first,
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
            if len(before) + len(pieces) >= self._file.context:
                raise self._file.too_long(len(before) + len(pieces))
            return Likelihood(sum(served.logprobs(before, pieces)), len(pieces))

    def _escaped(self, text: str) -> str:
        """A text in which the model's control tokens are plain text and cannot end its turn."""
        text = printable(text)
        while self._control.search(text):  # one may be left when another is taken apart
            text = self._control.sub(lambda mark: f"{mark[0][0]} {mark[0][1:]}", text)
        return text


def _first_token(choice: dict[str, Any]) -> dict[str, float]:
    """The log probabilities of the likeliest first tokens of a reply."""
    entries = (choice.get("logprobs") or {}).get("content") or []
    found: dict[str, float] = {}
    for other in entries[0].get("top_logprobs", []) if entries else []:
        # Tokens that are a part of a character print alike.
        found.setdefault(str(other["token"]), float(other["logprob"]))
    return found
