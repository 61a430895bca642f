"""Large JSON arrays, one element at a time, from plain, .xz or .gz files.

The buffer contains only a few elements, so a file of 2.7 GB fits in memory. Each element comes
with its first line, so that an error can name it.
"""

from __future__ import annotations

import codecs
import gzip
import json
import lzma
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, NoReturn, TypeVar

import msgspec

from mnemoscope._store.errors import DataError

T = TypeVar("T")

CHUNK = 4 << 20
_NEAR_END = 64
"""A syntax error this close to the end of the buffer may be an incomplete element."""
_OPEN: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}

_decoder = json.JSONDecoder()


class Element(NamedTuple):
    """One element of the array, and the line of its first character."""

    line: int
    value: Any


def unpacked(path: Path, *, lines: bool = False) -> Iterator[bytes]:
    """The content of the file in blocks or lines, decompressed if necessary."""
    try:
        with _OPEN.get(path.suffix, Path.open)(path, "rb") as file:
            yield from file if lines else iter(lambda: file.read(CHUNK), b"")
    except (lzma.LZMAError, gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise DataError(f"cannot unpack: {error}", file=path) from None


def converted(value: Any, kind: type[T], path: Path, line: int, about: str = "") -> T:
    """The element as a `kind`; the error message starts with `about`."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{about}{error}", file=path, line=line) from None


def array_elements(path: Path) -> Iterator[Element]:
    """The elements of the JSON array in `path`."""
    stream = _Window(path)
    allowed = "["
    while True:
        found = stream.next_character()
        if not found or found not in allowed:
            seen = repr(found) if found else "the end of the file"
            stream.fail(f"expected {allowed[-1]!r}, found {seen}", stream.line)
        stream.at += 1
        if found == "]":
            break
        if found == "[" and stream.next_character() == "]":
            allowed = "]"
        else:
            yield stream.element()
            allowed = ",]"
    if left := stream.next_character():
        stream.fail(f"{left!r} after the end of the array", stream.line)


class _Window:
    """A window of decoded text over the file, with the number of its current line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.buffer = ""
        self.at = 0
        self.line = 1
        self.ended = False
        self._blocks = unpacked(path)
        self._decode = codecs.getincrementaldecoder("utf-8-sig")().decode

    def fill(self) -> None:
        block = next(self._blocks, b"")
        self.ended = not block
        try:
            more = self._decode(block, final=self.ended)
        except UnicodeDecodeError as error:
            line = self.line + self.buffer.count("\n", self.at)
            raise DataError(f"not UTF-8: {error.reason}", file=self.path, line=line) from None
        self.buffer = self.buffer[self.at :] + more
        self.at = 0

    def next_character(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            while self.at < len(self.buffer) and (here := self.buffer[self.at]) in " \t\r\n":
                self.line += here == "\n"
                self.at += 1
            if self.at < len(self.buffer):
                return self.buffer[self.at]
            if self.ended:
                return ""
            self.fill()

    def element(self) -> Element:
        self.next_character()
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
            except ValueError as error:  # a number with thousands of digits
                self.fail(str(error), line)
            else:
                rest = self.buffer[end : end + _NEAR_END]
                # The next block may continue a number: `1`, or `1.` if only the 1 was parsed.
                number = isinstance(value, int | float) and rest[:1] in ".eE"
                if self.ended or (rest and not (number and len(rest) < _NEAR_END)):
                    raw = self.buffer[self.at : end]
                    try:
                        if "\\ud" in raw or "\\uD" in raw:
                            json.dumps(value, ensure_ascii=False).encode()
                    except UnicodeEncodeError as error:
                        # Half of an escaped surrogate pair cannot be encoded.
                        half = f"\\u{ord(error.object[error.start]):04x}"
                        self.fail(
                            f"{half} is half a character, in the element that starts here", line
                        )
                    self.line += raw.count("\n")
                    self.at = end
                    return Element(line, value)
            # Double the window before the next try, so that a long element is not parsed too often.
            wanted = 2 * (len(self.buffer) - self.at)
            self.fill()
            while not self.ended and len(self.buffer) < wanted:
                self.fill()

    def fail(self, problem: str, line: int) -> NoReturn:
        raise DataError(f"malformed JSON: {problem}", file=self.path, line=line)
