"""The hello of a system behind a connector, and the checks that connectors share."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from mnemoscope._store.errors import BadReply, MnemoscopeError, UsageError
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


def check_seconds(**options: float) -> None:
    """Refuse options in seconds that are not above 0."""
    for option, seconds in options.items():
        if not seconds > 0:
            raise UsageError(f"{option}={seconds:g}: give a number of seconds above 0")


_expected = False


def expect_servers() -> None:
    """The servers of this run have answered another worker: one that is down now will come back."""
    global _expected
    _expected = True


def servers_are_expected() -> bool:
    return _expected


def server_down(who: str, reason: object) -> MnemoscopeError:
    """The error that stops a run when a server stays down."""
    return MnemoscopeError(
        f"{who} is down ({reason}): start it, then repeat the command to resume; nothing recorded "
        "is lost"
    )


def read_receipt(reply: Any) -> dict[str, Any] | None:
    if reply is not None and not isinstance(reply, dict):
        raise BadReply(f"remember returned {described(reply)}; expected a receipt or null")
    return reply


def read_stats(reply: Any) -> dict[str, Any]:
    if not isinstance(reply, dict):
        raise BadReply(f"stats returned {described(reply)}; expected an object of numbers")
    return reply


def described(value: object) -> str:
    """Describe a value of the wrong type for an error message."""
    return f"{type(value).__name__} {value!r:.80}"
