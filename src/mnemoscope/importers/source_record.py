"""What every importer yields: one record of a source, or the reason why one is left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Literal, NamedTuple

from mnemoscope.types import Scalar

SENSITIVE, DELETED, EMPTY = "marked as sensitive", "deleted in the source", "without text"
NOT_READ = "not text"

DateOrder = Literal["dmy", "mdy", "ymd"]


class SourceRecord(NamedTuple):
    """One memory of a source, before secrets are looked for."""

    place: str
    """Where a person finds it: file and line, or table and row."""
    text: str
    key: int | str | None = None
    """The id that the source gave it."""
    origin: str = ""
    """What identifies it in a source without ids, such as path and heading; it is hashed."""
    at: datetime | None = None
    session: str = ""
    speaker: str = ""
    category: str = ""
    tags: str = ""
    keywords: str = ""
    importance: float | None = None
    metadata: Mapping[str, Scalar] = {}
    line: int = 0
    """The line of the file in which the text begins; 0 if it has no lines of its own."""
    split: Callable[[str], Iterator[SourceRecord | LeftOut]] | None = None
    """Makes the records from the text after secrets were masked in it as a whole."""


class LeftOut(NamedTuple):
    """Something of a source that does not become a memory."""

    reason: str
    place: str


Yielded = Iterator[SourceRecord | LeftOut]


@dataclass
class FieldNames:
    """Which column, or field, of a row has what; empty: the usual names are tried."""

    text: str = ""
    time: str = ""
    id: str = ""
    session: str = ""
    speaker: str = ""


@dataclass
class ImportSource:
    """A source to read, with the options that some kinds of sources have."""

    path: Path
    fields: FieldNames = field(default_factory=FieldNames)
    table: str = ""
    where: str = ""
    files: str = ""
    """Patterns of the names of notes, separated by commas."""
    section_above: int = 2000
    file_times: bool = False
    date_order: DateOrder | None = None
    share: float | None = None
    """How much of the source was read, from 0 to 1; None if that is not known."""
    notes: list[str] = field(default_factory=list)
    """What the reader decided and the user should know."""
