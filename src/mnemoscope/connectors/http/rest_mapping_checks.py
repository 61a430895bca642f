"""Whether a mapping makes sense, and what it means for the figures of a run."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from mnemoscope._store.errors import DataError
from mnemoscope.connectors.http.rest_mapping import ApiMapping, Many, Ready, Remember, Request
from mnemoscope.connectors.mapping import check_expression
from mnemoscope.connectors.mapping_checks import check_hits, check_names, names_in, note_of_time


def check_mapping(mapping: ApiMapping, path: Path) -> None:
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: nothing can be asked", file=path)
    check_names(mapping.headers, "headers", {"scope", "space", "env"}, path)
    for field, request in mapping.requests.items():
        _check_request(field, request, path)
    if mapping.recall is not None:
        check_hits(mapping.recall.hits, path)


def notes(mapping: ApiMapping) -> list[str]:
    """What the file alone tells about the figures of a run."""
    said = list(mapping.notes)
    apart = all(_spaces_named(mapping))
    if not apart and not mapping.reset:
        said.append(
            "nothing keeps scenarios apart: the server is never emptied, and no request names a "
            "scope, so that each scenario can hear those before it"
        )
    elif not apart:
        said.append("the server has one space, which a reset empties: run it with one worker")
    elif not mapping.reset and not all("space" in names for names in _spaces_named(mapping)):
        said.append("a scope that is begun again still holds what it was told before")
    if mapping.recall and mapping.recall.hits.by_text:
        said.append("provenance: text; hits are traced to memories by comparing their words")
    told = mapping.remember
    return said + note_of_time([told.body, told.each, told.query, told.headers])


def has_one_space(mapping: ApiMapping) -> bool:
    """Whether a reset empties what every other client uses as well."""
    return bool(mapping.reset) and not all(_spaces_named(mapping))


def needs_kept(request: Request) -> bool:
    return "kept" in _names(request)


def _spaces_named(mapping: ApiMapping) -> list[set[str]]:
    """By which of their names the requests tell a scenario's memories from others."""
    requests = [mapping.remember, mapping.recall, mapping.answer]
    return [
        (_names(request) | names_in(mapping.headers)) & {"scope", "space"}
        for request in requests
        if request is not None
    ]


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
        check_names(request.each, f"{field}.each", known, path)
        known = known - {"memory", "kept"} | {"items"}
    if isinstance(request, Many) and request.batch < 1:
        raise DataError(f"{field}.batch is {request.batch}: give a number above 0", file=path)
    for part in ("path", "query", "headers", "body"):
        check_names(getattr(request, part), f"{field}.{part}", known, path)
    for expression in _expected(request):
        check_expression(expression, str(path))
    if field in ("recall", "answer") and "query" not in _names(request):
        raise DataError(f"{field} never says what is asked: use ${{query.text}}", file=path)
    if isinstance(request, Many) and not {"memory", "kept", "items"} & _names_sent(request):
        use = "${memory.text}" if request.each is None else "${items}"
        raise DataError(f"{field} never says what to {field}: use {use}", file=path)
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


def _names(request: Request) -> set[str]:
    """The values that a request speaks of."""
    return _names_sent(request) | names_in(getattr(request, "each", None))


def _names_sent(request: Request) -> set[str]:
    return names_in([request.path, request.query, request.headers, request.body])
