"""Servers for the tests of the gRPC doors: real processes, and a system that makes trouble."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import msgspec
from tests.optional import missing

from mnemoscope.core.errors import MissingExtra
from mnemoscope.core.nouns import Memory, Query

try:  # before gRPC itself: it is told that processes are forked here
    import mnemoscope.systems.grpc  # noqa: F401
except MissingExtra as error:
    missing(str(error))

REPOSITORY = Path(__file__).resolve().parents[2]
EXAMPLES = REPOSITORY / "examples" / "adapters"
PROTOS = REPOSITORY / "src" / "mnemoscope" / "systems" / "grpc" / "protos"
TROUBLED = "tests.systems.grpc_servers:Troubled"


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
                time.sleep(3)
            case "die":
                os._exit(7)
            case "fail":
                raise ValueError(f"the index is locked, {os.environ.get('SOME_API_KEY')}")
            case "exit":
                raise SystemExit("enough")


class Served:
    """A server in a process of its own."""

    def __init__(self, words: Sequence[object], environment: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(word) for word in words],
            cwd=REPOSITORY,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
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
        """Let it end by itself; its exit code."""
        self.process.terminate()
        code = self.process.wait(timeout=20)
        if self.process.stdout is not None:
            self.process.stdout.close()
        return code


def heard(answer: str) -> tuple[Query, list[Memory]]:
    """What reached Troubled, from what it answers."""
    return msgspec.json.decode(answer, type=tuple[Query, list[Memory]])


@contextmanager
def served(*words: object, **environment: str) -> Iterator[Served]:
    server = Served(words, environment)
    try:
        yield server
    finally:
        server.kill()


def ours(spec: str, *options: object, port: int = 0) -> tuple[object, ...]:
    """The command that serves a system of ours."""
    return sys.executable, "-m", "mnemoscope", "serve", "grpc", spec, "--port", port, *options
