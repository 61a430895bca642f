"""JSON as other programs write and read it, where strict JSON has no word for it.

NaN and Infinity are read as numbers, as many write them; half a character is sent spelt out.
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
    """The value; ValueError where it is no JSON."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        with suppress(ValueError, RecursionError):
            return json.loads(data)
    raise ValueError("no JSON")
