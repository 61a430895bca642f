"""A worker process as its parent sees it: what it is doing, for how long, and how it is ended."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import send_handle
from multiprocessing.sharedctypes import RawArray, RawValue
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope.runner.heartbeat import (
    ANSWERING,
    CALLS,
    JUDGING,
    REMEMBERING,
    Heartbeat,
    InFlight,
    Signals,
    fork,
)
from mnemoscope.runner.isolation_setup import WorkerIsolation
from mnemoscope.runner.lost_questions import DAMAGED, cause_of_death
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.stderr_limit import StderrLimit
from mnemoscope.runner.work_unit import WorkUnit
from mnemoscope.runner.worker import LOCK, serve
from mnemoscope.systems.loader import Plan

_CLOSE, _CLOSE_CONNECTOR = 5.0, 30.0
"""Seconds that the `close` of a system may take; a connector waits for its server."""
_PATIENCE = 2.0
"""Seconds beyond the limit of a call in which a connector must end it."""
_INGESTION = 0.2
"""The share of a unit's progress that is ingestion."""


class Limits(msgspec.Struct, frozen=True):
    """How long a system may take, in seconds, and how often it may be lost."""

    recall: float = 120.0
    remember: float = 3600.0
    restarts: int = 2
    """How many losses of a scenario's system do not fail a question."""


SHARED = -1
"""The group of the workers that host all systems that are not a third party's class."""


class Overdue(NamedTuple):
    """What a worker has in flight for too long."""

    slot: InFlight | None
    """None for a `close`, which no question waits for, and for a worker that does nothing."""
    limit: float
    call: str
    """The call of the system that takes too long, if it is known."""

    @property
    def cause(self) -> str:
        if self.call:
            return f"{self.call} took longer than {self.limit:g} s"
        return f"no answer within {self.limit:g} s"


