"""SQLite stores: any table by its columns, and the tables of claude-memory, mem0 and Letta.

The database is opened read-only, and an authorizer refuses everything but reading. Names are
quoted; `--where` is SQL of the user's own.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope.datasets.strata_export import quoted
from mnemoscope.importers.mapped_rows import TEXTS, chosen_fields
from mnemoscope.importers.source_record import (
    DELETED,
    EMPTY,
    FieldNames,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)
from mnemoscope.importers.source_times import read_time

MAGIC = b"SQLite format 3\0"
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION}
_READING |= {sqlite3.SQLITE_RECURSIVE, sqlite3.SQLITE_PRAGMA}
_PRAGMAS = ("table_xinfo", "query_only")
_HISTORY = ("memory_id", "new_memory", "event")
_PASSAGES = ("archival_passages", "agent_passages", "source_passages", "passages")


def _may_read(action: int, name: str | None, *_: str | None) -> int:
    allowed = action in _READING and (action != sqlite3.SQLITE_PRAGMA or name in _PRAGMAS)
    if action == sqlite3.SQLITE_FUNCTION and _[0] == "load_extension":
        allowed = False
    return sqlite3.SQLITE_OK if allowed else sqlite3.SQLITE_DENY


class Store:
    """A SQLite database that can only be read."""

    def __init__(self, database: sqlite3.Connection, path: Path) -> None:
        self._database = database
        self.path = path
        self.tables: dict[str, list[str]] = {}
        """The columns of each table and view; virtual tables need more than reading."""
        query = (
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view')"
            " AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name"
        )
        for (name,) in database.execute(query).fetchall():
            columns = database.execute(f"PRAGMA table_xinfo({quoted(name)})").fetchall()
            self.tables[name] = [row[1] for row in columns]

    def has(self, table: str, *columns: str) -> bool:
        return table in self.tables and set(columns) <= set(self.tables[table])

    def rows(
        self, source: ImportSource, table: str, *, where: str = "", order: Sequence[str] = ()
    ) -> Iterator[dict[str, Any]]:
        """The rows of the table, one by one."""
        rule = f" WHERE ({where})" if where else ""
        by = f" ORDER BY {', '.join(map(quoted, order))}" if order else ""
        [total] = self._one(f"SELECT count(*) FROM {quoted(table)}{rule}")
        columns = self.tables[table]
        listed = ", ".join(map(quoted, columns))
        found = self._database.execute(f"SELECT {listed} FROM {quoted(table)}{rule}{by}")
        for number, row in enumerate(found, 1):
            source.share = number / max(total, 1)
            yield dict(zip(columns, row, strict=True))

    def _one(self, query: str) -> Any:
        return self._database.execute(query).fetchone()


@contextmanager
def opened_store(path: Path) -> Iterator[Store]:
    """The database; an error of SQLite names the file."""
    if not path.is_file():
        raise DataError("is not a file: name the SQLite file", file=path)
    try:
        with (
            _address(path.resolve()) as address,
            closing(sqlite3.connect(address, uri=True)) as database,
        ):
            database.execute("PRAGMA query_only = on")
            database.set_authorizer(_may_read)
            yield Store(database, path)
    except sqlite3.DatabaseError as error:
        if "not authorized" in str(error) or "prohibited" in str(error):
            raise UsageError("--where may only read the table: its SQL does more") from None
        raise DataError(f"cannot be read as a SQLite database: {error}", file=path) from None
    except UnicodeDecodeError as error:
        raise DataError(f"contains text that is not UTF-8: {error.reason}", file=path) from None


@contextmanager
def _address(path: Path) -> Iterator[str]:
    """How to open the file so that nothing is written beside it.

    SQLite creates files beside a store with a write-ahead log even to read it, if no process has it
    open. Such a store does not change meanwhile, so that it, or a copy with its log, can be read.
    """
    log, index = (path.with_name(path.name + end) for end in ("-wal", "-shm"))
    with path.open("rb") as file:
        has_log = file.read(20)[18:20] == b"\2\2"
    if not has_log or index.exists():
        yield f"{path.as_uri()}?mode=ro"
    elif not log.exists():
        yield f"{path.as_uri()}?mode=ro&immutable=1"
    else:
        with TemporaryDirectory(prefix="mnemoscope-import-") as folder:
            for one in (path, log):
                shutil.copyfile(one, Path(folder) / one.name)
            yield (Path(folder) / path.name).as_uri() + "?mode=ro"


def store_kind(store: Store) -> str:
    """The product whose tables the store has; `sqlite` if they are not known."""
    if store.has("memories", "content", "category", "expanded_keywords", "importance"):
        return "claude-memory"
    if store.has("history", *_HISTORY):
        return "mem0"
    if store.has("block", "label", "value") or any(
        store.has(table, "text", "embedding_config") for table in _PASSAGES
    ):
        return "letta"
    return "sqlite"


def read_sqlite(source: ImportSource) -> Yielded:
    """A table by its columns; the usual names are found."""
    with opened_store(source.path) as store:
        table = source.table or _only_table(store)
        yield from _table(source, store, table, source.fields)


def read_claude_memory(source: ImportSource) -> Yielded:
    """The table `memories`; sensitive and deleted rows are left out."""
    with opened_store(source.path) as store:
        fields = FieldNames("content", "created_at", "id")
        if "created_at" not in store.tables.get("memories", ()):
            fields.time = ""
        yield from _table(source, store, source.table or "memories", fields)


def _table(source: ImportSource, store: Store, table: str, fields: FieldNames) -> Yielded:
    if table not in store.tables:
        raise UsageError(
            f"{store.path} has no table {table!r}; its tables: {', '.join(store.tables) or 'none'}"
        )
    mapping = chosen_fields(fields, store.tables[table], f"table {table!r} of {store.path}")
    names = mapping.names
    read = [f"{what} from {name!r}" for what, name in vars(names).items() if name]
    source.notes.append(f"table {table!r}: {', '.join(read)}")
    order = [names.id] if names.id else []
    for number, row in enumerate(store.rows(source, table, where=source.where, order=order), 1):
        name = row.get(names.id) if names.id else number
        place = f"{table}, row {name if isinstance(name, int | str) else number}"
        yield mapping.record(row, place, store.path, None)


def _only_table(store: Store) -> str:
    """The table with the memories, if there is only one that may be it."""
    usual = set(TEXTS[:3])
    found = [
        name
        for name, columns in store.tables.items()
        if usual & {column.lower() for column in columns} and not name.startswith("sqlite_")
    ]
    found = [name for name in found if "_fts" not in name] or found
    if len(found) == 1:
        return found[0]
    raise UsageError(
        f"{store.path} has several tables or none with a usual name for the text: name one with "
        f"--table and its column with --text; tables: {', '.join(store.tables) or 'none'}"
    )


def read_mem0_history(source: ImportSource) -> Yielded:
    """What each memory of mem0 is after the last event of its history."""
    with opened_store(source.path) as store:
        if not store.has("history", *_HISTORY):
            raise DataError(f"has no table history with {', '.join(_HISTORY)}", file=store.path)
        order = [name for name in ("created_at", "updated_at") if store.has("history", name)]
        last: dict[str, dict[str, Any]] = {}
        for row in store.rows(source, "history", where=source.where, order=order):
            key = row["memory_id"]
            if isinstance(key, str):
                row.setdefault("created_at", None)
                first = last[key]["created_at"] if key in last else row["created_at"]
                last[key] = {**row, "created_at": first or row["created_at"]}
        for key, row in last.items():
            place = f"history, memory {key}"
            if row["event"] == "DELETE" or row.get("is_deleted"):
                yield LeftOut(DELETED, place)
            elif not isinstance(row["new_memory"], str) or not row["new_memory"].strip():
                yield LeftOut(EMPTY, place)
            else:
                changed = read_time(row.get("updated_at")) or read_time(row["created_at"])
                speaker = row.get("role")
                yield SourceRecord(
                    place,
                    row["new_memory"],
                    key,
                    at=changed,
                    speaker=speaker if isinstance(speaker, str) else "",
                )


def read_letta_store(source: ImportSource) -> Yielded:
    """The archival passages and the memory blocks of Letta's SQLite store."""
    with opened_store(source.path) as store:
        found = False
        for table in _PASSAGES:
            if store.has(table, "id", "text"):
                found = True
                yield from _table(source, store, table, FieldNames("text", id="id"))
        if store.has("block", "id", "label", "value"):
            found = True
            yield from _table(source, store, "block", FieldNames("value", id="id"))
        if not found:
            raise DataError("has neither passages nor memory blocks of Letta", file=source.path)
