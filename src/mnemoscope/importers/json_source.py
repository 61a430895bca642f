"""Read JSON of exports: arrays element by element, from a file, a folder or a zip file."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope.datasets._io.json_stream import CHUNK, Element, array_elements
from mnemoscope.importers.source_record import ImportSource


class ExportFile(NamedTuple):
    """A file of an export, by its path in the folder or zip file."""

    name: str
    size: int


class Export:
    """The files of an export: one file, a folder, or a zip file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._zip: zipfile.ZipFile | None = None

    @property
    def is_zip(self) -> bool:
        return self._zip is not None

    def files(self) -> list[ExportFile]:
        if self._zip is not None:
            entries = self._zip.infolist()
            found = [ExportFile(one.filename, one.file_size) for one in entries if not one.is_dir()]
        elif self.path.is_dir():
            paths = [path for path in self.path.rglob("*") if path.is_file()]
            found = [
                ExportFile(path.relative_to(self.path).as_posix(), path.stat().st_size)
                for path in paths
            ]
        else:
            found = [ExportFile(self.path.name, self.path.stat().st_size)]
        return sorted(found)

    def named(self, pattern: str) -> list[ExportFile]:
        """The files whose name, without folders, matches the regular expression."""
        return [one for one in self.files() if re.fullmatch(pattern, one.name.rsplit("/", 1)[-1])]

    def place(self, file: ExportFile) -> Path:
        """The file as an error names it."""
        return self.path if self.path.name == file.name else self.path / file.name

    def blocks(self, file: ExportFile) -> Iterator[bytes]:
        try:
            with (
                self._zip.open(file.name)
                if self._zip is not None
                else self.place(file).open("rb") as content
            ):
                yield from iter(lambda: content.read(CHUNK), b"")
        except (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError) as error:
            raise DataError(f"cannot unpack: {error}", file=self.place(file)) from None

    def whole(self, file: ExportFile) -> bytes:
        return b"".join(self.blocks(file))


@contextmanager
def opened(path: Path) -> Iterator[Export]:
    """The export; a zip file stays open meanwhile."""
    export = Export(path)
    if path.is_file() and zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as export._zip:
                yield export
        except zipfile.BadZipFile as error:
            raise DataError(f"cannot unpack: {error}", file=path) from None
    else:
        yield export


def elements(source: ImportSource, export: Export, file: ExportFile) -> Iterator[Element[Any]]:
    """The objects of the array in the file; the source knows how much of it was read."""

    def counted() -> Iterator[bytes]:
        read = 0
        for block in export.blocks(file):
            read += len(block)
            source.share = read / max(file.size, 1)
            yield block

    yield from array_elements(export.place(file), dict, blocks=counted())


def whole_object(export: Export, file: ExportFile) -> Any:
    """The content of a small JSON file."""
    try:
        return msgspec.json.decode(export.whole(file))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"malformed JSON: {error}", file=export.place(file)) from None


def text_of(value: object) -> str:
    """The value if it is text, else nothing: exports contain null and objects in many places."""
    return value if isinstance(value, str) else ""


def dict_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    return value if isinstance(value, list) else []
