"""The scheduler: starts worker processes and watches them from the parent.

It kills a worker that exceeds a time limit, and replaces a worker that dies. The question in flight
is recorded as timeout or error, and a new process continues the unit.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from multiprocessing.connection import wait
from multiprocessing.reduction import send_handle
from multiprocessing.sharedctypes import RawArray, RawValue
from typing import NamedTuple

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.jsonl import Journal
from mnemoscope.connectors.child_process import signal_name
from mnemoscope.runner.heartbeat import (
    ANSWERING,
    JUDGING,
    RECALLING,
    REMEMBERING,
    Heartbeat,
    InFlight,
    Signals,
    fork,
)
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.runner.work_unit import WorkUnit, record_unasked, reread, spool_of
from mnemoscope.runner.worker import (
    BROKEN,
    CHECKPOINT,
    DESCRIBED,
    DONE,
    HALTED,
    LOCK,
    REFUSED,
    Description,
    serve,
)
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Status, Verdict

_TICK = 0.1
"""Seconds between two checks of the heartbeats."""
_FAREWELL = 5.0
"""Seconds in which a process must close its systems, or end after it closed its pipe."""
_GRACE = 20.0
"""Seconds in which questions in flight must end when a run stops."""


class Limits(msgspec.Struct, frozen=True):
    """How long a system may take, in seconds, and how often it may be lost."""

    recall: float = 120.0
    remember: float = 3600.0
    restarts: int = 2
    """How many losses of a scenario's system do not fail a question."""


class Worker:
    """A process and what it is working on."""

    def __init__(
        self, plans: Sequence[Plan], pipeline: Pipeline, place: int, *, describes: bool = False
    ) -> None:
        self.unit: WorkUnit | None = None
        self.place = place
        # A reader that asks a model has its own deadlines and waits for its turn.
        reader = pipeline.reader
        self._reader_asks_model = reader is not None and "prompt_sha256" in reader.identity
        slots = list(RawArray(InFlight, pipeline.parallelism))
        self.heartbeat = Heartbeat(slots, RawValue(Signals))
        self.pipe, theirs = fork.Pipe()
        arguments = (theirs, self.heartbeat, plans, pipeline, place, os.getpid(), describes)
        self.process = fork.Process(target=serve, args=arguments)
        self.process.start()
        theirs.close()

    def assign(self, unit: WorkUnit) -> None:
        self.unit = unit
        with suppress(BrokenPipeError):  # a dead worker is noticed when its messages are read
            self.pipe.send_bytes(msgspec.msgpack.encode(unit))

    def overdue(self, limits: Limits) -> tuple[InFlight, float] | None:
        """The slot that exceeds its time limit, and the limit."""
        for slot in self.heartbeat.slots:
            since = slot.since
            is_long = slot.position == REMEMBERING or slot.phase == JUDGING
            is_long |= slot.phase == ANSWERING and self._reader_asks_model
            limit = limits.remember if is_long else limits.recall
            is_late = since > 0 and time.monotonic() - since > limit
            # The worker may have ended this, or begun something else, while its slot was read.
            if is_late and slot.since == since:
                return slot, limit
        return None

    def wait(self, seconds: float) -> None:
        """Wait until the process ends, at most so many seconds.

        `join(timeout)` would take a process that has closed its files for one that has ended.
        """
        until = time.monotonic() + seconds
        while self.process.exitcode is None and time.monotonic() < until:
            time.sleep(0.005)

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def stop(self) -> None:
        """Let the worker close its systems and end."""
        with suppress(OSError):
            self.pipe.send_bytes(b"")
        self.wait(_FAREWELL)
        self.kill()


class Finished(NamedTuple):
    """An event: the unit is complete."""

    unit: WorkUnit


class CheckpointDone(NamedTuple):
    """An event: all questions of one checkpoint are asked."""

    unit: WorkUnit
    checkpoint: str


Event = Finished | CheckpointDone


