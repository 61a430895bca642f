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


def decoded(data: bytes, *, nan: bool = True) -> Any:
    """The value; ValueError if the data is not JSON. `nan`: read NaN and Infinity as numbers."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = str(error)
    except RecursionError:
        reason = "too many lists or objects within each other"
    with suppress(ValueError, RecursionError):
        return json.loads(data) if nan else json.loads(data, parse_constant=_refuse)
    raise ValueError(f"not JSON: {reason}")


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not a number of JSON")
