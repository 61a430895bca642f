"""What a mapping file can say of a REST API: its requests, and where replies keep what we need."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mnemoscope.connectors.mapping import HitsFrom


class Request(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One request; `${…}` stands for a value, in a path and a query spelt as URLs demand."""

    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "POST"
    path: str
    query: dict[str, Any] = {}
    """What follows the question mark."""
    headers: dict[str, str] = {}
    body: Any = None
    accept: list[int] = []
    """Statuses that are as good as 200: 404 where something is to be deleted."""


class Health(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    expect: str = ""
    """What must be true of the reply; without it any reply will do."""


class Ready(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    until: str
    """What is true of the reply once everything is searchable."""
    every: float = 0.5
    """Seconds from one question to the next."""


class Many(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A request for each memory or, with `each`, for `batch` memories at once."""

    each: Any = None
    """What stands for one memory in the list `${items}`."""
    batch: int = 100


class Remember(Many, frozen=True, kw_only=True, forbid_unknown_fields=True):
    keep: str = ""
    """Where the reply has the server's own id; of a batch: the list of them, in order."""
    reject: list[int] = []
    """Statuses by which the server refuses one memory: it goes into the receipt."""


class Recall(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    hits: HitsFrom = HitsFrom()


class Answer(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    text: str
    """Where the reply has the answer."""


class Stats(Request, frozen=True, kw_only=True, forbid_unknown_fields=True):
    method: Literal["GET", "POST", "PUT", "PATCH", "DELETE"] = "GET"
    numbers: dict[str, str]
    """Names, `index_bytes` or any, to where the reply has the number."""


class ApiMapping(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A REST API as our verbs; what is not there, the system does not have."""

    name: str
    notes: list[str] = []
    """What readers of a run should know."""
    headers: dict[str, str] = {}
    """They go with every request."""
    health: Health | None = None
    reset: list[Request] = []
    """What makes a fresh space, where a new name for it, `${space}`, is not enough."""
    leave: list[Request] = []
    """What removes a space that is no more needed; whether that works is not looked at."""
    remember: Remember
    ready: Ready | None = None
    recall: Recall | None = None
    answer: Answer | None = None
    forget: Many | None = None
    stats: Stats | None = None

    @property
    def requests(self) -> dict[str, Request]:
        """By the name of the field that an error should name."""
        verbs = ("health", "remember", "ready", "recall", "answer", "forget", "stats")
        there = {verb: getattr(self, verb) for verb in verbs}
        for field in ("reset", "leave"):
            there |= {f"{field}[{n}]": request for n, request in enumerate(getattr(self, field))}
        return {field: request for field, request in there.items() if request is not None}
