"""The question loop: one system ingests one scenario and is asked every question.

Each line is written to the unit's spool at once, so a killed run loses at most the questions in
flight.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from hashlib import sha256
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any

import msgspec

from mnemoscope._store.errors import SystemLost
from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.models.chat import metered, total
from mnemoscope.runner.checkpoints import AtCheckpoint, CannotForget, CheckpointDriver
from mnemoscope.runner.failures import (
    NeedsRestart,
    Restarts,
    error_line,
    is_a,
    stop_if_ours,
    timed_out,
)
from mnemoscope.runner.heartbeat import (
    ANSWERING,
    JUDGING,
    RECALLING,
    REMEMBERING,
    Heartbeat,
    InFlight,
)
from mnemoscope.runner.pipeline import Ask, Pipeline, Stage
from mnemoscope.runner.spool_lines import RecallReply, SpoolLine, SpoolReader, read_spool, reply_to
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.runner.work_unit import WorkUnit, record_unasked
from mnemoscope.systems.loader import Driver
from mnemoscope.types import Answer, Ingestion, Question, Status, Timing, Trial

if TYPE_CHECKING:  # few runs have a reader
    from mnemoscope.runner.answer_and_judge import AnswerAndJudge

_WARM_UP = Question("", "warm-up")


def order_by_text(question: Question) -> bytes:
    """A place that follows from what the system is shown, and so tells it nothing else.

    A place that is drawn with a seed could be computed by the system, too.
    """
    return sha256(question.text.encode("utf-8", "surrogatepass")).digest()


class Halted(Exception):
    """The parent stops the run: no more questions are asked."""


class QuestionLoop:
    """Asks one system the questions of one scenario."""

    def __init__(
        self,
        unit: WorkUnit,
        driver: Driver,
        answer_and_judge: AnswerAndJudge | None,
        pipeline: Pipeline,
        heartbeat: Heartbeat,
        lines: Journal,
        timings: Journal,
        restarts: Restarts,
    ) -> None:
        self.warm_up = False
        """Whether to ask one question first that is not recorded."""
        self.system = CheckpointDriver(
            driver, unit.scenario, pipeline.lifecycle, heartbeat.shared.note_batch
        )
        self._unit = unit
        self._driver = driver
        self._answer_and_judge = answer_and_judge
        self._pipeline = pipeline
        self._answers = pipeline.answers
        self._heartbeat = heartbeat
        self._lines = lines
        self._timings = timings
        self._restarts = restarts
        self._trials = TrialBuilder(unit.scenario)
        self._replies = SpoolReader(unit.scenario)
        self._writing = threading.Lock()
        self._free: SimpleQueue[InFlight]
        self._alone = True
        """Whether one question is in flight at a time."""
        self._broken = False
        self._lost: NeedsRestart | None = None
        self._recorded = {
            (type(line), line.checkpoint, line.question): line
            for line in map(self._as_known, read_spool(lines.path))
            if not isinstance(line, Ingestion)
        }
        heartbeat.shared.settled = len(unit.settled)

    def ask_all(self, stage: Stage) -> bool:
        """Ask the open questions of this checkpoint; False if the system could not reach it."""
        checkpoint = stage.checkpoint
        left = [
            (stage.first + place, ask)
            for place, ask in enumerate(stage.asks)
            if ask.key not in self._unit.settled
        ]
        if self._unit.mixed:
            left.sort(key=lambda one: order_by_text(one[1].question))
        ingested = ("remember", checkpoint.label, "") in self._unit.recorded
        if not left and ingested:
            return True
        # The system is not needed to read or judge what is recorded.
        phase = Answer if self._pipeline.system_answers else Trial
        driver = None
        if not ingested or any((phase, *ask.key) not in self._recorded for _, ask in left):
            if (reached := self._reach(stage)) is None:
                return False
            driver = reached.driver
        if left:
            if self._answer_and_judge is not None:
                self._answer_and_judge.begin(self._unit.scenario)
            self._ask_left(left, driver, checkpoint.memories)
        self.system.leave()
        return True

    def _reach(self, stage: Stage) -> AtCheckpoint | None:
        """Bring the system to the checkpoint, and record time and receipt."""
        unit, checkpoint = self._unit, stage.checkpoint
        in_flight = self._heartbeat.slots[0]
        in_flight.start(REMEMBERING)
        about = Timing(unit.scenario.id, checkpoint=checkpoint.label)
        try:
            with self._measured(about, "index_ms") as spent:
                reached = self.system.reach(checkpoint)
            size, counters = self._driver.counted()
        except CannotForget as error:
            record_unasked(unit, self._pipeline, self._lines, str(error), "error")
            return None
        except BaseException as error:
            stop_if_ours(error)
            if is_a(error, SystemLost):
                assert isinstance(error, SystemLost)
                if not self._restarts.must_be_paid(error):
                    raise NeedsRestart(error) from error
                self._restarts.warn(
                    error_line(error), "its questions are not asked: the memories are not ingested"
                )
            record_unasked(unit, self._pipeline, self._lines, error_line(error))
            return None
        finally:
            in_flight.stop()
        spent["index_ms"] = round(reached.took * 1000, 3)
        counted = {**counters, "memories_given": reached.given}
        self._timings.append(
            msgspec.structs.replace(about, **spent, index_bytes=size, counters=counted)
        )
        if ("remember", checkpoint.label, "") not in unit.recorded:
            about_it = (unit.scenario.id, checkpoint.memories, reached.receipt)
            self._lines.append(Ingestion(*about_it, checkpoint=checkpoint.label))
        return reached

    def _ask_left(self, left: Sequence[tuple[int, Ask]], driver: Driver | None, seen: int) -> None:
        """Ask the questions, several at a time, and record each line as soon as it is known.

        After an error of ours the other questions in flight are still finished.
        """
        together = 1 if self._unit.careful else self._pipeline.parallelism
        self._alone = together == 1
        self._free = SimpleQueue()
        for slot in self._heartbeat.slots[:together]:
            self._free.put(slot)
        if self.warm_up and driver is not None:
            self.warm_up = False
            slot = self._heartbeat.slots[0]
            slot.start(left[0][0])
            try:
                driver.recall(_WARM_UP, self._pipeline.depth)
            except SystemLost as error:
                raise NeedsRestart(error, "on a warm-up question that is not recorded") from error
            except BaseException:
                pass  # the first question will show the error
            finally:
                slot.stop()
            self._count_legs(driver)  # without the warm-up
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
        if legs := self._count_legs(driver):
            self._timings.append(Timing(self._unit.scenario.id, counters=legs))
        if self._heartbeat.shared.is_halted:
            raise Halted
        if self._lost is not None:
            raise self._lost

    def _count_legs(self, driver: Driver | None) -> dict[str, int]:
        """The counters since the last call of a system that counts how often its legs answer."""
        if driver is not None and driver.counts_legs:
            with suppress(SystemLost):  # the next call to it shows that
                return driver.counted().counters
        return {}

    def _ask(self, position: int, ask: Ask, driver: Driver | None, seen: int) -> None:
        if self._is_stopping:
            return
        slot = self._free.get()
        try:
            for line, timing in self._phases(slot, position, ask, driver, seen):
                with self._writing:
                    if timing is not None:
                        self._timings.append(timing)
                    self._lines.append(line)
                    # Without answers, the question is done after its recall.
                    self._heartbeat.shared.settled += not self._answers or self._settles(line)
                if self._is_stopping:
                    break
        except NeedsRestart:
            return
        except BaseException:
            self._broken = True
            raise
        finally:
            slot.stop()
            self._free.put(slot)

    def _settles(self, line: SpoolLine) -> bool:
        return self._pipeline.settles(self._replies.outline(line))

    @property
    def _is_stopping(self) -> bool:
        return self._broken or self._lost is not None or self._heartbeat.shared.is_halted

    def _phases(
        self, slot: InFlight, position: int, ask: Ask, driver: Driver | None, seen: int
    ) -> Iterator[tuple[SpoolLine, Timing | None]]:
        """The missing lines of a question, each as soon as it is known."""
        trial: JournalLine | None = (
            self._recorded.get((Trial, *ask.key)) if self._recorded else None
        )
        if trial is None and not self._pipeline.system_answers:
            assert driver is not None
            slot.start(position, RECALLING)
            recalled, timing = self._recall(ask, driver, seen)
            yield recalled, timing
            if not self._answers:
                return
            trial = self._as_known(recalled)
        assert trial is None or isinstance(trial, Trial)
        if trial is not None and self._pipeline.settles(trial):
            return
        about = Timing(self._unit.scenario.id, ask.question.id, ask.checkpoint)
        assert self._answer_and_judge is not None
        answer = self._recorded.get((Answer, *ask.key))
        if answer is None:
            slot.start(position, ANSWERING)
            with self._measured(about, "answer_ms") as spent:
                answer = self._answer(ask, trial, driver, seen)
            yield answer, msgspec.structs.replace(about, **spent)
        assert isinstance(answer, Answer)
        if self._pipeline.settles(answer):
            return
        slot.start(position, JUDGING)
        with self._measured(about, "judge_ms") as spent:
            verdict = self._answer_and_judge.judge(ask, trial, answer, seen)
        yield verdict, msgspec.structs.replace(about, **spent)

    def _as_known(self, line: SpoolLine) -> JournalLine:
        """A reply as a trial without labels; for readers, with its texts."""
        if isinstance(line, RecallReply) and self._pipeline.answers:
            return self._replies.without_labels(line)
        return self._replies.outline(line)

    @contextmanager
    def _measured(self, about: Timing, phase: str) -> Iterator[dict[str, Any]]:
        """Time and model usage of a phase; those of a failed phase are recorded here."""
        spent: dict[str, Any] = {}
        failed = True
        started = time.perf_counter()
        with metered() as usages:
            try:
                yield spent
                failed = False
            finally:
                elapsed = round((time.perf_counter() - started) * 1000, 4)
                spent |= {phase: elapsed, "usage": total(usages)}
                if failed and spent["usage"] is not None:
                    with self._writing:
                        self._timings.append(msgspec.structs.replace(about, **spent))

    def _recall(
        self, ask: Ask, driver: Driver, seen: int
    ) -> tuple[Trial | RecallReply, Timing | None]:
        """The trial, and the time that the system took; ours does not count."""
        depth = self._pipeline.depth
        started = time.perf_counter()
        try:
            hits = driver.hits(ask.question, depth)
        except BaseException as error:
            stop_if_ours(error)
            late = timed_out(error)
            if is_a(error, SystemLost):
                assert isinstance(error, SystemLost)
                self._charge(error, ask, "timeout" if late else "error")
            why = error_line(error)
            if self._unit.keeps_replies:
                return reply_to(self._unit.scenario.id, ask, error=why, timed_out=late), None
            return self._trials.trial(ask, seen=seen, error=why, timed_out=late), None
        elapsed = round((time.perf_counter() - started) * 1000, 4)
        counters: dict[str, int] = {}
        if len(hits) > (most := max(depth, seen)):  # more hits than memories are left out
            hits, counters = hits[:most], {"recalls_cut": 1}
        timing = Timing(
            self._unit.scenario.id,
            ask.question.id,
            ask.checkpoint,
            recall_ms=elapsed,
            counters=counters,
        )
        if self._unit.keeps_replies:
            return reply_to(self._unit.scenario.id, ask, hits), timing
        return self._trials.trial(ask, hits, seen=seen), timing

    def _answer(self, ask: Ask, trial: Trial | None, driver: Driver | None, seen: int) -> Answer:
        assert self._answer_and_judge is not None
        try:
            return self._answer_and_judge.answer(ask, trial, driver, seen)
        except SystemLost as error:
            status: Status = "timeout" if timed_out(error) else "error"
            self._charge(error, ask, status)
            return self._pipeline.no_answer(self._unit.scenario.id, ask, status, error_line(error))

    def _charge(self, error: SystemLost, ask: Ask, status: Status) -> None:
        """Fail the question because of the lost system, or raise, so that it is asked again."""
        costs = self._restarts.must_be_paid(error, alone=self._alone)
        lost = NeedsRestart(error, f"{ask.question.id} is recorded as {status}" if costs else "")
        with self._writing:
            # Another thread may report the same loss before or after the one that fails for it.
            if costs or self._lost is None:
                self._lost = lost
        if not costs:
            raise lost from error
