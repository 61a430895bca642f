"""The process that runs units on a node, with the scheduler of a local run.

Time limits, restarts, host processes and locks are therefore those of a local run. It knows no
label, and nothing of the cluster: orders come and results go over one pipe.
"""

from __future__ import annotations

import os
import shutil
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.registry import import_target
from mnemoscope._store.unfinished_runs import forget_unfinished
from mnemoscope.isolation.scratch import make_scratch
from mnemoscope.runner.cluster.label_free import LabelFreeScenario, UnitOrder
from mnemoscope.runner.cluster.node_messages import (
    HALT,
    HELLO,
    LINES,
    STATE,
    NodeHello,
    NodeLines,
    NodePlan,
    NodeSetup,
    NodeState,
)
from mnemoscope.runner.isolation_setup import HiddenFiles, RunIsolation
from mnemoscope.runner.scheduler import CheckpointDone, Finished, Scheduler
from mnemoscope.runner.versions import decisive_versions
from mnemoscope.runner.work_unit import WorkUnit, spool_of
from mnemoscope.runner.worker import (
    BROKEN,
    CHECKPOINT,
    DESCRIBED,
    DONE,
    HALTED,
    REFUSED,
    Description,
)
from mnemoscope.systems.loader import Plan, plan

_encode = msgspec.msgpack.encode


def main() -> None:
    """Run units until the pipe, whose number is the first argument, is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)
    for name in [name for name in os.environ if name.startswith("RAY_")]:
        del os.environ[name]  # they say where the cluster is, and may contain its token
    with Connection(int(sys.argv[1])) as pipe, suppress(EOFError, BrokenPipeError):
        setup = msgspec.msgpack.decode(pipe.recv_bytes(), type=NodeSetup)
        sys.path += [one for one in setup.path if one not in sys.path]
        with suppress(OSError):
            os.chdir(setup.folder)
        pipe.send_bytes(HELLO + _encode(NodeHello(socket.gethostname(), decisive_versions())))
        run = Path(make_scratch("node"), "run")
        try:
            _Node(pipe, setup, run).serve()
        except MnemoscopeError as error:
            kind = REFUSED if isinstance(error, UsageError) else BROKEN
            pipe.send_bytes(kind + str(error).encode("utf-8", "backslashreplace"))
        finally:
            forget_unfinished(run)
            shutil.rmtree(run.parent, ignore_errors=True)


class _Halt(KeyboardInterrupt):
    """The driver stops: the scheduler finishes what is in flight, as after Ctrl-C."""


class _Node:
    """One node's process: a scheduler with one worker, and the spool that is sent on."""

    def __init__(self, pipe: Connection, setup: NodeSetup, run: Path) -> None:
        self._pipe, self._setup = pipe, setup
        self._folder = str(run / "units")
        self._parent = os.getppid()
        self._unit: WorkUnit | None = None
        self._sent = [0, 0]
        """Bytes of the unit's trials and timings that were sent."""
        self._state = NodeState()

    def serve(self) -> None:
        setup = self._setup
        plans = [_plan(one) for one in setup.plans]
        token = Path.home() / ".ray"  # with it a system could give orders to the cluster
        files = HiddenFiles(setup.benchmark, (*map(Path, setup.hidden), token))
        with RunIsolation(files, plans, Path(setup.out), setup.isolation) as isolation:
            scheduler = Scheduler(plans, setup.pipeline(), 1, setup.limits, isolation)
            try:
                with scheduler:
                    for known in scheduler.describe():
                        about = Description(known.identity, known.recalls, known.answers)
                        self._pipe.send_bytes(DESCRIBED + msgspec.json.encode(about))
                    for event in scheduler.work(self._units(), ()):
                        self._relay(scheduler, isolation)
                        if isinstance(event, Finished):
                            self._pipe.send_bytes(DONE)
                        elif isinstance(event, CheckpointDone):
                            self._pipe.send_bytes(CHECKPOINT + event.checkpoint.encode())
                        elif self._is_halted():
                            raise _Halt
            except _Halt:
                self._relay(scheduler, isolation)
                self._pipe.send_bytes(HALTED)
            except MnemoscopeError:
                self._relay(scheduler, isolation)
                raise

    def _units(self) -> Iterator[WorkUnit]:
        while (message := self._pipe.recv_bytes()) and message != HALT:
            order = msgspec.msgpack.decode(message, type=UnitOrder)
            sent = msgspec.msgpack.decode(self._pipe.recv_bytes(), type=LabelFreeScenario)
            unit = order.unit(sent.scenario(), self._folder)
            for file in spool_of(unit.folder, unit.order):  # of an earlier order of this unit
                file.unlink(missing_ok=True)
                file.with_name(f"{file.name}.chain").unlink(missing_ok=True)
            self._unit, self._sent = unit, [0, 0]
            yield unit

    def _is_halted(self) -> bool:
        if os.getppid() != self._parent:
            raise EOFError
        return self._pipe.poll() and self._pipe.recv_bytes() in (HALT, b"")

    def _relay(self, scheduler: Scheduler, isolation: RunIsolation) -> None:
        """Send the new lines of the spool, and what has changed."""
        if self._unit is None:
            return
        # A timing is written before its trial, so it is read after it.
        new = [
            self._new_lines(number, file)
            for number, file in enumerate(spool_of(self._unit.folder, self._unit.order))
        ]
        if any(new):
            self._pipe.send_bytes(LINES + _encode(NodeLines(*new)))
        shared = scheduler.workers[0].signals
        state = NodeState(
            shared.ingested,
            shared.ingesting,
            shared.restarts,
            bool(shared.has_called),
            tuple(isolation.counted(number) for number in range(len(self._setup.plans))),
        )
        if state != self._state:
            self._state = state
            self._pipe.send_bytes(STATE + _encode(state))

    def _new_lines(self, number: int, file: Path) -> bytes:
        try:
            with file.open("rb") as spool:
                spool.seek(self._sent[number])
                content = spool.read()
        except FileNotFoundError:
            return b""
        lines = content[: content.rfind(b"\n") + 1]
        self._sent[number] += len(lines)
        return lines


def _plan(given: NodePlan) -> Plan:
    target = None
    if given.target:
        if given.hosting == "child":
            from mnemoscope.systems.hosted import Hosted

            build = partial(Hosted, given.target, given.spec)
            return Plan(given.spec, build, {}, True, False, False, "child", given.repeat)
        target = import_target(given.target, "system")
    return msgspec.structs.replace(plan(given.spec, target), repeat=given.repeat)


if __name__ == "__main__":
    main()
