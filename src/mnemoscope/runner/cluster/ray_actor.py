"""The actor of a Ray cluster: starts the process that runs units, and passes messages on.

That process has nothing of Ray in it, so it can fork workers as a local run does.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from multiprocessing import Pipe
from queue import Empty, SimpleQueue

from mnemoscope.runner.cluster.node_messages import GONE, SAID
from mnemoscope.runner.lost_questions import cause_of_death

_MOST_BYTES = 8 << 20
"""Of messages that are sent on together."""
_MOST_SAID = 1 << 20
"""Bytes of stderr that are passed on, as of a local worker."""


class RayActor:
    """One process on a node; Ray calls its methods from several threads."""

    def __init__(self, setup: bytes) -> None:
        self._pipe, theirs = Pipe()
        words = [sys.executable, "-m", "mnemoscope.runner.cluster.node", str(theirs.fileno())]
        self._process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._messages: SimpleQueue[bytes] = SimpleQueue()
        self._writing = threading.Lock()
        self._pipe.send_bytes(setup)
        for reader in (self._read_messages, self._read_stderr):
            threading.Thread(target=reader, daemon=True).start()

    def send(self, *messages: bytes) -> None:
        """Send orders to the process; that it is gone is noticed by who receives."""
        with self._writing:
            for message in messages:
                try:
                    self._pipe.send_bytes(message)
                except OSError:
                    return

    def receive(self, seconds: float) -> list[bytes]:
        """The messages of the process; waits at most so many seconds for the first."""
        found: list[bytes] = []
        try:
            found.append(self._messages.get(timeout=seconds))
            while sum(map(len, found)) < _MOST_BYTES:
                found.append(self._messages.get_nowait())
        except Empty:
            pass
        return found

    def stop(self, seconds: float) -> None:
        """Let the process close its systems and end; kill it if it does not."""
        self.send(b"")
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def _read_messages(self) -> None:
        try:
            while True:
                self._messages.put(self._pipe.recv_bytes())
        except (EOFError, OSError):
            self._process.wait()
            time.sleep(0.1)  # until its last lines are read
            self._messages.put(GONE + cause_of_death(self._process.returncode).encode())

    def _read_stderr(self) -> None:
        assert self._process.stderr is not None
        left = _MOST_SAID
        for line in self._process.stderr:
            if left > 0:
                self._messages.put(SAID + line[:left])
            left -= len(line)
