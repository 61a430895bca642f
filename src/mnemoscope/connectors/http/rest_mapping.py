"""Mapping files of the HTTP connector: the requests of a REST API, and how to read its replies.

Secrets that a mapping takes from the environment are never written to a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.connectors.mapping import (
    HitsFrom,
    check_expression,
    check_hits,
    check_names,
    load_mapping,
    names_in,
    note_of_time,
    secrets_of,
    shipped_in,
)

_SHIPPED = Path(__file__).parent / "mappings"
_ALWAYS = {"scope", "space", "env"}
"""Values that every request can use."""
_KNOWN = {
    "remember": {"memory"},
    "forget": {"memory", "kept"},
    "recall": {"query", "k"},
    "answer": {"query"},
}
"""Further values that the requests of a verb can use."""

HttpMethod = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class RestRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request; `${…}` is replaced by a value, which is URL-encoded in a path and a query."""

    method: HttpMethod = "POST"
    path: str
    query: dict[str, Any] = {}
    """The part of the URL after the question mark."""
    headers: dict[str, str] = {}
    body: Any = None
    accept: list[int] = []
    """Further statuses that mean success, such as 404 for a deletion."""

    @property
    def template(self) -> list[Any]:
        """All parts of the request that are templates."""
        return [self.path, self.query, self.headers, self.body]

    @property
    def names(self) -> set[str]:
        """The values that the request uses."""
        return names_in(self.template)


class HealthRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: HttpMethod = "GET"
    expect: str = ""
    """An expression that must be true of the reply; without it any reply is accepted."""


class ReadyRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: HttpMethod = "GET"
    until: str
    """An expression that is true of the reply once everything is searchable."""
    every: float = 0.5
    """Seconds from one request to the next."""


class BatchRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """The template of one memory in the list `${items}`."""
    batch: int = 100

    @property
    def template(self) -> list[Any]:
        return [self.path, self.query, self.headers, self.body, self.each]


