"""A worker process: takes a scenario, lets a system live through it, asks every question.

It writes each line to the unit's spool the moment it is there, so that a killed run loses at most
the question in flight. The parent watches the pulse and kills a worker that overstays.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from multiprocessing.connection import Connection
from multiprocessing.sharedctypes import SynchronizedArray
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope.core.errors import MnemoscopeError
from mnemoscope.core.jsonl import Journal
from mnemoscope.core.nouns import Answer, Ingestion, Question, Receipt, Timing, Trial
from mnemoscope.core.rundir import JournalLine, read_journal
from mnemoscope.engine.failures import describe, stop_if_ours
from mnemoscope.engine.lives import Lives, Reached
from mnemoscope.engine.panel import Panel
from mnemoscope.engine.parts import Ask, Procedure, Stage, stages
from mnemoscope.engine.pool import Pool
from mnemoscope.engine.unit import Unit, reread, spool_timings, spool_trials
from mnemoscope.systems.python import Driver, Plan

REMEMBERING = -1
"""What the pulse says in place of a question's position while memories are taken in."""
RECALLING, ANSWERING, JUDGING = range(3)
_WARM_UP = Question("", "warm-up")
_LOOK = 0.05
"""Seconds between two looks at which phase a question in flight is in."""
DONE, REACHED, BROKEN = b"d", b"r", b"b"
"""How a worker's messages begin: the unit is done, a checkpoint is, or something of ours broke."""


Recorded = tuple[JournalLine, Timing | None]


class Pulse(NamedTuple):
    """Shared memory that says since when the worker has been doing what."""

    cells: SynchronizedArray[float]

    def start(self, position: int, phase: int = RECALLING) -> None:
        self.cells[1] = position
        self.cells[2] = phase
        self.cells[0] = time.monotonic()

    def stop(self) -> None:
        self.cells[0] = 0.0

    @property
    def since(self) -> float:
        return self.cells[0]

    @property
    def position(self) -> int:
        return int(self.cells[1])

    @property
    def phase(self) -> int:
        return int(self.cells[2])


