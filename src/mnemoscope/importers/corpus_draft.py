"""Writes a dataset folder in one step: until it is complete, it stands beside its place.

Memories are written as they come. At the end they are put in the order of their times, so that
only an offset a memory is kept in memory.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import encode_json
from mnemoscope._store.private_files import make_private_folder, write_private
from mnemoscope.datasets.imported_folder import IMPORT_RECORD, ImportRecord
from mnemoscope.datasets.strata import ImportedLine

CORPUS, LEFT_OUT, IGNORED = "corpus.jsonl", "left-out.jsonl", ".gitignore"
_ONLY_AGGREGATES = f"*\n!{IGNORED}\n!{IMPORT_RECORD}\n".encode()
_NEVER = datetime.min.replace(tzinfo=UTC)


class CorpusDraft(AbstractContextManager["CorpusDraft"]):
    """A dataset folder that is being written; nothing of it stays after an error."""

    def __init__(self, out: Path, *, overwrite: bool) -> None:
        self.out = Path.cwd() / out
        if self.out.exists() and (not self.out.is_dir() or any(self.out.iterdir())):
            if not (self.out / IMPORT_RECORD).is_file():
                raise UsageError(
                    f"{out} exists and was not made by `mnemoscope import`; choose another --out"
                )
            if not overwrite:
                raise UsageError(
                    f"{out} exists; choose another --out, or pass --overwrite to import its "
                    "memories again (its questions stay as they are)"
                )
        self._remove_left_drafts()
        self._draft = self.out.with_name(f".{self.out.name}.{os.getpid()}.draft")
        make_private_folder(self._draft)
        self._unordered = write_private(self._draft / "unordered")
        self._left_out = write_private(self._draft / LEFT_OUT)
        self._places: list[tuple[datetime, int, int]] = []
        self._size = 0

    def _remove_left_drafts(self) -> None:
        """Remove the drafts of processes that were killed."""
        for left in self.out.parent.glob(f".{self.out.name}.*.draft"):
            process = left.name.split(".")[-2]
            if process.isdigit() and not Path("/proc", process).exists():
                shutil.rmtree(left, ignore_errors=True)

    def add(self, line: ImportedLine) -> None:
        encoded = msgspec.json.encode(line) + b"\n"
        self._unordered.write(encoded)
        self._places.append((line.at or _NEVER, self._size, len(encoded)))
        self._size += len(encoded)

    def note(self, line: Mapping[str, object]) -> None:
        """Record what was left out or masked, and where."""
        self._left_out.write(msgspec.json.encode(line) + b"\n")

    def finish(self, record: ImportRecord) -> ImportRecord:
        """Order the memories, and put the folder in its place."""
        self._unordered.close()
        digest = hashlib.sha256()
        # Memories without a time come first, in the order of the source.
        self._places.sort(key=lambda place: (place[0], place[1]))
        with (
            (self._draft / "unordered").open("rb") as lines,
            write_private(self._draft / CORPUS) as corpus,
        ):
            for _, start, size in self._places:
                lines.seek(start)
                line = lines.read(size)
                digest.update(line)
                corpus.write(line)
        (self._draft / "unordered").unlink()
        self._left_out.close()
        times = [at for at, _, _ in self._places if at is not _NEVER]
        record = msgspec.structs.replace(
            record,
            memories=len(self._places),
            with_time=len(times),
            first=times[0] if times else None,
            last=times[-1] if times else None,
            sha256=digest.hexdigest(),
        )
        for name, content in (
            (IMPORT_RECORD, encode_json(record)),
            *(((IGNORED, _ONLY_AGGREGATES),) if record.private else ()),
        ):
            with write_private(self._draft / name) as file:
                file.write(content)
        if not self.out.exists() or not any(self.out.iterdir()):
            self._draft.replace(self.out)
        else:
            # The record comes last: until then its hash is not that of the corpus.
            for name in (IGNORED, LEFT_OUT, CORPUS, IMPORT_RECORD):
                if (self._draft / name).exists():
                    (self._draft / name).replace(self.out / name)
        return record

    def __exit__(self, *exc: object) -> None:
        self._unordered.close()
        self._left_out.close()
        with suppress(OSError):
            shutil.rmtree(self._draft)
