"""JSON lines: an append-only journal that survives `kill -9`, and readers that name a bad line.

A process that dies while it writes leaves an incomplete last line. Opening the journal again
removes that line, so every line in the file is complete.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from io import BytesIO
from operator import itemgetter
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakSet

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.private_files import open_private, write_private

T = TypeVar("T")

_BLOCK = 1 << 20
"""Bytes of a file that are decoded in one call."""
_encode = msgspec.json.Encoder().encode
encode_lines = msgspec.json.Encoder().encode_lines
"""One line of JSON for each record of a list."""


def printable(text: str) -> str:
    """The text as UTF-8 can encode it: a lone surrogate becomes an escape sequence."""
    return text.encode("utf-8", "backslashreplace").decode()


class Journal(AbstractContextManager["Journal"]):
    """An append-only file; the operating system has each line before `append` returns."""

    def __init__(self, path: Path) -> None:
        """Open the file, and remove what follows its last newline."""
        self.path = path
        self._file = open_private(path, os.O_RDWR | os.O_APPEND)
        end = os.fstat(self._file).st_size
        self._size = end
        while self._size > 0:
            start = max(0, self._size - 65536)
            newline = os.pread(self._file, self._size - start, start).rfind(b"\n")
            self._size = start + newline + 1
            if newline >= 0:
                break
        if self._size != end:
            os.ftruncate(self._file, self._size)
        _open.add(self)

    def append(self, record: Any) -> None:
        self.append_bytes(_encode(record) + b"\n")

    def append_bytes(self, lines: bytes) -> None:
        """Write complete lines; if the disk is full, raise and remove what was written of them."""
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
            self.abandon()

    def abandon(self) -> None:
        """Close the file without waiting for the disk."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __exit__(self, *exc: object) -> None:
        self.close()


_open: WeakSet[Journal] = WeakSet()


def _abandon_all() -> None:
    for journal in list(_open):
        with suppress(OSError):
            journal.abandon()


# A forked process must not write to the journals of its parent: it may run a system's code.
os.register_at_fork(after_in_child=_abandon_all)


def read_records(path: Path, kind: type[T]) -> Iterator[T]:
    """Decode each line as `kind`; skip blank lines; an error names the line."""
    decoder = msgspec.json.Decoder(kind)
    with path.open("rb") as file:
        first = 1
        while block := file.read(_BLOCK) + file.readline():
            lines = block.count(b"\n")
            records = _decoded_at_once(block, lines, decoder)
            if records is None:
                each = BytesIO(block)
                records = (record for _, record in decode_lines(each, decoder, path, first))
            yield from records
            first += lines


_FIRST, _LAST = itemgetter(0), itemgetter(-1)


def _decoded_at_once(
    block: bytes, lines: int, decoder: msgspec.json.Decoder[T]
) -> Iterable[T] | None:
    """One object a line, decoded in one call; None if one must look at each line.

    The decoder itself does not mind two values in a line, or one in two lines. A value that goes on
    after `}` and a newline does not go on with `{`.
    """
    each = block.split(b"\n")
    if each.pop():
        return None
    try:
        ends = set(map(_FIRST, each)), set(map(_LAST, each))
    except IndexError:  # a blank line
        return None
    if ends != ({ord("{")}, {ord("}")}):
        return None
    try:
        records = decoder.decode_lines(block)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return records if len(records) == lines else None


def read_lines(content: bytes, kind: type[T]) -> list[T]:
    """Decode complete lines that came from another process."""
    return msgspec.json.Decoder(kind).decode_lines(content)


def numbered_records(path: Path, kind: type[T]) -> Iterator[tuple[int, T]]:
    """Like `read_records`, with the line number of each record."""
    with path.open("rb") as lines:
        yield from decode_lines(lines, msgspec.json.Decoder(kind), path)


def decode_lines(
    lines: Iterable[bytes], decoder: msgspec.json.Decoder[T], path: Path, first: int = 1
) -> Iterator[tuple[int, T]]:
    for number, line in enumerate(lines, first):
        if line.isspace():
            continue
        try:
            yield number, decoder.decode(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(str(error), file=path, line=number) from None


def read_text(path: Path) -> str:
    """The content of a text file; an error names a file that is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text: {error}", file=path) from None


def write_records(path: Path, records: Iterable[Any]) -> None:
    """Write one line a record, in one step."""
    write_atomically(path, encode_lines(list(records)))


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON, in one step."""
    write_atomically(path, encode_json(content))


def encode_json(content: Any) -> bytes:
    """Indented JSON."""
    return msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"


def write_atomically(path: Path, content: bytes, *, settle: bool = True) -> None:
    """Write a private file in one step: readers see the old file or the complete new one.

    Without `settle` it does not wait for the disk, so that a power failure may lose the file.
    """
    draft = path.with_name(f".{path.name}.{os.getpid()}.draft")
    try:
        with write_private(draft) as file:
            file.write(content)
            if settle:
                file.flush()
                os.fsync(file.fileno())
        draft.replace(path)
    except BaseException as error:
        if isinstance(error, OSError):
            error.filename = str(path)
        draft.unlink(missing_ok=True)
        raise
