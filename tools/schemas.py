"""JSON Schemas of a run's files, and the page that lists their fields; tools/docs.py writes both.

The schemas come from the types with which the code writes and reads the files, and from the
docstrings under their fields.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, NotRequired, TypedDict, get_type_hints

import msgspec
from msgspec import inspect as types_of
from tools.file_formats import FORMATS, Format

from mnemoscope.runner.finish import RecordedQuestion
from mnemoscope.types import Grade, Score

Schema = dict[str, Any]
_DRAFT = "https://json-schema.org/draft/2020-12/schema"


def schema_of(form: Format) -> Schema:
    """The JSON Schema of a file, or of each line of it."""
    kinds = [_decodable(one) for one in form.types]
    roots, parts = msgspec.json.schema_components([*kinds, Score, Grade])
    for found in _classes(kinds):
        part = parts.get(found.__name__)
        if part:
            _describe(part, found)
    if RecordedQuestion in form.types:
        verdicts = ({"$ref": f"#/$defs/{one.__name__}"} for one in (Score, Grade))
        record = parts[RecordedQuestion.__name__]["properties"]["verdict"]
        record["anyOf"] = [*verdicts, {"type": "null"}]
    roots = roots[: len(kinds)]
    root = {"anyOf": list(roots)} if len(roots) > 1 else roots[0]
    named = {"$schema": _DRAFT, "title": form.file, "description": form.about}
    return {**named, **root, "$defs": _used(root, parts)}


def closed(schema: Schema) -> Schema:
    """The same schema without room for fields that it does not name; tests use it."""
    copied: Schema = json.loads(json.dumps(schema))
    for part in [copied, *copied["$defs"].values()]:
        if "properties" in part:
            part["additionalProperties"] = False
    return copied


def _decodable(kind: Any) -> Any:
    """msgspec cannot tell a score from a grade in one field, so `schema_of` describes it."""
    if kind is not RecordedQuestion:
        return kind
    fields = get_type_hints(kind, include_extras=True)
    return TypedDict(kind.__name__, fields | {"verdict": NotRequired[Any]})  # type: ignore[operator]


def _used(root: Schema, parts: dict[str, Schema]) -> dict[str, Schema]:
    """The parts that the root refers to, directly or not, in the order of their first use."""
    found: dict[str, Schema] = {}
    waiting = list(_references(root))
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = parts[name]
            waiting += _references(parts[name])
    return found


def _references(schema: Any) -> Iterator[str]:
    if isinstance(schema, dict):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for value in schema.values():
            yield from _references(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from _references(value)


def _classes(kinds: list[Any]) -> Iterator[type]:
    """Every struct and typed dictionary that these types contain."""
    waiting: list[Any] = list(types_of.multi_type_info(kinds))
    waiting += [types_of.type_info(one) for one in (Score, Grade)]
    seen: set[type] = set()
    while waiting:
        one = waiting.pop()
        if isinstance(one, types_of.StructType | types_of.TypedDictType):
            if one.cls in seen:
                continue
            seen.add(one.cls)
            yield RecordedQuestion if one.cls.__name__ == RecordedQuestion.__name__ else one.cls
        if isinstance(one, types_of.Type | types_of.Field):
            for name in one.__struct_fields__:
                inside = getattr(one, name)
                waiting += inside if isinstance(inside, tuple | list) else (inside,)


def _describe(part: Schema, kind: type) -> None:
    """Put the class's docstring and the docstrings under its fields into its schema."""
    part.setdefault("description", inspect.getdoc(kind) or "")
    for name, told in field_docs(kind).items():
        if name in part["properties"]:
            part["properties"][name]["description"] = re.sub(r"\bNone\b", "null", told)


def field_docs(kind: type) -> dict[str, str]:
    """The docstring under each field, those of inherited fields included."""
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    except (OSError, TypeError):  # a typed dictionary that was made by a call has no source
        return {}
    if not isinstance(tree, ast.ClassDef):
        return {}
    found: dict[str, str] = {}
    for base in tree.bases:  # a typed dictionary does not know its bases
        parent = getattr(sys.modules[kind.__module__], ast.unparse(base), None)
        found |= field_docs(parent) if isinstance(parent, type) else {}
    for field, after in pairwise(tree.body):
        told = after.value if isinstance(after, ast.Expr) else None
        if isinstance(field, ast.AnnAssign) and isinstance(told, ast.Constant):
            found[ast.unparse(field.target)] = " ".join(str(told.value).split())
    return found


def formats_reference(notice: str) -> str:
    """The page docs/reference/formats.md."""
    lines = [
        "# File formats",
        "",
        notice,
        "[Run directory](../run-directory.md) says what each file is for. A JSON Schema describes",
        "each JSON file, and each line of a JSON Lines file. Tests validate the files of real runs",
        "against these schemas. A field that is not marked as required may be missing; then it has",
        "its default. A later version may add fields, so ignore those that you do not know.",
        "",
    ]
    shown: set[str] = set()
    for form in FORMATS:
        what = "each line" if form.is_lines else "the file"
        lines += [f"## {form.file}", "", form.about, ""]
        lines += [f"Schema of {what}: [`{form.schema}`](../schemas/{form.schema})", ""]
        for name, part in schema_of(form)["$defs"].items():
            if name in shown:
                continue
            shown.add(name)
            lines += [f"### {name}", "", part.get("description", ""), ""]
            lines += ["| field | type | meaning |", "|---|---|---|"]
            lines += [_field(key, own, part) for key, own in part["properties"].items()]
            lines.append("")
    return "\n".join(lines)


def _field(name: str, schema: Schema, part: Schema) -> str:
    required = " (required)" if name in part.get("required", ()) else ""
    told = schema.get("description", "").replace("|", "\\|")
    return f"| `{name}`{required} | {_type(schema)} | {told} |"


def _type(schema: Schema) -> str:
    """The type in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()})"
    if "anyOf" in schema:
        return " or ".join(_type(one) for one in schema["anyOf"])
    if "enum" in schema:
        return ", ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    if "const" in schema:
        return f"`{schema['const']}`"
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items') or {})}"
    if schema.get("type") == "object":
        inside = schema.get("additionalProperties")
        return f"map to {_type(inside)}" if inside else "object"
    return "time" if schema.get("format") == "date-time" else str(schema.get("type", "any"))


def pages(notice: str) -> dict[str, Callable[[], str]]:
    """The generated files by their path in docs/."""
    found: dict[str, Callable[[], str]] = {
        "reference/formats.md": lambda: formats_reference(notice)
    }
    for form in FORMATS:
        found[f"schemas/{form.schema}"] = lambda form=form: (  # type: ignore[misc]
            json.dumps(schema_of(form), indent=2, ensure_ascii=False) + "\n"
        )
    return found
