"""Locks a child process before the system's first instruction: Landlock, bubblewrap, sandbox-exec.

`lock_children` sets the lock of this process's children once; `locked_start` applies it to each
start and proves by a self-test that hidden files and our memory cannot be opened.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Literal

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope.isolation.hidden_paths import contains, readable_files
from mnemoscope.isolation.landlock import (
    Grant,
    Restriction,
    all_but,
    landlock_abi,
    new_ruleset,
    write_ruleset,
)
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.isolation.system_calls import SystemCallFilter, has_filter

Mechanism = Literal["Landlock", "bubblewrap", "sandbox-exec"]
_OURS = ("MNEMOSCOPE_DATA", "MNEMOSCOPE_RUNS")
_DENIED = (
    *(errno.EACCES, errno.EPERM, errno.ENOENT, errno.ESRCH, errno.ENOTDIR, errno.EROFS),
    *(errno.EOPNOTSUPP, errno.EISDIR),  # of a file system without unnamed files
    *(errno.ELOOP, errno.ETXTBSY),  # of a link, and of a program that runs
)
_MOST_TESTED = 64
"""Hidden paths that each self-test opens; a ledger may list thousands of runs."""
_NO_ACCESS = re.compile(
    r"PermissionError|Permission denied|EACCES|unable to open database file|readonly database"
    r"|Read-only file system"
)
_NOT_FOUND = re.compile(r"No such file or directory|ENOENT|No module named|Cannot find module")
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx", "pts", "shm")
"""Devices that a child may write to although it may change no files."""
_PROBE = """
while [ "$1" != -- ]; do
  if { true <"$1"; } 2>/dev/null; then echo "open $1"; exit 1; fi
  shift
done
shift; for path; do if [ -w "$path" ]; then echo "write into $path"; exit 1; fi; done
"""


class Lock(msgspec.Struct, frozen=True):
    """What the children of a run cannot read, and what enforces it."""

    mechanism: Mechanism
    hidden: tuple[Path, ...]
    """Real paths; all of their contents."""
    kept: tuple[Path, ...] = ()
    """Exceptions inside hidden folders."""
    read_only: tuple[Path, ...] = ()
    """Our own code, and all that our next process runs: a system that changed it would run unlocked
    in the next run."""
    sealed: tuple[Path, ...] = ()
    """Folders in which nothing new can be made, because our next process imports from them."""
    guarded: tuple[int, ...] = ()
    """Processes whose memory contains labels."""
    environment: dict[str, str] = {}
    """Variables that every locked child gets, such as the place of the decoys."""

    @property
    def name(self) -> str:
        """The mechanism with its version, as reports show it."""
        if self.mechanism != "Landlock":
            return self.mechanism
        return f"Landlock ABI {landlock_abi()}" + (" and seccomp" if has_filter() else "")


class LockedCommand(msgspec.Struct):
    """How to start a child."""

    words: Sequence[str]
    environment: Mapping[str, str] | None
    scratch: str
    restrict: Callable[[], None] | None = None


class _Children:
    """The lock of this process's children, and what to call at each start."""

    lock: Lock | None = None
    on_start: Callable[[bool], None] = staticmethod(lambda passed: None)
    grants: Sequence[Grant] = ()
    """What Landlock allows, listed once: later files beside hidden ones are not allowed."""
    guarded: bool = False
    """Whether a child was started that may write to a few places only."""
    has_scratch_home: bool = False
    """Whether such a child had a home of its own; one that is only asked has the user's."""


_children = _Children()


def lock_children(
    lock: Lock | None, on_start: Callable[[bool], None] = lambda passed: None
) -> None:
    """Lock all children that this process starts from now on.

    `on_start` is called for each start with the result of its self-test.
    """
    before, _children.lock, _children.on_start = _children.lock, lock, on_start
    same = lock and before and _rules(lock) == _rules(before)
    if not same:
        _children.grants = ()


def _rules(lock: Lock) -> Sequence[tuple[Path, ...]]:
    return lock.hidden, lock.kept, lock.read_only, lock.sealed


@cache
def best_mechanism() -> Mechanism | None:
    """The best lock that this machine has."""
    if landlock_abi() > 0:
        return "Landlock"
    if (bwrap := shutil.which("bwrap")) and _works([bwrap, "--bind", "/", "/", *_BWRAP, "true"]):
        return "bubblewrap"
    if sys.platform == "darwin" and shutil.which("sandbox-exec"):
        return "sandbox-exec"
    return None


