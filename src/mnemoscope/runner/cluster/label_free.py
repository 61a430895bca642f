"""What leaves the driver of a run, and how results are joined with the labels when they return.

The structs have no field for a label: no evidence, reference, category or answer key, and no id of
a question, which may say that no memory answers it. A question is its position, text, time and
session.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from mnemoscope._store.errors import DataError
from mnemoscope._store.run_directory import JournalLine
from mnemoscope.runner.pipeline import Ask, LineKey, Pipeline, Stage, key_of, stages
from mnemoscope.runner.question_loop import order_by_text
from mnemoscope.runner.spool_lines import RecallReply, SpoolLine, SpoolReader, hashed
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.runner.work_unit import WorkUnit
from mnemoscope.types import (
    Answer,
    Checkpoint,
    Ingestion,
    Memory,
    Query,
    Question,
    Scenario,
    Timing,
    Trial,
    Verdict,
)


class LabelFreeCheckpoint(msgspec.Struct, frozen=True, omit_defaults=True):
    """A checkpoint without the counts of its categories."""

    label: str
    memories: int
    questions: tuple[int, ...]
    """Positions of the queries that are asked."""
    now: datetime | None = None
    forget: tuple[str, ...] = ()
    forget_if_able: bool = False


class LabelFreeScenario(msgspec.Struct, frozen=True, omit_defaults=True):
    """A scenario as a system may see it."""

    id: str
    memories: tuple[Memory, ...]
    queries: tuple[Query, ...]
    checkpoints: tuple[LabelFreeCheckpoint, ...] = ()

    def scenario(self) -> Scenario:
        """The scenario that a node runs: its questions have positions as ids, and no labels."""
        return Scenario(
            self.id,
            self.memories,
            tuple(
                Question(str(place), query.text, query.now, session=query.session)
                for place, query in enumerate(self.queries)
            ),
            tuple(
                Checkpoint(
                    point.label,
                    0,
                    point.memories,
                    tuple(map(str, point.questions)),
                    point.now,
                    forget=point.forget,
                    forget_if_able=point.forget_if_able,
                )
                for point in self.checkpoints
            ),
        )


class UnitOrder(msgspec.Struct, frozen=True, omit_defaults=True):
    """Which system runs a scenario on a node, and what is done already."""

    run: int
    """The number of the system among those of the node."""
    order: int
    ingested: tuple[str, ...] = ()
    """Labels of the checkpoints whose receipt is recorded."""
    done: tuple[tuple[str, int], ...] = ()
    """Checkpoint and position of the questions that are not asked again."""
    careful: bool = False
    mixed: bool = False
    restarts: int = 0

    def unit(self, scenario: Scenario, folder: str) -> WorkUnit:
        """The work unit of the node."""
        recorded: frozenset[LineKey] = frozenset(("remember", one, "") for one in self.ingested)
        settled = frozenset((point, str(place)) for point, place in self.done)
        return WorkUnit(
            self.run,
            self.order,
            scenario,
            folder,
            recorded,
            self.careful,
            settled,
            self.mixed,
            self.restarts,
            has_labels=False,
        )


def needs_system(unit: WorkUnit, pipeline: Pipeline) -> bool:
    """Whether a system must ingest or be asked; a reader and judges need only what is recorded."""
    return any(
        ("remember", stage.checkpoint.label, "") not in unit.recorded
        or any(not _is_asked(unit, pipeline, ask) for ask in stage.asks)
        for stage in stages(unit.scenario)
    )


def _is_asked(unit: WorkUnit, pipeline: Pipeline, ask: Ask) -> bool:
    """Whether the system's part of the question is recorded."""
    phase = "answer" if pipeline.system_answers else "recall"
    return ask.key in unit.settled or (phase, *ask.key) in unit.recorded


