"""From spools to the journal, in the dataset's order.

Workers finish units in any order and write each to a spool of its own. The journal takes them in
the order of the dataset, so that it has the same bytes however many workers there were and however
often the run was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from mnemoscope._store.jsonl import Journal, encode_line, read_records
from mnemoscope._store.run_directory import JournalLine, RunDirectory, read_journal
from mnemoscope.runner.pipeline import Pipeline, key_of, stages
from mnemoscope.runner.work_unit import WorkUnit, reread, spool_of
from mnemoscope.types import Answer, Ingestion, Scenario, Timing, Trial, Verdict

_PHASES: tuple[type[JournalLine], ...] = (Trial, Answer, Verdict)


class JournalMerger:
    """The one writer of a run's journal."""

    def __init__(self, run: RunDirectory, pipeline: Pipeline) -> None:
        self._folder = run.path / "units"
        self._pipeline = pipeline
        self._trials = Journal(run.trials_path)
        self._timings = Journal(run.timings_path)
        self.lines: dict[str, list[JournalLine]] = {}
        """What the journal already had of each scenario when the run began."""
        for line in run.journal():
            self.lines.setdefault(line.scenario, []).append(line)
        self._timed = {timing_key(timing) for timing in run.timings()}
        self._next = 0
        self._waiting: dict[int, WorkUnit] = {}

    def unit(self, run: int, order: int, scenario: Scenario) -> WorkUnit:
        """The scenario as a unit of this run, with all that is recorded of it already."""
        unit = WorkUnit(run, order, scenario, str(self._folder))
        return reread(unit, self._pipeline, self.lines.get(scenario.id, ()))

    def finished(self, unit: WorkUnit) -> None:
        """The unit is complete; write it and all that waited for it."""
        self._waiting[unit.order] = unit
        while (ready := self._waiting.pop(self._next, None)) is not None:
            self._merge(ready)
            self._next += 1

    def close(self) -> None:
        self._trials.close()
        self._timings.close()
        if self._folder.exists() and not any(self._folder.iterdir()):
            self._folder.rmdir()

    def _merge(self, unit: WorkUnit) -> None:
        trials, timings = spool_of(unit.folder, unit.order)
        name = unit.scenario.id
        if name in self.lines or any(key[0] == name for key in self._timed):
            self._timings.append_bytes(b"".join(self._new_timings(timings)))
            self._trials.append_bytes(b"".join(self._new_lines(trials, unit)))
        else:
            if timings.exists():
                self._timings.append_bytes(timings.read_bytes())
            if trials.exists():
                self._trials.append_bytes(self._ordered(trials, unit))
        # The spool goes last: a kill before this line merges it again, and finds nothing new.
        trials.unlink(missing_ok=True)
        timings.unlink(missing_ok=True)

    def _ordered(self, trials: Path, unit: WorkUnit) -> bytes:
        """The lines in the order in which one question after the other would have left them."""
        if self._pipeline.parallelism == 1 and not unit.recorded:
            return trials.read_bytes()
        place = _places(unit)
        return b"".join(map(encode_line, sorted(read_journal(trials), key=place)))

    def _new_lines(self, trials: Path, unit: WorkUnit) -> Iterator[bytes]:
        """What a kill in the middle of an earlier merge has left out of the journal."""
        if not trials.exists():
            return
        known = set(map(key_of, self.lines.get(unit.scenario.id, ())))
        for line in sorted(read_journal(trials), key=_places(unit)):
            if key_of(line) not in known:
                yield encode_line(line)

    def _new_timings(self, timings: Path) -> Iterator[bytes]:
        if timings.exists():
            for timing in read_records(timings, Timing):
                if timing_key(timing) not in self._timed:
                    yield encode_line(timing)


def _places(unit: WorkUnit) -> Callable[[JournalLine], tuple[int, int, int]]:
    """Where a line belongs: checkpoint by checkpoint, question by question, phase by phase."""
    stage_of: dict[str, int] = {}
    ask_of: dict[tuple[str, str], int] = {}
    for number, stage in enumerate(stages(unit.scenario)):
        stage_of[stage.checkpoint.label] = number
        ask_of |= {ask.key: place for place, ask in enumerate(stage.asks)}

    def place(line: JournalLine) -> tuple[int, int, int]:
        stage = stage_of[line.checkpoint]
        if isinstance(line, Ingestion):
            return stage, -1, 0
        return stage, ask_of[line.checkpoint, line.question], _PHASES.index(type(line))

    return place


def timing_key(timing: Timing) -> tuple[str, str, str, str]:
    """Scenario, checkpoint, question and what was timed."""
    for phase in ("recall", "answer", "judge", "index"):
        if getattr(timing, f"{phase}_ms") is not None:
            return timing.scenario, timing.checkpoint, timing.question, phase
    return timing.scenario, timing.checkpoint, timing.question, ""
