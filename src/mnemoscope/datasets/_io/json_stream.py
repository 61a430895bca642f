"""Large JSON arrays, one element at a time, from plain, .xz or .gz files.

The buffer contains only a few elements, so a file of 2.7 GB fits in memory. Each element comes
with its first line, so that an error can name it. msgspec decodes objects, which takes a fraction
of the time of `json`; what msgspec does not accept is left to `json`, which decides and whose
errors name a line.
"""

from __future__ import annotations

import gzip
import json
import lzma
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Generic, NamedTuple, NoReturn, TypeVar

import msgspec

from mnemoscope._store.errors import DataError

T = TypeVar("T")

CHUNK = 4 << 20
_NEAR_END = 64
"""A syntax error this close to the end of the buffer may be an incomplete element."""
_OPEN: dict[str, Any] = {".xz": lzma.open, ".gz": gzip.open}

_BOM = b"\xef\xbb\xbf"
_SPACE = re.compile(rb"[ \t\r\n]*")
_ENDS_BEFORE = re.compile(r"trailing characters \(byte (\d+)\)")
"""How msgspec says that a complete value ends before the character with this number, from 1."""
_TRUNCATED = "Input data was truncated"

_decoder = json.JSONDecoder()
_raw_decoder = msgspec.json.Decoder(msgspec.Raw)


class Element(NamedTuple, Generic[T]):
    """One element of the array, and the line of its first character."""

    line: int
    value: T


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


def array_elements(
    path: Path, kind: type[T], about: str = "", blocks: Iterator[bytes] | None = None
) -> Iterator[Element[T]]:
    """The elements of the JSON array in `path`; the error for one of another kind begins `about`.

    Fields that `kind` does not have are only checked as far as is necessary to skip them. `blocks`
    are the content of the file, if it is unpacked already.
    """
    stream = _Window(path, unpacked(path) if blocks is None else blocks)
    decoder = msgspec.json.Decoder(kind)
    allowed = "["
    while True:
        found = stream.next_character()
        if not found or found not in allowed:
            seen = repr(found) if found else "the end of the file"
            stream.fail(f"expected {allowed[-1]!r}, found {seen}", stream.line)
        stream.at += 1
        if found == "]":
            break
        found = stream.next_character()
        if found == "]" and allowed == "[":
            allowed = "]"
            continue
        line = stream.line
        value = stream.decoded(decoder) if found == "{" else None
        if value is None:
            value = converted(stream.element(), kind, path, line, about)
        yield Element(line, value)
        allowed = ",]"
    if left := stream.next_character():
        stream.fail(f"{left!r} after the end of the array", stream.line)


class _Window:
    """A window over the bytes of the file, with the number of its current line."""

    def __init__(self, path: Path, blocks: Iterator[bytes]) -> None:
        self.path = path
        self.buffer = b""
        self.at = 0
        self.line = 1
        self.ended = False
        self._blocks = blocks
        while len(self.buffer) < len(_BOM) and not self.ended:
            self.fill()
        self.buffer = self.buffer.removeprefix(_BOM)

    def fill(self) -> None:
        block = next(self._blocks, b"")
        self.ended = not block
        self.buffer = self.buffer[self.at :] + block
        self.at = 0

    def next_character(self) -> str:
        """The next character that is not white space; empty at the end of the file."""
        while True:
            skipped = _SPACE.match(self.buffer, self.at)
            assert skipped is not None
            self._advance(skipped.end())
            if self.at < len(self.buffer):
                # The first byte of a character says how many it has.
                size = 4 if self.buffer[self.at] >= 0x80 else 1
                while len(self.buffer) - self.at < size and not self.ended:
                    self.fill()
                return self._text(self.at, self.at + size)[:1]
            if self.ended:
                return ""
            self.fill()

    def decoded(self, decoder: msgspec.json.Decoder[T]) -> T | None:
        """The object that begins here; None if msgspec does not accept it."""
        while True:
            rest, end = memoryview(self.buffer)[self.at :], len(self.buffer)
            try:
                _raw_decoder.decode(rest)
            except msgspec.DecodeError as error:
                if str(error) == _TRUNCATED and not self.ended:
                    rest.release()
                    self._double()
                    continue
                found = _ENDS_BEFORE.search(str(error))
                if found is None:
                    return None
                end = self.at + int(found[1]) - 1
            except RecursionError:
                return None
            try:
                value = decoder.decode(rest[: end - self.at])
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                return None
            self._advance(end)
            return value

    def element(self) -> Any:
        """The value that begins here, decoded by `json`."""
        line = self.line
        while True:
            text = self._text(self.at, len(self.buffer))
            try:
                value, end = _decoder.raw_decode(text)
            except json.JSONDecodeError as error:
                may_go_on = error.pos >= len(text) - _NEAR_END or "Unterminated" in error.msg
                if self.ended or not may_go_on:
                    self.fail(error.msg, line + text.count("\n", 0, error.pos))
            except RecursionError:
                self.fail("nested too deeply", line)
            except ValueError as error:  # a number with thousands of digits
                self.fail(str(error), line)
            else:
                rest = text[end : end + _NEAR_END]
                # The next block may continue a number: `1`, or `1.` if only the 1 was parsed.
                number = isinstance(value, int | float) and rest[:1] in ".eE"
                if self.ended or (rest and not (number and len(rest) < _NEAR_END)):
                    self._refuse_half_characters(value, text[:end])
                    self._advance(self.at + len(text[:end].encode()))
                    return value
            self._double()

    def fail(self, problem: str, line: int) -> NoReturn:
        raise DataError(f"malformed JSON: {problem}", file=self.path, line=line)

    def _double(self) -> None:
        """Double the window before the next try, so that a long element is not read too often."""
        wanted = 2 * (len(self.buffer) - self.at)
        self.fill()
        while not self.ended and len(self.buffer) < wanted:
            self.fill()

    def _advance(self, end: int) -> None:
        self.line += self.buffer.count(b"\n", self.at, end)
        self.at = end

    def _text(self, start: int, end: int) -> str:
        """Part of the buffer; without the last character if its bytes are not all there yet."""
        part = self.buffer[start:end]
        try:
            return part.decode()
        except UnicodeDecodeError as error:
            whole = part[: error.start].decode()
            if error.end == len(part) and (end < len(self.buffer) or not self.ended):
                return whole
            line = self.line + whole.count("\n")
            raise DataError(f"not UTF-8: {error.reason}", file=self.path, line=line) from None

    def _refuse_half_characters(self, value: Any, raw: str) -> None:
        """Half of an escaped surrogate pair cannot be encoded."""
        if "\\ud" not in raw and "\\uD" not in raw:
            return
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            self.fail(f"{half} is half a character, in the element that starts here", self.line)
