"""The messages between the driver of a run and the process that runs its units on a node."""

from __future__ import annotations

import msgspec

from mnemoscope._store.spec import Spec
from mnemoscope.runner.pipeline import Compat, Lifecycle, Pipeline
from mnemoscope.runner.worker_process import Limits
from mnemoscope.systems.loader import CallLimits, Hosting
from mnemoscope.types import Isolation, Repeat

HALT = b"halt"
"""The order to finish the questions in flight, and to begin nothing new."""

# The first bytes of a node's messages; the others are those of a worker process.
HELLO, LINES, STATE, SAID, GONE = b"v", b"t", b"p", b"e", b"g"


class NodePlan(msgspec.Struct, frozen=True):
    """How a node builds a system."""

    spec: Spec
    hosting: Hosting
    target: str = ""
    """The import path of a class that was given from Python."""
    repeat: Repeat | None = None


class NodeSetup(msgspec.Struct, frozen=True):
    """Everything that the process on a node must know before its first unit."""

    plans: tuple[NodePlan, ...]
    depth: int
    lifecycle: Lifecycle
    system_answers: bool
    compat: Compat
    parallelism: int
    limits: Limits
    benchmark: str
    hidden: tuple[str, ...]
    """The data files of the driver: a node may see them under the same names."""
    out: str
    isolation: int | None
    folder: str
    """The current folder of the driver, for commands that name a file."""
    path: tuple[str, ...]
    """Where the driver imports from."""

    def pipeline(self) -> Pipeline:
        """Only what a system does; the reader and the judges stay with the driver."""
        return Pipeline(
            self.depth,
            self.lifecycle,
            system_answers=self.system_answers,
            compat=self.compat,
            parallelism=self.parallelism,
            restarts=self.limits.restarts,
            limits=CallLimits(self.limits.recall, self.limits.remember),
        )


class NodeHello(msgspec.Struct, frozen=True):
    """The first message of a node."""

    node: str
    versions: dict[str, str]
    """Of everything that can change a number."""


class NodeLines(msgspec.Struct, frozen=True, array_like=True):
    """New complete lines of the unit's spool."""

    trials: bytes
    timings: bytes


class NodeState(msgspec.Struct, frozen=True, array_like=True):
    """What the worker process on a node is doing."""

    ingested: int = 0
    ingesting: int = 0
    restarts: int = 0
    has_called: bool = False
    isolation: tuple[Isolation, ...] = ()
