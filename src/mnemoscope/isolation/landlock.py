"""Landlock, the lock that Linux gives to every process: rules by path, kept over fork and exec.

Landlock can only allow. To hide some paths, everything else is allowed: each entry beside the way
to a hidden path. `restrict` runs between fork and exec and therefore only makes system calls.
"""

from __future__ import annotations

import ctypes
import os
import stat
import sys
from collections.abc import Callable, Iterable, Iterator, Set
from functools import cache
from pathlib import Path
from typing import NamedTuple

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_NO_NEW_PRIVS, _DROP_CAPABILITY = 38, 24

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_MAKE_CHAR, _MAKE_BLOCK, _REFER, _TRUNCATE = 1 << 6, 1 << 11, 1 << 13, 1 << 14
_ALL_OF_ABI_1 = (1 << 13) - 1
_UNCHANGED = _EXECUTE | _READ_FILE | _READ_DIR
_SCOPE_ABSTRACT_SOCKET, _SCOPE_SIGNAL = 1 << 0, 1 << 1
_ABI_REFER, _ABI_TRUNCATE, _ABI_NET, _ABI_SCOPE = 2, 3, 4, 6
# A raw disk or the kernel's memory contains everything: devices cannot be made, and root loses the
# capabilities that read them: DAC_READ_SEARCH, SYS_MODULE, SYS_RAWIO, SYS_PTRACE, SYS_ADMIN, MKNOD,
# PERFMON (with which root may read /proc/PID/environ in spite of Landlock), BPF,
# CHECKPOINT_RESTORE. Nor can it stop the machine or set its clock: SYS_BOOT, SYS_TIME.
_NEVER_GRANTED = _MAKE_CHAR | _MAKE_BLOCK
_CAPABILITIES = (2, 16, 17, 19, 21, 22, 25, 27, 38, 39, 40)
# Root could name a program in /proc/sys/kernel/core_pattern, which the kernel starts without the
# lock. A rule for each entry of /proc would deny the processes that start later.
_KERNEL_SETTINGS = ("/proc", "/sys")


