"""A seccomp filter that denies system calls which act on processes outside, or outlive a run.

Landlock knows paths, memory and signals. It does not know limits and priorities: a system could set
those of its worker so that the run stops. A filter sees numbers only, so it compares process ids.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

# Fields of the kernel's seccomp_data; of an argument, the lower half on these machines.
_NUMBER, _MACHINE, _ARGUMENTS, _ARGUMENT, _HALF = 0, 4, 16, 8, 4
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW, _ERROR, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_OTHER_TABLE = 0x40000000
"""The first number of the x32 calls, a second table of x86_64."""
_SET_FILTER, _IS_KNOWN = 1, 2
# Without this flag kernels before 5.16 switch on protections of processors that slow a child down.
_KEEP_SPEED = 1 << 2
_OWN = 0xFFFFFFFF
"""Stands for the id of the child, which is known after the fork."""
_OLDER = 0xFFFFFFFE
"""Stands for the lowest id above the child's that was taken before the fork."""
_HIGHEST_ID = 1 << 22


class _Calls(NamedTuple):
    """The numbers of one machine's system calls."""

    machine: int
    seccomp: int
    set_limits: int
    set_priority: tuple[int, int]
    """`setpriority` and `ioprio_set`, whose first argument says what the second one names."""
    act_on: tuple[int, ...]
    """`sched_setparam`, `sched_setscheduler`, `sched_setaffinity`, `sched_setattr`,
    `migrate_pages`, `move_pages`, `process_vm_readv`, `process_vm_writev`: they name a process or
    a thread first."""
    denied: tuple[int, ...]
    """`ptrace`, `kcmp`, `perf_event_open`, `bpf`, `userfaultfd`, `add_key`, `request_key`,
    `keyctl`, `pidfd_getfd`, `process_madvise`."""


_CALLS = {
    "x86_64": _Calls(
        *(0xC000003E, 317, 302, (141, 251)),
        (142, 144, 203, 314, 256, 279, 310, 311),
        (101, 312, 298, 321, 323, 248, 249, 250, 438, 440),
    ),
    "aarch64": _Calls(
        *(0xC00000B7, 277, 261, (140, 30)),
        (118, 119, 122, 274, 238, 239, 270, 271),
        (117, 272, 241, 280, 282, 217, 218, 219, 438, 440),
    ),
}
# PRIO_PROCESS and PRIO_PGRP; IOPRIO_WHO_PROCESS and IOPRIO_WHO_PGRP. The third is the whole user.
_WHO = ((0, 1), (1, 2))


class _Step(ctypes.Structure):
    _fields_ = [
        ("code", ctypes.c_uint16),
        ("if_true", ctypes.c_uint8),
        ("if_false", ctypes.c_uint8),
        ("value", ctypes.c_uint32),
    ]


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_uint16), ("steps", ctypes.POINTER(_Step))]


def _calls() -> _Calls | None:
    is_64_bit = sys.maxsize > 1 << 32
    return _CALLS.get(platform.machine()) if sys.platform == "linux" and is_64_bit else None


@cache
def has_filter() -> bool:
    """Whether this machine can filter system calls, and we know their numbers."""
    calls = _calls()
    if calls is None:
        return False
    library = ctypes.CDLL(None, use_errno=True)
    action = ctypes.c_uint32(_ERROR)
    return not library.syscall(calls.seccomp, _IS_KNOWN, ctypes.c_long(0), ctypes.byref(action))


