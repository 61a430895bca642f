"""When something happened: by the clock, or as somebody said it, and never confused."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec

from mnemoscope._store.errors import UsageError


class Moment(msgspec.Struct, frozen=True, omit_defaults=True):
    """A time. One that was given by hand keeps, beside it, when it was recorded."""

    at: datetime
    recorded: datetime | None = None
    """What the clock said, where `at` is not the clock's."""

    @property
    def is_future(self) -> bool:
        """Whether it was given, and is yet to come."""
        return self.recorded is not None and self.at > self.recorded

    def __str__(self) -> str:
        said = f"{self.at:%Y-%m-%d %H:%M} UTC"
        if self.recorded is None:
            return said
        return f"{said} (as given; recorded {self.recorded:%Y-%m-%d %H:%M} UTC)"


def moment(given: str | datetime | None = None) -> Moment:
    """Now, or the time that was given, which is recorded as given."""
    now = datetime.now(UTC).replace(microsecond=0)
    if given is None:
        return Moment(now)
    return Moment(parse_time(given) if isinstance(given, str) else given, now)


def parse_time(text: str) -> datetime:
    """An ISO date or time; without a zone it is UTC."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no time: write 2026-11-20 or 2026-11-20T09:00, in UTC"
        ) from None
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)