class _RulesetAttributes(ctypes.Structure):
    _fields_ = [(name, ctypes.c_uint64) for name in ("files", "network", "scope")]


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = [("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32)]


@cache
def _syscall() -> Callable[..., int]:
    call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).syscall
    return call


@cache
def landlock_abi() -> int:
    """The version of Landlock in this kernel; 0 without it."""
    if not sys.platform.startswith("linux"):
        return 0
    return max(0, _syscall()(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION))


def _rights() -> int:
    """Every right that this kernel can deny."""
    rights = _ALL_OF_ABI_1
    rights |= _REFER if landlock_abi() >= _ABI_REFER else 0
    rights |= _TRUNCATE if landlock_abi() >= _ABI_TRUNCATE else 0
    return rights


class Grant(NamedTuple):
    """What is allowed below a path."""

    path: str
    rights: int


def all_but(
    hidden: Iterable[Path],
    kept: Iterable[Path],
    read_only: Iterable[Path] = (),
    sealed: Iterable[Path] = (),
) -> list[Grant]:
    """What to allow so that the contents of `hidden`, except `kept`, are denied.

    Those of `read_only` cannot be changed, also inside of hidden ones; directly in `sealed` nothing
    can be made or removed. Names stay visible: without READ_DIR on `/`, Python would not find a
    module in a folder that contains a hidden path.
    """
    granted = _rights() & ~_NEVER_GRANTED
    unchanged = [str(path) for path in read_only]
    stops = {*map(str, hidden), *unchanged}
    grants = [Grant("/", _READ_DIR)]
    for path in (*beside(stops, {str(path) for path in sealed}), *map(str, kept)):
        grants.append(Grant(path, _UNCHANGED if path in _KERNEL_SETTINGS else granted))
    return [*grants, *(Grant(path, _UNCHANGED) for path in unchanged)]


def new_ruleset(grants: Iterable[Grant], folder: str) -> int:
    """A ruleset with these grants and one more folder; returns its descriptor.

    Each child has its own: a rule cannot be taken back, so a second child would reach the folder
    of the first.
    """
    scope = _SCOPE_ABSTRACT_SOCKET | _SCOPE_SIGNAL if landlock_abi() >= _ABI_SCOPE else 0
    return _ruleset(_rights(), scope, (*grants, Grant(folder, _rights() & ~_NEVER_GRANTED)))


def write_ruleset(paths: Iterable[str]) -> int:
    """A ruleset that denies every change of files except below these paths; reading stays free.

    A second ruleset only takes rights away, so it can be applied after another one.
    """
    changes = _rights() & ~_UNCHANGED
    return _ruleset(changes, 0, [Grant(path, changes & ~_NEVER_GRANTED) for path in paths])


def _ruleset(handled: int, scope: int, grants: Iterable[Grant]) -> int:
    abi = landlock_abi()
    attributes = _RulesetAttributes(handled, 0, scope)
    size = 24 if abi >= _ABI_SCOPE else 16 if abi >= _ABI_NET else 8
    ruleset = _syscall()(_CREATE_RULESET, ctypes.byref(attributes), ctypes.c_size_t(size), 0)
    if ruleset < 0:
        raise OSError(ctypes.get_errno(), "Landlock refuses a ruleset")
    try:
        for grant in grants:
            _allow(ruleset, *grant)
    except BaseException:
        os.close(ruleset)
        raise
    return ruleset


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        beneath = os.open(path, os.O_PATH | os.O_CLOEXEC | os.O_NOFOLLOW)
    except (FileNotFoundError, PermissionError, NotADirectoryError):
        return
    try:
        if not stat.S_ISDIR(os.fstat(beneath).st_mode):
            rights &= _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
        rule = _PathBeneath(rights, beneath)
        if _syscall()(_ADD_RULE, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0) < 0:
            raise OSError(ctypes.get_errno(), "Landlock refuses a rule", path)
    finally:
        os.close(beneath)


def beside(stops: Set[str], sealed: Set[str] = frozenset()) -> Iterator[str]:
    """Every entry beside the way from `/` to a stop, and in a sealed folder."""
    on_the_way = {str(folder) for path in (*stops, *sealed) for folder in Path(path).parents}
    on_the_way |= sealed
    waiting = ["/"]
    while waiting:
        folder = waiting.pop()
        try:
            entries = list(os.scandir(folder))
        except OSError:  # a folder that may be entered but not listed: go down the way only
            below = (path for path in on_the_way if path != "/")
            waiting += [path for path in below if str(Path(path).parent) == folder]
            continue
        for entry in entries:
            # A stop can contain others, and the target of a link has rules of its own.
            if entry.path in stops or entry.is_symlink():
                continue
            if entry.path in on_the_way:
                waiting.append(entry.path)
            else:
                yield entry.path


class Restriction:
    """Locks the calling process. It is built before the fork and called between fork and exec."""

    def __init__(self, ruleset: int) -> None:
        self._ruleset = ruleset
        library = ctypes.CDLL(None, use_errno=True)
        self._syscall, self._prctl = library.syscall, library.prctl
        self._arguments = [ctypes.c_long(_RESTRICT_SELF), ctypes.c_int(ruleset), ctypes.c_uint32(0)]
        self._zero = ctypes.c_ulong(0)
        self._one = ctypes.c_ulong(1)
        self._capabilities = [ctypes.c_ulong(number) for number in _CAPABILITIES]

    def __call__(self) -> None:
        for capability in self._capabilities:  # fails without root, which has none to lose
            self._prctl(_DROP_CAPABILITY, capability, self._zero, self._zero, self._zero)
        if self._prctl(_NO_NEW_PRIVS, self._one, self._zero, self._zero, self._zero):
            raise OSError(ctypes.get_errno(), "no_new_privs cannot be set")
        if self._syscall(*self._arguments):
            raise OSError(ctypes.get_errno(), "Landlock cannot be applied")
