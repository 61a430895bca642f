"""The HTTP connector: a server with our contract (openapi.yaml), or one with a mapping file."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any
from uuid import uuid4

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope._store.server_access import read_key
from mnemoscope.connectors.handshake import (
    VERBS,
    Hello,
    check_methods,
    check_same,
    check_seconds,
    described,
    read_hello,
    read_receipt,
    read_stats,
)
from mnemoscope.connectors.http.client import UNAVAILABLE, HttpConnection, ServerError
from mnemoscope.connectors.http.rest_mapping import find_mapping
from mnemoscope.connectors.http.rest_system import RestSystem
from mnemoscope.connectors.live_store import READING, not_sent, notes_of, require_live
from mnemoscope.models.http_client import HttpReply
from mnemoscope.models.http_errors import PerProcess, retry_after
from mnemoscope.types import Memory, Query, Selector

GONE = 410
"""The status of a call for a space that the server does not have, or no longer has."""
_REPEATABLE = frozenset({"reset", "ready", "recall", "stats"})
_POLL = 0.2
"""Seconds between two calls of ready, unless the server sends Retry-After."""
_CLOSE_SECONDS = 5.0


def openapi() -> str:
    """The text of the shipped contract."""
    return files("mnemoscope.connectors.http").joinpath("openapi.yaml").read_text(encoding="utf-8")


class Http:
    """A server as a system, by our contract or by a mapping.

    `timeout` is how many seconds a call may take, `patience` how many seconds we wait for a server
    that is down, `key` the environment variable with the key, `mapping` a shipped mapping's name or
    a file. With `live` a server may be used whose mapping keeps no spaces apart; with `read_only`
    it is only asked, in the space that `scope` names.
    """

    def __init__(
        self,
        address: str,
        timeout: float = 3600.0,
        patience: float = 30.0,
        key: str = "",
        mapping: str = "",
        live: bool = False,
        read_only: bool = False,
        scope: str = "",
    ) -> None:
        check_seconds(timeout=timeout)
        if not patience >= 0:
            raise UsageError(f"patience={patience:g}: give a number of seconds")
        token = read_key(key, "key=")
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        file = find_mapping(mapping) if mapping else None
        secrets = dict(file.secrets) if file else {}
        variables = [*([key] if key else []), *secrets]
        self._connection = HttpConnection(
            address, timeout, patience, headers, [token, *secrets.values()], _login(variables)
        )
        if scope and not read_only:
            raise UsageError("scope= names the space to read with --read-only; runs make their own")
        if file and not read_only and not file.mapping.keeps_spaces_apart:
            require_live(live, address)
        space = scope if read_only else None
        self._system: RestSystem | ContractSystem = ContractSystem(self._connection, space)
        if file:
            self._system = RestSystem(self._connection, file, space)
        self._notes = notes_of(live=live, read_only=read_only)

    def __getattr__(self, name: str) -> Any:
        """Return a method only if the server has it."""
        if name in VERBS and name in self._system.methods:
            return getattr(self._system, name)
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        about: dict[str, Any] = _cleaned(self._system.identity(), self._connection)
        if self._notes:
            of = about["hello"]["identity"] if "hello" in about else about
            of["notes"] = [*of.get("notes", []), *self._notes]
        return about

    def close(self) -> None:
        self._system.close()
        self._connection.close()


class ContractSystem:
    """A server that implements the contract; each process uses one isolated space of it."""

    def __init__(self, connection: HttpConnection, only_read: str | None = None) -> None:
        """`only_read` is the space to ask, if nothing may be changed."""
        self._connection = connection
        self._only_read = only_read
        # One space for each process, so that workers do not empty each other's.
        self._space = PerProcess(lambda: uuid4().hex)
        self._entered: set[str] = set()
        self._hello: Hello | None = None

    @property
    def methods(self) -> frozenset[str]:
        return VERBS & set(self._introduction().methods)

    def identity(self) -> dict[str, Any]:
        return {"hello": msgspec.to_builtins(self._introduction())}

    def reset(self, scope: str) -> None:
        if self._only_read is not None:
            return
        self._connection.retry_while_down(lambda: self._begin(scope))
        self._entered.add(self._space.get())

    def remember(self, memories: Sequence[Memory]) -> dict[str, Any] | None:
        if self._only_read is not None:  # it has them already
            return None
        return read_receipt(self._call("remember", {"memories": memories}))

    def ready(self) -> None:
        if self._only_read is not None:
            return
        self._connection.wait_until_ready(self._indexing)

    def recall(self, query: Query, k: int) -> Any:
        return self._field("recall", {"query": query, "k": k}, "hits")

    def answer(self, query: Query) -> Any:
        return self._field("answer", {"query": query}, "answer")

    def forget(self, selector: Selector) -> None:
        self._call("forget", {"memories": selector.memories})

    def stats(self) -> dict[str, Any]:
        return read_stats(self._call("stats", {}))

    def close(self) -> None:
        if self._space.get() in self._entered:
            self._entered.discard(self._space.get())
            with suppress(Exception):
                self._post("close", {}, seconds=_CLOSE_SECONDS)

    def _introduction(self) -> Hello:
        if self._hello is None:
            try:
                self._hello = self._connection.first_call(self._request_hello)
            except ServerError as error:
                raise self._no_contract(error) from None
        return self._hello

    def _begin(self, scope: str) -> None:
        check_same(self._introduction(), self._request_hello(), self._connection.url)
        self._call("reset", {"scope": scope})

    def _request_hello(self) -> Hello:
        try:
            reply = self._connection.request("GET", "/v1/hello", repeatable=True)
        except ServerError as error:
            if error.status in UNAVAILABLE:
                raise
            raise self._no_contract(error) from None
        hello = read_hello(self._connection.decoded(reply, "hello"), self._connection.url)
        check_methods(hello.methods, VERBS, self._connection.url)
        return hello

    def _no_contract(self, error: ServerError) -> MnemoscopeError:
        return MnemoscopeError(
            f"{self._connection.url} does not implement Mnemoscope's contract ({error}); implement "
            "it, or describe the server's API in a mapping file: docs/http.md"
        )

    def _indexing(self) -> float | None:
        """Seconds until the next call of ready; None once everything is searchable."""
        reply = self._post("ready", {})
        if reply.status != 202:
            return None
        wait = retry_after(reply.headers)
        return _POLL if wait is None else max(wait, 0.01)

    def _field(self, verb: str, body: dict[str, Any], field: str) -> Any:
        reply = self._call(verb, body)
        if not isinstance(reply, dict) or field not in reply:
            raise BadReply(f'{verb} returned {described(reply)}; expected {{"{field}": …}}')
        return reply[field]

    def _call(self, verb: str, body: dict[str, Any]) -> Any:
        return self._connection.decoded(self._post(verb, body), verb)

    def _post(self, verb: str, body: dict[str, Any], seconds: float | None = None) -> HttpReply:
        if self._only_read is not None and verb not in READING:
            raise not_sent(verb)
        space = self._space.get() if self._only_read is None else self._only_read
        try:
            return self._connection.request(
                "POST",
                f"/v1/{verb}",
                {"space": space, **body},
                repeatable=verb in _REPEATABLE,
                seconds=seconds,
            )
        except ServerError as error:
            if error.status == GONE:
                raise SystemLost(
                    f"{self._connection.url} has lost the memories of this space ({error})"
                ) from None
            raise


def _login(variables: list[str]) -> str:
    if variables:
        return f"set {' and '.join(variables)} to a key that this server accepts, then resume"
    return (
        "it requires a key: export MEMORY_KEY=…, write key=MEMORY_KEY, then resume (a mapping can "
        "send it in any header: ${env.MEMORY_KEY})"
    )


def _cleaned(value: Any, connection: HttpConnection) -> Any:
    """Remove keys from an identity: a server may repeat one in its hello."""
    clean = connection.without_secrets
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {clean(str(key)): _cleaned(part, connection) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part, connection) for part in value]
    return value
