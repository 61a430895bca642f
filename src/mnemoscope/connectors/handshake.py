"""How a system behind a connector introduces itself, and what a connector checks of it."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.suggest import did_you_mean

VERBS = frozenset({"reset", "remember", "ready", "recall", "answer", "forget", "stats"})
"""What a system can be asked for besides hello and close."""
_OTHERS = frozenset({"hello", "health", "identity", "fork", "close"})
"""Methods that exist at some connector: they may be listed, and need not be."""


class ServerError(Exception):
    """The server itself says that something went wrong."""

    def __init__(self, message: str, status: int = 0) -> None:
        """`status` is that of HTTP, where there is one."""
        super().__init__(message)
        self.status = status


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """How a system introduces itself."""

    name: str
    version: str = ""
    methods: list[str]
    identity: dict[str, Any] = {}
    """What decides its results: models, settings, versions of its libraries."""


def read_hello(said: Any, who: str) -> Hello:
    try:
        hello = msgspec.convert(said, Hello)
        msgspec.convert(hello.identity.get("notes", []), list[str])
        return hello
    except msgspec.ValidationError as error:
        raise MnemoscopeError(
            f"{who}: its hello cannot be read: {error}; expected a name, methods such as "
            '["reset", "remember", "recall"], and an identity, whose notes are sentences'
        ) from None


def check_methods(methods: Iterable[str], verbs: Collection[str], who: str) -> None:
    """Refuse a method that the protocol does not know: it is most likely misspelt."""
    for method in methods:
        if method not in verbs and method not in _OTHERS:
            raise MnemoscopeError(
                f"{who}: its hello lists the method {method!r:.80}, which the protocol does not "
                f"know: {did_you_mean(method, verbs)}known are {', '.join(sorted(verbs))}, close"
            )


def check_same(before: Hello, now: Hello, who: str) -> None:
    """A server may be restarted within a run; another system may not take its place."""
    if before != now:
        raise MnemoscopeError(
            f"{who} came back as another system: it does not say the same hello as before; begin "
            "a new run with it"
        )


def described(value: object) -> str:
    """A value of the wrong type, as an error shows it."""
    return f"{type(value).__name__} {value!r:.80}"
