"""The crew: worker processes, and the parent's watch over them.

A worker that overstays a deadline is killed, one that dies is replaced; the question it was on gets
the status that is true, and the rest of its unit goes on in a new process.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import Journal
from mnemoscope.connectors.child_process import signal_name
from mnemoscope.runner.heartbeat import (
    ANSWERING,
    JUDGING,
    RECALLING,
    REMEMBERING,
    Beat,
    Heartbeat,
    fork,
)
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.work_unit import WorkUnit, pool_of, record_unasked, reread, spool_trials
from mnemoscope.runner.worker import BROKEN, DONE, HALTED, REACHED, serve
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Status, Verdict

_GLANCE = 0.1
"""Seconds between two looks at the pulses."""
_GRACE = 20.0
"""Seconds that questions in flight get to come to their end when a run stops."""


class Limits(msgspec.Struct, frozen=True):
    """How long a system may take, in seconds, and how often it may be lost."""

    recall: float = 120.0
    remember: float = 3600.0
    restarts: int = 2
    """Losses of a scenario's system that no question is blamed for."""


class Worker:
    """A process and what it is working on."""

    def __init__(self, plans: Sequence[Plan], pipeline: Pipeline, place: int) -> None:
        self.unit: WorkUnit | None = None
        self.place = place
        self._readers_are_patient = pipeline.reader_is_patient
        self.heartbeat = Heartbeat(pipeline.parallelism)
        self.pipe, theirs = fork.Pipe()
        self.process = fork.Process(
            target=serve, args=(theirs, self.heartbeat, plans, pipeline, place, os.getpid())
        )
        self.process.start()
        theirs.close()

    def give(self, unit: WorkUnit) -> None:
        self.unit = unit
        with suppress(BrokenPipeError):  # a dead worker is noticed when it is listened to
            self.pipe.send_bytes(msgspec.msgpack.encode(unit))

    def overdue(self, limits: Limits) -> tuple[Beat, float] | None:
        """What it is late with, and the limit that has passed."""
        for beat in self.heartbeat.active:
            patient = beat.position == REMEMBERING or beat.phase == JUDGING
            patient |= beat.phase == ANSWERING and self._readers_are_patient
            limit = limits.remember if patient else limits.recall
            if beat.since and time.monotonic() - beat.since > limit:
                return beat, limit
        return None

    def kill(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()

    def dismiss(self) -> None:
        """Let it go home: it has nothing left to do."""
        with suppress(BrokenPipeError):
            self.pipe.send_bytes(b"")
        self.process.join(5)
        self.kill()


class Scheduler:
    """Works through units in parallel; `finished` is called for each as it is done."""

    def __init__(
        self,
        plans: Sequence[Plan],
        pipeline: Pipeline,
        size: int,
        limits: Limits,
        finished: Callable[[WorkUnit], None],
        reached: Callable[[WorkUnit, str], None],
        glance: Callable[[Sequence[Worker]], None],
    ) -> None:
        self._plans = plans
        self._procedure = pipeline
        self._reached = reached
        self._limits = limits
        self._finished = finished
        self._glance = glance
        self._workers = [Worker(plans, pipeline, place) for place in range(size)]

    def run(self, units: Iterator[WorkUnit]) -> None:
        try:
            self._work(units)
            for worker in self._workers:
                worker.dismiss()
        except (MnemoscopeError, KeyboardInterrupt):
            self._drain()
            raise
        finally:
            for worker in self._workers:
                worker.kill()

    def _drain(self) -> None:
        """Let what is in flight come to its end and be recorded: it may have been paid for."""
        deadline = time.monotonic() + _GRACE
        busy = [w for w in self._workers if w.unit is not None and not w.pipe.closed]
        for worker in busy:
            worker.heartbeat.halt()
        while busy and (left := deadline - time.monotonic()) > 0:
            ready = wait([worker.pipe for worker in busy], timeout=min(left, _GLANCE))
            for worker in [worker for worker in busy if worker.pipe in ready]:
                try:
                    message = worker.pipe.recv_bytes()
                except (EOFError, ConnectionResetError):
                    message = HALTED
                if not message.startswith(REACHED):
                    busy.remove(worker)

    def _work(self, units: Iterator[WorkUnit]) -> None:
        while True:
            for worker in self._workers:
                if worker.unit is None and (unit := next(units, None)) is not None:
                    worker.give(unit)
            busy = [worker for worker in self._workers if worker.unit is not None]
            if not busy:
                return
            ready = wait([worker.pipe for worker in busy], timeout=_GLANCE)
            for worker in busy:
                if worker.pipe in ready:
                    self._hear(worker)
                elif worker.overdue(self._limits) is not None:
                    self._end(worker)
            self._glance(self._workers)

    def _hear(self, worker: Worker) -> None:
        try:
            message = worker.pipe.recv_bytes()
        except (EOFError, ConnectionResetError):
            worker.process.join(5)
            worker.kill()  # it may be alive and have closed the pipe
            self._bury(worker, cause_of_death(worker.process.exitcode))
        else:
            assert worker.unit is not None
            said = message[1:].decode()
            if message.startswith(BROKEN):
                worker.unit = None
                raise MnemoscopeError(said)
            if message.startswith(DONE):
                self._finished(worker.unit)
                worker.unit = None
            else:
                self._reached(worker.unit, said)

    def _end(self, worker: Worker) -> None:
        """Kill a worker that is late, and blame the question that it is late with."""
        worker.kill()
        # Between the look and the kill it may have gone on; then it was late with nothing.
        if (late := worker.overdue(self._limits)) is not None:
            beat, limit = late
            self._blame(worker, beat, f"no answer within {limit:g} s", timed_out=True)
        self._replace(worker)

    def _bury(self, worker: Worker, cause: str) -> None:
        """Blame the question that a worker died of, if it was on one."""
        assert worker.unit is not None
        active = worker.heartbeat.active
        if len(active) > 1:
            # Any question in flight may be to blame: asked one by one, the guilty one shows.
            worker.unit = msgspec.structs.replace(worker.unit, careful=True)
        elif active:
            self._blame(worker, active[0], cause, timed_out=False)
        elif reread(worker.unit, self._procedure).recorded == worker.unit.recorded:
            raise MnemoscopeError(f"a worker process died between questions: {cause}")
        self._replace(worker)

    def _replace(self, worker: Worker) -> None:
        """Give the rest of a lost worker's unit to a new one."""
        assert worker.unit is not None
        fresh = Worker(self._plans, self._procedure, worker.place)
        self._workers[self._workers.index(worker)] = fresh
        unit = reread(worker.unit, self._procedure)
        if unit.is_complete:
            self._finished(unit)
        else:
            fresh.give(unit)

    def _blame(self, worker: Worker, beat: Beat, cause: str, *, timed_out: bool) -> None:
        """Record how the question, or the remembering, that a lost worker was on has ended."""
        assert worker.unit is not None
        unit, position = reread(worker.unit, self._procedure), beat.position
        with Journal(spool_trials(Path(unit.spool))) as lines:
            if position == REMEMBERING:
                record_unasked(unit, self._procedure, lines, f"while remembering: {cause}")
                return
            stage = next(s for s in reversed(stages(unit.scenario)) if s.first <= position)
            ask = stage.asks[position - stage.first]
            if ask.key in unit.settled:
                return
            about = (unit.scenario.id, ask.question.id)
            recalled = ("recall", *ask.key) in unit.recorded
            if beat.phase == RECALLING and not recalled:
                pool = pool_of(unit, self._procedure)
                seen = stage.checkpoint.memories
                lines.append(pool.trial(ask, seen=seen, error=cause, timed_out=timed_out))
            elif beat.phase == JUDGING and ("answer", *ask.key) in unit.recorded:
                lines.append(Verdict(*about, error=cause, checkpoint=ask.checkpoint))
            else:
                status: Status = "timeout" if timed_out else "error"
                lines.append(self._procedure.no_answer(unit.scenario.id, ask, status, cause))


def cause_of_death(code: int | None) -> str:
    if code is not None and code < 0:
        return f"the process died of {signal_name(-code)}"
    return f"the process exited with code {code}"