def serve(
    pipe: Connection, pulse: Pulse, plans: Sequence[Plan], procedure: Procedure, parent: int
) -> None:
    """Work through units until the parent says stop or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.dup2(2, 1)  # what a system prints must not end up in our tables
    sys.stdout = sys.stderr
    threading.Thread(target=_die_with_parent, args=(parent,), daemon=True).start()
    drivers: dict[int, Driver] = {}
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
    spool = Path(unit.spool)
    with Journal(spool_trials(spool)) as lines, Journal(spool_timings(spool)) as timings:
        sitting = _Sitting(unit, driver, panel, procedure, pulse, lines, timings)
        sitting.warm_up = warm_up
        for stage in stages(unit.scenario):
            if not sitting.hold(stage):
                return
            if stage.checkpoint.label:
                reached(stage.checkpoint.label)


class _Slot:
    """One of the questions in flight."""

    work: Future[list[Recorded]]

    def __init__(self, position: int) -> None:
        self.position = position
        self.phase = RECALLING

    def starting(self, phase: int) -> None:
        self.phase = phase


class _Sitting:
    """One system being questioned about one scenario."""

    def __init__(
        self,
        unit: Unit,
        driver: Driver,
        panel: Panel,
        procedure: Procedure,
        pulse: Pulse,
        lines: Journal,
        timings: Journal,
    ) -> None:
        self.warm_up = False
        self._unit = unit
        self._driver = driver
        self._panel = panel
        self._procedure = procedure
        self._pulse = pulse
        self._lines = lines
        self._timings = timings
        self._lives = Lives(driver, unit.scenario, procedure.lifecycle)
        self._pool = pool_of(unit, procedure)
        self._begun = {
            (type(line), line.checkpoint, line.question): line
            for line in read_journal(lines.path)
            if not isinstance(line, Ingestion)
        }

    def hold(self, stage: Stage) -> bool:
        """Ask what is left to ask at this checkpoint; False if the system never got there."""
        checkpoint = stage.checkpoint
        left = [
            (stage.first + place, ask)
            for place, ask in enumerate(stage.asks)
            if ask.key not in self._unit.settled
        ]
        if not left and self._unit.ingested(checkpoint.label):
            return True
        if (reached := self._reach(stage)) is None:
            return False
        if left:
            self._panel.begin(self._unit.scenario)
        if self._procedure.parallelism > 1 and not self._unit.careful:
            self._ask_together(left, reached.driver, checkpoint.memories)
        else:
            for position, ask in left:
                self._ask(position, ask, reached.driver, checkpoint.memories)
        self._lives.leave()
        return True

    def _reach(self, stage: Stage) -> Reached | None:
        unit, checkpoint = self._unit, stage.checkpoint
        self._pulse.start(REMEMBERING)
        started = time.perf_counter()
        try:
            reached = self._lives.reach(checkpoint.memories)
            elapsed = (time.perf_counter() - started) * 1000
            size, counters = self._driver.counted()
        except (Exception, SystemExit) as error:
            stop_if_ours(error)
            record_not_indexed(unit, self._procedure, self._lines, describe(error))
            return None
        finally:
            self._pulse.stop()
        self._timings.append(
            Timing(
                unit.scenario.id,
                checkpoint=checkpoint.label,
                index_ms=round(elapsed, 3),
                index_bytes=size,
                counters={**counters, "memories_given": reached.given},
            )
        )
        if not unit.ingested(checkpoint.label):
            self._lines.append(ingestion(unit, stage, reached.receipt))
        return reached

    def _ask(self, position: int, ask: Ask, driver: Driver, seen: int) -> None:
        if self.warm_up:
            self._pulse.start(position)
            _warm_up(driver, self._procedure.depth)
            self.warm_up = False
        start = self._pulse.start
        for line, timing in self._phases(ask, driver, seen, lambda phase: start(position, phase)):
            self._record(line, timing)
        self._pulse.stop()

    def _ask_together(self, left: Sequence[tuple[int, Ask]], driver: Driver, seen: int) -> None:
        """So many at a time, recorded in their order, with a rest between one lot and the next."""
        together = self._procedure.parallelism
        with ThreadPoolExecutor(together) as threads:
            for first in range(0, len(left), together):
                lot = [_Slot(position) for position, _ in left[first : first + together]]
                asked = [ask for _, ask in left[first : first + together]]
                for slot, ask in zip(lot, asked, strict=True):
                    slot.work = threads.submit(self._all_phases, ask, driver, seen, slot)
                for slot in lot:
                    self._follow(slot)
                    for line, timing in slot.work.result():
                        self._record(line, timing)
                self._pulse.stop()

    def _follow(self, slot: _Slot) -> None:
        """Let the pulse tell the phase that the first question not recorded yet is in."""
        told = None
        while not slot.work.done():
            if slot.phase != told:
                told = slot.phase
                self._pulse.start(slot.position, told)
            wait([slot.work], timeout=_LOOK)

    def _all_phases(self, ask: Ask, driver: Driver, seen: int, slot: _Slot) -> list[Recorded]:
        return list(self._phases(ask, driver, seen, slot.starting))

    def _record(self, line: JournalLine, timing: Timing | None) -> None:
        if timing is not None:
            self._timings.append(timing)
        self._lines.append(line)

    def _phases(
        self, ask: Ask, driver: Driver, seen: int, starting: Callable[[int], None]
    ) -> Iterator[Recorded]:
        """The lines that are still to come of a question, each as soon as it is known."""
        about = Timing(self._unit.scenario.id, ask.question.id, ask.checkpoint)
        trial = self._begun.get((Trial, *ask.key))
        if trial is None and not self._procedure.system_answers:
            starting(RECALLING)
            started = time.perf_counter()
            trial = self._recall(ask, driver, seen)
            elapsed = _ms_since(started)
            timed = not trial.error
            yield trial, msgspec.structs.replace(about, recall_ms=elapsed) if timed else None
        assert trial is None or isinstance(trial, Trial)
        if trial is not None and self._procedure.settles(trial):
            return
        answer = self._begun.get((Answer, *ask.key))
        if answer is None:
            starting(ANSWERING)
            started = time.perf_counter()
            answer = self._panel.answer(ask, trial, driver)
            yield answer, msgspec.structs.replace(about, answer_ms=_ms_since(started))
        assert isinstance(answer, Answer)
        if self._procedure.settles(answer):
            return
        starting(JUDGING)
        started = time.perf_counter()
        verdict = self._panel.judge(ask, answer, seen)
        yield verdict, msgspec.structs.replace(about, judge_ms=_ms_since(started))

    def _recall(self, ask: Ask, driver: Driver, seen: int) -> Trial:
        try:
            hits = driver.recall(ask.question, self._procedure.depth)
        except (Exception, SystemExit) as error:
            stop_if_ours(error)
            return self._pool.trial(ask, seen=seen, error=describe(error))
        return self._pool.trial(ask, hits, seen=seen)


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 4)


def pool_of(unit: Unit, procedure: Procedure) -> Pool:
    scenario = unit.scenario
    return Pool(scenario.id, scenario.memories, keep_texts=procedure.answers)


def ingestion(unit: Unit, stage: Stage, receipt: Receipt = Receipt(), error: str = "") -> Ingestion:
    held = stage.checkpoint.memories
    return Ingestion(unit.scenario.id, held, receipt, error, stage.checkpoint.label)


def record_not_indexed(unit: Unit, procedure: Procedure, lines: Journal, error: str) -> None:
    """The system never held the memories, so no question from here on could be fairly put."""
    unit = reread(unit, procedure)
    pool = pool_of(unit, procedure)
    for stage in stages(unit.scenario):
        if not unit.ingested(stage.checkpoint.label):
            lines.append(ingestion(unit, stage, error=error))
        for ask in stage.asks:
            if ask.key in unit.settled:
                continue
            if ("recall", *ask.key) in unit.recorded:  # an earlier sitting got as far as that
                about = (unit.scenario.id, ask.question.id)
                failed = Answer(*about, "not-indexed", error=error, checkpoint=ask.checkpoint)
                lines.append(failed)
            else:
                trial = pool.trial(ask, seen=stage.checkpoint.memories, error=error)
                lines.append(msgspec.structs.replace(trial, status="not-indexed"))


def _warm_up(driver: Driver, depth: int) -> None:
    """One recall that is not measured. If it fails, the first question will tell."""
    try:
        driver.recall(_WARM_UP, depth)
    except (Exception, SystemExit):
        return


def _die_with_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.2)
    os._exit(1)
