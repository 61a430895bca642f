"""The hello of a system behind a connector, and the checks that connectors share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.suggest import did_you_mean

VERBS = frozenset({"reset", "remember", "ready", "recall", "answer", "forget", "stats"})
"""The methods of a system, besides hello and close."""
_OTHERS = frozenset({"hello", "health", "identity", "fork", "close"})
"""Methods of some connectors: a hello may list them."""


class ServerError(Exception):
    """The server replied with an error."""

    def __init__(self, message: str, status: int = 0) -> None:
        """`status` is the HTTP status, if there is one."""
        super().__init__(message)
        self.status = status


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """What a system says about itself when a connector first calls it."""

    name: str
    version: str = ""
    methods: list[str]
    identity: dict[str, Any] = {}
    """What determines its results: models, settings, versions of its libraries."""


def read_hello(reply: Any, who: str) -> Hello:
    try:
        hello = msgspec.convert(reply, Hello)
        msgspec.convert(hello.identity.get("notes", []), list[str])
        return hello
    except msgspec.ValidationError as error:
        raise MnemoscopeError(
            f"{who}: its hello cannot be read: {error}; expected a name, methods such as "
            '["reset", "remember", "recall"], and an identity, whose notes are a list of sentences'
        ) from None


def check_methods(methods: Iterable[str], verbs: Collection[str], who: str) -> None:
    """Refuse a method that is not part of the protocol: it is probably misspelt."""
    for method in methods:
        if method not in verbs and method not in _OTHERS:
            raise MnemoscopeError(
                f"{who}: its hello lists the method {method!r:.80}, which is not part of the "
                f"protocol: {did_you_mean(method, verbs)}known are {', '.join(sorted(verbs))}, "
                "close"
            )


def check_same(before: Hello, now: Hello, who: str) -> None:
    """Refuse a server that was replaced by another system within a run."""
    if before != now:
        raise MnemoscopeError(
            f"{who} came back as another system: its hello differs from the one before; begin a "
            "new run with it"
        )


def described(value: object) -> str:
    """Describe a value of the wrong type for an error message."""
    return f"{type(value).__name__} {value!r:.80}"
