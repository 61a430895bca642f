"""The base class of datasets that consist of many files, in a folder or in archives."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from mnemoscope.datasets._io.file_tree import FileTree
from mnemoscope.datasets.base import DataFile, FileDataset


class TreeDataset(FileDataset):
    """A dataset whose files are one tree. Its hash is that of the tree, however it is packed."""

    tree_sha256: str | None = None
    """The pinned hash of the tree; None if not all of its files have been seen."""

    def __init__(self, tree: FileTree) -> None:
        super().__init__(tree.data)
        self.tree = tree
        self.paths = {str(path): path for path in tree.sources}

    def main_file(self, data: Path) -> Path:
        return data

    def used_files(self) -> Iterable[str]:
        """The names of the files that the options select."""
        return self.tree.places

    def files(self) -> list[DataFile]:
        return [DataFile(self.path, self.tree.sha256(self.used_files()), self.tree_sha256)]