class Scheduler(AbstractContextManager["Scheduler"]):
    """Worker processes that run work units in parallel, inside a `with` block.

    The first worker starts at once and builds the systems, to get their identities. The others
    start with the first unit and build a system when they get a unit of it.
    """

    def __init__(
        self, plans: Sequence[Plan], pipeline: Pipeline, size: int, limits: Limits
    ) -> None:
        self._plans = plans
        self._pipeline = pipeline
        self._size = size
        self._limits = limits
        self._is_working = False
        self.workers = [Worker(plans, pipeline, 0, describes=True)]

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None or not self._is_working:
                for worker in self.workers:
                    worker.stop()
            elif issubclass(kind, MnemoscopeError | KeyboardInterrupt):
                self._drain()
        finally:
            for worker in self.workers:
                worker.kill()

    def describe(self) -> list[Plan]:
        """The plans with the identities of the built systems; an error if one cannot be run."""
        [first] = self.workers
        plans = list(self._plans)
        for number, plan in enumerate(plans):
            if plan.is_described:
                continue
            try:
                message = first.pipe.recv_bytes()
            except (EOFError, ConnectionResetError):
                first.wait(_FAREWELL)
                cause = cause_of_death(first.process.exitcode)
                raise UsageError(f"cannot build {plan.spec}: {cause}") from None
            if not message.startswith(DESCRIBED):
                kind = UsageError if message.startswith(REFUSED) else MnemoscopeError
                raise kind(message[1:].decode())
            about = msgspec.json.decode(message[1:], type=Description)
            plans[number] = Plan(
                plan.spec, plan.build, about.identity, about.recalls, about.answers
            )
        return plans

    def work(self, units: Iterator[WorkUnit], locks: Sequence[int]) -> Iterator[Event | None]:
        """Run the units; yields events, and None at each check of the heartbeats.

        `locks` are those of the run directories: each worker holds them until it ends.
        """
        self._is_working = True
        first = self.workers[0]  # was forked before the run directories were locked
        with suppress(BrokenPipeError):  # a dead worker is noticed when its messages are read
            for lock in locks:
                first.pipe.send_bytes(LOCK)
                send_handle(first.pipe, lock, first.process.pid)
        for place in range(1, self._size):
            self.workers.append(Worker(self._plans, self._pipeline, place))
        while True:
            for worker in self.workers:
                if worker.unit is None and (unit := next(units, None)) is not None:
                    worker.assign(unit)
            busy = [worker for worker in self.workers if worker.unit is not None]
            if not busy:
                for worker in self.workers:
                    worker.stop()
                return
            ready = wait([worker.pipe for worker in busy], timeout=_TICK)
            for worker in busy:
                if worker.pipe in ready:
                    yield from self._on_message(worker)
                elif worker.overdue(self._limits) is not None:
                    yield from self._on_overdue(worker)
            yield None

    def _drain(self) -> None:
        """Wait until the questions in flight are recorded: a model may have been paid for them."""
        deadline = time.monotonic() + _GRACE
        busy = [w for w in self.workers if w.unit is not None and not w.pipe.closed]
        for worker in busy:
            worker.heartbeat.shared.is_halted = True
        while busy and (left := deadline - time.monotonic()) > 0:
            ready = wait([worker.pipe for worker in busy], timeout=min(left, _TICK))
            for worker in [worker for worker in busy if worker.pipe in ready]:
                try:
                    message = worker.pipe.recv_bytes()
                except (EOFError, ConnectionResetError):
                    message = HALTED
                if not message.startswith(CHECKPOINT):
                    busy.remove(worker)

    def _on_message(self, worker: Worker) -> Iterator[Event]:
        assert worker.unit is not None
        try:
            message = worker.pipe.recv_bytes()
        except (EOFError, ConnectionResetError):
            worker.wait(_FAREWELL)
            worker.kill()  # it may be alive and have closed the pipe
            yield from self._on_death(worker, cause_of_death(worker.process.exitcode))
            return
        text = message[1:].decode()
        if message.startswith(BROKEN):
            worker.unit = None
            raise MnemoscopeError(text)
        if message.startswith(DONE):
            unit, worker.unit = worker.unit, None
            yield Finished(unit)
        else:
            yield CheckpointDone(worker.unit, text)

    def _on_overdue(self, worker: Worker) -> Iterator[Event]:
        """Kill a worker that exceeds a limit, and record the question that exceeds it."""
        worker.kill()
        # Between the check and the kill it may have finished the question.
        if (late := worker.overdue(self._limits)) is not None:
            slot, limit = late
            self._record_loss(worker, slot, f"no answer within {limit:g} s", timed_out=True)
        yield from self._replace(worker)

    def _on_death(self, worker: Worker, cause: str) -> Iterator[Event]:
        """Record the question that was in flight when a worker died, if there was one."""
        assert worker.unit is not None
        active = [slot for slot in worker.heartbeat.slots if slot.since]
        if len(active) > 1:
            # Any question in flight may be the cause: asked one by one, the cause is found.
            worker.unit = msgspec.structs.replace(worker.unit, careful=True)
        elif active:
            self._record_loss(worker, active[0], cause, timed_out=False)
        elif reread(worker.unit, self._pipeline).recorded == worker.unit.recorded:
            raise MnemoscopeError(f"a worker process died between questions: {cause}")
        yield from self._replace(worker)

    def _replace(self, worker: Worker) -> Iterator[Event]:
        """Give the rest of a lost worker's unit to a new worker."""
        assert worker.unit is not None
        fresh = Worker(self._plans, self._pipeline, worker.place)
        self.workers[self.workers.index(worker)] = fresh
        unit = reread(worker.unit, self._pipeline)
        if unit.is_complete:
            yield Finished(unit)
        else:
            fresh.assign(unit)

    def _record_loss(self, worker: Worker, slot: InFlight, cause: str, *, timed_out: bool) -> None:
        """Record that the question, or the ingestion, in flight in a lost worker has failed."""
        assert worker.unit is not None
        unit, position = reread(worker.unit, self._pipeline), slot.position
        scenario = unit.scenario
        with Journal(spool_of(unit.folder, unit.order).trials) as lines:
            if position == REMEMBERING:
                record_unasked(unit, self._pipeline, lines, f"while remembering: {cause}")
                return
            stage = next(s for s in reversed(stages(scenario)) if s.first <= position)
            ask = stage.asks[position - stage.first]
            if ask.key in unit.settled:
                return
            if slot.phase == RECALLING and ("recall", *ask.key) not in unit.recorded:
                trials = TrialBuilder(scenario, keep_texts=self._pipeline.answers)
                seen = stage.checkpoint.memories
                lines.append(trials.trial(ask, seen=seen, error=cause, timed_out=timed_out))
            elif slot.phase == JUDGING and ("answer", *ask.key) in unit.recorded:
                about = (scenario.id, ask.question.id)
                lines.append(Verdict(*about, error=cause, checkpoint=ask.checkpoint))
            else:
                status: Status = "timeout" if timed_out else "error"
                lines.append(self._pipeline.no_answer(scenario.id, ask, status, cause))


def describe(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with the identities of the systems, which are built in a new process."""
    with Scheduler(plans, Pipeline(), 1, Limits()) as scheduler:
        return scheduler.describe()


def cause_of_death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process died of {signal_name(-code)}"
    return f"the process exited with code {code}"
