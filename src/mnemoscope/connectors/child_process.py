"""Run a child process and exchange lines with it, with deadlines and a log of its stderr.

This module handles bytes and lines and does not interpret them. The child leads its own process
group. The whole group ends with the child, and also when our own process is killed; so do processes
that left the group.
"""

from __future__ import annotations

import io
import os
import re
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope._store.private_files import is_private_run
from mnemoscope.connectors.shown_lines import ShownLines, is_warning, without_numbers
from mnemoscope.isolation.left_behind import (
    adopt_orphans,
    adopted,
    current_hook,
    descendants,
    end_processes_of,
    note_ended,
    note_started,
)
from mnemoscope.isolation.lock import access_hint, locked_start
from mnemoscope.text.display import one_line

_EXIT_SECONDS = 3.0
"""How long a process may take to exit by itself."""
LONGEST_LINE = 64 << 20
"""Bytes; a broken child may never end its line."""
_READ = 1 << 20
# The shell waits for the end of its stdin. That comes when our process ends, for any reason. A
# process that left the group still has the name of the child's folder among its variables, which
# end with NUL each. One grep reads those of all processes: two processes for each take fifty times
# as long.
_GUARD = """read _; kill -s KILL -- "-$0"; test -n "$1" || exit
LC_ALL=C grep -lzxF "TMPDIR=$1/tmp" /proc/[0-9]*/environ | while read -r place; do
  process=${place#/proc/}
  kill -s KILL "${process%/environ}"
done
rm -rf -- "$1"
"""

CHECK_SECONDS = 1.0
"""How often a child that is silent is checked: it may have ended without closing its stdout."""
_LAST_LINES = 5
"""Lines of stderr that an error repeats."""
_SHOWN = 300
"""Characters of a text that an error repeats."""
_MOST_PASSED_ON = 2000
"""Lines of one child's stderr that are passed on."""
_MOST_KNOWN = 1000
"""Lines that are stored for each child."""
_TRACE = re.compile(
    rb'\s+at |\s+File "|Traceback \(most recent call last\)|node:internal/|Node\.js v\d'
    rb"|[\s^~]+$|[\s{}\[\],]+$"
)
"""Lines of a traceback (Python, Node, Java) that do not name the error."""

_shown = ShownLines()


class AdapterDied(SystemLost):
    """The process ended, and everything that it had stored is lost."""


class AdapterLate(SystemLost, TimeoutError):
    """No reply came before the deadline; the process is ended."""


class LineTooLong(Exception):
    """A line is longer than LONGEST_LINE."""


class ChildStderr:
    """Pass the stderr of one child on to ours, and keep its last lines for error messages.

    Lines that another start of the command wrote are not passed on again, in this process or in
    another worker: a server that is started for every scope prints the same greeting each time. A
    warning is passed on once.
    """

    def __init__(self, words: Sequence[str], name: str = "") -> None:
        self._name = name or name_of(words)
        self._words = tuple(words)
        self._own: set[bytes] = set()
        """The lines that this child wrote first."""
        self._repeated: set[bytes] = set()
        """Lines that were shown before, so that a flood of them does not look them up each time."""
        self._last: deque[bytes] = deque(maxlen=_LAST_LINES)
        self._in_trace = False
        self._passed_on = 0

    def add(self, line: bytes) -> None:
        if line.strip():
            if not self._is_stack_frame(line):
                self._last.append(line)
            self.log(line)

    def log(self, line: bytes) -> None:
        """Pass a line on, in one write; in a private run none, since it may repeat a text."""
        if is_private_run():
            if self._passed_on:
                return
            line = b"(the run is private: what it writes is not shown)"
        if line in self._repeated:
            return
        if line not in self._own:
            warns = is_warning(line)
            if not _shown.add(self._words, without_numbers(line) if warns else line):
                if len(self._repeated) < _MOST_KNOWN:
                    self._repeated.add(line)
                return
            if not warns and len(self._own) < _MOST_KNOWN:
                self._own.add(line)
        self._passed_on += 1
        if self._passed_on > _MOST_PASSED_ON:
            return
        if self._passed_on == _MOST_PASSED_ON:
            line = b"(what it writes from here on is left out)"
        text = f"[{self._name}] {shown(line, 2000)}\n".encode("utf-8", "backslashreplace")
        with suppress(OSError):
            os.write(2, text)

    @property
    def last_lines(self) -> str:
        """The last lines without stack frames, as the end of an error message."""
        lines = "" if is_private_run() else " | ".join(map(shown, tuple(self._last)))
        hint = access_hint(lines)
        return f"; its last lines on stderr: {lines[-_SHOWN:]}{hint}" if lines else ""

    def _is_stack_frame(self, line: bytes) -> bool:
        """Whether a line belongs to a stack frame and does not name the error.

        Lines of source, or the fields of Node's errors, follow a frame. `[cause]` is such a field,
        and often the only one that names the error.
        """
        is_indented = line[:1].isspace()
        if _TRACE.match(line):
            self._in_trace = is_indented or line.startswith(b"Traceback")
            return True
        self._in_trace = self._in_trace and is_indented
        return self._in_trace and b"[cause]" not in line


