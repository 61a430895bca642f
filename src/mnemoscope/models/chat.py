"""Chat models: what is asked of them and what comes back, whoever serves them.

A `Provider` makes one request and nothing else; `Model` puts patience, the cache, the purse and the
accounts around it, and is what readers and judges use.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from mnemoscope.types import Usage


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One thing to ask a model."""

    system: str
    user: str
    max_tokens: int = 256
    schema: dict[str, Any] | None = None
    """JSON schema of the reply, for servers that can hold a model to it."""
    typical: str = ""
    """A reply as it usually looks, to estimate by. Never sent."""
    attempt: int = 1
    """Counts up where the same is asked again because the reply was of no use. Never sent."""


class Completion(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a model replied, and what the server counted."""

    text: str
    input_tokens: int | None = None
    """As the server reports it; None where it does not."""
    output_tokens: int | None = None
    finish: str = ""
    """Why it ended, in the server's words: `stop`, `length`, …"""


class Provider(Protocol):
    """Makes one request. Raises one of the failures below where nothing comes of it."""

    def identity(self) -> dict[str, Any]:
        """What decides its replies: model, endpoint, settings. Never a key."""
        ...

    def complete(self, prompt: Prompt) -> Completion: ...


class ModelFailure(Exception):
    """The model gave no usable reply to this one prompt; the question ends with that status."""

    timed_out = False


class ModelTimeout(ModelFailure):
    """No whole reply within the time it had."""

    timed_out = True


class Transient(ModelFailure):
    """Worth another try: a rate limit, a server in trouble, a lost connection, a torn reply."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the server asked to wait."""


class TransientTimeout(Transient, ModelTimeout):
    """No whole reply in time; the next try may be quicker."""


_local = threading.local()


@contextmanager
def metered() -> Iterator[list[Usage]]:
    """Collect what this thread asks of models inside the block, one entry a reply."""
    before = getattr(_local, "usages", None)
    usages: list[Usage] = []
    _local.usages = usages
    try:
        yield usages
    finally:
        _local.usages = before
        if before is not None:
            before.extend(usages)


def note(usage: Usage) -> None:
    """Add to what the surrounding `metered` block collects."""
    usages = getattr(_local, "usages", None)
    if usages is not None:
        usages.append(usage)


def total(usages: list[Usage]) -> Usage | None:
    """All of them as one; None where nothing was asked."""
    if not usages:
        return None
    return Usage(
        requests=sum(usage.requests for usage in usages),
        cached=sum(usage.cached for usage in usages),
        retries=sum(usage.retries for usage in usages),
        input_tokens=sum(usage.input_tokens for usage in usages),
        output_tokens=sum(usage.output_tokens for usage in usages),
        cost=sum(usage.cost for usage in usages),
        paid=sum(usage.paid for usage in usages),
        estimated=any(usage.estimated for usage in usages),
    )
