"""Another time on the machine's clock, as Python code of this process sees it.

Reaches `time` and `datetime` wherever a module has them by name. It does not reach what is stored
elsewhere (a default argument, `default_factory=datetime.now`), C code such as SQLite's
CURRENT_TIMESTAMP, or another process. `time.monotonic` is left alone: threads wait by it.
"""

from __future__ import annotations

import datetime as real
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_Datetime = real.datetime
_Date = real.date
_TICK = 0.01
"""Seconds from one look to the next: stamps of two memories differ, and always alike."""
_NOW: Callable[[], float] = time.time
_NOW_NS: Callable[[], int] = time.time_ns
_PARTS = {name: getattr(time, name) for name in ("gmtime", "localtime", "ctime")}


class MachineClock:
    """A clock that stands still between looks, so that what it says can be said again."""

    def __init__(self) -> None:
        self.start = self._said = _NOW()

    def put(self, ahead: float) -> None:
        """So many seconds after the start."""
        self._said = self.start + ahead

    def time(self) -> float:
        self._said += _TICK
        return self._said


@contextmanager
def machine_clock() -> Iterator[MachineClock]:
    """Let everybody read this clock, which can be put forward and back."""
    clock = MachineClock()
    replaced: dict[int, tuple[Any, Any]] = {
        id(old): (old, new)
        for old, new in [
            (_NOW, clock.time),
            (_NOW_NS, lambda: int(clock.time() * 1e9)),
            *((old, _default_now(old, clock)) for old in _PARTS.values()),
            (_Datetime, _datetime_by(clock)),
            (_Date, _date_by(clock)),
        ]
    }
    _swap(replaced)
    try:
        yield clock
    finally:
        # Everywhere again: modules imported meanwhile have taken the replacements.
        _swap({id(new): (new, old) for old, new in replaced.values()})


def _swap(replaced: dict[int, tuple[Any, Any]]) -> None:
    """Put the second of each pair wherever a module has the first by name."""
    for module in list(sys.modules.values()):
        names = getattr(module, "__dict__", None)
        if module is sys.modules[__name__] or not isinstance(names, dict):
            continue
        for name, value in list(names.items()):
            if (pair := replaced.get(id(value))) is not None and pair[0] is value:
                names[name] = pair[1]


def _default_now(read: Callable[[float], Any], clock: MachineClock) -> Callable[..., Any]:
    def parts(seconds: float | None = None) -> Any:
        return read(clock.time() if seconds is None else seconds)

    return parts


class _LooksReal(type):
    """For a replacement that every real one is an instance of."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


def _datetime_by(clock: MachineClock) -> type:
    class ShiftedDatetime(_Datetime, metaclass=_LooksReal):
        """Makes real datetimes only: nothing of it is left behind when the clock is given back."""

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return _Datetime(*args, **kwargs)

        @classmethod
        def now(cls, tz: real.tzinfo | None = None) -> Any:
            return _Datetime.fromtimestamp(clock.time(), tz)

        @classmethod
        def today(cls) -> Any:
            return _Datetime.fromtimestamp(clock.time())

        @classmethod
        def utcnow(cls) -> Any:
            return _Datetime.fromtimestamp(clock.time(), real.UTC).replace(tzinfo=None)

    return ShiftedDatetime


def _date_by(clock: MachineClock) -> type:
    class ShiftedDate(_Date, metaclass=_LooksReal):
        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            return _Date(*args, **kwargs)

        @classmethod
        def today(cls) -> Any:
            return _Date.fromtimestamp(clock.time())

    return ShiftedDate
