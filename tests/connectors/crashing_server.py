"""A server whose system crashes in the middle of a run, and that is then restarted."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.connectors.served_processes import Served, ours

from mnemoscope.systems.builtin.bm25 import Bm25
from mnemoscope.types import Hit, Query

DIES_AT = 7
"""The number of the recall, counted over all starts of the server."""


SPEC = f"{__name__}:CrashingBm25"


class CrashingBm25(Bm25):
    """Ranks as bm25 does, and exits once."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        calls = Path(os.environ["CRASHING_CALLS"])
        # Where this write ended: the size may have grown by another worker's since.
        with calls.open("ab", buffering=0) as file:
            file.write(b"x")
            if file.tell() == DIES_AT:
                os._exit(9)
        return super().recall(query, k)

    def close(self) -> None:
        with Path(os.environ["CRASHING_CALLS"] + ".closed").open("a") as file:
            file.write("x")


@contextmanager
def restarted(connector: str, calls: Path) -> Iterator[tuple[str, list[int]]]:
    """The address of a server that is restarted when it exits, and its exit codes."""
    server = Served(ours(connector, SPEC), {"CRASHING_CALLS": str(calls)})
    address, port, servers, is_over = server.address, server.port, [server], threading.Event()
    ends: list[int] = []

    def restart() -> None:
        while True:
            end = servers[-1].process.wait()
            if is_over.is_set():
                return
            ends.append(end)
            servers.append(Served(ours(connector, SPEC, port=port), {"CRASHING_CALLS": str(calls)}))

    restarter = threading.Thread(target=restart)
    restarter.start()
    try:
        yield address, ends
    finally:
        is_over.set()
        while restarter.is_alive():  # it may be starting another server
            servers[-1].process.kill()
            restarter.join(0.1)
        for server in servers:
            server.kill()
