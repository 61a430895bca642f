"""A worker process: takes one scenario after another and lets a system live through it.

The parent watches the pulse and kills a worker that overstays. A system that is lost begins the
scenario again.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from pathlib import Path
from typing import Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.jsonl import Journal
from mnemoscope.models.budget import current_budget
from mnemoscope.runner.answer_and_judge import AnswerAndJudge
from mnemoscope.runner.failures import describe as describe_error
from mnemoscope.runner.heartbeat import Heartbeat
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.question_loop import Halted, QuestionLoop
from mnemoscope.runner.restarts import Lost, Restarts
from mnemoscope.runner.work_unit import WorkUnit, reread, spool_timings, spool_trials
from mnemoscope.systems.loader import Driver, Plan, describe
from mnemoscope.types import Timing

DONE, REACHED, BROKEN, HALTED, DESCRIBED, REFUSED = b"d", b"r", b"b", b"h", b"i", b"u"
"""How a worker's messages begin: the unit is done, a checkpoint is, something of ours broke, it
left the unit because it was asked to, a system is built and described, or it cannot be run."""
LOCK = b"l"
"""The parent's message before it sends the file descriptor of a run directory's lock."""


class Description(msgspec.Struct, frozen=True):
    """What a built system says of itself."""

    identity: dict[str, Any]
    recalls: bool
    answers: bool


def serve(
    pipe: Connection,
    heartbeat: Heartbeat,
    plans: Sequence[Plan],
    pipeline: Pipeline,
    place: int,
    parent: int,
    describes: bool,
) -> None:
    """Work through units until the parent says stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a system prints must not end up in our tables
    sys.stdout = sys.stderr
    threading.Thread(target=die_with_parent, args=(parent,), daemon=True).start()
    if (money := current_budget()) is not None:
        money.adopt(place + 1)
    drivers = _describe_all(pipe, plans) if describes else {}
    warm: set[int] = set()
    panel: AnswerAndJudge | None = None
    with suppress(EOFError):
        while message := pipe.recv_bytes():
            if message == LOCK:
                # Held until this process ends, so that a new run waits for us.
                os.set_inheritable(recv_handle(pipe), False)
                continue
            unit = msgspec.msgpack.decode(message, type=WorkUnit)
            driver = drivers.setdefault(unit.run, Driver(plans[unit.run].build))
            reply = DONE
            try:
                panel = panel or AnswerAndJudge(pipeline)
                work(
                    unit,
                    driver,
                    panel,
                    pipeline,
                    heartbeat,
                    warm_up=unit.run not in warm,
                    reached=lambda label: pipe.send_bytes(REACHED + label.encode()),
                )
            except Halted:
                reply = HALTED
            except (OSError, MnemoscopeError) as error:
                reply = BROKEN + (str(error) or describe_error(error)).encode()
            warm.add(unit.run)
            pipe.send_bytes(reply)
    for driver in drivers.values():
        driver.close()


def _describe_all(pipe: Connection, plans: Sequence[Plan]) -> dict[int, Driver]:
    """Build each system that must describe itself, tell the parent, and keep it for its units."""
    drivers: dict[int, Driver] = {}
    for number, plan in enumerate(plans):
        if plan.is_described:
            continue
        try:
            known, system = describe(plan)
        except MnemoscopeError as error:
            kind = REFUSED if isinstance(error, UsageError) else BROKEN
            pipe.send_bytes(kind + str(error).encode("utf-8", "backslashreplace"))
            break
        drivers[number] = Driver(plan.build, system)
        about = Description(known.identity, known.recalls, known.answers)
        pipe.send_bytes(DESCRIBED + msgspec.json.encode(about))
    return drivers


def work(
    unit: WorkUnit,
    driver: Driver,
    panel: AnswerAndJudge,
    pipeline: Pipeline,
    heartbeat: Heartbeat,
    *,
    warm_up: bool,
    reached: Callable[[str], None],
) -> None:
    """Question the system about the unit, in one more sitting each time that it is lost."""
    spool = Path(unit.spool)
    losses = Restarts(unit.scenario.id, pipeline.restarts)
    while True:
        with Journal(spool_trials(spool)) as lines, Journal(spool_timings(spool)) as timings:
            loop = QuestionLoop(unit, driver, panel, pipeline, heartbeat, lines, timings, losses)
            loop.warm_up = warm_up
            try:
                for stage in stages(unit.scenario):
                    if not loop.ask_all(stage):
                        return
                    if stage.checkpoint.label:
                        reached(stage.checkpoint.label)
                return
            except Lost as lost:
                loop.leave()
                driver.lost()
                if heartbeat.halted:
                    raise Halted from lost
                unit, warm_up = reread(unit, pipeline), loop.warm_up
                if unit.is_complete:  # the last question has paid for it
                    losses.tell(lost.error, lost.paid)
                    continue
                if not lost.paid and pipeline.parallelism > 1:
                    unit = msgspec.structs.replace(unit, careful=True)
                losses.live_again(lost)
                timings.append(Timing(unit.scenario.id, counters={"restarts": 1}))


def die_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
