"""Datasets of many files, in a folder or in tar archives, which are read in place.

Nothing is extracted to disk. The hash of a tree does not depend on how it is packed.
"""

from __future__ import annotations

import hashlib
import lzma
import tarfile
import zlib
from collections.abc import Callable, Iterable
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TypeVar

import msgspec

from mnemoscope._store.errors import DataError, MissingData

T = TypeVar("T")

ARCHIVES = (".tar", ".tar.xz", ".tar.gz", ".tgz")


class FileTree:
    """The wanted files of `data`: a folder with all below it and the archives in it, or an archive.

    `name_of` gives a file its name in the dataset from its path, or None if it is not wanted. The
    path has forward slashes and begins below the folder or in the archive. The wanted files of an
    archive are kept in memory, because an archive can only be read from its start. A file of the
    folder takes precedence over one of an archive.
    """

    def __init__(self, data: Path, name_of: Callable[[str], str | None]) -> None:
        if data.is_file() and not _is_archive(data):
            kinds = ", ".join(ARCHIVES)
            raise MissingData(f"{data} is neither a folder nor an archive ({kinds})")
        self.data = data
        self._name_of = name_of
        self._packed: dict[str, bytes] = {}

    @cached_property
    def places(self) -> dict[str, Path]:
        """Name to the place of the file; in an archive, its path after that of the archive."""
        found: dict[str, Path] = {}
        archives = [self.data]
        if self.data.is_dir():
            paths = sorted(self.data.rglob("*"))
            archives = [one for one in paths if one.parent == self.data and _is_archive(one)]
            for path in paths:
                name = self._name_of(path.relative_to(self.data).as_posix())
                if name is not None and path.is_file():
                    found.setdefault(name, path)
        for archive in archives:
            for path_inside, content in self._members(archive):
                name = self._name_of(path_inside)
                if name is not None and name not in found:
                    found[name] = archive / path_inside
                    self._packed[name] = content
        return dict(sorted(found.items()))

    def _members(self, archive: Path) -> Iterable[tuple[str, bytes]]:
        try:
            with tarfile.open(archive) as members:
                for member in members:
                    path_inside = str(PurePosixPath(member.name))
                    if member.isreg() and self._name_of(path_inside) is not None:
                        content = members.extractfile(member)
                        assert content is not None
                        yield path_inside, content.read()
        except (tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError) as error:
            raise DataError(f"cannot unpack: {error}", file=archive) from None

    @property
    def sources(self) -> list[Path]:
        """The archives and the folders of the plain files: what systems must not read."""
        archives = [path for path in (self.data, *self._archives()) if path.is_file()]
        plain = (path.parent for name, path in self.places.items() if name not in self._packed)
        return [*archives, *dict.fromkeys(plain)]

    def _archives(self) -> list[Path]:
        return sorted(filter(_is_archive, self.data.iterdir())) if self.data.is_dir() else []

    def content(self, name: str) -> bytes:
        packed = self._packed.get(name)
        return self.places[name].read_bytes() if packed is None else packed

    def decoded(self, name: str, kind: type[T]) -> T:
        """The JSON content of a file."""
        try:
            return msgspec.json.decode(self.content(name), type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise DataError(str(error), file=self.places[name]) from None

    def sha256(self, names: Iterable[str]) -> str:
        """The hash of the lines `SHA256  NAME` of these files, sorted."""
        lines = sorted(
            f"{hashlib.sha256(self.content(name)).hexdigest()}  {name}\n" for name in names
        )
        return hashlib.sha256("".join(lines).encode()).hexdigest()


def _is_archive(path: Path) -> bool:
    return path.name.endswith(ARCHIVES) and path.is_file()
