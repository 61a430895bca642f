"""A mapping file as the type that it should be; an error says what could stand in the place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from mnemoscope._store.errors import DataError
from mnemoscope._store.suggest import did_you_mean

T = TypeVar("T")

_PLACE = re.compile(r" - at `\$(.*)`$")
_FIELD = re.compile(r"unknown field `(.*?)`")
_VALUE = re.compile(r"Invalid enum value '(.*?)'")


def shaped(content: Any, kind: type[T], path: Path) -> T:
    """The content as this kind of mapping; complains about fields and values that it lacks."""
    try:
        return msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        raise DataError(f"{error}{_remedy(str(error), kind)}", file=path) from None


def _remedy(problem: str, kind: type) -> str:
    """What was probably meant, and what is known in that place."""
    at = _PLACE.search(problem)
    here = [*_places(inspect.type_info(kind), at[1] if at else "")]
    if slip := _FIELD.search(problem):
        known = [f.name for one in here if isinstance(one, inspect.StructType) for f in one.fields]
    elif slip := _VALUE.search(problem):
        known = [str(v) for one in here if isinstance(one, inspect.LiteralType) for v in one.values]
    else:
        return ""
    return f": {did_you_mean(slip[1], known)}known here are {', '.join(known)}"


def _places(kind: inspect.Type, rest: str) -> Iterator[inspect.Type]:
    """All types that can stand at a place such as `.recall.hits` or `.reset[0]`."""
    if isinstance(kind, inspect.UnionType):
        for one in kind.types:
            yield from _places(one, rest)
    elif not rest:
        yield kind
    elif isinstance(kind, inspect.StructType) and (step := re.match(r"\.(\w+)", rest)):
        for field in kind.fields:
            if field.name == step[1]:
                yield from _places(field.type, rest[step.end() :])
    elif isinstance(kind, inspect.ListType) and (step := re.match(r"\[\d+\]", rest)):
        yield from _places(kind.item_type, rest[step.end() :])
