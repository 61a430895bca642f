"""A child process and the lines exchanged with it: deadlines, and a certain end.

It knows bytes and lines, nothing of what they say. The child leads a process group of its own,
and all of that group ends with it, also where our own process is killed.
"""

from __future__ import annotations

import os
import selectors
import shlex
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from mnemoscope._store.errors import SystemLost, UsageError
from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.connectors.child_stderr import Talk, name_of, shown

_FAREWELL = 3.0
"""Seconds that a process gets to leave by itself."""
_LONGEST = 64 << 20
"""Bytes of a line; nobody recalls that much, and somebody may never end it."""
_READ = 1 << 20
# The shell waits for the end of its stdin, which comes when our process is gone, however it went.
_GUARD = 'read _; kill -s KILL -- "-$0"; test -z "$1" || rm -rf -- "$1"'


class AdapterDied(SystemLost):
    """The process is gone, and with it all that it remembered."""


class AdapterLate(SystemLost, TimeoutError):
    """No reply came in time, and nobody waits for it any longer: the process is ended."""


class LineTooLong(Exception):
    """A line that does not end."""


class Child:
    """A running process; lines go in and come out."""

    def __init__(
        self,
        words: Sequence[str],
        environment: Mapping[str, str] | None = None,
        scratch: str = "",
    ) -> None:
        """`scratch` is a folder of its own, which is removed with it."""
        self.name = name_of(words)
        self._scratch = scratch
        self.owner = os.getpid()
        try:
            self._process = subprocess.Popen(
                words,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=environment,
                bufsize=0,
                start_new_session=True,
            )
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be started: {error.strerror}") from None
        self._guard = guard(self._process.pid, scratch)
        self._stdin, self._stdout, stderr = _pipes(self._process)
        os.set_blocking(self._stdin.fileno(), False)
        self._outbox = bytearray()
        self._inbox = bytearray()
        self._scanned = 0
        self._talk = Talk(words)
        # A thread, so that a child that talks between two calls does not wait for the second.
        self._listener = threading.Thread(target=_listen, args=(stderr, self._talk), daemon=True)
        self._listener.start()

    def lines(self, message: bytes, seconds: float) -> Iterator[bytes]:
        """Send the message, and yield what comes back line by line until the time is up.

        Both ways at once: a child that writes before it has read everything must not wait for us
        while we wait for it.
        """
        until = time.monotonic() + seconds
        self._outbox += message
        with selectors.DefaultSelector() as watch:
            watch.register(self._stdout, selectors.EVENT_READ)
            watch.register(self._stdin, selectors.EVENT_WRITE)
            while True:
                yield from self._whole_lines()
                left = until - time.monotonic()
                if left <= 0:
                    raise AdapterLate(f"{self.name} gave no reply within {seconds:g} s")
                for key, _ in watch.select(left):
                    if key.fileobj is self._stdin:
                        if self._write():
                            watch.unregister(self._stdin)
                    elif not self._read():
                        raise AdapterDied(self._cause_of_death())

    def _whole_lines(self) -> Iterator[bytes]:
        while (end := self._inbox.find(b"\n", self._scanned)) >= 0:
            line = bytes(self._inbox[:end])
            del self._inbox[: end + 1]
            self._scanned = 0
            yield line
        self._scanned = len(self._inbox)
        if self._scanned > _LONGEST:
            raise LineTooLong(f"{self.name} wrote a line of more than {_LONGEST >> 20} MiB")

    def _write(self) -> bool:
        """Write what can be written; whether nothing is left to write."""
        try:
            del self._outbox[: os.write(self._stdin.fileno(), self._outbox[:_READ])]
        except BlockingIOError:
            pass
        except BrokenPipeError:  # it reads no more, and may still have something to say
            self._outbox.clear()
        return not self._outbox

    def _read(self) -> bool:
        """Read what is there; False at the end."""
        said = os.read(self._stdout.fileno(), _READ)
        self._inbox += said
        return bool(said)

    def _cause_of_death(self) -> str:
        left = _leaves(self._process.pid, _FAREWELL)
        half = bytes(self._inbox)
        self.end()
        code = self._process.returncode
        if not left:
            ended = "closed its stdout, which is where replies are written"
        elif code < 0:
            ended = f"died of {signal_name(-code)}"
        else:
            ended = f"ended with exit code {code}"
        if half:
            ended += f" in the middle of the line {shown(half)!r}"
        return f"{self.name} {ended}{self.last_words}"

    @property
    def last_words(self) -> str:
        return self._talk.last_words

    def log(self, line: bytes) -> None:
        """Pass on what it wrote to stdout and is no reply."""
        self._talk.log(line)

    def leave(self) -> None:
        """Let it go by itself: the end of its stdin is the sign."""
        if os.getpid() == self.owner and self._process.returncode is None:
            self._stdin.close()
            _leaves(self._process.pid, _FAREWELL)
        self.end()

    def end(self) -> None:
        """End all of its process group. A process that was forked from ours has no say in it."""
        if os.getpid() != self.owner or self._process.returncode is not None:
            return
        with suppress(ProcessLookupError, PermissionError):
            # Before it is waited for: as long as it is not, nobody else can get its number.
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        for pipe in (self._stdin, self._stdout):
            pipe.close()
        self._listener.join(_FAREWELL)
        if self._guard is not None:
            self._guard.kill()
            self._guard.wait()
            if self._guard.stdin is not None:
                self._guard.stdin.close()
        if self._scratch:
            shutil.rmtree(self._scratch, ignore_errors=True)