class Child:
    """A running process that reads lines and writes lines."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        scratch: str = "",
        *,
        name: str = "",
        folder: str | None = None,
        writes: Sequence[str] | None = None,
    ) -> None:
        """`scratch` is a folder for this child; it is removed when the child ends.

        Messages call the child by its `name`, or by its command. It runs in `folder`, or in ours.
        With `writes` it may change files only below these paths and in its scratch folder.
        """
        self.name = name or name_of(words)
        self.owner = os.getpid()
        adopt_orphans()
        self._on_left_behind = current_hook()
        try:
            with locked_start(words, environment, scratch, writes) as start:
                self._process = subprocess.Popen(
                    start.words,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    env=start.environment,
                    cwd=folder,
                    bufsize=0,
                    start_new_session=True,
                    # It makes system calls only, so threads of this process do not matter.
                    preexec_fn=start.restrict,  # noqa: PLW1509
                )
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be started: {error.strerror}") from None
        self.scratch = start.scratch
        note_started(self._process.pid, start.scratch)
        self._guard = _guard(self._process.pid, start.scratch)
        assert self._process.stdin and self._process.stdout and self._process.stderr
        self.stdin, self.stdout = self._process.stdin, self._process.stdout
        os.set_blocking(self.stdin.fileno(), False)
        self._outbox = bytearray()
        self._inbox = bytearray()
        self._scanned = 0
        self._reaping = threading.Lock()
        """Held while the process id may become free, so that no signal meets another process."""
        self._had: set[int] = set()
        """The processes below it when it got a signal; they become ours if it ends first."""
        self.stderr = ChildStderr(words, self.name)
        # A thread, so that a child that writes between two calls does not block.
        self._listener = threading.Thread(
            target=_listen, args=(self._process.stderr, self.stderr), daemon=True
        )
        self._listener.start()

    def lines(self, message: bytes, seconds: float) -> Iterator[bytes]:
        """Send the message, and yield the lines that come back until the deadline.

        Writing and reading overlap: a child may write before it has read everything.
        """
        until = time.monotonic() + seconds
        self.queue(message)
        with selectors.DefaultSelector() as watch:
            watch.register(self.stdout, selectors.EVENT_READ)
            watch.register(self.stdin, selectors.EVENT_WRITE)
            while True:
                yield from self.whole_lines()
                left = until - time.monotonic()
                if left <= 0:
                    raise AdapterLate(f"{self.name} gave no reply within {seconds:g} s")
                ready = watch.select(min(left, CHECK_SECONDS))
                if not ready and self.has_exited:
                    # A process that it has started holds its stdout open.
                    raise AdapterDied(self.exit_reason())
                for key, _ in ready:
                    if key.fileobj is self.stdin:
                        if self.write():
                            watch.unregister(self.stdin)
                    elif not self.read():
                        raise AdapterDied(self.exit_reason())

    def queue(self, message: bytes) -> None:
        self._outbox += message

    def write(self) -> bool:
        """Write as much of the queue as the pipe takes now; return whether the queue is empty."""
        try:
            del self._outbox[: os.write(self.stdin.fileno(), self._outbox[:_READ])]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # the child has stopped reading, but may still have written
            self._outbox.clear()
        return not self._outbox

    def read(self) -> bool:
        """Read what is available; return False at the end of stdout."""
        data = os.read(self.stdout.fileno(), _READ)
        self._inbox += data
        return bool(data)

    def whole_lines(self) -> Iterator[bytes]:
        """Yield the complete lines that were read."""
        while (end := self._inbox.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._inbox[:end])
            del self._inbox[: end + 1]
            self._scanned = 0
            yield line
        self._scanned = len(self._inbox)
        if self._scanned > LONGEST_LINE:
            raise LineTooLong(f"{self.name} wrote a line of more than {LONGEST_LINE >> 20} MiB")

    @property
    def rest(self) -> bytes:
        """The part of a line that was read before its end."""
        return bytes(self._inbox)

    @property
    def has_exited(self) -> bool:
        return _exits(self._process.pid, 0.0)

    def exit_reason(self) -> str:
        """Why the stdout of the child has ended; the process is ended, too."""
        ended = self.ending() or "closed its stdout, where it must write its replies"
        if self._inbox:
            ended += f" in the middle of the line {shown(self.rest)!r}"
        return f"{self.name} {ended}{self.stderr.last_lines}"

    def ending(self) -> str:
        """End a process whose stdout has ended; return how it exited if it exited by itself."""
        exited = _exits(self._process.pid, _EXIT_SECONDS)
        self.end()
        code = self._process.returncode
        if not exited:
            return ""
        return f"died of {signal_name(-code)}" if code < 0 else f"ended with exit code {code}"

    def send_signal(self, number: int) -> None:
        """Send a signal to the whole process group, unless the process was ended here."""
        with self._reaping:
            if os.getpid() == self.owner and self._process.returncode is None:
                self._had = descendants(self._process.pid)
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(self._process.pid, number)

    def close(self) -> None:
        """Close its stdin, give it time to exit by itself, then end it."""
        if os.getpid() == self.owner and self._process.returncode is None:
            self.stdin.close()
            _exits(self._process.pid, _EXIT_SECONDS)
        self.end()

    def end(self) -> None:
        """Kill the whole process group. In a process that was forked from ours, do nothing."""
        if os.getpid() != self.owner or self._process.returncode is not None:
            return
        below = descendants(self._process.pid) | (adopted(self._had) if self._had else set())
        with suppress(ProcessLookupError, PermissionError):
            # Before wait(): until then the system cannot reuse its process id.
            os.killpg(self._process.pid, signal.SIGKILL)
        left = end_processes_of(self._process.pid, below, self.scratch)
        with self._reaping:
            self._process.wait()
        note_ended(self._process.pid)
        for name in left:
            self._on_left_behind(name)
        for pipe in (self.stdin, self.stdout):
            pipe.close()
        self._listener.join(_EXIT_SECONDS)
        if self._guard is not None:
            self._guard.kill()
            self._guard.communicate()
        if self.scratch:
            shutil.rmtree(self.scratch, ignore_errors=True)


def split_command(command: str, example: str) -> list[str]:
    """Split a command as a shell would, and check that its program exists."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be read: {error}") from None
    if not words:
        raise UsageError(f"the command is missing; write for example {example}")
    if shutil.which(words[0]) is None:
        raise UsageError(_cannot_start(words[0]))
    return words


