"""An existing REST API as a system, driven by a mapping file."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any
from urllib.parse import quote, urlencode
from uuid import uuid4

import jmespath.exceptions
import msgspec

from mnemoscope._store.errors import BadReply
from mnemoscope.connectors.http.client import ServerError, Wire
from mnemoscope.connectors.http.rest_mapping import Many, Request
from mnemoscope.connectors.http.rest_mapping_checks import has_one_space, needs_kept, notes
from mnemoscope.connectors.http.rest_mapping_file import Loaded
from mnemoscope.connectors.id_mapping import Tracing
from mnemoscope.connectors.mapping import fill, fill_text, find, hits, of_memory, of_query
from mnemoscope.connectors.server_lock import Claim
from mnemoscope.models.http_client import HttpReply
from mnemoscope.models.http_errors import shortened
from mnemoscope.types import Hit, Memory, Query, Selector

_SCOPE_CHARACTERS = 30
"""Of a scope's name in that of its space; servers keep 50 characters and more."""
_GOODBYE = 5.0


class Mapped:
    """One scope after another on a server that knows nothing of us."""

    def __init__(self, wire: Wire, loaded: Loaded) -> None:
        self._wire = wire
        self._map = loaded.mapping
        self._sha256 = loaded.sha256
        self._env = dict(loaded.secrets)
        self._scope = ""
        self._space = ""
        """A name that no other scope has or had, so that it is empty on any server."""
        self._owner = os.getpid()
        """The process that made the space: a fork must not remove its parent's."""
        self._trace = self._fresh_trace()
        self._claim = Claim(wire.url) if has_one_space(loaded.mapping) else None

    @property
    def methods(self) -> frozenset[str]:
        optional = ("ready", "recall", "answer", "forget", "stats")
        mapped = [verb for verb in optional if getattr(self._map, verb) is not None]
        return frozenset({"reset", "remember", *mapped})

    def identity(self) -> dict[str, Any]:
        self._wire.meet(self._see_health)
        return {
            "mapping": self._map.name,
            "mapping_sha256": self._sha256,
            "provenance": self._provenance,
            "notes": notes(self._map),
        }

    def reset(self, scope: str) -> None:
        if self._claim is not None:
            self._claim.take()
        self._leave()
        self._scope = scope
        self._space = f"{_slug(scope)}-{uuid4().hex[:12]}"
        self._owner = os.getpid()
        self._trace = self._fresh_trace()
        self._wire.patiently(self._begin)

    def remember(self, memories: Sequence[Memory]) -> dict[str, Any]:
        if self._map.remember.each is not None:
            return self._remember_batches(memories)
        order = self._map.remember
        receipt: dict[str, dict[str, str]] = {"rejected": {}, "merged": {}}
        for memory in memories:
            reply = self._send(order, {"memory": of_memory(memory)}, accept=order.reject)
            if reply.status in order.reject:
                why = self._wire.said(reply) or f"status {reply.status}"
                receipt["rejected"][memory.id] = why
                continue
            receipt["merged"] |= self._told([memory], reply)
        return receipt

    def ready(self) -> None:
        """Ask until the reply says that everything is searchable."""
        order = self._map.ready
        assert order is not None
        until = time.monotonic() + self._wire.timeout
        while not self._find(self._send(order, {}, repeatable=True), order.until, "ready"):
            if time.monotonic() + order.every > until:
                raise TimeoutError(
                    f"{self._wire.url} was not ready within {self._wire.timeout:g} s"
                )
            time.sleep(order.every)

    def recall(self, query: Query, k: int) -> list[Hit]:
        order = self._map.recall
        assert order is not None
        if k <= 0:
            return []
        reply = self._send(order, {"query": of_query(query), "k": k}, repeatable=True)
        try:
            found = hits(self._value(reply, "recall"), order.hits)
        except jmespath.exceptions.JMESPathError as error:
            raise BadReply(f"recall: {shortened(error)}") from None
        return self._trace.back(found)[:k]

    def answer(self, query: Query) -> Any:
        order = self._map.answer
        assert order is not None
        reply = self._send(order, {"query": of_query(query)}, repeatable=True)
        return self._find(reply, order.text, "answer")

    def forget(self, selector: Selector) -> None:
        order = self._map.forget
        assert order is not None
        told = [{"memory": of_memory(m), "kept": self._trace.kept(m.id)} for m in selector.memories]
        if needs_kept(order):  # what was never stored needs no forgetting
            told = [values for values in told if values["kept"] is not None]
        if order.each is None:
            for values in told:
                self._send(order, values)
            return
        for some in _cut(told, order.batch):
            self._send(order, {"items": self._items(order, some)})

    def stats(self) -> dict[str, Any]:
        order = self._map.stats
        assert order is not None
        reply = self._send(order, {}, repeatable=True)
        found = {name: self._find(reply, where, "stats") for name, where in order.numbers.items()}
        return {name: number for name, number in found.items() if number is not None}

    def close(self) -> None:
        self._leave()
        if self._claim is not None:
            self._claim.release()

    @property
    def _provenance(self) -> str:
        if self._map.recall is not None and self._map.recall.hits.by_text:
            return "text"
        return "the server's ids" if self._map.remember.keep else "ids"

    def _begin(self) -> None:
        self._see_health()
        for order in self._map.reset:
            self._send(order, {}, repeatable=True)

    def _see_health(self) -> None:
        order = self._map.health
        if order is None:
            self._wire.reach()
            return
        reply = self._send(order, {}, repeatable=True)
        if order.expect and not self._find(reply, order.expect, "health"):
            said = self._wire.said(reply)
            raise ServerError(
                f"{self._wire.url} does not call itself healthy: health.expect, "
                f"{order.expect!r:.80}, is not true of {said}",
                503,
            )

    def _leave(self) -> None:
        """Remove what the last scope left behind, where that is mapped. Nothing depends on it."""
        if self._space and self._owner == os.getpid():
            for order in self._map.leave:
                with suppress(Exception):
                    self._send(order, {}, seconds=_GOODBYE)
        self._space = ""

    def _remember_batches(self, memories: Sequence[Memory]) -> dict[str, Any]:
        order = self._map.remember
        merged: dict[str, str] = {}
        for some in _cut(memories, order.batch):
            items = self._items(order, [{"memory": of_memory(memory)} for memory in some])
            merged |= self._told(some, self._send(order, {"items": items}))
        return {"merged": merged}

    def _items(self, order: Many, told: Iterable[Mapping[str, Any]]) -> list[Any]:
        return [fill(order.each, {**self._always, **values}) for values in told]

    def _told(self, memories: Sequence[Memory], reply: HttpReply) -> dict[str, str]:
        """Note what the server took in; those that it holds to be the same as others."""
        for memory in memories:
            self._trace.tell(memory)
        if not (keep := self._map.remember.keep):
            return {}
        try:
            return self._trace.keep(memories, self._value(reply, "remember"), keep)
        except jmespath.exceptions.JMESPathError as error:
            raise BadReply(f"remember: {shortened(error)}") from None

    def _fresh_trace(self) -> Tracing:
        recall = self._map.recall
        return Tracing(by_text=recall is not None and recall.hits.by_text)

    @property
    def _always(self) -> dict[str, Any]:
        return {"scope": self._scope, "space": self._space or None, "env": self._env}

    def _send(
        self,
        order: Request,
        given: Mapping[str, Any],
        *,
        accept: Iterable[int] = (),
        repeatable: bool = False,
        seconds: float | None = None,
    ) -> HttpReply:
        values = {**self._always, **given}
        path = fill_text(order.path, values, _segment)
        if query := fill(order.query, values):
            path += "?" + urlencode({key: _words(value) for key, value in query.items()}, True)
        headers = fill({**self._map.headers, **order.headers}, values)
        return self._wire.ask(
            order.method,
            path,
            fill(order.body, values),
            headers={str(name): str(_words(value)) for name, value in headers.items()},
            accept={*order.accept, *accept},
            repeatable=repeatable,
            seconds=seconds,
        )

    def _find(self, reply: HttpReply, expression: str, verb: str) -> Any:
        try:
            return find(self._value(reply, verb), expression)
        except jmespath.exceptions.JMESPathError as error:
            raise BadReply(f"{verb}: {shortened(error)}") from None

    def _value(self, reply: HttpReply, verb: str) -> Any:
        """What the reply says: JSON, or text where it calls itself text."""
        if reply.headers.get("content-type", "").startswith("text/"):
            return reply.data.decode("utf-8", "backslashreplace")
        return self._wire.decoded(reply, verb)


def _segment(value: Any) -> str:
    """A value in a path. One that is missing would make it the path of something else."""
    spelt = "" if value is None else str(_words(value))
    if spelt in ("", ".", ".."):
        raise BadReply(f"{value!r} cannot stand in a path: the server gave no id, or an odd one")
    return quote(spelt, safe="")


def _words(value: Any) -> Any:
    """A value as URLs and headers spell it; lists stay lists of such."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return [_words(one) for one in value]
    return msgspec.json.encode(value).decode()


def _slug(scope: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", scope).strip("-")[:_SCOPE_CHARACTERS] or "scope"


def _cut(whole: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [whole[start : start + size] for start in range(0, len(whole), size)]
