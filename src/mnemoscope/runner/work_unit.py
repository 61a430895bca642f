"""The unit of work: one system and one scenario, and what its spool says of it or is to say."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import JournalLine, read_journal
from mnemoscope.runner.pipeline import LineKey, Pipeline, Stage, key_of, stages
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Answer, Ingestion, Receipt, Scenario, Status


class WorkUnit(msgspec.Struct, frozen=True):
    """One system and one scenario, with what is already recorded of it."""

    run: int
    order: int
    scenario: Scenario
    spool: str = ""
    recorded: frozenset[LineKey] = frozenset()
    careful: bool = False
    """Whether to ask one question at a time, to find out which one a worker dies of."""
    settled: frozenset[tuple[str, str]] = frozenset()
    """Checkpoint and question of the asks for which nothing is left to do."""

    def ingested(self, checkpoint: str) -> bool:
        return ("remember", checkpoint, "") in self.recorded

    @property
    def asks(self) -> int:
        """How many questions are asked, counted at each checkpoint again."""
        scenario = self.scenario
        checkpoints = [len(checkpoint.questions) for checkpoint in scenario.checkpoints]
        return sum(checkpoints) if checkpoints else len(scenario.questions)

    @property
    def is_complete(self) -> bool:
        scenario = self.scenario
        if not scenario.checkpoints:
            return all(("", question.id) in self.settled for question in scenario.questions)
        return all(
            self.ingested(checkpoint.label)
            and all((checkpoint.label, id) in self.settled for id in checkpoint.questions)
            for checkpoint in scenario.checkpoints
        )


def spool_trials(spool: Path) -> Path:
    return spool.with_suffix(".trials.jsonl")


def spool_timings(spool: Path) -> Path:
    return spool.with_suffix(".timings.jsonl")


def with_lines(unit: WorkUnit, lines: Iterable[JournalLine], pipeline: Pipeline) -> WorkUnit:
    """The unit with these lines on record as well."""
    recorded, settled = set(unit.recorded), set(unit.settled)
    for line in lines:
        recorded.add(key_of(line))
        if not isinstance(line, Ingestion) and pipeline.settles(line):
            settled.add((line.checkpoint, line.question))
    return msgspec.structs.replace(unit, recorded=frozenset(recorded), settled=frozenset(settled))


def reread(unit: WorkUnit, pipeline: Pipeline) -> WorkUnit:
    """The unit with what its spool records by now, a torn last line cut off."""
    path = spool_trials(Path(unit.spool))
    if not path.exists():
        return unit
    Journal(path).close()
    Journal(spool_timings(Path(unit.spool))).close()
    return with_lines(unit, read_journal(path), pipeline)


def pool_of(unit: WorkUnit, pipeline: Pipeline) -> TrialBuilder:
    scenario = unit.scenario
    return TrialBuilder(scenario.id, scenario.memories, keep_texts=pipeline.answers)


def ingestion(
    unit: WorkUnit, stage: Stage, receipt: Receipt = Receipt(), error: str = ""
) -> Ingestion:
    held = stage.checkpoint.memories
    return Ingestion(unit.scenario.id, held, receipt, error, stage.checkpoint.label)


def record_unasked(
    unit: WorkUnit, pipeline: Pipeline, lines: Journal, error: str, status: Status = "not-indexed"
) -> None:
    """The system never held the memories, so no question from here on could be fairly put.

    Or it held them and should not have any more, which is an `error`.
    """
    unit = reread(unit, pipeline)
    pool = pool_of(unit, pipeline)
    for stage in stages(unit.scenario):
        if not unit.ingested(stage.checkpoint.label):
            lost = error if status == "not-indexed" else ""
            lines.append(ingestion(unit, stage, error=lost))
        for ask in stage.asks:
            if ask.key in unit.settled:
                continue
            if ("recall", *ask.key) in unit.recorded:  # an earlier sitting got as far as that
                about = (unit.scenario.id, ask.question.id)
                failed = Answer(*about, status, error=error, checkpoint=ask.checkpoint)
                lines.append(failed)
            else:
                trial = pool.trial(ask, seen=stage.checkpoint.memories, error=error)
                lines.append(msgspec.structs.replace(trial, status=status))
