"""Search the bytes of files for texts: as they are, encoded, and inside compressed data.

SQLite keeps deleted rows in free pages and in its log, and other stores keep old segments: a search
of the bytes finds them wherever they are. What is encrypted, or encoded in another way than those
listed here, is not found.
"""

from __future__ import annotations

import base64
import bz2
import importlib
import lzma
import os
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

_BLOCK = 16 << 20
_OVERLAP = 1 << 10
_MOST_UNPACKED = 16 << 20
"""Bytes that one compressed stream is unpacked to."""
_MOST_STREAMS = 20_000
"""Streams of one block that are tried: two bytes that look like the start of one are frequent."""
_DEPTH = 2
_SHARED = 4
"""Letters at the start of a word that a full-text index may store once for several words."""
_SQLITE = b"SQLite format 3\0"
_TRUNK = 8


class FoundText(Struct, frozen=True):
    """One place of a file in which a text was found."""

    text: str
    """The key of the text."""
    file: str
    offset: int
    form: str
    """How it is written there, such as `UTF-8` or `base64, in zlib`."""
    place: str = ""
    """What this place of the file is, such as a free page."""


class ByteSearch(Struct, frozen=True):
    """What a search found, and which files it could not read."""

    found: list[FoundText]
    files: int
    bytes: int
    unread: list[str]

    @property
    def texts(self) -> set[str]:
        return {one.text for one in self.found}


def search_files(folders: Iterable[Path], texts: dict[str, tuple[str, ...]]) -> ByteSearch:
    """Search all files below the folders for the rare words of each text.

    `texts` maps a key to words that stand in no other text. The first place in each file counts.
    """
    patterns = [
        (key, name, pattern)
        for key, words in texts.items()
        for word in words
        for name, pattern in _patterns(word)
    ]
    found: list[FoundText] = []
    unread: list[str] = []
    files = size = 0
    for folder in folders:
        for path in _files(folder, unread):
            name = str(path.relative_to(folder))
            try:
                size += path.stat().st_size
                found += _search_file(path, name, patterns, unread)
                files += 1
            except FileNotFoundError:
                continue  # deleted by the store since it was listed
            except OSError as error:
                unread.append(f"{name}: {error.strerror or error}")
    return ByteSearch(found, files, size, list(dict.fromkeys(unread)))


class _Pattern(NamedTuple):
    data: bytes
    any_case: bool


