"""Running servers of mcp_servers.py, and the memories that the tests of the MCP connector use."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.waiting import eventually

from mnemoscope.types import Memory, Query

SERVERS = Path(__file__).parent / "mcp_servers.py"
REX = Memory("Conv-1/D1:3, é", "Rex is the dog of Ann")
PIANO = Memory("m2", "Ann bought a piano in spring")
BOAT = Memory("m3", "A boat for sale")
MEMORIES = [REX, PIANO, BOAT]
WHO = Query("Who is the dog of Ann called Rex")


class Served:
    """A server over streamable HTTP that can be ended and started again."""

    def __init__(self, kind: str, **environment: str) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self._words = [sys.executable, "-S", str(SERVERS), kind, "--port", str(self._port)]
        if kind != "plain":  # the others need the SDK
            self._words.remove("-S")
        self._environment = {**os.environ, **environment}
        self.url = f"http://127.0.0.1:{self._port}/mcp"
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(
            self._words, env=self._environment, stderr=subprocess.DEVNULL
        )
        assert eventually(self._listens)

    def end(self) -> None:
        self.process.kill()
        self.process.wait()

    @contextmanager
    def started_again_when_it_dies(self) -> Iterator[None]:
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.01):
                if self.process.poll() is not None:
                    self.start()

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield
        finally:
            over.set()
            watcher.join()

    def _listens(self) -> bool:
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", self._port)) == 0


@contextmanager
def served(kind: str, **environment: str) -> Iterator[Served]:
    server = Served(kind, **environment)
    try:
        yield server
    finally:
        server.end()
