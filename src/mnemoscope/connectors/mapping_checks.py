"""Mapping files, whatever the door: found, read strictly, and checked before anything is asked.

A value that nobody gives and an expression that cannot be read are refused when the file is, not
when a run is half done.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jmespath

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.yaml import load_yaml
from mnemoscope.connectors.mapping import HitsFrom, check, check_expression, expressions
from mnemoscope.types import Memory, Query

_MOST_VALUES = 10_000
"""In a file; YAML's aliases can make millions of a few lines."""
_LARGEST = 1 << 20
_ONLY_FIRST = frozenset(
    "subexpression index_expression projection filter_projection value_projection "
    "flatten pipe".split()
)
"""Kinds of JMESPath nodes whose first part alone looks at the values themselves."""


_FIELDS = {
    "memory": frozenset((*Memory.__struct_fields__, "date", "dated_text", "tag")),
    "query": frozenset((*Query.__struct_fields__, "date")),
}
"""What can be said of them; a slip of the pen would be sent as nothing."""


def shipped_in(folder: Path) -> list[str]:
    return sorted(path.stem for path in folder.glob("*.yaml"))


def found(given: str, folder: Path) -> tuple[Path, Any]:
    """The file of a mapping, by its name in the folder of those shipped or its path; what it says.

    What it says is YAML of a bearable size; whether it is a mapping is for the door to say.
    """
    shipped = shipped_in(folder)
    path = folder / f"{given}.yaml" if given in shipped else Path(given)
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"mapping={given} has more than {_LARGEST >> 10} KiB: is it one?")
        content = load_yaml(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"mapping={given} cannot be read ({reason}); give a file, or one of those that are "
            f"shipped: {', '.join(shipped)}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"cannot be read: {error}", file=path) from None
    if sum(1 for _ in _values(content)) >= _MOST_VALUES:
        raise DataError(f"more than {_MOST_VALUES} values: is it a mapping?", file=path)
    return path, content


def check_names(template: Any, field: str, known: set[str], path: Path) -> None:
    """Complain about expressions that cannot be read or speak of what is not known there."""
    check(template, str(path))
    for expression in expressions(template):
        if strange := names_of(expression) - known:
            raise DataError(
                f"{field}: ${{{expression}}} speaks of {', '.join(sorted(strange))}; "
                f"known here are {', '.join(sorted(known))}",
                file=path,
            )
        for name, fields in _FIELDS.items():
            used = set(re.findall(rf"(?<![\w.]){name}\.(\w+)", expression))
            if name in known and (strange := used - fields):
                raise DataError(
                    f"{field}: ${{{expression}}} speaks of {name}.{', '.join(sorted(strange))}; a "
                    f"{name} has {', '.join(sorted(fields))}",
                    file=path,
                )


def check_hits(where: HitsFrom, path: Path) -> None:
    for expression in (where.each, where.id, where.score, where.text):
        if expression:
            check_expression(expression, str(path))
    if where.by_text and not where.text:
        raise DataError("recall.hits.by_text needs recall.hits.text: where it stands", file=path)
    check_pattern(where.pattern, "recall.hits.pattern", path, groups=1)


def check_pattern(pattern: str, field: str, path: Path, *, groups: int = 0) -> None:
    try:
        has = re.compile(pattern).groups
    except re.error as error:
        raise DataError(f"{field}: no regular expression: {error}", file=path) from None
    if pattern and has < groups:
        raise DataError(f"{field} needs a group (…) around the id", file=path)


def names_of(expression: str) -> set[str]:
    """The values that an expression looks at, such as `memory` in `memory.text`."""

    def walk(node: Any) -> Iterator[str]:
        if node["type"] == "field":
            yield node["value"]
        elif node["type"] != "expref":
            parts = node["children"]
            for part in parts[:1] if node["type"] in _ONLY_FIRST else parts:
                yield from walk(part)

    return set(walk(jmespath.compile(expression).parsed))


def names_in(template: Any) -> set[str]:
    """The values that a template looks at."""
    return {name for expression in expressions(template) for name in names_of(expression)}


def secrets_of(template: Any, file: str) -> dict[str, str]:
    """What a template takes from the environment, by the variables' names."""
    names = (name for expression in expressions(template) for name in _env_names(expression))
    return {name: _from_environment(name, file) for name in dict.fromkeys(names)}


def note_of_time(template: Any) -> list[str]:
    """What readers must know of how a server is told when a memory happened."""
    told = list(expressions(template))
    if any(expression.strip() == "memory" for expression in told):
        return []
    words = re.findall(r"\bmemory\.(at|date|dated_text)\b", " ".join(told))
    if not words:
        return ["the server is not told when a memory happened"]
    if set(words) == {"dated_text"}:
        return ["dates are written into the texts: the server takes no event time"]
    return []


def _env_names(expression: str) -> Iterator[str]:
    """NAME, wherever an expression says `env.NAME`."""

    def walk(node: Any) -> Iterator[str]:
        parts = [part for part in node.get("children", []) if isinstance(part, dict)]
        match [(part["type"], part.get("value")) for part in parts]:
            case [("field", "env"), ("field", name)]:
                yield str(name)
        for part in parts:
            yield from walk(part)

    yield from walk(jmespath.compile(expression).parsed)


def _from_environment(name: str, file: str) -> str:
    if value := os.environ.get(name, "").strip():
        return value
    raise UsageError(f"{file} takes {name} from the environment, where it is not set")


def _values(content: Any) -> Iterator[Any]:
    """All values of a document, as far as it is worth counting them; it may contain itself."""
    left = [content]
    for _ in range(_MOST_VALUES):
        if not left:
            return
        one = left.pop()
        yield one
        if isinstance(one, dict):
            left += [*one.keys(), *one.values()][:_MOST_VALUES]
        elif isinstance(one, list):
            left += one[:_MOST_VALUES]
