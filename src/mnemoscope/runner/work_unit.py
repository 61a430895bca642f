"""The unit of work: one system and one scenario, and the spool that it is recorded in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.journal_chain import SpoolJournal
from mnemoscope._store.jsonl import Journal
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.runner.pipeline import LineKey, Pipeline, key_of, stages
from mnemoscope.runner.spool_lines import SpoolReader, read_spool
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.types import Answer, Ingestion, Scenario, Status


class WorkUnit(msgspec.Struct, frozen=True, dict=True):
    """One system and one scenario, with what is already recorded."""

    run: int
    order: int
    scenario: Scenario
    folder: str = ""
    """The folder of its spool."""
    recorded: frozenset[LineKey] = frozenset()
    careful: bool = False
    """Whether to ask one question at a time, to find the one that kills a worker."""
    settled: frozenset[tuple[str, str]] = frozenset()
    """Checkpoint and id of the questions that are done."""
    mixed: bool = False
    """Whether to ask in an order that says nothing of the evidence. In many files the questions are
    in the order of their evidence, so that a system could count them."""
    restarts: int = 0
    """How often its system was lost in this run without failing a question."""
    has_labels: bool = True
    """Whether its questions have labels; they have none on the nodes of a cluster."""

    @property
    def keeps_replies(self) -> bool:
        """Whether its spool has replies, which get their labels later."""
        return self.mixed or not self.has_labels

    @cached_property
    def asked(self) -> int:
        """How many questions it asks; a question counts at each checkpoint that asks it."""
        scenario = self.scenario
        points = sum(len(point.questions) for point in scenario.checkpoints)
        return points or len(scenario.questions)

    @property
    def is_complete(self) -> bool:
        scenario = self.scenario
        if not scenario.checkpoints:
            return all(("", question.id) in self.settled for question in scenario.questions)
        return all(
            ("remember", checkpoint.label, "") in self.recorded
            and all((checkpoint.label, id) in self.settled for id in checkpoint.questions)
            for checkpoint in scenario.checkpoints
        )


class Spool(NamedTuple):
    """The files of one unit, which are merged into the run's journals when it is complete."""

    trials: Path
    timings: Path


def spool_of(folder: Path | str, order: int) -> Spool:
    start = f"{folder}/{order:06}"
    return Spool(Path(f"{start}.trials.jsonl"), Path(f"{start}.timings.jsonl"))


def reread(unit: WorkUnit, pipeline: Pipeline, journal: Iterable[JournalLine] = ()) -> WorkUnit:
    """The unit with these lines and those in its spool; an incomplete last line is removed."""
    spool = spool_of(unit.folder, unit.order)
    lines = list(journal)
    if spool.trials.exists():
        SpoolJournal(spool.trials).close()
        SpoolJournal(spool.timings).close()
        lines += map(SpoolReader(unit.scenario).outline, read_spool(spool.trials))
    recorded, settled = set(unit.recorded), set(unit.settled)
    for line in lines:
        recorded.add(key_of(line))
        if not isinstance(line, Ingestion) and pipeline.settles(line):
            settled.add((line.checkpoint, line.question))
    return msgspec.structs.replace(unit, recorded=frozenset(recorded), settled=frozenset(settled))


def record_unasked(
    unit: WorkUnit, pipeline: Pipeline, lines: Journal, error: str, status: Status = "not-indexed"
) -> None:
    """Record the open questions without asking: the system did not ingest the memories.

    With the status `error` it ingested them but could not forget those that it had to.
    """
    unit = reread(unit, pipeline)
    trials = TrialBuilder(unit.scenario)
    for stage in stages(unit.scenario):
        label, memories = stage.checkpoint.label, stage.checkpoint.memories
        if ("remember", label, "") not in unit.recorded:
            lost = error if status == "not-indexed" else ""
            lines.append(Ingestion(unit.scenario.id, memories, error=lost, checkpoint=label))
        for ask in stage.asks:
            if ask.key in unit.settled:
                continue
            if ("recall", *ask.key) in unit.recorded:  # an earlier attempt recalled
                about = (unit.scenario.id, ask.question.id)
                lines.append(Answer(*about, status, error=error, checkpoint=ask.checkpoint))
            else:
                trial = trials.trial(ask, seen=memories, error=error)
                lines.append(msgspec.structs.replace(trial, status=status))
