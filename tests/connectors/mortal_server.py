"""A server whose system dies in the middle of a run, and whoever starts it again."""

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
"""The recall, counted over all lives of the server."""


SPEC = f"{__name__}:Mortal"


class Mortal(Bm25):
    """Ranks as bm25 does."""

    def recall(self, query: Query, k: int) -> list[Hit]:
        calls = Path(os.environ["MORTAL_CALLS"])
        # Where this write ended: the size may have grown by another worker's since.
        with calls.open("ab", buffering=0) as file:
            file.write(b"x")
            if file.tell() == DIES_AT:
                os._exit(9)
        return super().recall(query, k)

    def close(self) -> None:
        with Path(os.environ["MORTAL_CALLS"] + ".closed").open("a") as file:
            file.write("x")


@contextmanager
def revived(connector: str, calls: Path) -> Iterator[tuple[str, list[int]]]:
    """The address of a server that is started anew when it has died, and how it ended each time."""
    server = Served(ours(connector, SPEC), {"MORTAL_CALLS": str(calls)})
    address, port, lives, is_over = server.address, server.port, [server], threading.Event()
    ends: list[int] = []

    def revive() -> None:
        while True:
            end = lives[-1].process.wait()
            if is_over.is_set():
                return
            ends.append(end)
            lives.append(Served(ours(connector, SPEC, port=port), {"MORTAL_CALLS": str(calls)}))

    reviver = threading.Thread(target=revive)
    reviver.start()
    try:
        yield address, ends
    finally:
        is_over.set()
        while reviver.is_alive():  # it may just be starting another one
            lives[-1].process.kill()
            reviver.join(0.1)
        for life in lives:
            life.kill()
