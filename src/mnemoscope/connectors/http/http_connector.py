"""The HTTP connector: a server that speaks our contract (openapi.yaml), or one with a mapping."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any
from uuid import uuid4

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, SystemLost, UsageError
from mnemoscope.connectors.handshake import (
    VERBS,
    Hello,
    check_methods,
    check_same,
    described,
    read_hello,
)
from mnemoscope.connectors.http.client import UNAVAILABLE, ServerError, Wire
from mnemoscope.connectors.http.rest_mapping import find_mapping
from mnemoscope.connectors.http.rest_system import RestSystem
from mnemoscope.models.http_client import HttpReply
from mnemoscope.models.http_errors import PerProcess, retry_after
from mnemoscope.types import Memory, Query, Selector

GONE = 410
"""The status of a call from a space that the server does not know, or knows no more."""
_REPEATABLE = frozenset({"reset", "ready", "recall", "stats"})
_POLL = 0.2
"""Seconds between two questions whether all is searchable, where the server names none."""
_GOODBYE = 5.0
_NAME = re.compile(r"[A-Za-z_]\w*")


def openapi() -> str:
    """The contract, as it is shipped."""
    return files("mnemoscope.connectors.http").joinpath("openapi.yaml").read_text(encoding="utf-8")


class Http:
    """A server as a system, by our contract or by a mapping.

    `timeout` is how many seconds a call may take, `patience` how many a server that is down is
    waited for, `key` the name of the environment variable that holds the key, `mapping` a shipped
    mapping's name or a file.
    """

    def __init__(
        self,
        address: str,
        timeout: float = 3600.0,
        patience: float = 30.0,
        key: str = "",
        mapping: str = "",
    ) -> None:
        if not timeout > 0:
            raise UsageError(f"timeout={timeout:g}: give a number of seconds above 0")
        if not patience >= 0:
            raise UsageError(f"patience={patience:g}: give a number of seconds")
        token = _token(key)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        file = find_mapping(mapping) if mapping else None
        secrets = dict(file.secrets) if file else {}
        variables = [*([key] if key else []), *secrets]
        self._wire = Wire(
            address, timeout, patience, headers, [token, *secrets.values()], _login(variables)
        )
        self._behind = RestSystem(self._wire, file) if file else ContractSystem(self._wire)

    def __getattr__(self, name: str) -> Any:
        """Only what the other side can do is there to be asked for."""
        if name in VERBS and name in self._behind.methods:
            return getattr(self._behind, name)
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def identity(self) -> dict[str, Any]:
        about: dict[str, Any] = _cleaned(self._behind.identity(), self._wire)
        return about

    def close(self) -> None:
        self._behind.close()
        self._wire.close()


class ContractSystem:
    """One space of the server: what is told here is heard here alone."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        # Each process has a space of its own, so that workers do not empty each other's.
        self._space = PerProcess(lambda: uuid4().hex)
        self._entered: set[str] = set()
        self._hello: Hello | None = None

    @property
    def methods(self) -> frozenset[str]:
        return VERBS & set(self._introduction().methods)

    def identity(self) -> dict[str, Any]:
        return {"hello": msgspec.to_builtins(self._introduction())}

    def reset(self, scope: str) -> None:
        self._wire.patiently(lambda: self._begin(scope))
        self._entered.add(self._space.get())

    def remember(self, memories: Sequence[Memory]) -> dict[str, Any] | None:
        receipt = self._call("remember", {"memories": memories})
        if receipt is not None and not isinstance(receipt, dict):
            raise BadReply(f"remember returned {described(receipt)}; expected a receipt")
        return receipt

    def ready(self) -> None:
        """Ask until everything is searchable."""
        until = time.monotonic() + self._wire.timeout
        while (pause := self._indexing()) is not None:
            if time.monotonic() + pause > until:
                raise TimeoutError(
                    f"{self._wire.url} was not ready within {self._wire.timeout:g} s"
                )
            time.sleep(pause)

    def recall(self, query: Query, k: int) -> Any:
        return self._field("recall", {"query": query, "k": k}, "hits")

    def answer(self, query: Query) -> Any:
        return self._field("answer", {"query": query}, "answer")

    def forget(self, selector: Selector) -> None:
        self._call("forget", {"memories": selector.memories})

    def stats(self) -> dict[str, Any]:
        counted = self._call("stats", {})
        if not isinstance(counted, dict):
            raise BadReply(f"stats returned {described(counted)}; expected an object of numbers")
        return counted

    def close(self) -> None:
        if self._space.get() in self._entered:
            self._entered.discard(self._space.get())
            with suppress(Exception):
                self._post("close", {}, seconds=_GOODBYE)

    def _introduction(self) -> Hello:
        if self._hello is None:
            try:
                self._hello = self._wire.meet(self._ask_hello)
            except ServerError as error:
                raise self._not_ours(error) from None
        return self._hello

    def _begin(self, scope: str) -> None:
        check_same(self._introduction(), self._ask_hello(), self._wire.url)
        self._call("reset", {"scope": scope})

    def _ask_hello(self) -> Hello:
        try:
            reply = self._wire.ask("GET", "/v1/hello", repeatable=True)
        except ServerError as error:
            if error.status in UNAVAILABLE:
                raise
            raise self._not_ours(error) from None
        hello = read_hello(self._wire.decoded(reply, "hello"), self._wire.url)
        check_methods(hello.methods, VERBS, self._wire.url)
        return hello

    def _not_ours(self, error: ServerError) -> MnemoscopeError:
        return MnemoscopeError(
            f"{self._wire.url} does not speak Mnemoscope's contract ({error}); serve it, or "
            "describe its own API in a mapping file: docs/http.md"
        )

    def _indexing(self) -> float | None:
        """Seconds until it should be asked again; nothing once it is ready."""
        reply = self._post("ready", {})
        if reply.status != 202:
            return None
        wait = retry_after(reply.headers)
        return _POLL if wait is None else max(wait, 0.01)

    def _field(self, verb: str, body: dict[str, Any], field: str) -> Any:
        said = self._call(verb, body)
        if not isinstance(said, dict) or field not in said:
            raise BadReply(f'{verb} returned {described(said)}; expected {{"{field}": …}}')
        return said[field]

    def _call(self, verb: str, body: dict[str, Any]) -> Any:
        return self._wire.decoded(self._post(verb, body), verb)

    def _post(self, verb: str, body: dict[str, Any], seconds: float | None = None) -> HttpReply:
        try:
            return self._wire.ask(
                "POST",
                f"/v1/{verb}",
                {"space": self._space.get(), **body},
                repeatable=verb in _REPEATABLE,
                seconds=seconds,
            )
        except ServerError as error:
            if error.status == GONE:
                raise SystemLost(
                    f"{self._wire.url} knows nothing of what it was told ({error})"
                ) from None
            raise


def _token(variable: str) -> str:
    """What goes with every request. The variable's value is never repeated, nor what may be one."""
    if not variable:
        return ""
    if not _NAME.fullmatch(variable) or not os.environ.get(variable, "").strip():
        raise UsageError(
            "key= takes the name of an environment variable that holds the key, and there is "
            "none of that name, or it is empty; export MEMORY_KEY=… and say key=MEMORY_KEY"
        )
    return os.environ[variable].strip()


def _login(variables: list[str]) -> str:
    if variables:
        return f"set {' and '.join(variables)} to what this server takes, then resume"
    return (
        "it wants a key: export MEMORY_KEY=…, say key=MEMORY_KEY, then resume (a mapping can send "
        "it in any header: ${env.MEMORY_KEY})"
    )


def _cleaned(value: Any, wire: Wire) -> Any:
    """A server may repeat a key in what it says of itself."""
    if isinstance(value, str):
        return wire.clean(value)
    if isinstance(value, dict):
        return {wire.clean(str(key)): _cleaned(part, wire) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(part, wire) for part in value]
    return value
