"""Rows of results as CSV, JSON, JSON lines and Parquet.

CSV puts an apostrophe before texts that a spreadsheet would take for formulas; the other formats
keep every text as it came. Lists of ids are JSON in CSV, since ids may contain any separator.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

from mnemoscope._store.errors import MissingExtra
from mnemoscope.exports.export_caveats import RunStatus
from mnemoscope.text.display import as_csv, as_json

SCHEMA = "mnemoscope-export-1"


class DataTable(NamedTuple):
    """Rows of one kind, with what is said about all of them."""

    what: str
    benchmark: str
    kind: type[NamedTuple]
    rows: Sequence[NamedTuple]
    statuses: Sequence[RunStatus]
    caveats: Sequence[str]

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the frame, then the status of the run if a row is about one run."""
        fields: tuple[str, ...] = self.kind._fields
        return (*fields, status_column(fields)) if "system" in fields else fields

    def cells(self) -> list[tuple[Any, ...]]:
        if "system" not in self.kind._fields:
            return [tuple(row) for row in self.rows]
        status = {one.system: one.status for one in self.statuses}
        place = self.kind._fields.index("system")
        return [(*row, status[row[place]]) for row in self.rows]


def status_column(fields: Sequence[str]) -> str:
    """The name of the run's status: a question has a `status` of its own."""
    return "run_status" if "status" in fields else "status"


def csv_file(table: DataTable) -> bytes:
    """The rows as CSV in UTF-8; an unknown value is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(table.columns)
    writer.writerows([_csv_cell(cell) for cell in row] for row in table.cells())
    return text.getvalue().encode("utf-8", "backslashreplace")


def _csv_cell(cell: Any) -> Any:
    if cell is None:
        return ""
    if isinstance(cell, tuple):
        return msgspec.json.encode(cell).decode()
    return as_csv(cell)


def json_file(table: DataTable) -> bytes:
    """The rows as objects, after statuses and caveats; its schema is docs/schemas/export.json."""
    content = {
        "schema": SCHEMA,
        "what": table.what,
        "benchmark": table.benchmark,
        "runs": [one._asdict() for one in table.statuses],
        "caveats": list(table.caveats),
        "rows": _objects(table),
    }
    encoded = msgspec.json.format(msgspec.json.encode(content), indent=2).decode()
    return (as_json(encoded) + "\n").encode()


def jsonl_file(table: DataTable) -> bytes:
    """One object a line, without statuses and caveats of their own."""
    lines = (as_json(msgspec.json.encode(row).decode()) for row in _objects(table))
    return "".join(f"{line}\n" for line in lines).encode()


def _objects(table: DataTable) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.cells()]


def parquet_file(table: DataTable) -> bytes:
    """The rows as Parquet; statuses and caveats are in the metadata key `mnemoscope`."""
    try:
        import pyarrow as arrow
        from pyarrow import parquet
    except ImportError:
        raise MissingExtra("Parquet", "pip install 'mnemoscope[parquet]'") from None
    types = {
        "str": arrow.string(),
        "int": arrow.int64(),
        "float": arrow.float64(),
        "bool": arrow.bool_(),
    }
    fields = []
    for name, kind in _column_types(table.kind).items():
        if name in table.columns:
            base = types[kind.removesuffix("[]")]
            fields.append(arrow.field(name, arrow.list_(base) if kind.endswith("[]") else base))
    if "system" in table.kind._fields:
        fields.append(arrow.field(status_column(table.kind._fields), arrow.string()))
    about = {
        "schema": SCHEMA,
        "what": table.what,
        "benchmark": table.benchmark,
        "runs": [one._asdict() for one in table.statuses],
        "caveats": list(table.caveats),
    }
    schema = arrow.schema(fields, metadata={"mnemoscope": msgspec.json.encode(about)})
    content = arrow.Table.from_pylist(_objects(table), schema=schema)
    file = io.BytesIO()
    parquet.write_table(content, file)
    return file.getvalue()


def _column_types(kind: type[NamedTuple]) -> dict[str, str]:
    """Each column's type: str, int, float or bool, with [] after it for a list."""
    found = {}
    for name, hint in get_type_hints(kind).items():
        parts = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        [own] = [part for part in parts if part is not NoneType]
        if get_origin(own) is tuple:
            found[name] = f"{get_args(own)[0].__name__}[]"
        else:
            found[name] = (
                getattr(own, "__name__", "str") if own in (str, int, float, bool) else "str"
            )
    return found


def export_schema(kinds: Mapping[str, Sequence[type[NamedTuple]]]) -> dict[str, Any]:
    """The JSON Schema of `export --format json`; `kinds` are the rows that each `what` may have."""
    variants, parts = [], {}
    for what, own in kinds.items():
        for kind in own:
            parts[kind.__name__] = _row_schema(kind)
        refs = [{"$ref": f"#/$defs/{kind.__name__}"} for kind in own]
        rows = {"type": "array", "items": refs[0] if len(refs) == 1 else {"oneOf": refs}}
        variants.append({"properties": {"what": {"const": what}, "rows": rows}})
    texts = {"type": "array", "items": {"type": "string"}}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": SCHEMA,
        "description": "What `mnemoscope export --format json` writes.",
        "type": "object",
        "properties": {
            "schema": {"const": SCHEMA},
            "what": {"enum": list(kinds)},
            "benchmark": {"type": "string"},
            "runs": {"type": "array", "items": {"$ref": "#/$defs/RunStatus"}},
            "caveats": texts,
            "rows": {"type": "array"},
        },
        "required": ["schema", "what", "benchmark", "runs", "caveats", "rows"],
        "additionalProperties": False,
        "oneOf": variants,
        "$defs": {"RunStatus": _row_schema(RunStatus), **parts},
    }


def _row_schema(kind: type[NamedTuple]) -> dict[str, Any]:
    properties = {name: msgspec.json.schema(hint) for name, hint in get_type_hints(kind).items()}
    if "system" in properties and kind is not RunStatus:
        properties[status_column(list(properties))] = properties_of_status()
    return {
        "title": kind.__name__,
        "description": (kind.__doc__ or "").split("\n\n")[0],
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def properties_of_status() -> dict[str, Any]:
    return dict(msgspec.json.schema(get_type_hints(RunStatus)["status"]))
