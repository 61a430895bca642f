"""The types of chat models: prompts, completions, providers, failures, and counting their usage.

A `Provider` makes one request. `Model` adds retries, the cache, the budget and the usage counts;
readers and judges use `Model`.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from mnemoscope.types import Usage


class Prompt(msgspec.Struct, frozen=True, omit_defaults=True):
    """One request to a model."""

    system: str
    user: str
    max_tokens: int = 256
    schema: dict[str, Any] | None = None
    """JSON schema of the reply, for servers that can enforce it."""
    typical: str = ""
    """A typical reply, for cost estimates. Never sent."""
    attempt: int = 1
    """Counts up where a prompt is sent again because the reply could not be used. Never sent."""
    alternatives: int = 0
    """Of how many likeliest first tokens the log probabilities are wanted. Local models only."""


class Completion(msgspec.Struct, frozen=True, omit_defaults=True):
    """A model's reply, and the tokens that the server counted."""

    text: str
    input_tokens: int | None = None
    """As the server reports it; None where it does not."""
    output_tokens: int | None = None
    finish: str = ""
    """Why the reply ended, as the server names it: `stop`, `length`, …"""
    refusal: bool = False
    """Whether the model declines to answer, as the server says in a field of its own."""
    first_token: dict[str, float] = {}
    """The log probabilities of the likeliest first tokens, if the prompt asked for them."""

    @property
    def is_truncated(self) -> bool:
        """Whether the reply was cut at the limit of tokens."""
        return self.finish in ("length", "max_tokens")


class Provider(Protocol):
    """Makes one request. Raises one of the failures below if it gets no usable reply."""

    def identity(self) -> dict[str, Any]:
        """What determines its replies: model, endpoint, settings. Never a key."""
        ...

    def complete(self, prompt: Prompt) -> Completion: ...


class ModelFailure(Exception):
    """The model gave no usable reply to this prompt; the question fails with that status."""

    timed_out = False


class ModelTimeout(ModelFailure):
    """No complete reply within the time limit."""

    timed_out = True


class Transient(ModelFailure):
    """A retry may help: a rate limit, a server error, a lost connection, an incomplete reply."""

    def __init__(self, message: str, *, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        """Seconds that the server asked to wait."""


class TransientTimeout(Transient, ModelTimeout):
    """No complete reply in time; a retry may be faster."""


_local = threading.local()


@contextmanager
def metered() -> Iterator[list[Usage]]:
    """Collect the usage of this thread's requests inside the block, one entry a reply."""
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
    """Add to the usage that the surrounding `metered` block collects."""
    usages = getattr(_local, "usages", None)
    if usages is not None:
        usages.append(usage)


def total(usages: list[Usage]) -> Usage | None:
    """The sum of all; None if there were no requests."""
    if not usages:
        return None
    summed = {name: sum(getattr(u, name) for u in usages) for name in Usage.__struct_fields__}
    return Usage(**{**summed, "estimated": any(u.estimated for u in usages)})
