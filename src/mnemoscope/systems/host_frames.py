"""The messages between a worker and the host process of a system: msgpack in frames.

A frame is four bytes of length and a message. An order has no field for a label: a question is its
text, time and session, and it is sent when it is asked.
"""

from __future__ import annotations

import struct
from typing import Any

import msgspec

from mnemoscope._store.spec import Spec
from mnemoscope.types import Memory, Query, Usage

LENGTH = struct.Struct(">I")
LONGEST_FRAME = 64 << 20
"""Bytes of a reply; a broken system may return gigabytes."""


class HostStart(msgspec.Struct, frozen=True):
    """The first message: what to import and build."""

    target: str
    """The import path `module:Name`."""
    spec: Spec
    build: bool = True
    """Whether to build the system; if not, only its options are listed."""


class HostOrder(msgspec.Struct, frozen=True, array_like=True):
    """One call of a system."""

    number: int
    method: str
    params: msgspec.Raw
    handle: int = 0
    """Which system of the host is meant: 0 is the first, others are its copies."""
    in_thread: bool = False
    """Whether the worker has several calls in flight."""


class ResetParams(msgspec.Struct, frozen=True):
    scope: str


class MemoriesParams(msgspec.Struct, frozen=True):
    """The parameters of remember and of forget."""

    memories: tuple[Memory, ...]


class RecallParams(msgspec.Struct, frozen=True):
    query: Query
    k: int


class AnswerParams(msgspec.Struct, frozen=True):
    query: Query


class ClockParams(msgspec.Struct, frozen=True):
    ahead: float | None
    """Seconds after the start of the replaced clock; None ends the replacement."""


class PlainReply(msgspec.Struct, frozen=True):
    """Hits that are memories as they are: half as much to write and to read."""

    ids: list[str]
    scores: list[float | None]


class HostFailure(msgspec.Struct, frozen=True):
    """An exception that a call raised, as far as the runner needs it."""

    name: str
    text: str
    is_lost: bool = False
    is_late: bool = False
    is_bad_reply: bool = False
    is_exit: bool = False
    is_usage: bool = False
    ours: str = ""
    """The text of the `MnemoscopeError` that it is or was raised from."""
    errno: int = 0
    """Of the `OSError` that it is or was raised from, such as a full disk."""


class HostReply(msgspec.Struct, frozen=True, array_like=True):
    """The reply to one order."""

    number: int
    result: msgspec.Raw
    failure: HostFailure | None = None
    usages: list[Usage] = []
    """Requests to language models that the call made through our models."""


encode = msgspec.msgpack.Encoder().encode


def frame(message: Any) -> bytes:
    body = encode(message)
    return LENGTH.pack(len(body)) + body
