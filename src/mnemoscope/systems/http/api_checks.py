"""Whether a mapping makes sense, and what it means for the figures of a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jmespath

from mnemoscope.core.errors import DataError
from mnemoscope.systems.http.api import ApiMapping, Many, Ready, Remember, Request
from mnemoscope.systems.mapping import HitsFrom, check, check_expression, expressions

_ONLY_FIRST = frozenset(
    "subexpression index_expression projection filter_projection value_projection "
    "flatten pipe".split()
)
"""Kinds of JMESPath nodes whose first part alone looks at the values themselves."""


def check_mapping(mapping: ApiMapping, path: Path) -> None:
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: nothing can be asked", file=path)
    _check_names(mapping.headers, "headers", {"scope", "space", "env"}, path)
    for field, request in mapping.requests.items():
        _check_request(field, request, path)
    if mapping.recall is not None:
        _check_hits(mapping.recall.hits, path)


def notes(mapping: ApiMapping) -> list[str]:
    """What the file alone tells about the figures of a run."""
    said = list(mapping.notes)
    asking = [request for request in (mapping.recall, mapping.answer) if request]
    named = [
        roots(request, mapping.headers) & {"scope", "space"}
        for request in (mapping.remember, *asking)
    ]
    apart = all(named)
    if not apart and not mapping.reset:
        said.append(
            "nothing keeps scenarios apart: the server is never emptied, and no request names a "
            "scope, so that each scenario can hear those before it"
        )
    elif not apart:
        said.append("the server has one space, which a reset empties: run it with one worker")
    elif not mapping.reset and not all("space" in roots for roots in named):
        said.append("a scope that is begun again still holds what it was told before")
    if mapping.recall and mapping.recall.hits.by_text:
        said.append("provenance: text; hits are traced to memories by comparing their words")
    when = _words_of_time(mapping.remember)
    if not when:
        said.append("the server is not told when a memory happened")
    elif when == {"dated_text"}:
        said.append("dates are written into the texts: the server takes no event time")
    return said


def needs_kept(request: Request) -> bool:
    return "kept" in roots(request, {})


def _words_of_time(remember: Remember) -> set[str]:
    """In which forms the server is told when a memory happened."""
    told = list(expressions([remember.body, remember.each, remember.query, remember.headers]))
    if any(one.strip() == "memory" for one in told):
        return {"at"}
    return {word for one in told for word in re.findall(r"\bmemory\.(at|date|dated_text)\b", one)}


_KNOWN = {
    "remember": {"memory"},
    "forget": {"memory", "kept"},
    "recall": {"query", "k"},
    "answer": {"query"},
}


def _check_request(field: str, request: Request, path: Path) -> None:
    if not request.path.startswith("/"):
        raise DataError(f"{field}.path: {request.path!r:.80} has to begin with /", file=path)
    known = {"scope", "space", "env"} | _KNOWN.get(field, set())
    if isinstance(request, Many) and request.each is not None:
        _check_names(request.each, f"{field}.each", known, path)
        known = known - {"memory", "kept"} | {"items"}
    if isinstance(request, Many) and request.batch < 1:
        raise DataError(f"{field}.batch is {request.batch}: give a number above 0", file=path)
    for part in ("path", "query", "headers", "body"):
        _check_names(getattr(request, part), f"{field}.{part}", known, path)
    for expression in _expected(request):
        check_expression(expression, str(path))
    if field in ("recall", "answer") and "query" not in roots(request, {}):
        raise DataError(f"{field} never says what is asked: use ${{query.text}}", file=path)
    if field == "remember" and not {"memory", "items"} & roots(request, {}):
        raise DataError("remember never says what to remember: use ${memory.text}", file=path)
    if isinstance(request, Remember) and request.reject and request.each is not None:
        raise DataError("remember.reject: of a batch nobody knows which is meant", file=path)
    if isinstance(request, Ready) and not request.every > 0:
        raise DataError(f"ready.every is {request.every:g}: give seconds above 0", file=path)


def _expected(request: Request) -> Iterator[str]:
    """The expressions that a request applies to its reply."""
    for field in ("expect", "until", "keep", "text"):
        if expression := getattr(request, field, ""):
            yield expression
    yield from getattr(request, "numbers", {}).values()


def _check_hits(where: HitsFrom, path: Path) -> None:
    for expression in (where.each, where.id, where.score, where.text):
        if expression:
            check_expression(expression, str(path))
    if where.by_text and not where.text:
        raise DataError("recall.hits.by_text needs recall.hits.text: where it stands", file=path)
    try:
        groups = re.compile(where.pattern).groups
    except re.error as error:
        raise DataError(f"recall.hits.pattern: no regular expression: {error}", file=path) from None
    if where.pattern and not groups:
        raise DataError("recall.hits.pattern needs a group (…) around the id", file=path)


def _check_names(template: Any, field: str, known: set[str], path: Path) -> None:
    check(template, str(path))
    for expression in expressions(template):
        if strange := _names(expression) - known:
            raise DataError(
                f"{field}: ${{{expression}}} speaks of {', '.join(sorted(strange))}; "
                f"known here are {', '.join(sorted(known))}",
                file=path,
            )


def _names(expression: str) -> set[str]:
    """The values that an expression looks at, such as `memory` in `memory.text`."""

    def walk(node: Any) -> Iterator[str]:
        if node["type"] == "field":
            yield node["value"]
        elif node["type"] != "expref":
            parts = node["children"]
            for part in parts[:1] if node["type"] in _ONLY_FIRST else parts:
                yield from walk(part)

    return set(walk(jmespath.compile(expression).parsed))


def env_names(expression: str) -> Iterator[str]:
    """NAME, wherever an expression says `env.NAME`."""

    def walk(node: Any) -> Iterator[str]:
        parts = [part for part in node.get("children", []) if isinstance(part, dict)]
        match [(part["type"], part.get("value")) for part in parts]:
            case [("field", "env"), ("field", name)]:
                yield str(name)
        for part in parts:
            yield from walk(part)

    yield from walk(jmespath.compile(expression).parsed)


def roots(request: Request, headers: Mapping[str, str]) -> set[str]:
    parts = [request.path, request.query, request.headers, request.body, dict(headers)]
    parts.append(getattr(request, "each", None))
    return {name for one in expressions(parts) for name in _names(one)}
