"""The header of a GGUF file, written here by hand."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import pytest

from mnemoscope._store.errors import DataError
from mnemoscope.models.gguf_header import gguf_header

ONE_ENTRY = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)


def _text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def _entry(key: str, value: Any) -> bytes:
    if isinstance(value, str):
        return _text(key) + struct.pack("<I", 8) + _text(value)
    if isinstance(value, int):
        return _text(key) + struct.pack("<II", 4, value)
    kind = 8 if value and isinstance(value[0], str) else 5
    items = b"".join(_text(one) if kind == 8 else struct.pack("<i", one) for one in value)
    return _text(key) + struct.pack("<IIQ", 9, kind, len(value)) + items


def write_header(path: Path, version: int = 3, **metadata: Any) -> Path:
    """A GGUF file without tensors; a dot in a key is written as two underscores."""
    entries = [_entry(key.replace("__", "."), value) for key, value in metadata.items()]
    path.write_bytes(
        b"GGUF" + struct.pack("<IQQ", version, 0, len(entries)) + b"".join(entries) + b"weights"
    )
    return path


def test_it_says_what_a_model_is(tmp_path: Path) -> None:
    path = write_header(
        tmp_path / "a.gguf",
        general__architecture="tiny",
        general__name="Tiny",
        tiny__context_length=512,
        tokenizer__chat_template="{{ messages }}",
        tokenizer__ggml__tokens=["a", "<|end|>", "<x>", "  "],
        tokenizer__ggml__token_type=[1, 3, 4, 4],
        tokenizer__ggml__bos_token_id=2,
    )
    header = gguf_header(path)
    assert (header.name, header.architecture, header.context) == ("Tiny", "tiny", 512)
    assert header.control_tokens == ("<|end|>", "<x>")
    assert (header.beginning, header.licence) == (2, "")
    assert header.chat_template == "{{ messages }}"


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    path = write_header(tmp_path / "a.gguf", general__name="One")
    assert gguf_header(path).name == "One"
    write_header(path, general__name="Two")
    os.utime(path, ns=(1, 1))
    assert gguf_header(path).name == "Two"


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"", "it does not begin with GGUF"),
        (b"PK\x03\x04 a zip file", "it does not begin with GGUF"),
        (b"GGUF" + struct.pack("<IQQ", 9, 0, 0), "its version is 9"),
        (ONE_ENTRY, "it ends inside its header"),
        (ONE_ENTRY + struct.pack("<Q", 1 << 60), "a text claims"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "metadata entries"),
        (ONE_ENTRY + _text("k") + struct.pack("<I", 77), "type 77"),
        (
            b"GGUF"
            + struct.pack("<IQQ", 3, 0, 1)
            + _text("k")
            + struct.pack("<IIQ", 9, 4, 1 << 60),
            "a metadata list claims",
        ),
    ],
)
def test_a_file_that_is_no_model_is_named(tmp_path: Path, content: bytes, why: str) -> None:
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    with pytest.raises(DataError, match=rf"bad\.gguf.*{why}"):
        gguf_header(path)
