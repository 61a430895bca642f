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

from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.jsonl import Journal
from mnemoscope.core.nouns import Timing
from mnemoscope.engine.failures import describe
from mnemoscope.engine.losses import Losses, Lost
from mnemoscope.engine.panel import Panel
from mnemoscope.engine.parts import Procedure, stages
from mnemoscope.engine.pulse import Pulse
from mnemoscope.engine.sitting import Halted, Sitting
from mnemoscope.engine.unit import Unit, reread, spool_timings, spool_trials
from mnemoscope.llm.purse import purse
from mnemoscope.systems.python import Driver, Plan

DONE, REACHED, BROKEN, HALTED = b"d", b"r", b"b", b"h"
"""How a worker's messages begin: the unit is done, a checkpoint is, something of ours broke, or it
left the unit because it was asked to."""


def serve(
    pipe: Connection,
    pulse: Pulse,
    plans: Sequence[Plan],
    procedure: Procedure,
    place: int,
    parent: int,
) -> None:
    """Work through units until the parent says stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a system prints must not end up in our tables
    sys.stdout = sys.stderr
    threading.Thread(target=die_with_parent, args=(parent,), daemon=True).start()
    drivers: dict[int, Driver] = {}
    if (money := purse()) is not None:
        money.adopt(place)
    panel = Panel(procedure)
    while message := pipe.recv_bytes():
        unit = msgspec.msgpack.decode(message, type=Unit)
        fresh = unit.run not in drivers
        driver = drivers.setdefault(unit.run, Driver(plans[unit.run].build))
        reply = DONE
        try:
            work(
                unit,
                driver,
                panel,
                procedure,
                pulse,
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
    unit: Unit,
    driver: Driver,
    panel: Panel,
    procedure: Procedure,
    pulse: Pulse,
    *,
    warm_up: bool,
    reached: Callable[[str], None],
) -> None:
    """Question the system about the unit, in one more sitting each time that it is lost."""
    spool = Path(unit.spool)
    losses = Losses(unit.scenario.id, procedure.restarts)
    while True:
        with Journal(spool_trials(spool)) as lines, Journal(spool_timings(spool)) as timings:
            sitting = Sitting(unit, driver, panel, procedure, pulse, lines, timings, losses)
            sitting.warm_up = warm_up
            try:
                for stage in stages(unit.scenario):
                    if not sitting.hold(stage):
                        return
                    if stage.checkpoint.label:
                        reached(stage.checkpoint.label)
                return
            except Lost as lost:
                sitting.leave()
                driver.lost()
                if pulse.halted:
                    raise Halted from lost
                unit, warm_up = reread(unit, procedure), sitting.warm_up
                if unit.is_complete:  # the last question has paid for it
                    losses.tell(lost.error, lost.paid)
                    continue
                if not lost.paid and procedure.parallelism > 1:
                    unit = msgspec.structs.replace(unit, careful=True)
                losses.live_again(lost)
                timings.append(Timing(unit.scenario.id, counters={"restarts": 1}))


def die_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