def _patterns(word: str) -> Iterator[tuple[str, _Pattern]]:
    """The word without its first letters in each encoding; base64 depends on where it begins."""
    end = word[_SHARED:]
    for encoding, name in (("utf-8", "UTF-8"), ("utf-16-le", "UTF-16"), ("utf-16-be", "UTF-16")):
        yield name, _Pattern(end.lower().encode(encoding), True)
    yield "hexadecimal", _Pattern(end.encode().hex().encode(), True)
    yield "backwards", _Pattern(end[::-1].lower().encode(), True)
    for shift in range(3):
        # Only whole groups of three bytes are the same whatever stands around them.
        plain = end.encode()[shift:]
        whole = plain[: len(plain) // 3 * 3]
        yield "base64", _Pattern(base64.b64encode(whole), False)


def _files(folder: Path, unread: list[str]) -> Iterator[Path]:
    """All regular files below the folder; what is behind a link to elsewhere is `unread`."""

    def refused(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError):
            unread.append(f"{error.filename}: {error.strerror or error}")

    whole = folder.resolve()
    for parent, folders, names in os.walk(folder, onerror=refused):
        for name in sorted([*folders, *names]):
            path = Path(parent, name)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue
            if stat.S_ISLNK(mode) and path.exists() and not path.resolve().is_relative_to(whole):
                unread.append(f"{path.relative_to(folder)}: a link to {path.resolve()}")
            # Not a pipe or a device, which could be read for ever.
            if stat.S_ISREG(mode):
                yield path


def _search_file(
    path: Path, name: str, patterns: list[tuple[str, str, _Pattern]], unread: list[str]
) -> Iterator[FoundText]:
    seen: set[tuple[str, str]] = set()
    free = _free_pages(path)
    with path.open("rb") as file:
        start, before = 0, b""
        while block := file.read(_BLOCK):
            data = before + block
            for key, form, offset in _search_bytes(data, patterns, name, unread):
                if (key, form) not in seen:
                    seen.add((key, form))
                    at = start - len(before) + offset
                    yield FoundText(key, name, at, form, _place(name, at, free))
            start += len(block)
            before = data[-_OVERLAP:]


def _search_bytes(
    data: bytes,
    patterns: list[tuple[str, str, _Pattern]],
    name: str,
    unread: list[str],
    depth: int = 0,
) -> Iterator[tuple[str, str, int]]:
    lower = data.lower()
    for key, form, pattern in patterns:
        offset = (lower if pattern.any_case else data).find(pattern.data)
        if offset >= 0:
            yield key, form, offset
    if depth >= _DEPTH:
        return
    for packing, offset, unpacked in _streams(data, name, unread):
        for key, form, _ in _search_bytes(unpacked, patterns, name, unread, depth + 1):
            yield key, f"{form}, in {packing}", offset


def _streams(data: bytes, name: str, unread: list[str]) -> Iterator[tuple[str, int, bytes]]:
    """Compressed streams that begin anywhere in the data."""
    tried = 0
    for packing, starts, skip, unpacker in _PACKINGS:
        for magic in starts:
            offset = data.find(magic)
            while offset >= 0:
                tried += 1
                if tried > _MOST_STREAMS:
                    unread.append(f"{name}: too much that looks compressed")
                    return
                unpack = unpacker()
                if unpack is None:
                    unread.append(f"{name}: {packing} data, which cannot be unpacked here")
                    break
                begin = offset + skip(data, offset)
                unpacked = _unpacked(unpack, data[begin : begin + _MOST_UNPACKED])
                if unpacked:
                    yield packing, offset, unpacked
                offset = data.find(magic, offset + 1)


def _unpacked(unpack: Any, data: bytes) -> bytes:
    """What the stream contains, as far as it can be read."""
    whole = bytearray()
    try:
        for start in range(0, len(data), 1 << 16):
            whole += unpack.decompress(data[start : start + (1 << 16)])
            if getattr(unpack, "eof", False) or len(whole) > _MOST_UNPACKED:
                break
    except Exception:  # each library has errors of its own: this is the end of what can be read
        pass
    return bytes(whole)


def _zstd() -> Any:
    """A decompressor of zstd; None if neither Python nor a package has one."""
    for module, name in (("compression.zstd", "ZstdDecompressor"), ("zstandard", "decompressobj")):
        try:
            found = importlib.import_module(module)
        except ImportError:
            continue
        if name == "decompressobj":
            return found.ZstdDecompressor().decompressobj()
        return getattr(found, name)()
    return None


def _after_zip_header(data: bytes, offset: int) -> int:
    """The length of a local header of a ZIP archive."""
    lengths = data[offset + 26 : offset + 30]
    return 30 + int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little")


_NO_HEADER: Callable[[bytes, int], int] = lambda data, offset: 0  # noqa: E731
_PACKINGS: tuple[
    tuple[str, tuple[bytes, ...], Callable[[bytes, int], int], Callable[[], Any]], ...
] = (
    ("zlib", (b"x\x01", b"x\x5e", b"x\x9c", b"x\xda"), _NO_HEADER, zlib.decompressobj),
    ("gzip", (b"\x1f\x8b\x08",), _NO_HEADER, lambda: zlib.decompressobj(31)),
    ("ZIP", (b"PK\x03\x04",), _after_zip_header, lambda: zlib.decompressobj(-15)),
    ("bzip2", (b"BZh",), _NO_HEADER, bz2.BZ2Decompressor),
    ("xz", (b"\xfd7zXZ\0",), _NO_HEADER, lzma.LZMADecompressor),
    ("zstd", (b"\x28\xb5\x2f\xfd",), _NO_HEADER, _zstd),
)


class _FreePages(NamedTuple):
    size: int
    numbers: frozenset[int]


def _free_pages(path: Path) -> _FreePages | None:
    """The pages that an SQLite file does not use; None for another file.

    https://www.sqlite.org/fileformat2.html: the list of free pages is a chain of trunk pages.
    """
    with path.open("rb") as file:
        head = file.read(100)
        if not head.startswith(_SQLITE):
            return None
        size = int.from_bytes(head[16:18], "big")
        size = 65536 if size == 1 else size
        free: set[int] = set()
        trunk = int.from_bytes(head[32:36], "big")
        while trunk and trunk not in free and size:
            free.add(trunk)
            file.seek((trunk - 1) * size)
            page = file.read(size)
            count = min(int.from_bytes(page[4:8], "big"), max(0, size // 4 - 2))
            leaves = page[_TRUNK : _TRUNK + 4 * count]
            free.update(
                int.from_bytes(leaves[at : at + 4], "big") for at in range(0, len(leaves), 4)
            )
            trunk = int.from_bytes(page[:4], "big")
    return _FreePages(size, frozenset(free))


def _place(name: str, offset: int, free: _FreePages | None) -> str:
    for end, about in (("-wal", "SQLite's write-ahead log"), ("-journal", "SQLite's journal")):
        if name.endswith(end):
            return about
    if free is None or not free.size:
        return ""
    page = offset // free.size + 1
    return f"SQLite's free page {page}" if page in free.numbers else f"SQLite's page {page}"
