"""JSON that other programs write and read but strict JSON does not allow.

NaN and Infinity are read as numbers. A lone surrogate is sent as an escape sequence.
"""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import msgspec


def encoded(value: Any) -> bytes:
    try:
        return msgspec.json.encode(value)
    except UnicodeEncodeError:
        return json.dumps(msgspec.to_builtins(value)).encode()


def decoded(data: bytes) -> Any:
    """The value; ValueError if the data is not JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        with suppress(ValueError, RecursionError):
            return json.loads(data)
    raise ValueError("not JSON")