class SystemCallFilter:
    """Restricts the calling process. It is built before the fork and called between fork and exec.

    The process must have no_new_privs. What it starts inherits the filter.
    """

    def __init__(self) -> None:
        calls = _calls()
        assert calls is not None
        steps = list(_steps(calls))
        self._own = [place for place, step in enumerate(steps) if step.value == _OWN]
        self._older = [place for place, step in enumerate(steps) if step.value == _OLDER]
        self._ids = _ids_above(_last_id())
        self._steps = (_Step * len(steps))(*steps)
        program = _Program(len(steps), self._steps)
        self._syscall = ctypes.CDLL(None, use_errno=True).syscall
        self._install = [*map(ctypes.c_long, (calls.seccomp, _SET_FILTER, _KEEP_SPEED))]
        self._program = ctypes.byref(program)
        # Limits at an address that the kernel refuses: without a filter nothing changes.
        self._try = [*map(ctypes.c_long, (calls.set_limits, os.getpid(), 0, 1, 0))]

    def __call__(self) -> None:
        own = os.getpid()
        older = next((id for id in self._ids if id > own), _HIGHEST_ID)
        for places, id in ((self._own, own), (self._older, older)):
            for place in places:
                self._steps[place].value = id
        if self._syscall(*self._install, self._program):
            raise OSError(ctypes.get_errno(), "the filter of system calls cannot be set")
        self._syscall(*self._try)
        if ctypes.get_errno() != errno.EPERM:
            raise PermissionError("it could set the limits of our process")


def _last_id() -> int:
    """The id that was given last, in this namespace of processes."""
    return int(Path("/proc/loadavg").read_text().split()[-1])


def _ids_above(last: int) -> list[int]:
    """The ids of processes and threads above the last one given, which are older; sorted."""
    ids: set[int] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it has ended
            ids.update(int(thread.name) for thread in (process / "task").iterdir())
    return sorted(id for id in ids if id > last)


def _steps(calls: _Calls) -> Iterator[_Step]:
    """The filter: load a number, compare it, return what to do."""
    yield _load(_MACHINE)
    yield _Step(_EQUAL, 1, 0, calls.machine)
    yield _return(_KILL)  # a program of another machine: its calls have other numbers
    yield _load(_NUMBER)
    yield from _if(_AT_LEAST, _OTHER_TABLE, _deny())
    for number in calls.denied:
        yield from _if(_EQUAL, number, _deny())
    yield from _if(_EQUAL, calls.set_limits, *_only_own_limits())
    for number, (process, group) in zip(calls.set_priority, _WHO, strict=True):
        yield from _if(
            _EQUAL,
            number,
            _load(_ARGUMENTS),
            _Step(_EQUAL, 2, 0, process),
            _Step(_EQUAL, 1, 0, group),
            _deny(),
            *_only_not_older(1),
        )
    for number in calls.act_on:
        yield from _if(_EQUAL, number, *_only_not_older(0))
    yield _return(_ALLOW)


def _only_own_limits() -> Iterator[_Step]:
    """Limits can be read, and set for the process itself, by its id or by 0."""
    yield _load(_ARGUMENTS)
    yield from _if(_EQUAL, 0, _return(_ALLOW))
    yield from _if(_EQUAL, _OWN, _return(_ALLOW))
    new_limits = _ARGUMENTS + 2 * _ARGUMENT
    yield _load(new_limits)
    yield _Step(_EQUAL, 0, 3, 0)
    yield _load(new_limits + _HALF)
    yield _Step(_EQUAL, 0, 1, 0)
    yield _return(_ALLOW)
    yield _deny()


def _only_not_older(argument: int) -> Iterator[_Step]:
    """Not a process that is older than the child, as ours are.

    Libraries name their threads by ids, which are not known here. Ids rise with time, and start
    again from the lowest: ids from the child's to the next that was taken before it are newer.
    """
    yield _load(_ARGUMENTS + argument * _ARGUMENT)
    yield from _if(_EQUAL, 0, _return(_ALLOW))
    yield from _if(_AT_LEAST, _OLDER, _deny())
    yield from _if(_AT_LEAST, _OWN, _return(_ALLOW))
    yield _deny()


def _load(place: int) -> _Step:
    return _Step(_LOAD, 0, 0, place)


def _return(action: int) -> _Step:
    return _Step(_RETURN, 0, 0, action)


def _deny() -> _Step:
    return _return(_ERROR | errno.EPERM)


def _if(test: int, value: int, *then: _Step) -> Iterator[_Step]:
    """Steps for a loaded number that passes a test; the last one of them returns."""
    yield _Step(test, 0, len(then), value)
    yield from then