@contextmanager
def locked_start(
    words: Sequence[str],
    environment: Mapping[str, str] | None,
    scratch: str,
    writes: Sequence[str] | None = None,
) -> Iterator[LockedCommand]:
    """Yield how to start a command; the block starts it. Without a lock, as it is.

    With `writes` the child changes files below these paths and its scratch folder only, with or
    without a lock, as far as the machine has a mechanism for it.
    """
    lock = _children.lock
    variables = os.environ if environment is None else environment
    own = {name: value for name, value in variables.items() if name not in _OURS}
    allowed = None if writes is None else _allowed(writes, scratch)
    if allowed is not None:
        _children.guarded = True
        _children.has_scratch_home |= own.get("HOME") != os.environ.get("HOME")
    if lock is None:
        with _guarded(LockedCommand(words, own, scratch), allowed) as started:
            yield started
        return
    _refuse_hidden_code(lock, words)
    made = "" if scratch else make_scratch("child")
    scratch = scratch or made
    started = LockedCommand(words, _environment(lock, own, scratch), scratch)
    given = [Path(os.path.realpath(one)) for one in (*lock.environment.values(), scratch)]
    probes = [
        *readable_files(lock.hidden[:_MOST_TESTED], given),
        *(f"/proc/{pid}/mem" for pid in (*lock.guarded, os.getpid())),
    ]
    try:
        if lock.mechanism == "Landlock":
            with _landlocked(lock, started, probes, allowed):
                yield started
        else:
            prefix = _prefix(lock, scratch, allowed)
            _probe(prefix, probes, lock)
            started.words = [*prefix, *words]
            yield started
    except BaseException:
        if made:
            shutil.rmtree(made, ignore_errors=True)
        raise
    _children.on_start(True)


def access_hint(text: str) -> str:
    """What to do about an error that the lock may have caused; empty if it did not."""
    if "--isolation 1" in text or "live=on" in text:
        return ""
    if _children.guarded and _NO_ACCESS.search(text):
        return (
            " (it may write to its scratch folder only, which has its home, its current folder and "
            "$TMPDIR; with live=on it gets your own, and may write anywhere)"
        )
    if _children.has_scratch_home and _NOT_FOUND.search(text):
        return (
            " (its home and its current folder are empty scratch folders: name files by absolute "
            "paths, or add live=on, and it gets your own)"
        )
    if _children.lock is None or not _NO_ACCESS.search(text):
        return ""
    return (
        " (the lock may be the cause: the system may write to $TMPDIR and to folders that exist "
        "already, but make no new files beside hidden ones, nor change what Python imports; "
        "--isolation 1 runs it without the lock)"
    )


def _refuse_hidden_code(lock: Lock, words: Sequence[str]) -> None:
    """A system whose own files are hidden would fail with an error that does not say why."""
    program = shutil.which(words[0]) or ""
    named = [part for word in words[1:] for part in (word, word.partition("=")[2])]
    for place in filter(os.path.exists, [program, *named, os.curdir]):
        around = contains(lock.hidden, Path(place))
        if around is not None and contains((*lock.kept, *lock.read_only), Path(place)) is None:
            raise UsageError(
                f"the system needs {Path(place).absolute()}, which is in {around}: that place is "
                "hidden from systems, because it holds data or runs. Move one of them, or run the "
                "system without the lock, with --isolation 1"
            )


def _environment(lock: Lock, own: dict[str, str], scratch: str) -> dict[str, str]:
    """Places that exist before the lock, since nothing new can be made beside hidden paths."""
    temporary, cached = Path(scratch, "tmp"), Path(scratch, "cache")
    for place in (temporary, cached):
        place.mkdir(exist_ok=True)
    models = next((path for path in lock.read_only if path.name == "models"), None)
    if models is not None:  # a model that is not there yet is made for this child alone
        (cached / "models").mkdir(exist_ok=True)
        for path in models.iterdir():
            with suppress(FileExistsError):
                (cached / "models" / path.name).symlink_to(path)
    return {
        **own,
        **lock.environment,
        "TMPDIR": str(temporary),
        "MNEMOSCOPE_CACHE": str(cached),
    }


