"""Mapping files: templates and expressions that describe how to call an existing server.

A template is any JSON value in which `${expression}` is replaced by a value. Expressions are
JMESPath; they also locate the hits in a reply. The HTTP and the MCP connector share this module. A
file is checked when it is read, so that a run does not fail half way.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import jmespath
import msgspec
from msgspec import inspect

from mnemoscope._store.errors import BadReply, DataError, UsageError
from mnemoscope._store.suggest import did_you_mean
from mnemoscope._store.yaml import load_yaml
from mnemoscope.text.dates import with_day
from mnemoscope.types import Hit, Memory, Query

T = TypeVar("T")

_MOST_VALUES = 10_000
"""In a file; YAML's aliases can expand a few lines to millions of values."""
_LARGEST = 1 << 20
_PLACE = re.compile(r"\$\{([^}]*)\}")
_FIELDS = {
    "memory": frozenset((*Memory.__struct_fields__, "date", "dated_text", "tag")),
    "query": frozenset((*Query.__struct_fields__, "date")),
}
"""The fields that an expression can use; a misspelt field would be sent as null."""
_ONLY_FIRST = frozenset(
    "subexpression index_expression projection filter_projection value_projection "
    "flatten pipe".split()
)
"""JMESPath nodes of which only the first child is applied to the values themselves."""


class HitsFrom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a reply has its hits, best first.

    With `pattern`, the value at `id` (or a whole text reply) is searched for the pattern, and its
    first group is the id: many servers return only text that contains our id as a tag.
    """

    each: str = "@"
    id: str = "id"
    score: str = ""
    text: str = ""
    pattern: str = ""
    by_text: bool = False
    """The reply has no ids: `text` is compared with the memories that were sent."""


# Templates and expressions


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """Fill the template with values; entries of a mapping that become null are left out."""
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        return find(values, whole[1]) if whole else fill_text(template, values, _as_text)
    if isinstance(template, Mapping):
        filled = {fill(key, values): fill(part, values) for key, part in template.items()}
        return {key: part for key, part in filled.items() if part is not None}
    if isinstance(template, Sequence):
        return [fill(part, values) for part in template]
    return template


def fill_text(template: str, values: Mapping[str, Any], encode: Callable[[Any], str]) -> str:
    """Fill a template that is a text; `encode` writes a value, for example for a URL's path."""
    return _PLACE.sub(lambda place: encode(find(values, place[1])), template)


def _as_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def find(data: Any, expression: str) -> Any:
    return _compiled(expression).search(data)


@lru_cache(512)
def _compiled(expression: str) -> Any:
    return jmespath.compile(expression)


def expressions(template: Any) -> Iterator[str]:
    """Yield all expressions of a template."""
    for text in _texts(template):
        for place in _PLACE.finditer(text):
            yield place[1]


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for pair in template.items():
            yield from _texts(pair)
    elif isinstance(template, Sequence):
        for part in template:
            yield from _texts(part)


def names_of(expression: str) -> set[str]:
    """The values that an expression uses, such as `memory` in `memory.text`."""

    def walk(node: Any) -> Iterator[str]:
        if node["type"] == "field":
            yield node["value"]
        elif node["type"] != "expref":
            parts = node["children"]
            for part in parts[:1] if node["type"] in _ONLY_FIRST else parts:
                yield from walk(part)

    return set(walk(_compiled(expression).parsed))


def names_in(template: Any) -> set[str]:
    """The values that a template uses."""
    return {name for expression in expressions(template) for name in names_of(expression)}


def sends_tags(template: Any) -> bool:
    """Whether our ids are sent as tags."""
    return any("memory.tag" in expression for expression in expressions(template))


def of_memory(memory: Memory) -> dict[str, Any]:
    """What a template can use of a memory: its fields, `date`, and the text with its date."""
    return {
        **msgspec.to_builtins(memory),
        "date": _day(memory.at),
        "dated_text": with_day(memory.text, memory.at),
    }


def of_query(query: Query) -> dict[str, Any]:
    return {**msgspec.to_builtins(query), "date": _day(query.now)}


