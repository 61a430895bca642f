"""Servers in separate processes, for the tests of the connectors."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class Served:
    """A server in a separate process."""

    def __init__(self, words: Sequence[object], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in words],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        assert self.process.stdout is not None
        self.greeting = self.process.stdout.readline()
        found = re.search(r"127\.0\.0\.1:\d+", self.greeting)
        assert found, f"the server did not start: {self.greeting!r}"
        self.address = found[0]
        self.port = int(self.address.rpartition(":")[2])

    def kill(self) -> None:
        self.process.kill()
        self.end()

    def end(self) -> int:
        """Wait until it exits; return its exit code."""
        self.process.terminate()
        code = self.process.wait(timeout=60)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


@contextmanager
def served(*words: object, **environment: str) -> Iterator[Served]:
    server = Served(words, environment)
    try:
        yield server
    finally:
        server.kill()


def mnemoscope(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command in a separate process: a process that has used gRPC must not fork workers."""
    return subprocess.run(
        [sys.executable, "-m", "mnemoscope", *map(str, words)],
        cwd=REPOSITORY,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def ours(connector: str, spec: str, *options: object, port: int = 0) -> tuple[object, ...]:
    """The command that serves one of our systems."""
    return sys.executable, "-m", "mnemoscope", "serve", connector, spec, "--port", port, *options