def _allowed(writes: Sequence[str], scratch: str) -> list[str]:
    """The real paths that a child may change."""
    devices = [f"/dev/{name}" for name in _DEVICES]
    return [os.path.realpath(path) for path in (*writes, scratch) if path] + devices


@contextmanager
def _guarded(started: LockedCommand, allowed: Sequence[str] | None) -> Iterator[LockedCommand]:
    """Without a lock: only what the child may change is limited."""
    mechanism = None if allowed is None else best_mechanism()
    if allowed is not None and mechanism == "Landlock":
        with _applied([write_ruleset(allowed)], started, [], _others(allowed)):
            yield started
        return
    if allowed is not None and mechanism is not None:
        started.words = [*_write_prefix(mechanism, allowed), *started.words]
    yield started


def _others(allowed: Sequence[str]) -> list[tuple[str, int]]:
    """Folders that a child with limited writes must fail to write into, and how to try."""
    around = [Path(path) for path in allowed]
    folders = {os.path.realpath(path) for path in (Path.home(), os.curdir)}
    return [
        (folder, os.O_TMPFILE | os.O_WRONLY)
        for folder in sorted(folders)
        if os.access(folder, os.W_OK) and contains(around, Path(folder)) is None
    ]


def _write_prefix(mechanism: Mechanism, allowed: Sequence[str]) -> list[str]:
    if mechanism == "bubblewrap":
        words = ["bwrap", "--ro-bind", "/", "/", *_BWRAP]
        return [*words, *_bound(allowed), "--"]
    return ["sandbox-exec", "-p", f"(version 1)(allow default){_write_rules(allowed)}"]


def _bound(paths: Sequence[str]) -> list[str]:
    own = [path for path in paths if not path.startswith("/dev/") and Path(path).exists()]
    return [word for path in own for word in ("--bind", path, path)]


def _write_rules(allowed: Sequence[str]) -> str:
    below = "".join(f"(subpath {_quoted(Path(path))})" for path in allowed)
    return f"(deny file-write*)(allow file-write* {below})"


@contextmanager
def _landlocked(
    lock: Lock, started: LockedCommand, probes: Sequence[str], allowed: Sequence[str] | None
) -> Iterator[None]:
    if not _children.grants:
        _children.grants = all_but(*_rules(lock))
    rulesets = [new_ruleset(_children.grants, os.path.realpath(started.scratch))]
    unchanged = _writable(lock)
    if allowed is not None:
        rulesets.append(write_ruleset(allowed))
        unchanged += _others(allowed)
    filters = [SystemCallFilter()] if has_filter() else []
    with _applied(rulesets, started, probes, unchanged, filters, lock):
        yield


@contextmanager
def _applied(
    rulesets: Sequence[int],
    started: LockedCommand,
    probes: Sequence[str],
    unchanged: Sequence[tuple[str, int]],
    filters: Sequence[Callable[[], None]] = (),
    lock: Lock | None = None,
) -> Iterator[None]:
    """Lock and test between fork and exec; the reason of a failure comes back through a pipe."""
    restrictions: list[Callable[[], None]] = [*map(Restriction, rulesets), *filters]
    reading, writing = os.pipe()

    def restrict() -> None:
        try:
            for restriction in restrictions:
                restriction()
            for path in probes:
                if _opens(path, os.O_RDONLY):
                    raise PermissionError(f"it could open {path}")
            for path, how in unchanged:
                if _opens(path, how):
                    raise PermissionError(f"it could write into {path}")
        except BaseException as error:
            os.write(writing, str(error).encode("utf-8", "backslashreplace")[:4000])
            raise

    started.restrict = restrict
    try:
        yield
    except subprocess.SubprocessError:
        os.set_blocking(reading, False)
        with suppress(BlockingIOError):
            raise _failed(lock, os.read(reading, 4000).decode("utf-8", "replace")) from None
        raise
    finally:
        for descriptor in (reading, writing, *rulesets):
            os.close(descriptor)


def _writable(lock: Lock) -> list[tuple[str, int]]:
    """What we can change and the child must not, and how to try; an unnamed file leaves nothing."""
    found = [path for path in (*lock.sealed, *lock.read_only) if os.access(path, os.W_OK)]
    return [
        (str(path), os.O_TMPFILE | os.O_WRONLY if path.is_dir() else os.O_WRONLY | os.O_NOFOLLOW)
        for path in found[:_MOST_TESTED]
    ]