class LabelJoiner:
    """One unit: takes the labels off what is sent, and adds them to what returns."""

    def __init__(self, unit: WorkUnit, pipeline: Pipeline) -> None:
        self._unit, self._pipeline = unit, pipeline
        scenario = unit.scenario
        self._spool, self._trials = SpoolReader(scenario), TrialBuilder(scenario)
        questions = list(scenario.questions)
        if unit.mixed:  # in many files the order of the questions is that of their evidence
            questions.sort(key=order_by_text)
        self._questions = questions
        self._by_place = {str(place): question for place, question in enumerate(questions)}
        self._by_hash = {hashed(place): place for place in self._by_place}
        self._recorded = set(unit.recorded)
        self._place = {question.id: place for place, question in enumerate(questions)}
        self._stages = {stage.checkpoint.label: stage for stage in stages(scenario)}
        self._asks = {ask.key: ask for stage in self._stages.values() for ask in stage.asks}

    @property
    def scenario_key(self) -> str:
        """Units with the same key have the same label-free scenario."""
        return f"{self._unit.order}{' mixed' * self._unit.mixed}"

    def scenario(self) -> LabelFreeScenario:
        scenario = self._unit.scenario
        return LabelFreeScenario(
            scenario.id,
            scenario.memories,
            tuple(Query(one.text, one.now, one.session) for one in self._questions),
            tuple(map(self._checkpoint, scenario.checkpoints)),
        )

    def order(self, run: int) -> UnitOrder:
        """`run` is the number of the system among those of the node."""
        unit = self._unit
        done = [key for key, ask in self._asks.items() if _is_asked(unit, self._pipeline, ask)]
        return UnitOrder(
            run,
            unit.order,
            tuple(label for label in self._stages if ("remember", label, "") in unit.recorded),
            tuple((point, self._place[id]) for point, id in done),
            unit.careful,
            unit.mixed,
            unit.restarts,
        )

    def line(self, line: SpoolLine) -> SpoolLine:
        """A line of a node as it is recorded here: with the id of its question.

        Replies of a system that is not ours get their labels when they are merged.
        """
        is_ours = line.scenario == self._unit.scenario.id and line.checkpoint in self._stages
        if isinstance(line, Verdict) or not is_ours:
            raise DataError("a node sent a line that is not of its unit", file="the cluster")
        joined = line if isinstance(line, Ingestion) else self._joined(line)
        if (key := key_of(self.outline(joined))) in self._recorded:
            raise DataError(f"a node sent {' '.join(key)} twice", file="the cluster")
        self._recorded.add(key)
        return joined

    def outline(self, line: SpoolLine) -> JournalLine:
        """Which question the line is about, and its status."""
        return self._spool.outline(line)

    def _joined(self, line: Trial | Answer | RecallReply) -> Trial | Answer | RecallReply:
        if isinstance(line, RecallReply):
            ask, _ = self._ask(line.checkpoint, self._by_hash.get(line.question, ""))
            reply = msgspec.structs.replace(line, question=hashed(ask.question.id))
            return reply if self._unit.mixed else self._spool.trial(reply)
        ask, stage = self._ask(line.checkpoint, line.question)
        if not isinstance(line, Trial):
            return msgspec.structs.replace(line, question=ask.question.id)
        if line.ranking:
            raise DataError("a node sent a ranking with labels", file="the cluster")
        trial = self._trials.trial(ask, seen=stage.checkpoint.memories, error=line.error)
        return msgspec.structs.replace(trial, status=line.status)

    def timing(self, timing: Timing) -> Timing:
        if not timing.question:
            return timing
        ask, _ = self._ask(timing.checkpoint, timing.question)
        return msgspec.structs.replace(timing, question=ask.question.id)

    def _ask(self, checkpoint: str, place: str) -> tuple[Ask, Stage]:
        try:
            key = (checkpoint, self._by_place[place].id)
            return self._asks[key], self._stages[checkpoint]
        except LookupError:
            what = f"a node answered question {place!r} at {checkpoint!r}, which was not asked"
            raise DataError(what, file="the cluster") from None

    def _checkpoint(self, point: Checkpoint) -> LabelFreeCheckpoint:
        places = [self._place[id] for id in point.questions]
        if self._unit.mixed:
            places.sort(key=lambda place: order_by_text(self._questions[place]))
        return LabelFreeCheckpoint(
            *(point.label, point.memories, tuple(places), point.now),
            *(point.forget, point.forget_if_able),
        )
