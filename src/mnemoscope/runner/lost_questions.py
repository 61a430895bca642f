"""Records what was in flight in a worker process that is gone: a question, or an ingestion."""

from __future__ import annotations

from typing import NamedTuple

from mnemoscope._store.journal_chain import SpoolJournal
from mnemoscope.connectors.child_process import signal_name
from mnemoscope.runner.heartbeat import ANSWERING, JUDGING, RECALLING, REMEMBERING, InFlight
from mnemoscope.runner.pipeline import Pipeline, stages
from mnemoscope.runner.trial_builder import TrialBuilder
from mnemoscope.runner.work_unit import WorkUnit, record_unasked, reread, spool_of
from mnemoscope.types import Status, Timing, Verdict


class Place(NamedTuple):
    """Where in a unit a worker was: a question and its phase, or ingestion."""

    position: int
    phase: int

    @classmethod
    def of(cls, slot: InFlight) -> Place:
        return cls(slot.position, slot.phase)


def first_open(unit: WorkUnit, pipeline: Pipeline) -> Place:
    """The first thing of an incomplete unit that is not recorded."""
    for stage in stages(unit.scenario):
        if ("remember", stage.checkpoint.label, "") not in unit.recorded:
            break
        for number, ask in enumerate(stage.asks):
            if ask.key in unit.settled:
                continue
            phase = JUDGING
            if ("answer", *ask.key) not in unit.recorded:
                phase = ANSWERING
            if ("recall", *ask.key) not in unit.recorded and not pipeline.system_answers:
                phase = RECALLING
            return Place(stage.first + number, phase)
    return Place(REMEMBERING, RECALLING)


def record_loss(
    unit: WorkUnit, pipeline: Pipeline, place: Place, cause: str, *, timed_out: bool
) -> str:
    """Record that the question, or the ingestion, has failed; returns what is recorded."""
    unit = reread(unit, pipeline)
    scenario = unit.scenario
    status: Status = "timeout" if timed_out else "error"
    with SpoolJournal(spool_of(unit.folder, unit.order).trials) as lines:
        if place.position == REMEMBERING:
            record_unasked(unit, pipeline, lines, f"while remembering: {cause}")
            return "its questions are not asked: the memories are not ingested"
        stage = next(s for s in reversed(stages(scenario)) if s.first <= place.position)
        ask = stage.asks[place.position - stage.first]
        if ask.key in unit.settled:
            return ""
        if place.phase == RECALLING and ("recall", *ask.key) not in unit.recorded:
            trials = TrialBuilder(scenario)
            seen = stage.checkpoint.memories
            lines.append(trials.trial(ask, seen=seen, error=cause, timed_out=timed_out))
        elif place.phase == JUDGING and ("answer", *ask.key) in unit.recorded:
            about = (scenario.id, ask.question.id)
            lines.append(Verdict(*about, error=cause, checkpoint=ask.checkpoint))
        else:
            lines.append(pipeline.no_answer(scenario.id, ask, status, cause))
    return f"{ask.question.id} is recorded as {status}"


def count_restart(unit: WorkUnit) -> None:
    """Count in the unit's timings that its scenario is ingested again."""
    with SpoolJournal(spool_of(unit.folder, unit.order).timings) as timings:
        timings.append(Timing(unit.scenario.id, counters={"restarts": 1}))


DAMAGED = 70
"""The exit code of a worker in which our own code has failed beside that of a third party."""
DAMAGE = "the system damaged the process that it runs in"


def cause_of_death(code: int | None) -> str:
    if code == DAMAGED:
        return DAMAGE
    if code is not None and code < 0:
        return f"the process died of {signal_name(-code)}"
    return f"the process exited with code {code}"
