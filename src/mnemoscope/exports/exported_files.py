"""The files of one export: their content, their caveats, and where they may be written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import is_run

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True)
class ExportedFiles:
    """The content of each file by its name, and what a reader of the figures must know."""

    files: Mapping[str, bytes]
    caveats: Sequence[str] = ()
    is_text: bool = True
    """Whether the one file can be printed."""
    written: list[Path] = field(default_factory=list)
    """The files that were written, if `out` was given."""

    @property
    def text(self) -> str:
        """The content of the only file."""
        if len(self.files) != 1 or not self.is_text:
            names = ", ".join(self.files)
            raise UsageError(f"the export is not one text but {names}: give --out")
        [content] = self.files.values()
        return content.decode("utf-8")

    def write(self, out: Path) -> list[Path]:
        """Write one file to `out`, or several into the folder `out`; return their paths."""
        refuse_run_directory(out)
        is_folder = len(self.files) > 1 or out.is_dir()
        places = {name: out / name if is_folder else out for name in self.files}
        try:
            (out if is_folder else out.parent).mkdir(parents=True, exist_ok=True)
            for name, content in self.files.items():
                places[name].write_bytes(content)
        except OSError as error:
            raise UsageError(f"--out {out}: {error.strerror}") from error
        self.written.extend(places.values())
        return list(places.values())

    def __repr__(self) -> str:
        return f"ExportedFiles {', '.join(map(str, self.written or self.files))}"


def refuse_run_directory(out: Path) -> None:
    """Refuse to write into a run directory: a file named as one of a run's counts as an edit."""
    place = out.absolute()
    for folder in (place, *place.parents):
        if is_run(folder):
            raise UsageError(
                f"--out {out} is inside the run directory {folder}, which contains only the "
                "run's own files: choose another path"
            )


def file_names(labels: Sequence[str]) -> list[str]:
    """A name for the file of each label; no two are equal, also where case does not count."""
    names: list[str] = []
    taken: set[str] = set()
    for label in labels:
        stem = _UNSAFE.sub("-", label).strip("-.")[:80] or "run"
        name, number = stem, 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        names.append(name)
    return names