def split_command(command: str, example: str) -> list[str]:
    """The words of a command as a shell would split them, the first a program that is there."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise UsageError(f"the command {command!r} cannot be read: {error}") from None
    if not words:
        raise UsageError(f"a command is missing; write for example {example}")
    if shutil.which(words[0]) is None:
        raise UsageError(_why_not(words[0]))
    return words


def _why_not(program: str) -> str:
    """Why it cannot be started, and what to do."""
    if Path(program).is_file() and os.access(program, os.X_OK):
        return f"{program!r} is here, but not on the PATH; write ./{program}"
    if Path(program).is_file():
        return (
            f"{program!r} is there, but may not be executed; name what runs it, as in "
            f"`node {program}`, or give it a first line such as #!/usr/bin/env node, and "
            f"chmod +x {program}"
        )
    if "/" in program:
        return f"there is no program {program!r}; is the path right, seen from this folder?"
    return f"there is no program {program!r} on the PATH; install it, or give its path"


def file_hashes(words: Sequence[str]) -> dict[str, str]:
    """The files that a command names, so that an edited adapter is another system."""
    named = dict.fromkeys(part for word in words for part in (word, word.partition("=")[2]))
    return {name: sha256_file(Path(name)) for name in named if name and Path(name).is_file()}


def _listen(stderr: IO[bytes], talk: Talk) -> None:
    with stderr:
        while line := stderr.readline(_READ):
            talk.hear(line)


def guard(group: int, scratch: str = "") -> subprocess.Popen[bytes] | None:
    """Ends a process group and removes its folder when our process is gone, however it went."""
    nowhere = subprocess.DEVNULL
    try:
        return subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, str(group), scratch],
            stdin=subprocess.PIPE,
            stdout=nowhere,
            stderr=nowhere,
            start_new_session=True,
        )
    except OSError:
        return None


def _pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes], IO[bytes]]:
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    return process.stdin, process.stdout, process.stderr


def _leaves(pid: int, seconds: float) -> bool:
    """Whether the process ends within that time; it is not waited for, so its number stays its."""
    until = time.monotonic() + seconds
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is None:
        if time.monotonic() > until:
            return False
        time.sleep(0.005)
    return True


def signal_name(number: int) -> str:
    """Its name; not all that can end a process have one."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
