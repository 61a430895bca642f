"""Times as sources write them: ISO 8601, seconds or milliseconds since 1970, dates in names."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from math import isfinite

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?", re.ASCII)
_SPACED_OFFSET = re.compile(r"\s+(?=(?:[+-]\d\d:?\d\d|Z)$)")
_DATE_IN_NAME = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?!\d)", re.ASCII)
_LARGEST_SECONDS = 1e11
"""Greater numbers count milliseconds, microseconds or nanoseconds: as seconds, the year 5138."""


def read_time(value: object) -> datetime | None:
    """The time in UTC; None if the value is no time. A time without an offset counts as UTC."""
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, int | float):
        return _since_1970(float(value))
    if isinstance(value, datetime):
        return _in_utc(value)
    text = str(value).strip()
    if _NUMBER.fullmatch(text) and len(text.partition(".")[0]) != len("20240501"):
        return _since_1970(float(text))
    try:
        return _in_utc(datetime.fromisoformat(_SPACED_OFFSET.sub("", text)))
    except ValueError:
        return None


def date_in_name(name: str) -> datetime | None:
    """The date that a name such as `2024-05-01 Wednesday` contains."""
    for found in _DATE_IN_NAME.finditer(name):
        year, _, month, day = found.groups()
        try:
            return datetime(int(year), int(month), int(day), tzinfo=UTC)
        except ValueError:
            continue
    return None


def _in_utc(time: datetime) -> datetime | None:
    try:
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except OverflowError:
        return None


def _since_1970(seconds: float) -> datetime | None:
    if not isfinite(seconds):
        return None
    while abs(seconds) > _LARGEST_SECONDS:
        seconds /= 1000
    try:
        return datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return None
