"""A sitting: one system lives through one scenario and is asked every question.

Each line is written to the unit's spool the moment it is there, so that a killed run loses at most
the question in flight.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue

import msgspec

from mnemoscope._store.errors import SystemLost
from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import JournalLine, read_journal
from mnemoscope.models.chat import metered, total
from mnemoscope.runner.answer_and_judge import AnswerAndJudge
from mnemoscope.runner.checkpoints import CannotForget, CheckpointedSystem, Reached
from mnemoscope.runner.failures import describe, stop_if_ours, timed_out
from mnemoscope.runner.heartbeat import ANSWERING, JUDGING, RECALLING, REMEMBERING, Beat, Heartbeat
from mnemoscope.runner.pipeline import Ask, Pipeline, Stage
from mnemoscope.runner.restarts import Lost, Restarts
from mnemoscope.runner.work_unit import WorkUnit, ingestion, pool_of, record_unasked
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Answer, Ingestion, Question, Status, Timing, Trial, Usage

_WARM_UP = Question("", "warm-up")

Recorded = tuple[JournalLine, Timing | None]


class Halted(Exception):
    """The parent wants no more questions asked."""


class QuestionLoop:
    """One system being questioned about one scenario."""

    def __init__(
        self,
        unit: WorkUnit,
        driver: Driver,
        panel: AnswerAndJudge,
        pipeline: Pipeline,
        heartbeat: Heartbeat,
        lines: Journal,
        timings: Journal,
        losses: Restarts,
    ) -> None:
        self.warm_up = False
        self._unit = unit
        self._driver = driver
        self._panel = panel
        self._procedure = pipeline
        self._pulse = heartbeat
        self._lines = lines
        self._timings = timings
        self._losses = losses
        self._lives = CheckpointedSystem(driver, unit.scenario, pipeline.lifecycle)
        self._pool = pool_of(unit, pipeline)
        self._writing = threading.Lock()
        self._free: SimpleQueue[Beat]
        self._alone = True
        """Whether one question is in flight at a time."""
        self._broken = False
        self._lost: Lost | None = None
        self._begun = {
            (type(line), line.checkpoint, line.question): line
            for line in read_journal(lines.path)
            if not isinstance(line, Ingestion)
        }
        heartbeat.settled = len(unit.settled)

    def ask_all(self, stage: Stage) -> bool:
        """Ask what is left to ask at this checkpoint; False if the system never got there."""
        checkpoint = stage.checkpoint
        left = [
            (stage.first + place, ask)
            for place, ask in enumerate(stage.asks)
            if ask.key not in self._unit.settled
        ]
        ingested = self._unit.ingested(checkpoint.label)
        if not left and ingested:
            return True
        driver = None
        if not ingested or any(self._needs_system(ask) for _, ask in left):
            if (reached := self._reach(stage)) is None:
                return False
            driver = reached.driver
        if left:
            self._panel.begin(self._unit.scenario)
            self._ask_all(left, driver, checkpoint.memories)
        self.leave()
        return True

    def leave(self) -> None:
        self._lives.leave()

    def _needs_system(self, ask: Ask) -> bool:
        """Whether the system still has something to say; reading and judging do without it."""
        phase = Answer if self._procedure.system_answers else Trial
        return (phase, *ask.key) not in self._begun

    def _reach(self, stage: Stage) -> Reached | None:
        unit, checkpoint = self._unit, stage.checkpoint
        beat = self._pulse.beats[0]
        beat.start(REMEMBERING)
        about = Timing(unit.scenario.id, checkpoint=checkpoint.label)
        try:
            with self._accounted(about, "index_ms") as usages:
                reached = self._lives.reach(checkpoint)
            size, counters = self._driver.counted()
        except CannotForget as error:
            record_unasked(unit, self._procedure, self._lines, str(error), "error")
            return None
        except (Exception, SystemExit) as error:
            stop_if_ours(error)
            if isinstance(error, SystemLost):
                if not self._losses.costs(error):
                    raise Lost(error) from error
                self._losses.tell(error, "and nothing more is asked: the memories are not in")
            record_unasked(unit, self._procedure, self._lines, describe(error))
            return None
        finally:
            beat.stop()
        self._timings.append(
            msgspec.structs.replace(
                about,
                index_ms=round(reached.took * 1000, 3),
                index_bytes=size,
                counters={**counters, "memories_given": reached.given},
                usage=total(usages),
            )
        )
        if not unit.ingested(checkpoint.label):
            self._lines.append(ingestion(unit, stage, reached.receipt))
        return reached

    def _ask_all(self, left: Sequence[tuple[int, Ask]], driver: Driver | None, seen: int) -> None:
        """So many at a time, each line recorded as soon as it is known.

        What goes wrong with one question of ours lets the others in flight come to their end.
        """
        together = 1 if self._unit.careful else self._procedure.parallelism
        self._alone = together == 1
        self._free = SimpleQueue()
        for beat in self._pulse.beats[:together]:
            self._free.put(beat)
        if self.warm_up and driver is not None:
            self.warm_up = False
            beat = self._pulse.beats[0]
            beat.start(left[0][0])
            try:
                _warm_up(driver, self._procedure.depth)
            finally:
                beat.stop()
        if together == 1:
            for position, ask in left:
                self._ask(position, ask, driver, seen)
        else:
            with ThreadPoolExecutor(together) as threads:
                asked = [
                    threads.submit(self._ask, position, ask, driver, seen) for position, ask in left
                ]
            for one in asked:
                one.result()
        if self._pulse.halted:
            raise Halted
        if self._lost is not None:
            raise self._lost

    def _ask(self, position: int, ask: Ask, driver: Driver | None, seen: int) -> None:
        if self._stopping:
            return
        beat = self._free.get()
        try:
            for line, timing in self._phases(
                ask, driver, seen, lambda phase: beat.start(position, phase)
            ):
                self._record(line, timing)
                if self._stopping:
                    break
        except Lost:
            return
        except BaseException:
            self._broken = True
            raise
        finally:
            beat.stop()
            self._free.put(beat)

    @property
    def _stopping(self) -> bool:
        return self._broken or self._lost is not None or self._pulse.halted

    def _record(self, line: JournalLine, timing: Timing | None) -> None:
        with self._writing:
            if timing is not None:
                self._timings.append(timing)
            self._lines.append(line)
            self._pulse.settled += self._procedure.settles(line)

    def _phases(
        self, ask: Ask, driver: Driver | None, seen: int, starting: Callable[[int], None]
    ) -> Iterator[Recorded]:
        """The lines that are still to come of a question, each as soon as it is known."""
        about = Timing(self._unit.scenario.id, ask.question.id, ask.checkpoint)
        trial = self._begun.get((Trial, *ask.key))
        if trial is None and not self._procedure.system_answers:
            assert driver is not None
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
            with self._accounted(about, "answer_ms") as usages:
                answer = self._answer(ask, trial, driver, seen)
            took, usage = _ms_since(started), total(usages)
            yield answer, msgspec.structs.replace(about, answer_ms=took, usage=usage)
        assert isinstance(answer, Answer)
        if self._procedure.settles(answer):
            return
        starting(JUDGING)
        started = time.perf_counter()
        with self._accounted(about, "judge_ms") as usages:
            verdict = self._panel.judge(ask, trial, answer, seen)
        took, usage = _ms_since(started), total(usages)
        yield verdict, msgspec.structs.replace(about, judge_ms=took, usage=usage)

    @contextmanager
    def _accounted(self, about: Timing, phase: str) -> Iterator[list[Usage]]:
        """Collects what models are asked; what was paid for nothing is on record as well."""
        started = time.perf_counter()
        with metered() as usages:
            try:
                yield usages
            except BaseException:
                if (usage := total(usages)) is not None:
                    spent = {phase: _ms_since(started), "usage": usage}
                    with self._writing:
                        self._timings.append(msgspec.structs.replace(about, **spent))
                raise

    def _recall(self, ask: Ask, driver: Driver, seen: int) -> Trial:
        try:
            hits = driver.recall(ask.question, self._procedure.depth)
        except (Exception, SystemExit) as error:
            stop_if_ours(error)
            late = timed_out(error)
            if isinstance(error, SystemLost):
                self._pay(error, ask, "timeout" if late else "error")
            return self._pool.trial(ask, seen=seen, error=describe(error), timed_out=late)
        return self._pool.trial(ask, hits, seen=seen)

    def _answer(self, ask: Ask, trial: Trial | None, driver: Driver | None, seen: int) -> Answer:
        try:
            return self._panel.answer(ask, trial, driver, seen)
        except SystemLost as error:
            status: Status = "timeout" if timed_out(error) else "error"
            self._pay(error, ask, status)
            return self._procedure.no_answer(self._unit.scenario.id, ask, status, describe(error))

    def _pay(self, error: SystemLost, ask: Ask, status: Status) -> None:
        """Let the question pay for the lost system, or raise `Lost`: then it is asked again."""
        costs = self._losses.costs(error, alone=self._alone)
        lost = Lost(error, f"{ask.question.id} is recorded as {status}" if costs else "")
        with self._writing:
            # Whoever only finds it gone comes after the one that it was lost by, or may overtake.
            if costs or self._lost is None:
                self._lost = lost
        if not costs:
            raise lost from error


def _ms_since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 4)


def _warm_up(driver: Driver, depth: int) -> None:
    """One recall that is not measured. If it fails, the first question will tell."""
    try:
        driver.recall(_WARM_UP, depth)
    except SystemLost as error:
        raise Lost(error, "on a question that does not count") from error
    except (Exception, SystemExit):
        return
