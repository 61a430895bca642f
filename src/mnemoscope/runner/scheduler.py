"""The scheduler: starts worker processes and watches them from the parent.

It kills a worker that exceeds a time limit, and records the question in flight as a timeout. A new
process continues the unit of a worker that dies; after some deaths, a question fails for the next.
A third party's class has worker processes of its own, so that it cannot change another system.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from multiprocessing.connection import Connection, wait
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope.isolation.own_memory import unreadable_memory
from mnemoscope.runner.failures import Restarts, warn
from mnemoscope.runner.heartbeat import CALLS
from mnemoscope.runner.isolation_setup import RunIsolation
from mnemoscope.runner.lost_questions import (
    DAMAGE,
    Place,
    count_restart,
    first_open,
    record_loss,
)
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.work_unit import WorkUnit, reread
from mnemoscope.runner.worker import (
    BROKEN,
    CHECKPOINT,
    DESCRIBED,
    DONE,
    HALTED,
    REFUSED,
    SPOILED,
    Description,
)
from mnemoscope.runner.worker_process import SHARED, Worker
from mnemoscope.runner.worker_process import Limits as Limits
from mnemoscope.systems.loader import Plan

if TYPE_CHECKING:  # few runs use a cluster
    from mnemoscope.runner.cluster.cluster import Cluster
    from mnemoscope.runner.cluster.remote_worker import RemoteWorker

    AnyWorker: TypeAlias = Worker | RemoteWorker

_TICK = 0.1
"""Seconds between two checks of the heartbeats."""
_FAREWELL = 5.0
"""Seconds in which a process must close its systems, or end after it closed its pipe."""
_GRACE = 20.0
"""Seconds in which questions in flight must end when a run stops."""
_LONGEST_MESSAGE = 16 << 20


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

    The first workers start at once and build the systems, to get their identities. The others
    start with a unit that needs them, and build a system when they get a unit of it.
    """

    def __init__(
        self,
        plans: Sequence[Plan],
        pipeline: Pipeline,
        size: int,
        limits: Limits,
        isolation: RunIsolation | None = None,
        cluster: Cluster | None = None,
    ) -> None:
        """With a cluster, systems run there; readers, judges and the oracle run here."""
        self._isolation = isolation
        self._cluster = cluster
        self._plans = list(plans)
        self._pipeline = pipeline
        self._size = size
        self._limits = limits
        self._is_working = False
        self._hidden = ExitStack()
        self._hidden.enter_context(unreadable_memory())  # workers inherit it
        if pipeline.answers:
            import mnemoscope.runner.answer_and_judge  # noqa: F401 - here once, not in each worker
        self.workers: list[AnyWorker] = []
        self._next: WorkUnit | None = None
        """A unit that was read and waits for room."""
        self._unread: deque[WorkUnit] = deque()
        """Units whose system has done its part on the cluster; the rest is done here."""
        groups: dict[int, list[int]] = {}
        for number, plan in enumerate(plans):
            if not plan.is_described:
                groups.setdefault(self._group(number), []).append(number)
        for group, numbers in groups.items():
            self._add(group, numbers)

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            if kind is None or not self._is_working:
                self._stop()
            elif issubclass(kind, MnemoscopeError | KeyboardInterrupt):
                with suppress(MnemoscopeError):  # a cluster may be gone
                    self._drain()
        finally:
            for worker in self.workers:
                worker.kill()
            self._hidden.close()

    def describe(self) -> list[Plan]:
        """The plans with the identities of the built systems; an error if one cannot be run."""
        for number, plan in enumerate(self._plans):
            if plan.is_described:
                continue
            about = self._description(number)
            self._plans[number] = msgspec.structs.replace(
                plan,
                identity=about.identity,
                recalls=about.recalls,
                answers=about.answers,
                is_described=True,
            )
        return self._plans

    def _description(self, number: int) -> Description:
        """Wait for the description of a system; a worker that dies is replaced some times."""
        spec, cause = self._plans[number].spec, ""
        for deaths in range(self._limits.restarts + 1):
            worker = next(w for w in self.workers if number in w.describes)
            until = time.monotonic() + self._limits.remember
            message = b""
            while not (message or worker.has_ended):
                if worker.poll(_TICK):
                    try:
                        message = worker.receive(_LONGEST_MESSAGE)
                    except (EOFError, OSError):
                        break
                elif not worker.has_a_node:
                    until = time.monotonic() + self._limits.remember
                    self._warn_if_full()
                elif time.monotonic() > until:
                    call = CALLS[worker.signals.call] or "start"
                    raise UsageError(
                        f"cannot build {spec}: its {call} took longer than "
                        f"{self._limits.remember:g} s"
                    )
            with suppress(EOFError, OSError):
                if message or worker.poll():
                    return _read_description(message or worker.receive(_LONGEST_MESSAGE))
            worker.wait(_FAREWELL)
            worker.kill()
            cause = worker.cause
            if deaths < self._limits.restarts:
                left = worker.describes[worker.describes.index(number) :]
                self._replace_process(worker, left)
        raise UsageError(f"cannot build {spec}: {cause}")

    def work(self, units: Iterator[WorkUnit], locks: Sequence[int]) -> Iterator[Event | None]:
        """Run the units; yields events, and None at each check of the heartbeats.

        `locks` are those of the run directories: each worker holds them until it ends.
        """
        self._is_working = True
        for early in self.workers:  # were forked before the run directories were locked
            early.hold(locks)
        while True:
            busy = [worker for worker in self.workers if worker.unit is not None]
            self._assign(units, busy)
            if not busy:
                self._stop()
                return
            ready = self._wait(busy)
            for worker in busy:
                if worker in ready:
                    yield from self._on_message(worker)
                elif worker.has_ended:
                    if not worker.poll():
                        yield from self._on_end(worker)
                elif worker.overdue(self._limits) is not None:
                    yield from self._on_overdue(worker)
            yield None

    def _wait(self, workers: Sequence[AnyWorker], most: float = _TICK) -> list[AnyWorker]:
        """The workers of which a message has come; waits a short time for the first."""
        local = [one for one in workers if isinstance(one, Worker)]
        pipes: list[Connection] = [one.pipe for one in local]
        remote = [one for one in workers if not isinstance(one, Worker)]
        if self._cluster is not None:
            pipes.append(self._cluster.pipe)
        ready = wait(pipes, timeout=0.0 if any(one.has_message for one in remote) else most)
        if self._cluster is not None:
            self._cluster.read()
            self._warn_if_full()
        arrived = [one for one in local if one.pipe in ready]
        return [*arrived, *(one for one in remote if one.has_message)]

    def _warn_if_full(self) -> None:
        if self._cluster is not None:
            self._cluster.warn_if_full(self._remote)

    def _assign(self, units: Iterator[WorkUnit], busy: list[AnyWorker]) -> None:
        """Give units to workers as long as there is room."""
        if self._cluster is not None:
            self._move_waiting(busy)
        while (unit := self._next_unit(units, busy)) is not None:
            here = self._cluster is not None and not self._needs_system(unit)
            worker = self._idle(SHARED if here else self._group(unit.run))
            worker.assign(unit)
            busy.append(worker)
        if self._cluster is not None and self._next is None:  # no more units
            for idle in [one for one in self._remote if one.unit is None]:
                idle.ask_to_stop()  # it leaves its node

    def _next_unit(self, units: Iterator[WorkUnit], busy: Sequence[AnyWorker]) -> WorkUnit | None:
        has_room_here = sum(one.group >= SHARED for one in busy) < self._size
        if self._cluster is None:
            return next(units, None) if has_room_here else None
        if self._unread and has_room_here:
            return self._unread.popleft()
        unit, self._next = self._next or next(units, None), None
        if unit is None:
            return None
        group = self._group(unit.run) if self._needs_system(unit) else SHARED
        remote = self._remote
        if has_room_here if group == SHARED else self._cluster.has_room(remote, group):
            return unit
        self._next = unit
        return None

    def _move_waiting(self, busy: list[AnyWorker]) -> None:
        """Give units that wait for a node to workers that have one and nothing to do.

        Those that could run none of these units leave their nodes.
        """
        self._read_idle()
        for idle in [one for one in self._remote if one.unit is None and one.has_started]:
            waiting = [one for one in self._remote if one.unit and not one.has_started]
            late = next((one for one in waiting if one.group == idle.group), None)
            if late is not None and late.unit is not None and not idle.has_ended:
                idle.assign(late.unit)
                late.unit = None
                busy[busy.index(late)] = idle
            elif waiting and late is None:
                idle.ask_to_stop()

    def _read_idle(self) -> None:
        """Learn which workers without a unit have got a node: their unit went to another one.

        Such a worker keeps the node from those that wait for one until it gets one of their units.
        """
        for idle in [one for one in self._remote if one.unit is None]:
            while idle.has_message and not idle.has_ended:
                with suppress(EOFError):  # it is replaced if it gets a unit
                    message = idle.receive(_LONGEST_MESSAGE)
                    if message.startswith((BROKEN, REFUSED)):
                        raise _refusal(message)

    @property
    def _remote(self) -> list[RemoteWorker]:
        return [one for one in self.workers if not isinstance(one, Worker)]

    def _needs_system(self, unit: WorkUnit) -> bool:
        from mnemoscope.runner.cluster.label_free import needs_system

        return needs_system(unit, self._pipeline)

    def _group(self, number: int) -> int:
        if self._cluster is not None:
            return self._cluster.group(number)
        return number if self._plans[number].hosting == "worker" else SHARED

    def _add(self, group: int, describes: Sequence[int] = ()) -> AnyWorker:
        self.workers.append(self._started(len(self.workers), group, describes))
        return self.workers[-1]

    def _started(self, place: int, group: int, describes: Sequence[int]) -> AnyWorker:
        if group < SHARED and self._cluster is not None:
            return self._cluster.start(place, group, describes, self._plans)
        others = [worker.pipe for worker in self.workers if isinstance(worker, Worker)]
        if self._cluster is not None:
            others.append(self._cluster.pipe)
        isolation = self._isolation.worker(place) if self._isolation else None
        return Worker(self._plans, self._pipeline, place, group, describes, others, isolation)

    def _idle(self, group: int) -> AnyWorker:
        """A living worker of this group without a unit; a new one if there is none."""
        idle = [worker for worker in self.workers if worker.unit is None]
        for worker in sorted(idle, key=lambda one: not one.has_started):
            if worker.group == group:
                return self._replace_process(worker) if worker.has_ended else worker
        if group < SHARED:
            for worker in idle:
                if worker.group < SHARED:
                    worker.ask_to_stop()  # it holds resources that the new one may need
        return self._add(group)

    def _replace_process(self, worker: AnyWorker, describes: Sequence[int] = ()) -> AnyWorker:
        worker.kill()
        fresh = self._started(worker.place, worker.group, describes)
        self.workers[self.workers.index(worker)] = fresh
        return fresh

    def _stop(self) -> None:
        """Let the workers close their systems and end; kill those that do not."""
        left = [worker for worker in self.workers if not worker.is_gone]
        for worker in left:
            worker.ask_to_stop()
        until = time.monotonic() + _FAREWELL
        for worker in left:
            worker.wait(until - time.monotonic())
            if worker.group > SHARED and not worker.has_ended:
                call = CALLS[worker.signals.call]
                what = f"{call} took longer than" if call else "its process did not end within"
                warn(f"{self._plans[worker.group].spec}: {what} {_FAREWELL:g} s; it was killed")
            worker.kill()

    def _drain(self) -> None:
        """Wait until the questions in flight are recorded: a model may have been paid for them."""
        deadline = time.monotonic() + _GRACE
        busy = [w for w in self.workers if w.unit is not None and not w.is_gone]
        busy = [worker for worker in busy if worker.has_started]
        for worker in busy:
            worker.halt()
        while busy and (left := deadline - time.monotonic()) > 0:
            for worker in self._wait(busy, min(left, _TICK)):
                try:
                    message = worker.receive()
                except (EOFError, ConnectionResetError):
                    message = HALTED
                if message and not message.startswith(CHECKPOINT):
                    busy.remove(worker)

    def _on_message(self, worker: AnyWorker) -> Iterator[Event]:
        assert worker.unit is not None
        try:
            message = worker.receive(_LONGEST_MESSAGE)
        except (EOFError, OSError):
            yield from self._on_end(worker)
            return
        if not message:
            return
        kind, text = message[:1], message[1:].decode("utf-8", "replace")
        if kind in (BROKEN, REFUSED):
            worker.unit = None
            raise _refusal(message)
        if kind == CHECKPOINT:
            yield CheckpointDone(worker.unit, text)
        elif kind == DONE and self._is_done(worker):
            worker.finish()
            unit, worker.unit = worker.unit, None
            if worker.group < SHARED and not (rest := reread(unit, self._pipeline)).is_complete:
                self._unread.append(rest)
            else:
                yield Finished(unit)
        else:
            worker.kill()
            cause = f"{DAMAGE}: {text}" if kind == SPOILED else DAMAGE
            yield from self._on_death(worker, cause)

    def _is_done(self, worker: AnyWorker) -> bool:
        """Whether the unit is complete; a third party's class may have written to the pipe."""
        assert worker.unit is not None
        if worker.group == SHARED:
            return True
        unit = reread(worker.unit, self._pipeline)
        return unit.is_complete or (worker.group < SHARED and not self._needs_system(unit))

    def _on_end(self, worker: AnyWorker) -> Iterator[Event]:
        worker.wait(_FAREWELL)
        worker.kill()  # it may be alive and have closed the pipe
        yield from self._on_death(worker, worker.cause)

    def _on_overdue(self, worker: AnyWorker) -> Iterator[Event]:
        """Kill a worker that exceeds a limit, and record the question that exceeds it."""
        assert worker.unit is not None
        worker.kill()
        # Between the check and the kill it may have finished the question.
        late, unit = worker.overdue(self._limits), worker.unit
        if late is not None and late.slot is not None:
            place = Place.of(late.slot)
            record_loss(unit, self._pipeline, place, late.cause, timed_out=True)
        elif late is not None and not late.call:
            yield from self._on_death(worker, late.cause)
            return
        elif late is not None:
            warn(f"{unit.scenario.id}: {late.cause}; its process was killed")
        yield from self._continue(worker, unit, lost=late is None or late.slot is not None)

    def _on_death(self, worker: AnyWorker, cause: str) -> Iterator[Event]:
        """Continue the unit of a dead worker; after some deaths, fail what was in flight."""
        assert worker.unit is not None
        unit = reread(worker.unit, self._pipeline)
        shared, active = worker.signals, worker.in_flight
        restarts = Restarts(unit.scenario.id, self._limits.restarts, shared.restarts)
        if not unit.is_complete:
            paid, is_over = "", False
            if restarts.used >= restarts.free and len(active) < 2:
                if not (active or shared.has_called):
                    raise MnemoscopeError(f"a worker process died between questions: {cause}")
                place = Place.of(active[0]) if active else first_open(unit, self._pipeline)
                paid = record_loss(unit, self._pipeline, place, cause, timed_out=False)
                is_over = reread(unit, self._pipeline).is_complete
            if is_over:
                restarts.warn(cause, paid)
            else:
                restarts.restart(cause, paid)
        # Any of several questions in flight may be the cause: asked one by one, it is found.
        careful = unit.careful or self._pipeline.parallelism > 1
        unit = msgspec.structs.replace(unit, restarts=restarts.used, careful=careful)
        yield from self._continue(worker, unit)

    def _continue(self, worker: AnyWorker, unit: WorkUnit, *, lost: bool = True) -> Iterator[Event]:
        """Give the rest of a dead worker's unit to a new worker, and count it if it was lost."""
        fresh = self._replace_process(worker)
        unit = reread(unit, self._pipeline)
        if unit.is_complete:
            yield Finished(unit)
            return
        if lost:
            count_restart(unit)
        fresh.assign(unit)


def _refusal(message: bytes) -> MnemoscopeError:
    """What a worker says of why its systems cannot run."""
    kind = UsageError if message.startswith(REFUSED) else MnemoscopeError
    return kind(message[1:].decode("utf-8", "replace"))


def _read_description(message: bytes) -> Description:
    if not message.startswith(DESCRIBED):
        raise _refusal(message)
    return msgspec.json.decode(message[1:], type=Description)


def describe(plans: Sequence[Plan]) -> list[Plan]:
    """The plans with the identities of the systems, which are built in a new process."""
    with Scheduler(plans, Pipeline(), 1, Limits()) as scheduler:
        return scheduler.describe()


def most_workers(plans: Sequence[Plan], size: int) -> int:
    """How many worker processes there may be at a time, with those that wait for a unit."""
    own = sum(plan.hosting == "worker" for plan in plans)
    return size * (own + (own < len(plans)))