def _cannot_start(program: str) -> str:
    """Say why a program cannot be started, and what to do."""
    if Path(program).is_file() and os.access(program, os.X_OK):
        return f"{program!r} is in this folder, but not on the PATH; write ./{program}"
    if Path(program).is_file():
        return (
            f"{program!r} exists, but is not executable; name the program that runs it, as in "
            f"`node {program}`, or give it a first line such as #!/usr/bin/env node, and "
            f"chmod +x {program}"
        )
    if "/" in program:
        return f"the program {program!r} does not exist; check the path, relative to this folder"
    return f"the program {program!r} is not on the PATH; install it, or give its path"


def file_hashes(words: Sequence[str]) -> dict[str, str]:
    """Hash the files that a command names, so that an edited adapter counts as another system."""
    named = dict.fromkeys(part for word in words for part in (word, word.partition("=")[2]))
    return {name: sha256_file(Path(name)) for name in named if name and Path(name).is_file()}


def name_of(words: Sequence[str]) -> str:
    """Shorten a command for a message: of each path only the last part."""
    short = (word if word.endswith("/") else word.rpartition("/")[2] for word in words)
    return shown(" ".join(short).encode("utf-8", "backslashreplace"), 80)


def shown(line: bytes, most: int = _SHOWN) -> str:
    """Shorten a line for a message, without control characters that act on a terminal."""
    text = one_line(line.decode("utf-8", "backslashreplace")).strip()
    return text if len(text) <= most else text[: most - 1] + "…"


def signal_name(number: int) -> str:
    """Return the signal's name; real-time signals have only a number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def _listen(stderr: IO[bytes], kept: ChildStderr) -> None:
    # The pipe itself has no buffer: its `readline` would read byte by byte.
    with io.BufferedReader(cast(io.RawIOBase, stderr)) as lines:
        while line := lines.readline(_READ):
            kept.add(line)


def _guard(group: int, scratch: str) -> subprocess.Popen[bytes] | None:
    """Start a shell that kills the group and removes its folder when our process ends."""
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, str(group), scratch],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    except OSError:
        return None


def _exits(pid: int, seconds: float) -> bool:
    """Whether the process exits within that time; it is not reaped, so it keeps its id."""
    until = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True
