"""For the tests of the gRPC connectors: servers, and a system that fails on request."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

import msgspec
from tests.connectors.served_processes import REPOSITORY
from tests.optional import missing

from mnemoscope._store.errors import MissingExtra
from mnemoscope._store.spec import Spec
from mnemoscope.runner.pipeline import plan_reader
from mnemoscope.serving.sessions import served_hello
from mnemoscope.serving.with_reader import serve_grpc
from mnemoscope.systems.loader import plan
from mnemoscope.types import Memory, Query

if TYPE_CHECKING:
    from mnemoscope.serving.grpc_server import GrpcServer

try:  # before gRPC itself: it must know that processes are forked here
    import mnemoscope.connectors.grpc  # noqa: F401
except MissingExtra as error:
    missing(str(error))

EXAMPLES = REPOSITORY / "examples" / "adapters"
PROTOS = REPOSITORY / "src" / "mnemoscope" / "connectors" / "grpc" / "protos"
TROUBLED = "tests.connectors.grpc_servers:Troubled"


class Listening(Protocol):
    """A server, in this process or in another one."""

    address: str
    port: int


class Troubled:
    """Does what the question says, and answers by itself."""

    def reset(self, scope: str) -> None:
        self.memories: list[Memory] = []

    def remember(self, memories: Sequence[Memory]) -> dict[str, dict[str, str]]:
        self.memories += memories
        return {"rejected": {m.id: "no text" for m in memories if not m.text}}

    def recall(self, query: Query, k: int) -> list[str]:
        self._act(query.text)
        return [memory.id for memory in self.memories[:k]]

    def answer(self, query: Query) -> str:
        self._act(query.text)
        return msgspec.json.encode((query, self.memories)).decode()

    def stats(self) -> dict[str, int]:
        self.asked = getattr(self, "asked", 0) + 1
        return {"index_bytes": len(self.memories), "asked": self.asked}

    def fork(self) -> Troubled:
        twin = Troubled()
        twin.memories = list(self.memories)
        return twin

    def _act(self, order: str) -> None:
        match order:
            case "sleep":
                time.sleep(60)
            case "die":
                os._exit(7)
            case "fail":
                raise ValueError(f"the index is locked, {os.environ.get('SOME_API_KEY')}")
            case "exit":
                raise SystemExit("enough")


@contextmanager
def here(spec: str, port: int = 0, *, recall_bench_only: bool = False) -> Iterator[GrpcServer]:
    """A server in this process, for tests that do not end it."""
    system = plan(Spec.parse(spec))
    hello = served_hello(system)
    server = serve_grpc(
        system,
        hello,
        host="127.0.0.1",
        port=port,
        reader=None if "answer" in hello.methods else plan_reader(Spec("extractive"), "personas"),
        depth=50,
        recall_bench_only=recall_bench_only,
    )
    try:
        yield server
    finally:
        server.close()


def heard(answer: str) -> tuple[Query, list[Memory]]:
    """What Troubled received, read from its answers."""
    return msgspec.json.decode(answer, type=tuple[Query, list[Memory]])
