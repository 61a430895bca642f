"""Mapping files of the HTTP connector: the requests of a REST API, and what its replies hold.

The secrets that a mapping takes from the environment stay in memory and are written nowhere.
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
"""Values that the requests of a verb can use besides."""

HttpMethod = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]


class RestRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request; `${…}` stands for a value, in a path and a query spelt as URLs demand."""

    method: HttpMethod = "POST"
    path: str
    query: dict[str, Any] = {}
    """What follows the question mark."""
    headers: dict[str, str] = {}
    body: Any = None
    accept: list[int] = []
    """Statuses that are as good as 200: 404 where something is to be deleted."""

    @property
    def template(self) -> list[Any]:
        """All that is filled in for a request."""
        return [self.path, self.query, self.headers, self.body]

    @property
    def names(self) -> set[str]:
        """The values that the request uses."""
        return names_in(self.template)


class HealthRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: HttpMethod = "GET"
    expect: str = ""
    """What must be true of the reply; without it any reply will do."""


class ReadyRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: HttpMethod = "GET"
    until: str
    """What is true of the reply once everything is searchable."""
    every: float = 0.5
    """Seconds from one request to the next."""


class BatchRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """What stands for one memory in the list `${items}`."""
    batch: int = 100

    @property
    def template(self) -> list[Any]:
        return [self.path, self.query, self.headers, self.body, self.each]


class RememberRequest(BatchRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keep: str = ""
    """Where the reply has the server's own id; of a batch: the list of them, in order."""
    reject: list[int] = []
    """Statuses by which the server refuses one memory: it goes into the receipt."""


class RecallRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hits: HitsFrom = HitsFrom()


class AnswerRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    """Where the reply has the answer."""


class StatsRequest(RestRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: HttpMethod = "GET"
    numbers: dict[str, str]
    """Names, `index_bytes` or any, to where the reply has the number."""


class RestMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A REST API as our verbs; a verb that is not mapped, the system does not have."""

    name: str
    notes: list[str] = []
    """What readers of a run should know."""
    headers: dict[str, str] = {}
    """They go with every request."""
    health: HealthRequest | None = None
    reset: list[RestRequest] = []
    """What makes a fresh space, where a new name for it, `${space}`, is not enough."""
    leave: list[RestRequest] = []
    """What removes a space that is no longer needed; failures are ignored."""
    remember: RememberRequest
    ready: ReadyRequest | None = None
    recall: RecallRequest | None = None
    answer: AnswerRequest | None = None
    forget: BatchRequest | None = None
    stats: StatsRequest | None = None

    @property
    def requests(self) -> dict[str, RestRequest]:
        """By the name of the field that an error should name."""
        verbs = ("health", "remember", "ready", "recall", "answer", "forget", "stats")
        there = {verb: getattr(self, verb) for verb in verbs}
        for field in ("reset", "leave"):
            there |= {f"{field}[{n}]": request for n, request in enumerate(getattr(self, field))}
        return {field: request for field, request in there.items() if request is not None}

    @property
    def has_one_space(self) -> bool:
        """Whether a reset empties what every other client uses as well."""
        return bool(self.reset) and not all(self._spaces_named)

    @property
    def _spaces_named(self) -> list[set[str]]:
        """The names by which each request separates one scenario's memories from others."""
        requests = [self.remember, self.recall, self.answer]
        of_all = names_in(self.headers)
        return [
            (request.names | of_all) & {"scope", "space"}
            for request in requests
            if request is not None
        ]

    @property
    def all_notes(self) -> list[str]:
        """The notes, with what the mapping itself tells about the figures of a run."""
        said = list(self.notes)
        apart = all(self._spaces_named)
        if not apart and not self.reset:
            said.append(
                "nothing keeps scenarios apart: the server is never emptied, and no request names "
                "a scope, so that each scenario can hear those before it"
            )
        elif not apart:
            said.append("the server has one space, which a reset empties: run it with one worker")
        elif not self.reset and not all("space" in names for names in self._spaces_named):
            said.append("a scope that is begun again still holds what it was told before")
        if self.recall and self.recall.hits.by_text:
            said.append("provenance: text; hits are traced to memories by comparing their words")
        told = self.remember
        return said + note_of_time([told.body, told.each, told.query, told.headers])


class LoadedMapping(NamedTuple):
    mapping: RestMapping
    sha256: str
    secrets: Mapping[str, str]
    """What it takes from the environment, by the variables' names."""


def shipped() -> list[str]:
    return shipped_in(_SHIPPED)


def find_mapping(given: str) -> LoadedMapping:
    """A mapping by its shipped name, or from a file."""
    mapping, path = load_mapping(given, RestMapping, _SHIPPED)
    if mapping.recall is None and mapping.answer is None:
        raise DataError("neither recall nor answer is mapped: nothing can be asked", file=path)
    check_names(mapping.headers, "headers", _ALWAYS, path)
    for field, request in mapping.requests.items():
        _check_request(field, request, path)
    if mapping.recall is not None:
        check_hits(mapping.recall.hits, path)
    everything = [mapping.headers, msgspec.to_builtins(list(mapping.requests.values()))]
    return LoadedMapping(mapping, sha256_file(path), secrets_of(everything, path.name))


def _check_request(field: str, request: RestRequest, path: Path) -> None:
    if not request.path.startswith("/"):
        raise DataError(f"{field}.path: {request.path!r:.80} has to begin with /", file=path)
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
        raise DataError(f"{field} never says what is asked: use ${{query.text}}", file=path)
    if isinstance(request, BatchRequest):
        one = request.each is None
        if not ({"memory", "kept"} if one else {"items"}) & request.names:
            use = "${memory.text}" if one else "${items}"
            raise DataError(f"{field} never says what to {field}: use {use}", file=path)
    if isinstance(request, RememberRequest) and request.reject and request.each is not None:
        raise DataError("remember.reject: of a batch nobody knows which is meant", file=path)
    if isinstance(request, ReadyRequest) and not request.every > 0:
        raise DataError(f"ready.every is {request.every:g}: give seconds above 0", file=path)


def _expressions_of_reply(request: RestRequest) -> Iterator[str]:
    """The expressions that a request applies to its reply."""
    for field in ("expect", "until", "keep", "text"):
        if expression := getattr(request, field, ""):
            yield expression
    yield from getattr(request, "numbers", {}).values()
