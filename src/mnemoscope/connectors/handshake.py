"""How a system behind a door introduces itself, and whether it can be believed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.suggest import did_you_mean

_OTHERS = frozenset({"hello", "health", "identity", "fork", "close"})
"""Methods that exist, be it at another door: they may be listed, and need not be."""


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    version: str = ""
    methods: list[str]
    identity: dict[str, Any] = {}
    """Whatever decides its results: models, settings, versions of what it stands on."""


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


def see_methods(methods: Iterable[str], verbs: Collection[str], who: str) -> None:
    """A method that the protocol does not know would never be called: most likely a slip."""
    for method in methods:
        if method not in verbs and method not in _OTHERS:
            raise MnemoscopeError(
                f"{who}: its hello lists the method {method!r:.80}, which the protocol does not "
                f"know: {did_you_mean(method, verbs)}known are {', '.join(sorted(verbs))}, close"
            )


def see_the_same(before: Hello, now: Hello, who: str) -> None:
    """A server may be restarted within a run; one of another system may not take its place."""
    if before != now:
        raise MnemoscopeError(
            f"{who} came back as another system: it does not say the same hello as before; begin "
            "a new run with it"
        )
