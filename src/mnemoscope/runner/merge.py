"""Merges the spools of the work units into the journal, in the dataset's order.

Workers finish units in any order and write each to its own spool. The journal takes them in the
order of the dataset, so it has the same bytes whatever the number of workers and however often the
run was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count, takewhile

from mnemoscope._store.journal_chain import JournalChain, chain_of_spool, checked_spool
from mnemoscope._store.jsonl import Journal, encode_lines, read_records
from mnemoscope._store.run_directory import JournalLine, RunDirectory
from mnemoscope.runner.pipeline import Pipeline, key_of, stages
from mnemoscope.runner.spool_lines import SpoolReader, read_spool
from mnemoscope.runner.work_unit import WorkUnit, reread, spool_of
from mnemoscope.types import Scenario, Timing

_PHASES = ("recall", "answer", "judge")
_TOGETHER = 20
"""Questions of a system in its own process that are merged at once: it sees how much longer the
journal is afterwards."""


class JournalMerger:
    """Writes a run's journal and its hash chain; nothing else does."""

    def __init__(
        self,
        run: RunDirectory,
        pipeline: Pipeline,
        fingerprint: str = "",
        *,
        mixed: bool = False,
        private: bool = False,
    ) -> None:
        """`mixed`: the questions are not asked in the dataset's order."""
        self._run = run
        self._private = private
        self._mixed = mixed
        self._folder = run.path / "units"
        self._pipeline = pipeline
        self._trials = Journal(run.trials_path)
        self._timings = Journal(run.timings_path)
        self._chain = JournalChain(run.path, fingerprint)
        self._head = self._chain.last()
        self.lines: dict[str, list[JournalLine]] = {}
        """The lines of each scenario that the journal contained when the run began."""
        for line in run.journal():
            self.lines.setdefault(line.scenario, []).append(line)
        self._timed = {timing_key(timing) for timing in run.timings()}
        self._timed_scenarios = {key[0] for key in self._timed}
        self._merged = False
        """Whether the chain has records that the disk may not have yet."""
        self._next = 0
        self._waiting: dict[int, WorkUnit] = {}

    def unit(self, run: int, order: int, scenario: Scenario) -> WorkUnit:
        """The scenario as a work unit of this run, with what is already recorded."""
        unit = WorkUnit(run, order, scenario, str(self._folder), mixed=self._mixed)
        return reread(unit, self._pipeline, self.lines.get(scenario.id, ()))

    def finished(self, unit: WorkUnit) -> None:
        """Merge a complete unit, and those that waited for it."""
        self._waiting[unit.order] = unit
        following = takewhile(self._waiting.__contains__, count(self._next))
        asked = sum(self._waiting[order].asked for order in following)
        if not self._mixed or asked >= _TOGETHER:
            self.merge_waiting()

    def merge_waiting(self) -> None:
        """Merge the complete units that follow each other."""
        while (ready := self._waiting.pop(self._next, None)) is not None:
            self._merge(ready)
            self._next += 1

    def close(self) -> None:
        if self._merged:
            self._chain.settle()
            self._merged = False
        self._trials.close()
        self._timings.close()
        if self._folder.exists() and not any(self._folder.iterdir()):
            self._folder.resolve().rmdir()
            if self._folder.is_symlink():
                self._folder.unlink()

    def _merge(self, unit: WorkUnit) -> None:
        """Append what the journal does not contain yet, ordered as one question after the other."""
        trials, timings = spool_of(unit.folder, unit.order)
        name = unit.scenario.id
        recorded = self.lines.get(name, ())
        is_new = not recorded and name not in self._timed_scenarios
        new_lines = new_timings = b""
        if timings.exists():
            if is_new:
                new_timings = checked_spool(timings)
            else:
                times = read_records(timings, Timing)
                new_timings = encode_lines([t for t in times if timing_key(t) not in self._timed])
        if trials.exists():
            new_lines = checked_spool(trials)
            in_order = self._pipeline.parallelism == 1 and not unit.mixed
            if self._private or not (is_new and in_order and not unit.recorded):
                known = set(map(key_of, recorded))
                labelled = SpoolReader(unit.scenario).labelled(read_spool(trials))
                if self._private:
                    from mnemoscope.runner.private_runs import without_texts

                    labelled = map(without_texts, labelled)
                new_lines = _in_order([one for one in labelled if key_of(one) not in known], unit)
        if new_lines or new_timings:
            self._merged = True
            self._head = self._chain.advance(self._head, name, new_lines, new_timings)
            self._timings.append_bytes(new_timings)
            self._trials.append_bytes(new_lines)
            self._run.note_merged(self._head)
        # The spool is deleted last: after a kill before this line it is merged again, to no effect.
        for file in (trials, timings):
            file.unlink(missing_ok=True)
            chain_of_spool(file).unlink(missing_ok=True)


def _in_order(lines: Iterable[JournalLine], unit: WorkUnit) -> bytes:
    """The lines as one question after the other."""
    place = _places(unit)
    return encode_lines(sorted(lines, key=lambda line: place(*key_of(line))))


def _places(unit: WorkUnit) -> Callable[[str, str, str], tuple[int, int, int]]:
    """A sort key for journal lines by phase, checkpoint and question."""
    stage_of: dict[str, int] = {}
    ask_of: dict[tuple[str, str], int] = {}
    for number, stage in enumerate(stages(unit.scenario)):
        stage_of[stage.checkpoint.label] = number
        ask_of |= {ask.key: place for place, ask in enumerate(stage.asks)}

    def place(phase: str, checkpoint: str, question: str) -> tuple[int, int, int]:
        stage = stage_of[checkpoint]
        if phase == "remember":
            return stage, -1, 0
        return stage, ask_of[checkpoint, question], _PHASES.index(phase)

    return place


def timing_key(timing: Timing) -> tuple[str, str, str, str]:
    """Scenario, checkpoint, question and the phase that was timed."""
    phase = ""
    if timing.recall_ms is not None:
        phase = "recall"
    elif timing.answer_ms is not None:
        phase = "answer"
    elif timing.judge_ms is not None:
        phase = "judge"
    elif timing.index_ms is not None:
        phase = "index"
    return timing.scenario, timing.checkpoint, timing.question, phase
