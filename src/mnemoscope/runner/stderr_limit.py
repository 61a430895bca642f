"""Passes on what a third party's class writes to stderr, up to a limit.

A process of its own does so: a system that blocks all threads of its worker, or that writes from C,
must not wait for a thread that would read what it writes.
"""

from __future__ import annotations

import os
import signal
import time

from mnemoscope._store.private_files import is_private_run

_MOST = 1 << 20
"""Bytes that are passed on of one worker."""
_LEFT_OUT = b"\n(what this system writes to stderr from here on is left out)\n"
_PRIVATE = b"(the run is private: what this system writes to stderr is not shown)\n"
_SECONDS = 1.0
"""How long it may take to pass on the rest, when the worker has ended."""


class StderrLimit:
    """The stderr of one worker: `writer` is its file descriptor."""

    def __init__(self) -> None:
        reader, self.writer = os.pipe()
        self._process = os.fork()
        if self._process == 0:
            try:
                os.dup2(reader, 0)
                os.closerange(3, os.sysconf("SC_OPEN_MAX"))
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                _pass_on()
            finally:
                os._exit(0)
        os.close(reader)

    def use(self) -> None:
        """In the worker: write to stderr through here from now on."""
        os.dup2(self.writer, 2)
        os.close(self.writer)

    def end(self) -> None:
        """Wait until all is passed on; a process that the system has left may still write."""
        until = time.monotonic() + _SECONDS
        while os.waitpid(self._process, os.WNOHANG) == (0, 0):
            if time.monotonic() > until:
                os.kill(self._process, signal.SIGKILL)
                os.waitpid(self._process, 0)
                return
            time.sleep(0.002)


def _pass_on() -> None:
    left = _MOST
    if is_private_run() and os.read(0, 1):
        os.write(2, _PRIVATE)
        left = 0
    while data := os.read(0, 1 << 16):
        if left > 0:
            os.write(2, data[:left])
            left -= len(data)
            if left <= 0:
                os.write(2, _LEFT_OUT)