def _opens(path: str, how: int) -> bool:
    try:
        os.close(os.open(path, how | os.O_NONBLOCK | os.O_CLOEXEC, 0o600))
    except OSError as error:
        if error.errno in _DENIED:
            return False
        raise
    return True


def _failed(lock: Lock | None, reason: str) -> UsageError:
    if lock is None:
        return UsageError(
            "the guard that keeps the system from writing outside of its scratch folder (Landlock) "
            f"failed its self-test, so it was not started: {reason}. Report this, or start the "
            "system with your own home, live=on"
        )
    _children.on_start(False)
    return UsageError(
        f"the lock of the system ({lock.name}) failed its self-test, so the system was not "
        f"started: {reason}. Report this, or run without the lock: --isolation 1"
    )


_BWRAP = [
    *("--dev", "/dev", "--proc", "/proc", "--unshare-pid", "--unshare-ipc"),
    *("--cap-drop", "ALL", "--die-with-parent"),
]


def _prefix(lock: Lock, scratch: str, allowed: Sequence[str] | None = None) -> list[str]:
    """The command in front of the system's own."""
    if lock.mechanism == "bubblewrap":
        words = ["bwrap", "--bind", "/", "/", *_sealed_by_mounts(lock), *_BWRAP]
        if allowed is not None:
            words = ["bwrap", "--ro-bind", "/", "/", *_BWRAP, *_bound(allowed)]
        for path in lock.hidden:
            if path.is_dir():
                words += ["--tmpfs", str(path)]
            elif path.exists():
                words += ["--ro-bind", "/dev/null", str(path)]
        for path in (*lock.kept, Path(scratch)):
            if os.access(path, os.F_OK):
                words += ["--bind", str(path), str(path)]
        for path in lock.read_only:
            if os.access(path, os.F_OK):
                words += ["--ro-bind", str(path), str(path)]
        return [*words, "--"]
    rules = ["(version 1)(allow default)"]
    rules += [f"(deny file-read* file-write* (subpath {_quoted(path)}))" for path in lock.hidden]
    rules += [f"(deny file-write* (subpath {_quoted(path)}))" for path in lock.read_only]
    rules += [
        f"(deny file-write-create file-write-unlink (regex #{_quoted(Path(_directly_in(path)))}))"
        for path in lock.sealed
    ]
    kept = (*lock.kept, Path(os.path.realpath(scratch)))
    rules += [_write_rules(allowed)] if allowed is not None else []
    rules += [f"(allow file-read* file-write* (subpath {_quoted(path)}))" for path in kept]
    return ["sandbox-exec", "-p", "".join(rules)]


def _sealed_by_mounts(lock: Lock) -> Iterator[str]:
    """Mount each sealed folder read-only, and what it contains as it was.

    A mount needs a path that exists. So the folder in which a missing one would be made is sealed.
    """
    sealed = set(lock.sealed)
    for path in lock.read_only:
        if not os.access(path, os.F_OK):
            above = next(parent for parent in path.parents if os.access(parent, os.F_OK))
            sealed |= {above} if os.access(above, os.W_OK) else set()
    for folder in sorted(sealed):  # a folder comes before those that it contains
        yield from ("--ro-bind", str(folder), str(folder))
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            if not entry.is_symlink() and entry.path not in ("/proc", "/dev"):
                yield from ("--bind-try", entry.path, entry.path)


def _directly_in(folder: Path) -> str:
    return f"^{re.escape(str(folder))}/[^/]+$"


def _quoted(path: Path) -> str:
    escaped = str(path).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _probe(prefix: Sequence[str], probes: Sequence[str], lock: Lock) -> None:
    written = [path for path, _ in _writable(lock)]
    command = [*prefix, "/bin/sh", "-c", _PROBE, "sh", *probes, "--", *written]
    try:
        found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.SubprocessError) as error:
        raise _failed(lock, str(error)) from None
    if found.returncode:
        opened = f"it could {found.stdout.strip()}" if found.stdout.strip() else ""
        raise _failed(lock, opened or found.stderr.strip()[-300:])


def _works(command: Sequence[str]) -> bool:
    try:
        return not subprocess.run(command, capture_output=True, timeout=20, check=False).returncode
    except (OSError, subprocess.SubprocessError):
        return False
