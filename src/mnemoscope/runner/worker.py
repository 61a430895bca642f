"""A worker process: builds systems, and runs one work unit after another.

The parent watches the heartbeat and kills a worker that exceeds a time limit. After the loss of a
system the scenario is ingested again from the start.
"""

from __future__ import annotations

import errno
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from multiprocessing.reduction import recv_handle
from typing import TYPE_CHECKING, Any

import msgspec

from mnemoscope._store.errors import MnemoscopeError, UsageError
from mnemoscope._store.journal_chain import SpoolJournal
from mnemoscope._store.user_data import keep_user_data_folder
from mnemoscope.connectors.handshake import expect_servers
from mnemoscope.models.budget import current_budget
from mnemoscope.models.model import reply_for_repeat
from mnemoscope.runner.failures import NeedsRestart, Restarts, error_line
from mnemoscope.runner.heartbeat import Heartbeat
from mnemoscope.runner.isolation_setup import WorkerIsolation
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.question_loop import Halted, QuestionLoop
from mnemoscope.runner.rare_collections import rare_collections_in_worker
from mnemoscope.runner.work_unit import WorkUnit, reread, spool_of
from mnemoscope.systems.hosted import Hosted
from mnemoscope.systems.loader import Driver, Plan, describe
from mnemoscope.types import Timing

if TYPE_CHECKING:  # few runs have a reader
    from mnemoscope.runner.answer_and_judge import AnswerAndJudge

DONE, CHECKPOINT, BROKEN, HALTED, DESCRIBED, REFUSED = b"d", b"c", b"b", b"h", b"i", b"r"
SPOILED = b"s"
"""The first byte of a worker's message: the unit is done, a checkpoint is done, an error of ours,
the unit was left on request, a system is described, a system cannot be run, or the system has
damaged the process that it shares with us."""
LOCK = b"l"
"""The parent's message before it sends the file descriptor of a run directory's lock."""


_NO_FILES = (errno.EBADF, errno.EMFILE)
"""Errors of a process whose files were closed, or all used, by other code in it."""


class Description(msgspec.Struct, frozen=True):
    """The identity and abilities of a built system."""

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
    describes: Sequence[int],
    isolation: WorkerIsolation | None = None,
) -> None:
    """Run work units until the parent stops the worker or is gone.

    It builds the systems of the plans in `describes` at once, and the others when it needs them.
    """
    rare_collections_in_worker()
    be_a_child_of(parent)
    keep_user_data_folder()
    file_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    if (budget := current_budget()) is not None:
        budget.adopt(place + 1)
    Hosted.takes_several_calls = pipeline.parallelism > 1
    if any(plan.repeat for plan in plans):
        _draw_anew()
    if not describes:
        expect_servers()
    drivers = _describe_all(pipe, heartbeat, plans, describes, isolation)
    warm: set[int] = set()
    answer_and_judge: AnswerAndJudge | None = None
    with suppress(EOFError):
        while message := pipe.recv_bytes():
            if message == LOCK:
                # Held until this process ends, so that a new run waits for it.
                os.set_inheritable(recv_handle(pipe), False)
                continue
            unit = msgspec.msgpack.decode(message, type=WorkUnit)
            if isolation is not None:
                isolation.select(unit.run)
            driver = drivers.setdefault(unit.run, Driver(plans[unit.run].build))
            driver.on_call, driver.limits = heartbeat.shared.note_call, pipeline.limits
            is_foreign = plans[unit.run].hosting == "worker"
            repeat = plans[unit.run].repeat
            reply_for_repeat(repeat.number if repeat else 1)
            reply = DONE
            try:
                if pipeline.answers and answer_and_judge is None:
                    from mnemoscope.runner.answer_and_judge import AnswerAndJudge

                    answer_and_judge = AnswerAndJudge(pipeline)
                work(
                    unit,
                    driver,
                    answer_and_judge,
                    pipeline,
                    heartbeat,
                    warm_up=unit.run not in warm,
                    on_checkpoint=lambda label: pipe.send_bytes(CHECKPOINT + label.encode()),
                )
            except Halted:
                reply = HALTED
            except MnemoscopeError as error:
                reply = _message(BROKEN, str(error))
            except OSError as error:
                limit_kept = resource.getrlimit(resource.RLIMIT_FSIZE) == file_limit
                is_ours = error.errno not in _NO_FILES and (
                    error.errno != errno.EFBIG or limit_kept
                )
                kind = BROKEN if is_ours or not is_foreign else SPOILED
                reply = _message(kind, str(error) or error_line(error))
            except BaseException as error:
                if not is_foreign:
                    raise
                reply = _message(SPOILED, error_line(error))
            warm.add(unit.run)
            pipe.send_bytes(reply)
    for driver in drivers.values():
        driver.close()


