"""What is done with a question: recalled, answered, judged; and with which parts.

Parts are described here and built in the worker processes.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from mnemoscope.core.errors import UsageError
from mnemoscope.core.nouns import (
    FAILED,
    Answer,
    Checkpoint,
    Ingestion,
    Question,
    Scenario,
    Status,
    Verdict,
)
from mnemoscope.core.registry import Registry, bind_arguments
from mnemoscope.core.rundir import JournalLine
from mnemoscope.core.spec import Spec
from mnemoscope.judges import JUDGES
from mnemoscope.readers import READERS
from mnemoscope.systems.python import Plan, source_of

Lifecycle = Literal["auto", "fork", "fresh", "incremental"]
"""How a checkpoint gets a system that has seen exactly so much and was changed by no question."""
Compat = Literal["", "recall-bench"]
LineKey = tuple[str, str, str]
"""Phase, checkpoint and question: what a line of a scenario's journal is known by."""
TIMED_OUT = "[TIMEOUT]"
"""What Recall Bench judges in place of an answer that never came."""


class Procedure(msgspec.Struct, frozen=True):
    """What happens to each question, and at which moments of a system's life."""

    depth: int = 0
    lifecycle: Lifecycle = "auto"
    reader: Plan | None = None
    system_answers: bool = False
    """Whether the system answers by itself instead of a reader."""
    judge: Plan | None = None
    appellate: Plan | None = None
    window: int = 0
    """Days around the evidence that the judge is shown."""
    compat: Compat = ""
    parallelism: int = 1

    @property
    def answers(self) -> bool:
        return self.reader is not None or self.system_answers

    def identity(self) -> dict[str, Any]:
        """What of it can change a number; nothing where questions are only recalled."""
        if not self.answers and self.lifecycle == "auto":
            return {}
        parts = {"reader": self.reader, "judge": self.judge, "appellate_judge": self.appellate}
        about: dict[str, Any] = {
            name: {"spec": str(plan.spec), **plan.identity} for name, plan in parts.items() if plan
        }
        if self.system_answers:
            about["reader"] = "system"
        return {
            **about,
            "lifecycle": self.lifecycle,
            "judge_memory_window": self.window,
            "compat": self.compat,
        }

    def no_answer(self, scenario: str, ask: Ask, status: Status, error: str) -> Answer:
        """What is recorded where none came; Recall Bench takes its marker for an answer."""
        text = ""
        if self.compat == "recall-bench":
            status, text = "answered", TIMED_OUT
        return Answer(scenario, ask.question.id, status, text, (), error, ask.checkpoint)

    def settles(self, line: JournalLine) -> bool:
        """Whether nothing is left to do for the question after this line."""
        if isinstance(line, Ingestion):
            return False
        if isinstance(line, Verdict):
            return True
        failed = line.status == "not-indexed" or (line.status in FAILED and not self.compat)
        if isinstance(line, Answer):
            return failed or self.judge is None
        return failed or not self.answers


class Ask(msgspec.Struct, frozen=True):
    """A question at a checkpoint."""

    checkpoint: str
    question: Question

    @property
    def key(self) -> tuple[str, str]:
        return self.checkpoint, self.question.id


class Stage(msgspec.Struct, frozen=True):
    """How many memories are in, and what is asked then."""

    checkpoint: Checkpoint
    asks: tuple[Ask, ...]
    first: int
    """Position of its first ask among all asks of the scenario."""


def stages(scenario: Scenario) -> list[Stage]:
    """The scenario's checkpoints, or its end as the only one."""
    everything = Checkpoint(
        "", 0, len(scenario.memories), tuple(question.id for question in scenario.questions)
    )
    by_id = {question.id: question for question in scenario.questions}
    found: list[Stage] = []
    position = 0
    for checkpoint in scenario.checkpoints or (everything,):
        asks = tuple(
            Ask(checkpoint.label, _at(by_id[id], checkpoint)) for id in checkpoint.questions
        )
        found.append(Stage(checkpoint, asks, position))
        position += len(asks)
    return found


def _at(question: Question, checkpoint: Checkpoint) -> Question:
    """The question, asked at the checkpoint's moment."""
    if checkpoint.now is None:
        return question
    return msgspec.structs.replace(question, now=checkpoint.now)


def key_of(line: JournalLine) -> LineKey:
    phase: str = line.__struct_config__.tag  # type: ignore[assignment]
    return phase, line.checkpoint, "" if isinstance(line, Ingestion) else line.question


def plan_reader(spec: Spec) -> Plan:
    return _plan(READERS, spec, "read")


def plan_judge(spec: Spec) -> Plan:
    return _plan(JUDGES, spec, "judge")


def _plan(registry: Registry, spec: Spec, verb: str) -> Plan:
    """How to build a part; wrong names and options fail here, before anything runs."""
    if spec.name.partition(":")[0] in ("openai", "anthropic", "azure"):
        raise UsageError(
            f"{spec.name}: {registry.kind}s that call a model are not built in; choose from "
            f"{', '.join(registry.names())}, or give your own as module:Name"
        )
    target = registry.get(spec.name)
    if not callable(target):
        raise UsageError(f"{spec.name} is no {registry.kind} class or factory")
    arguments = bind_arguments(target, spec)
    part = target(**arguments)
    if not hasattr(part, verb):
        raise UsageError(f"{spec.name}: {type(part).__name__} has no {verb} method")
    about = dict(part.identity()) if hasattr(part, "identity") else {}
    identity = {"arguments": arguments, **source_of(target), **about}
    return Plan(spec, lambda: target(**arguments), identity)
