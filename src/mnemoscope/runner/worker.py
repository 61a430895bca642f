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
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec

from mnemoscope._store.errors import MnemoscopeError
from mnemoscope._store.jsonl import Journal
from mnemoscope.models.budget import current_budget
from mnemoscope.runner.answer_and_judge import AnswerAndJudge
from mnemoscope.runner.failures import describe
from mnemoscope.runner.heartbeat import Heartbeat
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.question_loop import Halted, QuestionLoop
from mnemoscope.runner.restarts import Lost, Restarts
from mnemoscope.runner.work_unit import WorkUnit, reread, spool_timings, spool_trials
from mnemoscope.systems.loader import Driver, Plan
from mnemoscope.types import Timing

DONE, REACHED, BROKEN, HALTED = b"d", b"r", b"b", b"h"
"""How a worker's messages begin: the unit is done, a checkpoint is, something of ours broke, or it
left the unit because it was asked to."""


def serve(
    pipe: Connection,
    heartbeat: Heartbeat,
    plans: Sequence[Plan],
    pipeline: Pipeline,
    place: int,
    parent: int,
) -> None:
    """Work through units until the parent says stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a system prints must not end up in our tables
    sys.stdout = sys.stderr
    threading.Thread(target=die_with_parent, args=(parent,), daemon=True).start()
    drivers: dict[int, Driver] = {}
    if (money := current_budget()) is not None:
        money.adopt(place)
    panel = AnswerAndJudge(pipeline)
    while message := pipe.recv_bytes():
        unit = msgspec.msgpack.decode(message, type=WorkUnit)
        fresh = unit.run not in drivers
        driver = drivers.setdefault(unit.run, Driver(plans[unit.run].build))
        reply = DONE
        try:
            work(
                unit,
                driver,
                panel,
                pipeline,
                heartbeat,
                warm_up=fresh,
                reached=lambda label: pipe.send_bytes(REACHED + label.encode()),
            )
        except Halted:
            reply = HALTED
        except (OSError, MnemoscopeError) as error:
            reply = BROKEN + (str(error) or describe(error)).encode()
        pipe.send_bytes(reply)
    for driver in drivers.values():
        driver.close()


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
