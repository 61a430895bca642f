"""Mapping files: how an existing server is driven without code, by templates and expressions.

A template is any JSON shape in which `${expression}` stands for a value; expressions are JMESPath,
the same language that says where a reply keeps its hits. The HTTP and the MCP door share it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import jmespath
import msgspec

from mnemoscope._store.errors import BadReply, DataError
from mnemoscope.types import Hit, Memory, Query

_PLACE = re.compile(r"\$\{([^}]*)\}")


class HitsFrom(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where a reply keeps its hits, best first.

    With `pattern` the value found at `id` (or a whole text reply) is searched for it, and its first
    group is the id: many servers give back only text, in which our id stands as a tag.
    """

    each: str = "@"
    id: str = "id"
    score: str = ""
    text: str = ""
    pattern: str = ""
    by_text: bool = False
    """No id comes back: `text` is compared with the memories that were given, and marked so."""


def fill(template: Any, values: Mapping[str, Any]) -> Any:
    """The template with its places filled. An entry that comes to nothing (null) is left out."""
    if isinstance(template, str):
        whole = _PLACE.fullmatch(template)
        if whole:
            return find(values, whole[1])
        return fill_text(template, values, _spelt)
    if isinstance(template, Mapping):
        filled = {fill(key, values): fill(part, values) for key, part in template.items()}
        return {key: part for key, part in filled.items() if part is not None}
    if isinstance(template, Sequence):
        return [fill(part, values) for part in template]
    return template


def fill_text(template: str, values: Mapping[str, Any], spell: Callable[[Any], str]) -> str:
    """The template as text, each value spelt as the place it goes to demands, as in a path."""
    return _PLACE.sub(lambda place: spell(find(values, place[1])), template)


def find(data: Any, expression: str) -> Any:
    return _compiled(expression).search(data)


def expressions(template: Any) -> Iterator[str]:
    """All that is to be filled in, wherever it stands."""
    for text in _texts(template):
        for place in _PLACE.finditer(text):
            yield place[1]


def check(template: Any, file: str) -> None:
    """Complain about an expression that cannot be read, before anything is asked."""
    for expression in expressions(template):
        if "${" in expression:
            raise DataError(f"${{ without its }} before {expression!r:.80}", file=file)
        check_expression(expression, file)
    for text in _texts(template):
        if "${" in _PLACE.sub("", text):
            raise DataError(f"${{ without its }} in {text!r:.80}", file=file)


def check_expression(expression: str, file: str) -> None:
    problem: Exception | None = None
    try:
        _compiled(expression).search({})
    except (jmespath.exceptions.UnknownFunctionError, jmespath.exceptions.ArityError) as error:
        problem = error
    except jmespath.exceptions.JMESPathTypeError:
        pass  # there is nothing yet that it could be applied to
    except (jmespath.exceptions.JMESPathError, RecursionError) as error:
        problem = error
    if problem is not None:
        reason = " ".join(str(problem).split())
        raise DataError(f"the expression {expression!r:.200} cannot be read: {reason}", file=file)


def of_memory(memory: Memory) -> dict[str, Any]:
    """What a template can say of a memory: its fields, `date`, and the text with the date in it."""
    return {
        **msgspec.to_builtins(memory),
        "date": _day(memory.at),
        "dated_text": f"[{_day(memory.at)}] {memory.text}" if memory.at else memory.text,
    }


def of_query(query: Query) -> dict[str, Any]:
    return {**msgspec.to_builtins(query), "date": _day(query.now)}


def hits(reply: Any, where: HitsFrom) -> list[Hit]:
    """The hits of a reply, in its order; ids that come twice count once, at their better rank."""
    entries = find(reply, where.each)
    if isinstance(entries, str) and where.pattern:
        ids = [match[1] for match in re.finditer(where.pattern, entries)]
        return [Hit(id) for id in dict.fromkeys(ids) if id]
    if entries is None:
        raise BadReply(
            f"{where.each!r} finds nothing in the reply {reply!r:.200}; where a reply without hits "
            f"has no such place, write {where.each} || `[]`"
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
            raise BadReply(f"the pattern {where.pattern!r} is not in {value!r:.200}, at {place!r}")
        value = match[1]
    if not isinstance(value, str | int) or isinstance(value, bool):
        missing = f"text at {where.text!r}" if where.by_text else f"id at {where.id!r}"
        raise BadReply(f"no {missing} in the hit {entry!r:.200}")
    score = find(entry, where.score) if where.score else None
    number = (
        float(score) if isinstance(score, int | float) and not isinstance(score, bool) else None
    )
    return Hit(str(value), number, text if isinstance(text, str) else "")


@lru_cache(512)
def _compiled(expression: str) -> Any:
    return jmespath.compile(expression)


def _day(moment: datetime | None) -> str | None:
    return moment.date().isoformat() if moment else None


def _spelt(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _texts(template: Any) -> Iterator[str]:
    if isinstance(template, str):
        yield template
    elif isinstance(template, Mapping):
        for key, part in template.items():
            yield from _texts(key)
            yield from _texts(part)
    elif isinstance(template, Sequence):
        for part in template:
            yield from _texts(part)