class Worker:
    """A process and what it is working on."""

    def __init__(
        self,
        plans: Sequence[Plan],
        pipeline: Pipeline,
        place: int,
        group: int = SHARED,
        describes: Sequence[int] = (),
        others: Sequence[Connection] = (),
        isolation: WorkerIsolation | None = None,
    ) -> None:
        """`group` is the number of the one system that it hosts, or SHARED.

        `others` are the pipes to the other workers, which this one must not use.
        """
        self.unit: WorkUnit | None = None
        self.has_a_node = self.has_started = True
        self.place = place
        self.group = group
        self.describes = describes
        # A reader that asks a model has its own deadlines and waits for its turn.
        reader = pipeline.reader
        self._reader_asks_model = reader is not None and "prompt_sha256" in reader.identity
        slots = list(RawArray(InFlight, pipeline.parallelism))
        self.heartbeat = Heartbeat(slots, RawValue(Signals))
        self.pipe, theirs = fork.Pipe()
        about = (plans, pipeline, place, os.getpid(), describes, isolation)
        arguments = (theirs, self.heartbeat, *about)
        self._stderr = StderrLimit() if group != SHARED else None
        self.process = fork.Process(
            target=_serve, args=(self._stderr, (self.pipe, *others), arguments)
        )
        self.process.start()
        theirs.close()
        if self._stderr is not None:
            os.close(self._stderr.writer)
        self.is_gone = False
        self._active_at = time.monotonic()

    def assign(self, unit: WorkUnit) -> None:
        # A system may change the current folder.
        self.unit = msgspec.structs.replace(unit, folder=str(Path(unit.folder).absolute()))
        self._active_at = time.monotonic()
        shared = self.heartbeat.shared
        shared.restarts, shared.has_called = unit.restarts, False
        shared.ingested = shared.ingesting = 0
        shared.settled = len(unit.settled)
        with suppress(OSError):  # a dead worker is noticed when its messages are read
            self.pipe.send_bytes(msgspec.msgpack.encode(self.unit))

    @property
    def progress(self) -> float:
        """The share of its unit that is done."""
        return share_done(self.unit, self.heartbeat.shared)

    @property
    def signals(self) -> Signals:
        """What it is doing, in shared memory."""
        return self.heartbeat.shared

    @property
    def in_flight(self) -> list[InFlight]:
        return [slot for slot in self.heartbeat.slots if slot.since]

    @property
    def cause(self) -> str:
        """Why its process has ended."""
        return cause_of_death(self.process.exitcode)

    def poll(self, seconds: float = 0.0) -> bool:
        """Whether a message has come; waits at most so many seconds for it."""
        return self.pipe.poll(seconds)

    def receive(self, longest: int | None = None) -> bytes:
        return self.pipe.recv_bytes(longest)

    def hold(self, locks: Sequence[int]) -> None:
        """Let the process hold these locks until it ends."""
        with suppress(OSError):  # a dead worker is noticed when its messages are read
            for lock in locks:
                self.pipe.send_bytes(LOCK)
                send_handle(self.pipe, lock, self.process.pid)

    def halt(self) -> None:
        """Let the worker finish what is in flight, and begin nothing new."""
        self.heartbeat.shared.is_halted = True

    def finish(self) -> None:
        """Nothing: its process closes the unit's spool."""

    @property
    def settled(self) -> int:
        """How many questions of its unit are done."""
        return 0 if self.unit is None else min(self.heartbeat.shared.settled, self.unit.asked)

    def overdue(self, limits: Limits) -> Overdue | None:
        """What exceeds its time limit."""
        shared = self.heartbeat.shared
        closing = _CLOSE if self.group != SHARED else _CLOSE_CONNECTOR
        if shared.seconds_in("close") > closing:
            return Overdue(None, closing, "close")
        starts = [slot.since for slot in self.heartbeat.slots]
        if shared.call or any(starts):
            self._active_at = time.monotonic()
        elif time.monotonic() - self._active_at > limits.remember:
            return Overdue(None, limits.remember, "")
        for slot, since in zip(self.heartbeat.slots, starts, strict=True):
            is_long = slot.position == REMEMBERING or slot.phase == JUDGING
            is_long |= slot.phase == ANSWERING and self._reader_asks_model
            limit = limits.remember if is_long else limits.recall
            # A connector has the same limit, and a call that it ends leaves the worker alive.
            patience = _PATIENCE if self.group == SHARED else 0.0
            is_late = since != 0 and time.monotonic() - since > limit + patience
            # The worker may have ended this, or begun something else, while its slot was read.
            if is_late and slot.since == since:
                return Overdue(
                    slot, limit, CALLS[shared.call] if slot.position == REMEMBERING else ""
                )
        return None

    @property
    def has_ended(self) -> bool:
        """Whether the process has ended; it is not reaped, so that it keeps its id.

        A process that the system started may hold the other end of the pipe, and of what `join`
        waits for.
        """
        assert self.process.pid is not None
        try:
            options = os.WEXITED | os.WNOWAIT | os.WNOHANG
            return os.waitid(os.P_PID, self.process.pid, options) is not None
        except ChildProcessError:
            return True

    def wait(self, seconds: float) -> None:
        """Wait until the process ends, at most so many seconds."""
        until = time.monotonic() + seconds
        while not self.has_ended and time.monotonic() < until:
            time.sleep(0.005)

    def kill(self) -> None:
        """End the process, and those that its system started and left."""
        if self.is_gone:
            return
        self.is_gone = True
        pid = self.process.pid
        assert pid is not None
        self.process.kill()
        if self.group != SHARED:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(pid, signal.SIGKILL)
        self.process.join()
        self.pipe.close()
        if self._stderr is not None:
            self._stderr.end()

    def ask_to_stop(self) -> None:
        """Let the worker close its systems and end."""
        with suppress(OSError):
            self.pipe.send_bytes(b"")


def share_done(unit: WorkUnit | None, signals: Signals) -> float:
    """The share of a unit that is done."""
    if unit is None:
        return 0.0
    memories = len(unit.scenario.memories)
    settled = signals.settled / unit.asked if unit.asked else 0.0
    ingested = signals.memories / memories if memories else 0.0
    return settled + (1 - settled) * _INGESTION * min(ingested, 1.0)


def _serve(
    stderr: StderrLimit | None, pipes: Sequence[Connection], arguments: tuple[Any, ...]
) -> None:
    """Run a worker; one with its own stderr leads a process group that ends with it."""
    for pipe in pipes:
        pipe.close()
    if stderr is None:
        serve(*arguments)
        return
    os.setpgid(0, 0)
    stderr.use()
    try:
        serve(*arguments)
    except BaseException:
        os._exit(DAMAGED)
