"""Large JSON arrays, one element at a time, from plain, .xz or .gz files, hashed on the way.

A 2.7 GB array is never in memory at once: the buffer holds a few elements. Each element comes
with the line it starts on, so that an error can name it.
"""

from __future__ import annotations

import codecs
import gzip
import hashlib
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, NoReturn, cast

from mnemoscope._store.errors import DataError

CHUNK = 4 << 20
_NEAR_END = 64
"""A syntax error this close to the buffer's end may just be an element that goes on."""

_decoder = json.JSONDecoder()


class Element(NamedTuple):
    """One element of the array and the line its first character is on."""

    line: int
    value: Any


def open_unpacked(path: Path) -> BinaryIO:
    if path.suffix == ".xz":
        return cast(BinaryIO, lzma.open(path))
    if path.suffix == ".gz":
        return cast(BinaryIO, gzip.open(path))
    return path.open("rb")


def sha256_unpacked(path: Path) -> str:
    """The hash of the content, unpacked if the file is compressed."""
    digest = hashlib.sha256()
    for block in _blocks(path):
        digest.update(block)
    return digest.hexdigest()


def array_elements(path: Path, digest: Any = None) -> Iterator[Element]:
    """The elements of the JSON array in `path`; `digest.update` sees every byte of it."""
    stream = _Text(path, digest)
    stream.expect("[")
    if stream.peek() == "]":
        stream.expect("]")
    else:
        while True:
            yield stream.element()
            if stream.peek() != ",":
                break
            stream.expect(",")
        stream.expect("]")
    stream.expect_end()


def _blocks(path: Path) -> Iterator[bytes]:
    try:
        with open_unpacked(path) as file:
            while block := file.read(CHUNK):
                yield block
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"cannot unpack: {error}", file=path) from None


class _Text:
    """A window of decoded text over the file, with the number of the line it starts on."""

    def __init__(self, path: Path, digest: Any) -> None:
        self.path = path
        self.buffer = ""
        self.at = 0
        self.line = 1
        self.ended = False
        self._blocks = _blocks(path)
        self._digest = digest
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def fill(self) -> None:
        block = next(self._blocks, b"")
        if self._digest is not None:
            self._digest.update(block)
        self.ended = not block
        try:
            more = self._decode(block, final=self.ended)
        except UnicodeDecodeError as error:
            line = self.line + self.buffer.count("\n", self.at)
            raise DataError(f"not UTF-8: {error.reason}", file=self.path, line=line) from None
        self.buffer = self.buffer[self.at :] + more
        self.at = 0

    def advance(self, to: int) -> None:
        self.line += self.buffer.count("\n", self.at, to)
        self.at = to

    def peek(self) -> str:
        """The next character that is not white space, or nothing at the end."""
        while True:
            position = self.at
            while position < len(self.buffer) and self.buffer[position] in " \t\r\n":
                position += 1
            self.advance(position)
            if position < len(self.buffer):
                return self.buffer[position]
            if self.ended:
                return ""
            self.fill()

    def expect(self, character: str) -> None:
        found = self.peek()
        if found != character:
            seen = repr(found) if found else "the end of the file"
            self.fail(f"expected {character!r}, found {seen}", self.line)
        self.advance(self.at + 1)

    def expect_end(self) -> None:
        if self.peek():
            self.fail(f"{self.peek()!r} after the end of the array", self.line)

    def element(self) -> Element:
        self.peek()
        line = self.line
        while True:
            try:
                value, end = _decoder.raw_decode(self.buffer, self.at)
            except json.JSONDecodeError as error:
                may_go_on = error.pos >= len(self.buffer) - _NEAR_END or "Unterminated" in error.msg
                if self.ended or not may_go_on:
                    self.fail(error.msg, line + self.buffer.count("\n", self.at, error.pos))
            except RecursionError:
                self.fail("nested too deeply", line)
            except ValueError as error:  # a number of thousands of digits
                self.fail(str(error), line)
            else:
                if self.ended or not self._may_go_on(value, end):
                    self._refuse_half_characters(value, end, line)
                    self.advance(end)
                    return Element(line, value)
            self.grow()

    def _may_go_on(self, value: Any, end: int) -> bool:
        """Whether the next block may continue a number: `1`, or `1.` of which only 1 was read."""
        rest = self.buffer[end : end + _NEAR_END]
        return not rest or (
            isinstance(value, int | float) and rest[0] in ".eE" and len(rest) < _NEAR_END
        )

    def _refuse_half_characters(self, value: Any, end: int, line: int) -> None:
        """Half of an escaped surrogate pair cannot be written, hashed or sent anywhere."""
        if all(self.buffer.find(escape, self.at, end) < 0 for escape in ("\\ud", "\\uD")):
            return
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            self.fail(f"{half} is half a character, in the element that starts here", line)

    def grow(self) -> None:
        """Read on until the window has doubled, so that a long element is not parsed too often."""
        wanted = 2 * (len(self.buffer) - self.at)
        while True:
            self.fill()
            if self.ended or len(self.buffer) >= wanted:
                return

    def fail(self, problem: str, line: int) -> NoReturn:
        raise DataError(f"malformed JSON: {problem}", file=self.path, line=line)
