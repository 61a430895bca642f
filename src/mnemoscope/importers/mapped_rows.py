"""Rows of any table or file, made into records by the names of their fields."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import decode_lines
from mnemoscope.datasets.strata_export import NOT_SENSITIVE
from mnemoscope.importers.json_source import elements, opened
from mnemoscope.importers.source_record import (
    DELETED,
    EMPTY,
    SENSITIVE,
    FieldNames,
    ImportSource,
    LeftOut,
    SourceRecord,
    Yielded,
)
from mnemoscope.importers.source_times import read_time
from mnemoscope.types import Scalar

TEXTS = ("content", "text", "memory", "body", "message", "note", "value", "data")
TIMES = (
    "at",
    "created_at",
    "timestamp",
    "time",
    "date",
    "created",
    "createdat",
    "updated_at",
    "ts",
)
IDS = ("id", "uuid", "_id", "memory_id", "rowid")
SESSIONS = ("session", "session_id", "conversation_id", "thread_id", "channel")
SPEAKERS = ("speaker", "role", "sender", "author", "user")
SENSITIVE_FIELDS = ("is_sensitive", "sensitive", "is_private", "private", "is_secret")
DELETED_FIELDS = ("deleted_at", "is_deleted", "deleted", "deletedat", "isdeleted")
DESCRIBED = ("category", "tags", "expanded_keywords", "importance")

_Get = Callable[[Mapping[str, Any], str], Any]


def plain_get(row: Mapping[str, Any], field: str) -> Any:
    return row.get(field)


class RowMapping(NamedTuple):
    """Which fields of a row are read; `get` finds a field that may be an expression."""

    names: FieldNames
    named_time: bool
    get: _Get = plain_get

    def record(self, row: Mapping[str, Any], place: str, file: Path, line: int | None) -> Any:
        """The record of the row, or why it is left out."""
        names = self.names
        flags = {field.lower(): value for field, value in row.items()}
        if any(_is_set(flags.get(field)) for field in SENSITIVE_FIELDS):
            return LeftOut(SENSITIVE, place)
        if any(_is_set(flags.get(field)) for field in DELETED_FIELDS):
            return LeftOut(DELETED, place)
        text = self.get(row, names.text)
        if text is None or (isinstance(text, str) and not text.strip()):
            return LeftOut(EMPTY, place)
        if not isinstance(text, str):
            raise DataError(
                f"the text in {names.text!r} is not text ({place})", file=file, line=line
            )
        time = self.get(row, names.time) if names.time else None
        at = read_time(time)
        if at is None and time not in (None, "") and self.named_time:
            problem = f"the value of {names.time!r} is not a time that can be read ({place})"
            raise DataError(problem, file=file, line=line)
        importance = flags.get("importance")
        return SourceRecord(
            place,
            text,
            _key(self.get(row, names.id)) if names.id else None,
            at=at,
            session=_said(self.get(row, names.session)) if names.session else "",
            speaker=_said(self.get(row, names.speaker)) if names.speaker else "",
            category=_said(flags.get("category")),
            tags=_tags(flags.get("tags")),
            keywords=_tags(flags.get("expanded_keywords"), " "),
            importance=float(importance) if isinstance(importance, int | float) else None,
        )


def chosen_fields(
    given: FieldNames, present: Sequence[str], where: str, *, expressions: bool = False
) -> RowMapping:
    """The fields that were named, and for the others the usual names that are present."""
    by_name = {name.lower(): name for name in present}

    def pick(asked: str, option: str, usual: Sequence[str]) -> str:
        if not asked:
            return next((by_name[name.lower()] for name in usual if name.lower() in by_name), "")
        if expressions and asked.lower() not in by_name:
            return asked
        if asked.lower() not in by_name:
            raise UsageError(
                f"{where} has no column {asked!r} for {option}; it has {', '.join(present)}"
            )
        return by_name[asked.lower()]

    names = FieldNames(
        pick(given.text, "--text", TEXTS),
        pick(given.time, "--time", TIMES),
        pick(given.id, "--id", IDS),
        pick(given.session, "--session", SESSIONS),
        pick(given.speaker, "--speaker", SPEAKERS),
    )
    if not names.text:
        raise UsageError(
            f"{where} has no column with a usual name for the text; name it with --text: "
            f"{', '.join(present)}"
        )
    return RowMapping(names, bool(given.time))


def read_csv(source: ImportSource) -> Yielded:
    """The rows of a CSV file with a header, separated by comma, semicolon or tab."""
    csv.field_size_limit(1 << 30)
    size, path = max(source.path.stat().st_size, 1), source.path
    read = 0

    def lines() -> Iterator[str]:
        nonlocal read
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                read += len(line)
                try:
                    yield line.decode("utf-8-sig" if number == 1 else "utf-8")
                except UnicodeDecodeError as error:
                    problem = f"not UTF-8: {error.reason}"
                    raise DataError(problem, file=path, line=number) from None

    with path.open(encoding="utf-8-sig", errors="replace") as file:
        header = file.readline()
    separator = max(",;\t", key=header.count)
    rows, before = csv.DictReader(lines(), delimiter=separator, strict=True), 1
    try:
        mapping = chosen_fields(source.fields, list(rows.fieldnames or ()), str(path))
        for row in rows:
            # The last line of the row before it, and blank lines, are not its first line.
            first, before = before + 1, rows.line_num
            if None in row or None in row.values():
                raise DataError(
                    "the row has not as many values as the header", file=path, line=first
                )
            yield mapping.record(row, f"line {first}", path, first)
            source.share = read / size
    except csv.Error as error:
        raise DataError(f"malformed CSV: {error}", file=path, line=before + 1) from None


def read_json_rows(source: ImportSource) -> Yielded:
    """The objects of JSON lines, or of a JSON array; a field may be a path such as `a.b[0]`."""
    import jmespath
    from jmespath.exceptions import JMESPathError

    compiled: dict[str, Any] = {}

    def find(row: Mapping[str, Any], field: str) -> Any:
        if field in row:
            return row[field]
        try:
            if field not in compiled:
                compiled[field] = jmespath.compile(field)
            return compiled[field].search(row)
        except JMESPathError as error:
            raise UsageError(f"{field!r} is not a field or a path of fields: {error}") from None

    mapping: RowMapping | None = None
    for line, row in _json_rows(source):
        if mapping is None:
            mapping = chosen_fields(source.fields, list(row), str(source.path), expressions=True)
            mapping = mapping._replace(get=find)
        yield mapping.record(row, f"line {line}", source.path, line)


def _json_rows(source: ImportSource) -> Iterator[tuple[int, dict[str, Any]]]:
    if source.path.suffix == ".json":
        with opened(source.path) as export:
            yield from elements(source, export, export.files()[0])
        return
    size, read = max(source.path.stat().st_size, 1), 0

    def lines() -> Iterator[bytes]:
        nonlocal read
        with source.path.open("rb") as file:
            for line in file:
                read += len(line)
                source.share = read / size
                yield line

    yield from decode_lines(lines(), msgspec.json.Decoder(dict[str, Any]), source.path)


def _is_set(value: object) -> bool:
    """Whether a mark says yes: anything but false, zero and nothing."""
    return str("" if value is None else value).strip().lower() not in NOT_SENSITIVE


def _key(value: object) -> int | str | None:
    if isinstance(value, bool) or value is None or value == "":
        return None
    if isinstance(value, int):
        return value
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and str(int(text[:18])) == text else text


def _said(value: object) -> str:
    return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""


def _tags(value: object, between: str = ",") -> str:
    return between.join(map(str, value)) if isinstance(value, list) else _said(value)


def scalars(values: Mapping[str, Any]) -> dict[str, Scalar]:
    """The values that a memory's metadata can have."""
    return {k: v for k, v in values.items() if isinstance(v, str | int | float | bool)}