def _draw_anew() -> None:
    """Seed numpy's global generator anew: forks of one process draw the same numbers.

    Python's own generator does that by itself.
    """
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()


def _message(kind: bytes, text: str) -> bytes:
    return kind + text.encode("utf-8", "backslashreplace")


def be_a_child_of(parent: int) -> None:
    """Ignore interrupts, redirect stdout to stderr, and end when the parent is gone."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.2)
        os._exit(1)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a system prints must not be mixed with results
    sys.stdout = sys.stderr
    threading.Thread(target=watch, daemon=True).start()


def _describe_all(
    pipe: Connection,
    heartbeat: Heartbeat,
    plans: Sequence[Plan],
    numbers: Sequence[int],
    isolation: WorkerIsolation | None,
) -> dict[int, Driver]:
    """Build these systems, send the description of each, and keep it."""
    drivers: dict[int, Driver] = {}
    process = os.getpid()
    for number in numbers:
        plan = plans[number]
        if isolation is not None:
            isolation.select(number)
        try:
            known, system = describe(plan, heartbeat.shared.note_call)
        except MnemoscopeError as error:
            if os.getpid() == process:
                kind = REFUSED if isinstance(error, UsageError) else BROKEN
                pipe.send_bytes(_message(kind, str(error)))
            break
        finally:
            if os.getpid() != process:  # a copy of this process, made by the system
                os._exit(1)
        drivers[number] = Driver(plan.build, system)
        about = Description(known.identity, known.recalls, known.answers)
        pipe.send_bytes(DESCRIBED + msgspec.json.encode(about))
    return drivers


def work(
    unit: WorkUnit,
    driver: Driver,
    answer_and_judge: AnswerAndJudge | None,
    pipeline: Pipeline,
    heartbeat: Heartbeat,
    *,
    warm_up: bool,
    on_checkpoint: Callable[[str], None],
) -> None:
    """Run one work unit; each loss of the system begins a new question loop."""
    spool = spool_of(unit.folder, unit.order)
    restarts = Restarts(unit.scenario.id, pipeline.restarts, unit.restarts)
    while True:
        with SpoolJournal(spool.trials) as lines, SpoolJournal(spool.timings) as timings:
            loop = QuestionLoop(
                unit, driver, answer_and_judge, pipeline, heartbeat, lines, timings, restarts
            )
            loop.warm_up = warm_up
            try:
                for stage in stages(unit.scenario):
                    if not loop.ask_all(stage):
                        return
                    if stage.checkpoint.label:
                        on_checkpoint(stage.checkpoint.label)
                return
            except NeedsRestart as lost:
                loop.system.leave()
                driver.lost()
                if heartbeat.shared.is_halted:
                    raise Halted from lost
                unit, warm_up = reread(unit, pipeline), loop.warm_up
                cause = error_line(lost.error)
                if unit.is_complete:  # the last question failed because of it
                    restarts.warn(cause, lost.paid)
                    continue
                if not lost.paid and pipeline.parallelism > 1:
                    unit = msgspec.structs.replace(unit, careful=True)
                restarts.restart(cause, lost.paid)
                heartbeat.shared.restarts = restarts.used
                timings.append(Timing(unit.scenario.id, counters={"restarts": 1}))
