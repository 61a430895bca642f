"""The header of a GGUF file: the metadata that is needed before the weights are loaded.

Only what is asked for is kept. The format: the magic bytes, a version, the number of tensors, the
number of metadata entries, then each entry with its key, type and value.
"""

from __future__ import annotations

import functools
import io
import re
import struct
from pathlib import Path
from typing import Any, BinaryIO

from msgspec import Struct

from mnemoscope._store.errors import DataError

_MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_STRING, _ARRAY = 8, 9
_CONTROL_TYPES = (3, 4)
"""Token types that the tokenizer takes out of a text as a whole: control and user-defined."""
_END_OF_TEXT = "<|endoftext|>"
_LONGEST_TEXT = 64 << 20
_MOST_ENTRIES = 1 << 26
_NOT_CONTROL = re.compile(r"\s*\Z")


class GgufHeader(Struct, frozen=True):
    """What the header says of a model."""

    name: str
    architecture: str
    licence: str
    context: int
    """The tokens of context that the model was trained with; 0 if the file does not say."""
    chat_template: str
    beginning: int
    """The id of the token that texts of the training began with."""
    control_tokens: tuple[str, ...]
    """Texts that the tokenizer reads as one mark, such as the end of a turn."""


@functools.cache
def _read(path: Path, size: int, changed: int) -> GgufHeader:
    with path.open("rb") as file:
        try:
            found = _metadata(file)
        except (struct.error, UnicodeDecodeError, ValueError, OverflowError, MemoryError) as error:
            raise DataError(f"is not a whole GGUF model: {error}", file=path) from None
    architecture = str(found.get("general.architecture", ""))
    tokens: list[str] = found.get("tokenizer.ggml.tokens", [])
    kinds: list[int] = found.get("tokenizer.ggml.token_type", [])
    control = (
        token
        for token, kind in zip(tokens, kinds, strict=False)
        if kind in _CONTROL_TYPES and not _NOT_CONTROL.match(token)
    )
    return GgufHeader(
        str(found.get("general.name", "")),
        architecture,
        str(found.get("general.license", "")),
        int(found.get(f"{architecture}.context_length", 0)),
        str(found.get("tokenizer.chat_template", "")),
        _beginning(found, tokens),
        tuple(control),
    )


def _beginning(found: dict[str, Any], tokens: list[str]) -> int:
    # Chat models often name the mark of a turn as their first token; it stands before no text.
    if _END_OF_TEXT in tokens:
        return tokens.index(_END_OF_TEXT)
    end = found.get("tokenizer.ggml.eos_token_id", 0)
    return int(found.get("tokenizer.ggml.bos_token_id", end))


def gguf_header(path: Path) -> GgufHeader:
    """The header of a file, read once a process for as long as the file does not change."""
    status = path.stat()
    return _read(path, status.st_size, status.st_mtime_ns)


def _metadata(file: BinaryIO) -> dict[str, Any]:
    if file.read(4) != _MAGIC:
        raise ValueError("it does not begin with GGUF")
    version, _, entries = struct.unpack("<IQQ", _exactly(file, 20))
    if version not in _VERSIONS:
        raise ValueError(f"its version is {version}; known are 2 and 3")
    if entries > _MOST_ENTRIES:
        raise ValueError(f"it claims {entries} metadata entries")
    found: dict[str, Any] = {}
    for _ in range(entries):
        key = _text(file)
        (kind,) = struct.unpack("<I", _exactly(file, 4))
        found[key] = _value(file, kind)
    return found


def _value(file: BinaryIO, kind: int) -> Any:
    if kind in _SCALARS:
        form = f"<{_SCALARS[kind]}"
        return struct.unpack(form, _exactly(file, struct.calcsize(form)))[0]
    if kind == _STRING:
        return _text(file)
    if kind != _ARRAY:
        raise ValueError(f"a metadata entry has the unknown type {kind}")
    inner, length = struct.unpack("<IQ", _exactly(file, 12))
    if length > _MOST_ENTRIES:
        raise ValueError(f"a metadata list claims {length} entries")
    if inner in _SCALARS:
        form = f"<{length}{_SCALARS[inner]}"
        return list(struct.unpack(form, _exactly(file, struct.calcsize(form))))
    return [_value(file, inner) for _ in range(length)]


def _text(file: BinaryIO) -> str:
    (length,) = struct.unpack("<Q", _exactly(file, 8))
    if length > _LONGEST_TEXT:
        raise ValueError(f"a text claims {length} bytes")
    return _exactly(file, length).decode("utf-8", "surrogateescape")


def _exactly(file: BinaryIO | io.BufferedReader, length: int) -> bytes:
    data = file.read(length)
    if len(data) < length:
        raise ValueError("it ends inside its header")
    return data