def _day(moment: datetime | None) -> str | None:
    return moment.date().isoformat() if moment else None


# Replies


def hits(reply: Any, where: HitsFrom) -> list[Hit]:
    """The hits of a reply, in its order; an id that occurs twice counts once, at its best rank."""
    entries = find(reply, where.each)
    if isinstance(entries, str) and where.pattern:
        ids = [match[1] for match in re.finditer(where.pattern, entries)]
        return [Hit(id) for id in dict.fromkeys(ids) if id]
    if entries is None:
        raise BadReply(
            f"{where.each!r} finds nothing in the reply {reply!r:.200}; if replies without hits "
            f"lack this field, write {where.each} || `[]`"
        )
    if not isinstance(entries, list):
        raise BadReply(f"{where.each!r} finds {type(entries).__name__}, expected a list of hits")
    found: dict[str, Hit] = {}
    for entry in entries:
        hit = _hit(entry, where)
        found.setdefault(hit.id, hit)
    return list(found.values())


def _hit(entry: Any, where: HitsFrom) -> Hit:
    text = find(entry, where.text) if where.text else None
    value = text if where.by_text else find(entry, where.id)
    if where.pattern and isinstance(value, str):
        match = re.search(where.pattern, value)
        if match is None:
            place = where.text if where.by_text else where.id
            raise BadReply(
                f"the pattern {where.pattern!r} is not found in {value!r:.200}, at {place!r}"
            )
        value = match[1]
    if not isinstance(value, str | int) or isinstance(value, bool):
        missing = f"text at {where.text!r}" if where.by_text else f"id at {where.id!r}"
        raise BadReply(f"there is no {missing} in the hit {entry!r:.200}")
    score: Any = find(entry, where.score) if where.score else None
    is_number = isinstance(score, int | float) and not isinstance(score, bool)
    number = float(score) if is_number else None
    return Hit(str(value), number, text if isinstance(text, str) else "")


# Files


