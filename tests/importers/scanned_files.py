"""Look for texts in every file below a folder, packed ones included."""

from __future__ import annotations

import re
import sqlite3
import zlib
from base64 import b64decode
from collections.abc import Iterable, Iterator
from contextlib import closing, suppress
from pathlib import Path

_PACKED = re.compile(rb"[A-Za-z0-9+/]{60,}={0,2}")


def files_with(folder: Path, wanted: Iterable[str], *, but: Iterable[Path] = ()) -> dict[str, str]:
    """Each file that contains one of the texts, in any case, to the first that it contains."""
    found: dict[str, str] = {}
    left = [text.lower().encode() for text in wanted]
    for path in sorted(folder.rglob("*")):
        if not path.is_file() or any(path.is_relative_to(one) for one in but):
            continue
        for content in [str(path).encode(), *_contents(path)]:
            lower = content.lower()
            for text in left:
                if text in lower:
                    found.setdefault(str(path.relative_to(folder)), text.decode())
    return found


def _contents(path: Path) -> Iterator[bytes]:
    content = path.read_bytes()
    yield content
    for packed in _PACKED.findall(content):
        with suppress(ValueError, zlib.error):
            yield zlib.decompress(b64decode(packed))
    if content.startswith(b"SQLite format 3"):
        with closing(sqlite3.connect(path)) as database:
            yield "\n".join(database.iterdump()).encode("utf-8", "replace")