class RememberRequest(BatchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keep: str = ""
    """Where the reply has the server's id; for a batch, the list of ids in order."""
    reject: list[int] = []
    """Statuses by which the server rejects one memory; the receipt lists the memory."""


class RecallRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hits: HitsFrom = HitsFrom()


class AnswerRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    """Where the reply has the answer."""


class StatsRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: HttpMethod = "GET"
    numbers: dict[str, str]
    """From names, such as `index_bytes`, to where the reply has the number."""


class RestMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Our verbs as requests of a REST API; the system has only the verbs that are mapped."""

    name: str
    notes: list[str] = []
    """Caveats for readers of a run."""
    headers: dict[str, str] = {}
    """Sent with every request."""
    health: HealthRequest | None = None
    reset: list[RestRequest] = []
    """Requests that make an empty space, if a new name for it, `${space}`, is not enough."""
    leave: list[RestRequest] = []
    """Requests that remove a space that is no longer needed; failures are ignored."""
    remember: RememberRequest
    ready: ReadyRequest | None = None
    recall: RecallRequest | None = None
    answer: AnswerRequest | None = None
    forget: BatchRequest | None = None
    stats: StatsRequest | None = None

    @property
    def requests(self) -> dict[str, RestRequest]:
        """All requests, by the name of their field for error messages."""
        verbs = ("health", "remember", "ready", "recall", "answer", "forget", "stats")
        fields = {verb: getattr(self, verb) for verb in verbs}
        for field in ("reset", "leave"):
            fields |= {f"{field}[{n}]": request for n, request in enumerate(getattr(self, field))}
        return {field: request for field, request in fields.items() if request is not None}

    @property
    def keeps_spaces_apart(self) -> bool:
        """Whether memories that a run stores are apart from all others of the server."""
        return all(self._spaces_named)

    @property
    def has_one_space(self) -> bool:
        """Whether a reset empties the space of all other clients as well."""
        return bool(self.reset) and not self.keeps_spaces_apart

    @property
    def _spaces_named(self) -> list[set[str]]:
        """The names in each request that separate the memories of one scenario from others."""
        requests = [self.remember, self.recall, self.answer, *self.reset, *self.leave]
        of_all = names_in(self.headers)
        return [
            (request.names | of_all) & {"scope", "space"}
            for request in requests
            if request is not None
        ]

    @property
    def all_notes(self) -> list[str]:
        """The notes, and caveats about the figures of a run that follow from the mapping."""
        notes = list(self.notes)
        isolated = self.keeps_spaces_apart
        if not isolated and not self.reset:
            notes.append(
                "scenarios are not isolated: the server is never emptied, and its requests do not "
                "name a scope, so a scenario can retrieve the memories of earlier ones"
            )
        elif not isolated:
            notes.append("the server has one space, which a reset empties: run it with one worker")
        elif not self.reset and not all("space" in names for names in self._spaces_named):
            notes.append("a scope that begins again still contains its earlier memories")
        if self.recall and self.recall.hits.by_text:
            notes.append("provenance: text; hits are traced to memories by comparing their words")
        request = self.remember
        return notes + note_of_time([request.body, request.each, request.query, request.headers])


class LoadedMapping(NamedTuple):
    mapping: RestMapping
    sha256: str
    secrets: Mapping[str, str]
    """The environment variables that it uses, with their values."""


def shipped() -> list[str]:
    return shipped_in(_SHIPPED)


def find_mapping(given: str) -> LoadedMapping:
    """Load a mapping by its shipped name, or from a file, and check it."""
    mapping, path = load_mapping(given, RestMapping, _SHIPPED)
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: map at least one", file=path)
    check_names(mapping.headers, "headers", _ALWAYS, path)
    for field, request in mapping.requests.items():
        _check_request(field, request, path)
    if mapping.recall is not None:
        check_hits(mapping.recall.hits, path)
    everything = [mapping.headers, msgspec.to_builtins(list(mapping.requests.values()))]
    return LoadedMapping(mapping, sha256_file(path), secrets_of(everything, path.name))


def _check_request(field: str, request: RestRequest, path: Path) -> None:
    if not request.path.startswith("/"):
        raise DataError(f"{field}.path: {request.path!r:.80} must begin with /", file=path)
    known = _ALWAYS | _KNOWN.get(field, set())
    if isinstance(request, BatchRequest) and request.each is not None:
        check_names(request.each, f"{field}.each", known, path)
        known = known - {"memory", "kept"} | {"items"}
    if isinstance(request, BatchRequest) and request.batch < 1:
        raise DataError(f"{field}.batch is {request.batch}: give a number above 0", file=path)
    for part in ("path", "query", "headers", "body"):
        check_names(getattr(request, part), f"{field}.{part}", known, path)
    for expression in _expressions_of_reply(request):
        check_expression(expression, path)
    if field in ("recall", "answer") and "query" not in request.names:
        raise DataError(f"{field} does not send the query: use ${{query.text}}", file=path)
    if isinstance(request, BatchRequest):
        one = request.each is None
        if not ({"memory", "kept"} if one else {"items"}) & request.names:
            use = "${memory.text}" if one else "${items}"
            raise DataError(f"{field} does not send what to {field}: use {use}", file=path)
    if isinstance(request, RememberRequest) and request.reject and request.each is not None:
        raise DataError(
            "remember.reject cannot be used with remember.each: a status does not say which "
            "memory of the batch was rejected",
            file=path,
        )
    if isinstance(request, ReadyRequest) and not request.every > 0:
        raise DataError(f"ready.every is {request.every:g}: give seconds above 0", file=path)


def _expressions_of_reply(request: RestRequest) -> Iterator[str]:
    """Yield the expressions that a request applies to its reply."""
    for field in ("expect", "until", "keep", "text"):
        if expression := getattr(request, field, ""):
            yield expression
    yield from getattr(request, "numbers", {}).values()
