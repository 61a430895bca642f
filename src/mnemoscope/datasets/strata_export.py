"""Export a SQLite memory store to the corpus.jsonl that `Strata` reads.

The store is opened read-only. Rows marked as sensitive are not exported.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.jsonl import encode_lines, write_atomically
from mnemoscope.datasets.strata import DESCRIPTIONS, CorpusLine

TEXT_COLUMNS = ("content", "text")
SENSITIVE_COLUMN = "is_sensitive"
# A SQLite column can contain any type, and SQL evaluates the text 'true' as false. So a row counts
# as sensitive unless its mark is one of these.
NOT_SENSITIVE = frozenset({"", "0", "0.0", "false", "f", "no", "n", "none", "null"})


class Exported(NamedTuple):
    """How many rows of a store were exported or omitted."""

    exported: int
    left_out: int
    """Rows marked as sensitive."""
    without_text: int


def export_store(
    store: Path,
    out: Path,
    *,
    table: str = "memories",
    id_column: str = "id",
    text_column: str | None = None,
    assume_not_sensitive: bool = False,
) -> Exported:
    """Write the memories of the store to the file `out`, sorted by id.

    The default of `text_column` is `content`, else `text`. A store without a column for sensitive
    rows is refused unless `assume_not_sensitive` is set.
    """
    if not store.is_file():
        raise MissingData(f"{store} is missing: it should be a SQLite database")
    if out.exists() and out.samefile(store):
        raise UsageError(f"{out} is the store; choose another output file")
    try:
        with closing(sqlite3.connect(f"{store.resolve().as_uri()}?mode=ro", uri=True)) as database:
            has = _columns(database, table, store)
            chosen = _choose(has, table, id_column, text_column, store)
            if SENSITIVE_COLUMN in has:
                chosen[SENSITIVE_COLUMN] = has[SENSITIVE_COLUMN]
            elif not assume_not_sensitive:
                raise DataError(
                    f"table {table!r} has no column {SENSITIVE_COLUMN!r} that marks sensitive"
                    " memories; if no memory is sensitive, set assume_not_sensitive",
                    file=store,
                )
            rows = database.execute(
                f"SELECT {', '.join(map(quoted, chosen.values()))} FROM {quoted(table)}"
                f" ORDER BY {quoted(chosen['id'])}"
            ).fetchall()
    except sqlite3.Error as error:
        raise DataError(f"cannot be read as a SQLite database: {error}", file=store) from None
    lines, result = _corpus_lines([dict(zip(chosen, row, strict=True)) for row in rows], store)
    write_atomically(out, encode_lines(lines))
    return result


def _columns(database: sqlite3.Connection, table: str, store: Path) -> dict[str, str]:
    """The columns by lower-case name: SQLite treats `ID` and `id` as the same."""
    names = [row[1] for row in database.execute(f"PRAGMA table_xinfo({quoted(table)})")]
    if not names:
        tables = database.execute(
            "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
        )
        there = ", ".join(name for (name,) in tables) or "none"
        raise DataError(f"has no table {table!r}; its tables: {there}", file=store)
    return {name.lower(): name for name in names}


def _choose(
    has: Mapping[str, str], table: str, id_column: str, text_column: str | None, store: Path
) -> dict[str, str]:
    """Map our field names to the columns of the store."""
    texts = TEXT_COLUMNS if text_column is None else (text_column,)
    wanted: dict[str, Sequence[str]] = {"id": (id_column,), "content": texts}
    chosen: dict[str, str] = {}
    for field, candidates in wanted.items():
        column = next((has[name.lower()] for name in candidates if name.lower() in has), None)
        if column is None:
            raise DataError(
                f"table {table!r} has no column {' or '.join(map(repr, candidates))};"
                f" its columns: {', '.join(has.values())}",
                file=store,
            )
        chosen[field] = column
    return chosen | {field: has[field] for field in DESCRIPTIONS if field in has}


def _corpus_lines(
    rows: Sequence[dict[str, object]], store: Path
) -> tuple[list[CorpusLine], Exported]:
    lines: list[CorpusLine] = []
    left_out = without_text = 0
    for row in rows:
        mark = row.pop(SENSITIVE_COLUMN, None)
        if str("" if mark is None else mark).strip().lower() not in NOT_SENSITIVE:
            left_out += 1
        elif row["content"] in (None, ""):
            without_text += 1
        else:
            try:
                line = msgspec.convert(row, CorpusLine)
            except msgspec.ValidationError as error:
                raise DataError(f"memory {row['id']!r}: {error}", file=store) from None
            if lines and lines[-1].id == line.id:
                raise DataError(f"memory id {line.id} occurs more than once", file=store)
            lines.append(line)
    return lines, Exported(len(lines), left_out, without_text)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