def shipped_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def load_mapping(given: str, kind: type[T], folder: Path) -> tuple[T, Path]:
    """Load a mapping by its name in the folder of shipped ones, or by its path, unchecked."""
    shipped = shipped_in(folder)
    path = folder / f"{given}.yaml" if given in shipped else Path(given)
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(
                f"mapping={given} has more than {_LARGEST >> 10} KiB: is it a mapping file?"
            )
        content = load_yaml(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"mapping={given} cannot be read ({reason}); give a file, or one of the shipped "
            f"mappings: {', '.join(shipped)}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"cannot be read: {error}", file=path) from None
    if _has_too_many_values(content):
        raise DataError(f"more than {_MOST_VALUES} values: is it a mapping file?", file=path)
    return converted(content, kind, path), path


def _has_too_many_values(content: Any) -> bool:
    """Whether a document has too many values; a document may contain itself."""
    left = [content]
    for _ in range(_MOST_VALUES):
        if not left:
            return False
        one = left.pop()
        if isinstance(one, dict):
            left += [*one.keys(), *one.values()][:_MOST_VALUES]
        elif isinstance(one, list):
            left += one[:_MOST_VALUES]
    return True


def converted(content: Any, kind: type[T], path: Path) -> T:
    """Convert the content to this kind of mapping; an error lists the known fields or values."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{error}{_remedy(str(error), kind)}", file=path) from None


def _remedy(problem: str, kind: type) -> str:
    """The probable correction, and the fields or values that are known in that place."""
    at = re.search(r" - at `\$(.*)`$", problem)
    here = [*_types_at(inspect.type_info(kind), at[1] if at else "")]
    if slip := re.search(r"unknown field `(.*?)`", problem):
        known = [f.name for one in here if isinstance(one, inspect.StructType) for f in one.fields]
    elif slip := re.search(r"Invalid enum value '(.*?)'", problem):
        known = [str(v) for one in here if isinstance(one, inspect.LiteralType) for v in one.values]
    else:
        return ""
    return f": {did_you_mean(slip[1], known)}known here are {', '.join(known)}"


def _types_at(kind: inspect.Type, rest: str) -> Iterator[inspect.Type]:
    """Yield all types that are allowed at a place such as `.recall.hits` or `.reset[0]`."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _types_at(one, rest)
    elif not rest:
        yield kind
    elif isinstance(kind, inspect.StructType) and (step := re.match(r"\.(\w+)", rest)):
        for field in kind.fields:
            if field.name == step[1]:
                yield from _types_at(field.type, rest[step.end() :])
    elif isinstance(kind, inspect.ListType) and (step := re.match(r"\[\d+\]", rest)):
        yield from _types_at(kind.item_type, rest[step.end() :])


def secrets_of(template: Any, file: str) -> dict[str, str]:
    """The environment variables that a template uses (`env.NAME`), with their values."""
    names = [name for expression in expressions(template) for name in _env_names(expression)]
    secrets = {name: os.environ.get(name, "").strip() for name in dict.fromkeys(names)}
    for name, value in secrets.items():
        if not value:
            raise UsageError(f"{file} uses the environment variable {name}, which is not set")
    return secrets


def _env_names(expression: str) -> Iterator[str]:
    def walk(node: Any) -> Iterator[str]:
        parts = [part for part in node.get("children", []) if isinstance(part, dict)]
        match [(part["type"], part.get("value")) for part in parts]:
            case [("field", "env"), ("field", name)]:
                yield str(name)
        for part in parts:
            yield from walk(part)

    return walk(_compiled(expression).parsed)


def note_of_time(template: Any) -> list[str]:
    """A note for readers of the run on how the server gets the time of a memory."""
    used = list(expressions(template))
    if any(expression.strip() == "memory" for expression in used):
        return []
    fields = re.findall(r"\bmemory\.(at|date|dated_text)\b", " ".join(used))
    if not fields:
        return ["the server does not get the time of a memory"]
    if set(fields) == {"dated_text"}:
        return ["dates are written into the texts: the server does not take an event time"]
    return []


# Checks


def check_names(template: Any, field: str, known: set[str], path: Path) -> None:
    """Refuse expressions that cannot be read or that use unknown values."""
    for expression in expressions(template):
        if "${" in expression:
            raise DataError(f"${{ without its }} before {expression!r:.80}", file=path)
        check_expression(expression, path)
    for text in _texts(template):
        if "${" in _PLACE.sub("", text):
            raise DataError(f"${{ without its }} in {text!r:.80}", file=path)
    for expression in expressions(template):
        if unknown := names_of(expression) - known:
            raise DataError(
                f"{field}: ${{{expression}}} uses {', '.join(sorted(unknown))}; "
                f"known here are {', '.join(sorted(known))}",
                file=path,
            )
        for name, fields in _FIELDS.items():
            used = set(re.findall(rf"(?<![\w.]){name}\.(\w+)", expression))
            if name in known and (unknown := used - fields):
                raise DataError(
                    f"{field}: ${{{expression}}} uses {name}.{', '.join(sorted(unknown))}; a "
                    f"{name} has {', '.join(sorted(fields))}",
                    file=path,
                )


def check_expression(expression: str, path: Path) -> None:
    try:
        _compiled(expression).search({})
    except jmespath.exceptions.JMESPathTypeError:
        pass  # a function that needs a value of a certain type; values come later
    except (jmespath.exceptions.JMESPathError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise DataError(
            f"the expression {expression!r:.200} cannot be read: {reason}", file=path
        ) from None


def check_hits(where: HitsFrom, path: Path) -> None:
    for expression in filter(None, (where.each, where.id, where.score, where.text)):
        check_expression(expression, path)
    if where.by_text and not where.text:
        raise DataError(
            "recall.hits.by_text needs recall.hits.text: where the hit has its text", file=path
        )
    check_pattern(where.pattern, "recall.hits.pattern", path, groups=1)


def check_pattern(pattern: str, field: str, path: Path, *, groups: int = 0) -> None:
    try:
        has = re.compile(pattern).groups
    except re.error as error:
        raise DataError(f"{field}: not a regular expression: {error}", file=path) from None
    if pattern and has < groups:
        raise DataError(f"{field} needs a group (…) around the id", file=path)
