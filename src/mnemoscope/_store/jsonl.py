"""JSON lines: an append-only journal that survives `kill -9`, and readers that name the line.

A process that dies in the middle of a write leaves a torn last line; opening the journal
again cuts it off, so that every line in the file is whole.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from mnemoscope._store.errors import DataError

T = TypeVar("T")

_encoder = msgspec.json.Encoder()


def encode_line(record: Any) -> bytes:
    """The record's canonical bytes, newline included."""
    return _encoder.encode(record) + b"\n"


def printable(text: str) -> str:
    """The text as it can be written: half a character is spelt out."""
    return text.encode("utf-8", "backslashreplace").decode()


class Journal:
    """Lines appended one by one, each handed to the operating system before `append` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        self._size = _cut_torn_line(self._file)

    def append(self, record: Any) -> None:
        self.append_bytes(encode_line(record))

    def append_bytes(self, lines: bytes) -> None:
        """Write whole lines; a full disk raises here, with nothing half-written left behind."""
        try:
            written = os.write(self._file, lines)
            while written < len(lines):
                written += os.write(self._file, lines[written:])
        except OSError as error:
            os.ftruncate(self._file, self._size)
            error.filename = str(self.path)
            raise
        self._size += len(lines)

    def close(self) -> None:
        if self._file >= 0:
            os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _cut_torn_line(file: int) -> int:
    """Cut off what follows the last newline; the size that is left."""
    end = os.fstat(file).st_size
    position = end
    while position > 0:
        start = max(0, position - 65536)
        newline = os.pread(file, position - start, start).rfind(b"\n")
        if newline >= 0:
            position = start + newline + 1
            break
        position = start
    if position != end:
        os.ftruncate(file, position)
    return position


def read_records(path: Path, kind: type[T]) -> Iterator[T]:
    """Decode each line as `kind`; blank lines are passed over, a bad line is named."""
    return (record for _, record in numbered_records(path, kind))


def numbered_records(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Like `read_records`, with the line number of each record."""
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as lines:
        yield from decode_lines(lines, decoder, path)


def decode_lines(
    lines: Iterable[bytes], decoder: msgspec.json.Decoder[T], path: Path
) -> Iterator[tuple[int, T]]:
    for number, line in enumerate(lines, 1):
        if line.isspace():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(str(error), file=path, line=number) from None


def write_records(path: Path, records: Iterable[Any]) -> None:
    """One line a record, in one step."""
    write_atomically(path, b"".join(map(encode_line, records)))


def write_json(path: Path, content: Any) -> None:
    """Readable JSON, in one step."""
    write_atomically(path, msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n")


def write_atomically(path: Path, content: bytes) -> None:
    """Put `content` under `path` in one step: readers see the old file or the whole new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    except OSError as error:
        error.filename = str(path)
        raise
    finally:
        draft.unlink(missing_ok=True)
