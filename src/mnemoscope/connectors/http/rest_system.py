"""An existing REST API as a system, called as a mapping file says."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import jmespath.exceptions
import msgspec

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.http.client import HttpConnection, ServerError
from mnemoscope.connectors.http.rest_mapping import LoadedMapping, RestRequest
from mnemoscope.connectors.id_mapping import IdMapping
from mnemoscope.connectors.live_store import not_sent
from mnemoscope.connectors.mapping import fill, fill_text, find, hits, of_query, sends_tags
from mnemoscope.connectors.server_lock import ServerLock
from mnemoscope.models.http_client import HttpReply
from mnemoscope.models.http_errors import shortened
from mnemoscope.types import Hit, Memory, Query, Receipt, Selector

_SCOPE_CHARACTERS = 30
"""How much of a scope's name its space has; servers take names of 50 characters and more."""
_LEAVE_SECONDS = 5.0


class RestSystem:
    """A server with its own REST API; one scope after another."""

    def __init__(
        self, connection: HttpConnection, loaded: LoadedMapping, only_read: str | None = None
    ) -> None:
        """`only_read` is the space to ask, if nothing may be changed."""
        self._connection = connection
        self._only_read = only_read
        self._map = loaded.mapping
        self._sha256 = loaded.sha256
        self._env = dict(loaded.secrets)
        self._scope = ""
        self._space = ""
        """A name that is new for every reset, so that the space is empty on any server."""
        self._owner = os.getpid()
        """The process that made the space: a fork must not remove its parent's space."""
        recall = self._map.recall
        self._by_text = recall is not None and recall.hits.by_text
        self._ids = IdMapping(by_text=self._by_text)
        shares = self._map.has_one_space and only_read is None
        self._lock = ServerLock(connection.url) if shares else None

    @property
    def methods(self) -> frozenset[str]:
        optional = ("ready", "recall", "answer", "forget", "stats")
        mapped = [verb for verb in optional if getattr(self._map, verb) is not None]
        return frozenset({"reset", "remember", *mapped})

    def identity(self) -> dict[str, Any]:
        self._connection.first_call(self._check_health)
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
        if self._only_read is not None:
            self._scope = self._space = self._only_read
            self._ids = IdMapping(by_text=self._by_text)
            self._connection.retry_while_down(self._check_health)
            return
        self._leave()
        slug = re.sub(r"[^A-Za-z0-9]+", "-", scope).strip("-")[:_SCOPE_CHARACTERS] or "scope"
        self._scope = scope
        self._space = f"{slug}-{uuid4().hex[:12]}"
        self._owner = os.getpid()
        self._ids = IdMapping(by_text=self._by_text)
        self._connection.retry_while_down(self._begin)

    def remember(self, memories: Sequence[Memory]) -> Receipt:
        request = self._map.remember
        rejected: dict[str, str] = {}
        merged: dict[str, str] = {}
        if self._only_read is not None:  # the server has them: hits are traced to them
            self._ids.add(memories, tags=sends_tags(request.template))
            return Receipt()
        for batch, values in self._ids.batches(request, memories, self._always):
            reply = self._send(request, values, accept=request.reject)
            if reply.status in request.reject:
                rejected[batch[0].id] = self._connection.message(reply) or f"status {reply.status}"
                continue
            self._ids.add(batch, tags=sends_tags(request.template))
            if request.keep:
                with _readable("remember"):
                    merged |= self._ids.keep(batch, self._value(reply, "remember"), request.keep)
        return Receipt(rejected=rejected, merged=merged)

    def ready(self) -> None:
        request = self._map.ready
        assert request is not None
        if self._only_read is not None:
            return

        def pause() -> float | None:
            reply = self._send(request, {}, repeatable=True)
            return None if self._find(reply, request.until, "ready") else request.every

        self._connection.wait_until_ready(pause)

    def recall(self, query: Query, k: int) -> list[Hit]:
        request = self._map.recall
        assert request is not None
        if k <= 0:
            return []
        reply = self._send(request, {"query": of_query(query), "k": k}, repeatable=True)
        with _readable("recall"):
            found = hits(self._value(reply, "recall"), request.hits)
        return self._ids.resolve(found)[:k]

    def answer(self, query: Query) -> Any:
        request = self._map.answer
        assert request is not None
        reply = self._send(request, {"query": of_query(query)}, repeatable=True)
        return self._find(reply, request.text, "answer")

    def forget(self, selector: Selector) -> None:
        request = self._map.forget
        assert request is not None
        memories: Sequence[Memory] = selector.memories
        if "kept" in request.names:  # a memory that was not stored has no id
            memories = self._ids.with_server_id(memories)
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
            self._connection.check_connection()
            return
        reply = self._send(request, {}, repeatable=True)
        if request.expect and not self._find(reply, request.expect, "health"):
            raise ServerError(
                f"{self._connection.url} is not healthy: health.expect, {request.expect!r:.80}, is "
                f"not true of {self._connection.message(reply)}",
                503,
            )

    def _leave(self) -> None:
        """Remove the space of the last scope, if `leave` is mapped; failures are ignored."""
        if self._space and self._owner == os.getpid() and self._only_read is None:
            for request in self._map.leave:
                with suppress(Exception):
                    self._send(request, {}, seconds=_LEAVE_SECONDS)
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
        reads = (self._map.recall, self._map.answer, self._map.health)
        if self._only_read is not None and all(request is not one for one in reads):
            raise not_sent(f"{request.method} {request.path}")
        values = {**self._always, **given}
        path = fill_text(request.path, values, _segment)
        if query := fill(request.query, values):
            path += "?" + urlencode({key: _as_text(value) for key, value in query.items()}, True)
        headers = fill({**self._map.headers, **request.headers}, values)
        return self._connection.request(
            request.method,
            path,
            fill(request.body, values),
            headers={str(name): str(_as_text(value)) for name, value in headers.items()},
            accept={*request.accept, *accept},
            repeatable=repeatable,
            seconds=seconds,
        )

    def _find(self, reply: HttpReply, expression: str, verb: str) -> Any:
        with _readable(verb):
            return find(self._value(reply, verb), expression)

    def _value(self, reply: HttpReply, verb: str) -> Any:
        """The reply's JSON, or its text if the content type is text."""
        if reply.headers.get("content-type", "").startswith("text/"):
            return reply.data.decode("utf-8", "backslashreplace")
        return self._connection.decoded(reply, verb)


@contextmanager
def _readable(verb: str) -> Iterator[None]:
    """Turn an expression that cannot be applied to a reply into a BadReply."""
    try:
        yield
    except jmespath.exceptions.JMESPathError as error:
        raise BadReply(f"{verb}: {shortened(error)}") from None


def _segment(value: Any) -> str:
    """Encode a value for a path. With a missing value the path would mean something else."""
    text = "" if value is None else str(_as_text(value))
    if text in ("", ".", ".."):
        raise BadReply(
            f"{value!r} cannot be part of a path: the server gave no id, or an invalid one"
        )
    return quote(text, safe="")


def _as_text(value: Any) -> Any:
    """Write a value as text for URLs and headers; lists stay lists."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [_as_text(one) for one in value]
    return msgspec.json.encode(value).decode()
