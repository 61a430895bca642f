"""Replaces the machine's clock for the Python code of this process.

It replaces `time` and `datetime` in the namespaces of all modules. It does not change references
stored elsewhere (a default argument, `default_factory=datetime.now`), C code such as SQLite's
CURRENT_TIMESTAMP, or other processes. `time.monotonic` is not replaced: threads wait by it.
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
"""Seconds that each reading adds: timestamps of two memories differ, always by the same."""
_NOW: Callable[[], float] = time.time
_NOW_NS: Callable[[], int] = time.time_ns
_PARTS = {name: getattr(time, name) for name in ("gmtime", "localtime", "ctime")}


class MachineClock:
    """A clock that advances only when it is read, so that its readings can be repeated."""

    def __init__(self) -> None:
        self.start = self._now = _NOW()

    def put(self, ahead: float) -> None:
        """Set the clock to so many seconds after the start."""
        self._now = self.start + ahead

    def time(self) -> float:
        self._now += _TICK
        return self._now


@contextmanager
def machine_clock() -> Iterator[MachineClock]:
    """While the block runs, all Python code reads this clock."""
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
        # In all modules: those imported meanwhile have the replacements, too.
        _swap({id(new): (new, old) for old, new in replaced.values()})


def _swap(replaced: dict[int, tuple[Any, Any]]) -> None:
    """Replace the first of each pair by the second in the namespaces of all modules."""
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
    """A metaclass: every real datetime is an instance of the replacement."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.__mro__[1])

    def __subclasscheck__(cls, subclass: type) -> bool:
        return issubclass(subclass, cls.__mro__[1])


def _datetime_by(clock: MachineClock) -> type:
    class ShiftedDatetime(_Datetime, metaclass=_LooksReal):
        """Creates only real datetimes, so no instance of it remains afterwards."""

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
