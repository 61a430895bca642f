"""An existing REST API as a system, driven by a mapping file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import jmespath.exceptions
import msgspec

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.http.client import ServerError, Wire
from mnemoscope.connectors.http.rest_mapping import LoadedMapping, RestRequest
from mnemoscope.connectors.id_mapping import IdMapping
from mnemoscope.connectors.mapping import fill, fill_text, find, hits, of_query, sends_tags
from mnemoscope.connectors.server_lock import ServerLock
from mnemoscope.models.http_client import HttpReply
from mnemoscope.models.http_errors import shortened
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

_SCOPE_CHARACTERS = 30
"""Of a scope's name in that of its space; servers keep 50 characters and more."""
_GOODBYE = 5.0


class RestSystem:
    """One scope after another on a server that does not know our contract."""

    def __init__(self, wire: Wire, loaded: LoadedMapping) -> None:
        self._wire = wire
        self._map = loaded.mapping
        self._sha256 = loaded.sha256
        self._env = dict(loaded.secrets)
        self._scope = ""
        self._space = ""
        """A name that no other scope has or had, so that it is empty on any server."""
        self._owner = os.getpid()
        """The process that made the space: a fork must not remove its parent's."""
        recall = self._map.recall
        self._by_text = recall is not None and recall.hits.by_text
        self._ids = IdMapping(by_text=self._by_text)
        self._lock = ServerLock(wire.url) if self._map.has_one_space else None

    @property
    def methods(self) -> frozenset[str]:
        optional = ("ready", "recall", "answer", "forget", "stats")
        mapped = [verb for verb in optional if getattr(self._map, verb) is not None]
        return frozenset({"reset", "remember", *mapped})

    def identity(self) -> dict[str, Any]:
        self._wire.meet(self._check_health)
        by_keep = "the server's ids" if self._map.remember.keep else "ids"
        return {
            "mapping": self._map.name,
            "mapping_sha256": self._sha256,
            "provenance": "text" if self._by_text else by_keep,
            "notes": self._map.all_notes,
        }

    def reset(self, scope: str) -> None:
        if self._lock is not None:
            self._lock.take()
        self._leave()
        slug = re.sub(r"[^A-Za-z0-9]+", "-", scope).strip("-")[:_SCOPE_CHARACTERS] or "scope"
        self._scope = scope
        self._space = f"{slug}-{uuid4().hex[:12]}"
        self._owner = os.getpid()
        self._ids = IdMapping(by_text=self._by_text)
        self._wire.patiently(self._begin)

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        request = self._map.remember
        rejected: dict[str, str] = {}
        merged: dict[str, str] = {}
        for batch, values in self._ids.batches(request, memories, self._always):
            reply = self._send(request, values, accept=request.reject)
            if reply.status in request.reject:
                rejected[batch[0].id] = self._wire.said(reply) or f"status {reply.status}"
                continue
            self._ids.tell(batch, tags=sends_tags(request.template))
            if request.keep:
                with _readable("remember"):
                    merged |= self._ids.keep(batch, self._value(reply, "remember"), request.keep)
        return Receipt(rejected=rejected, merged=merged)

    def ready(self) -> None:
        """Ask until the reply says that everything is searchable."""
        request = self._map.ready
        assert request is not None
        until = time.monotonic() + self._wire.timeout
        while not self._find(self._send(request, {}, repeatable=True), request.until, "ready"):
            if time.monotonic() + request.every > until:
                raise TimeoutError(
                    f"{self._wire.url} was not ready within {self._wire.timeout:g} s"
                )
            time.sleep(request.every)

    def recall(self, query: Query, k: int) -> list[Hit]:
        request = self._map.recall
        assert request is not None
        if k <= 0:
            return []
        reply = self._send(request, {"query": of_query(query), "k": k}, repeatable=True)
        with _readable("recall"):
            found = hits(self._value(reply, "recall"), request.hits)
        return self._ids.back(found)[:k]

    def answer(self, query: Query) -> Any:
        request = self._map.answer
        assert request is not None
        reply = self._send(request, {"query": of_query(query)}, repeatable=True)
        return self._find(reply, request.text, "answer")

    def forget(self, selector: Selector) -> None:
        request = self._map.forget
        assert request is not None
        memories: Sequence[Memory] = selector.memories
        if "kept" in request.names:  # what was never stored needs no forgetting
            memories = self._ids.kept(memories)
        for _, values in self._ids.batches(request, memories, self._always):
            self._send(request, values)

    def stats(self) -> dict[str, Any]:
        request = self._map.stats
        assert request is not None
        reply = self._send(request, {}, repeatable=True)
        found = {name: self._find(reply, where, "stats") for name, where in request.numbers.items()}
        return {name: number for name, number in found.items() if number is not None}

    def close(self) -> None:
        self._leave()
        if self._lock is not None:
            self._lock.release()

    def _begin(self) -> None:
        self._check_health()
        for request in self._map.reset:
            self._send(request, {}, repeatable=True)

    def _check_health(self) -> None:
        request = self._map.health
        if request is None:
            self._wire.reach()
            return
        reply = self._send(request, {}, repeatable=True)
        if request.expect and not self._find(reply, request.expect, "health"):
            said = self._wire.said(reply)
            raise ServerError(
                f"{self._wire.url} does not call itself healthy: health.expect, "
                f"{request.expect!r:.80}, is not true of {said}",
                503,
            )

    def _leave(self) -> None:
        """Remove what the last scope left behind, where that is mapped. Nothing depends on it."""
        if self._space and self._owner == os.getpid():
            for request in self._map.leave:
                with suppress(Exception):
                    self._send(request, {}, seconds=_GOODBYE)
        self._space = ""

    @property
    def _always(self) -> dict[str, Any]:
        return {"scope": self._scope, "space": self._space or None, "env": self._env}

    def _send(
        self,
        request: RestRequest,
        given: Mapping[str, Any],
        *,
        accept: Iterable[int] = (),
        repeatable: bool = False,
        seconds: float | None = None,
    ) -> HttpReply:
        values = {**self._always, **given}
        path = fill_text(request.path, values, _segment)
        if query := fill(request.query, values):
            path += "?" + urlencode({key: _words(value) for key, value in query.items()}, True)
        headers = fill({**self._map.headers, **request.headers}, values)
        return self._wire.ask(
            request.method,
            path,
            fill(request.body, values),
            headers={str(name): str(_words(value)) for name, value in headers.items()},
            accept={*request.accept, *accept},
            repeatable=repeatable,
            seconds=seconds,
        )

    def _find(self, reply: HttpReply, expression: str, verb: str) -> Any:
        with _readable(verb):
            return find(self._value(reply, verb), expression)

    def _value(self, reply: HttpReply, verb: str) -> Any:
        """The reply's JSON, or its text where the content type is text."""
        if reply.headers.get("content-type", "").startswith("text/"):
            return reply.data.decode("utf-8", "backslashreplace")
        return self._wire.decoded(reply, verb)


@contextmanager
def _readable(verb: str) -> Iterator[None]:
    """An expression that cannot be applied to a reply is that reply's error."""
    try:
        yield
    except jmespath.exceptions.JMESPathError as error:
        raise BadReply(f"{verb}: {shortened(error)}") from None


def _segment(value: Any) -> str:
    """A value in a path. A missing one would make it the path of something else."""
    spelt = "" if value is None else str(_words(value))
    if spelt in ("", ".", ".."):
        raise BadReply(f"{value!r} cannot stand in a path: the server gave no id, or an odd one")
    return quote(spelt, safe="")


def _words(value: Any) -> Any:
    """A value as URLs and headers spell it; lists stay lists."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [_words(one) for one in value]
    return msgspec.json.encode(value).decode()
