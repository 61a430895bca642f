"""`import.json`: what `mnemoscope import` records about a dataset folder that it made.

The file contains counts and names of kinds, and never a text, a name or a path of the source, so
that it may be published.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError

IMPORT_RECORD = "import.json"


class ImportRecord(msgspec.Struct, kw_only=True):
    """How the corpus of a dataset folder came about."""

    version: int = 1
    """The version of this format."""
    mnemoscope: str = ""
    """The version of Mnemoscope that imported the memories."""
    imported: datetime | None = None
    kind: str
    """The kind of source, such as `notes` or `chatgpt`."""
    memories: int
    """How many lines corpus.jsonl has."""
    with_time: int = 0
    first: datetime | None = None
    """The time of the earliest memory that has one."""
    last: datetime | None = None
    left_out: dict[str, int] = {}
    """Why memories of the source are not in the corpus, and how many."""
    secrets: dict[str, int] = {}
    """Kinds of secrets that were found, and how many."""
    secrets_were: str = ""
    """What was done with them: `mask` or `withhold`."""
    sha256: str = ""
    """The hash of corpus.jsonl as it was imported."""
    private: bool = False
    """Whether texts of this folder may stand only here and in the `private` folder of a run."""


def import_record(folder: Path) -> ImportRecord | None:
    """The record of a dataset folder; None if it was not imported."""
    path = folder / IMPORT_RECORD
    try:
        return msgspec.json.decode(path.read_bytes(), type=ImportRecord)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"is not what `mnemoscope import` wrote: {error}", file=path) from None
