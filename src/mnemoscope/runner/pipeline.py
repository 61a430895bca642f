"""The phases of a question (recall, answer, judge) and their reader and judges.

Readers and judges are described here and built in the worker processes.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import UsageError
from mnemoscope._store.registry import Registry, bind_arguments
from mnemoscope._store.run_directory import JournalLine
from mnemoscope._store.spec import Spec
from mnemoscope.datasets import dataset_info
from mnemoscope.judges import JUDGES, scale_of
from mnemoscope.judges.judge_panel import PanelOfJudges
from mnemoscope.models.model_loader import names_a_model, without_price
from mnemoscope.readers import READERS
from mnemoscope.systems.loader import CallLimits, Plan, source_of
from mnemoscope.types import (
    FAILED,
    Answer,
    Checkpoint,
    Expectation,
    Ingestion,
    Question,
    Scalar,
    Scenario,
    Status,
    Verdict,
)

Lifecycle = Literal["auto", "fork", "fresh", "incremental"]
"""How a checkpoint gets a system with exactly the memories so far, unchanged by questions."""
Compat = Literal["", "recall-bench"]
LineKey = tuple[str, str, str]
"""Phase, checkpoint and question: the key of a line in a scenario's journal."""
TIMED_OUT = "[TIMEOUT]"
"""The text that Recall Bench judges if no answer came."""


class Pipeline(msgspec.Struct, frozen=True):
    """What is done with each question, and how checkpoints are reached."""

    depth: int = 0
    lifecycle: Lifecycle = "auto"
    reader: Plan | None = None
    system_answers: bool = False
    """Whether the system answers instead of a reader."""
    judge: Plan | None = None
    appellate: Plan | None = None
    window: int = 0
    """Days around the evidence that the judge is shown."""
    compat: Compat = ""
    parallelism: int = 1
    restarts: int = 0
    """How often a scenario's system may be lost before a question fails because of it."""
    limits: CallLimits = CallLimits()

    @property
    def answers(self) -> bool:
        return self.reader is not None or self.system_answers

    def identity(self) -> dict[str, Any]:
        """What of it can change a number; empty if questions are only recalled."""
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
        """The record of a missing answer; Recall Bench judges its marker as an answer."""
        text = ""
        if self.compat == "recall-bench":
            status, text = "answered", TIMED_OUT
        return Answer(scenario, ask.question.id, status, text, (), error, ask.checkpoint)

    def settles(self, line: JournalLine) -> bool:
        """Whether the question is done after this line."""
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
    forgotten: int = 0
    """How many of the memories so far the system had to forget."""

    @property
    def key(self) -> tuple[str, str]:
        return self.checkpoint, self.question.id


class Stage(msgspec.Struct, frozen=True):
    """A checkpoint and the questions asked there."""

    checkpoint: Checkpoint
    asks: tuple[Ask, ...]
    first: int
    """Position of its first question among all of the scenario."""


def stages(scenario: Scenario) -> list[Stage]:
    """The scenario's checkpoints; without any, its end is the only one."""
    everything = Checkpoint(
        "", 0, len(scenario.memories), tuple(question.id for question in scenario.questions)
    )
    by_id = {question.id: question for question in scenario.questions}
    found: list[Stage] = []
    position = 0
    forgotten: set[str] = set()
    for checkpoint in scenario.checkpoints or (everything,):
        forgotten.update(checkpoint.forget)
        asks: list[Ask] = []
        for id in checkpoint.questions:
            question = by_id[id]
            if checkpoint.now is not None:
                question = msgspec.structs.replace(question, now=checkpoint.now)
            if not forgotten.isdisjoint(question.evidence):
                left = tuple(id for id in question.evidence if id not in forgotten)
                expects: Expectation = question.expects if left else "abstain"
                question = msgspec.structs.replace(question, evidence=left, expects=expects)
            asks.append(Ask(checkpoint.label, question, len(forgotten)))
        found.append(Stage(checkpoint, tuple(asks), position))
        position += len(asks)
    return found


def forgotten_by(scenario: Scenario, checkpoint: str) -> set[str]:
    """Ids of the memories that a system had to forget up to this checkpoint."""
    gone: set[str] = set()
    for point in scenario.checkpoints:
        gone.update(point.forget)
        if point.label == checkpoint:
            break
    return gone


def key_of(line: JournalLine) -> LineKey:
    phase: str = line.__struct_config__.tag  # type: ignore[assignment]
    return phase, line.checkpoint, "" if isinstance(line, Ingestion) else line.question


def plan_reader(spec: Spec, benchmark: str = "") -> Plan:
    """How to build a reader; a model alone means the `llm` reader with the benchmark's prompt."""
    if names_a_model(spec.name):
        spec = Spec("llm", {"model": spec.name, **spec.args})
    if spec.name in ("llm", "full-context") and "prompt" not in spec.args:
        spec = Spec(spec.name, {**spec.args, "prompt": dataset_info(benchmark).answers.prompt})
    if spec.name == "extractive" and "form" not in spec.args:
        form = dataset_info(benchmark).answers.form
        if form != "short":
            spec = Spec(spec.name, {**spec.args, "form": form})
    return _plan(READERS, spec, "read")


def plan_judge(spec: Spec, benchmark: str = "") -> Plan:
    """How to build a judge; a model alone means the benchmark's judge for models."""
    if names_a_model(spec.name):
        asked_for = dataset_info(benchmark).answers.model_judge
        spec = Spec(asked_for, {"model": spec.name, **spec.args})
    return _plan(JUDGES, spec, "judge")


def plan_panel(specs: Sequence[Spec], benchmark: str = "") -> Plan:
    """One judge, or several as a panel."""
    plans = [plan_judge(spec, benchmark) for spec in specs]
    if len(plans) == 1:
        return plans[0]
    names = [str(plan.spec) for plan in plans]
    if len(set(names)) < len(names):
        raise UsageError("a panel needs different judges; the same judge is given twice")
    return Plan(
        Spec(" + ".join(names)),
        lambda: PanelOfJudges(
            [(name, plan.build()) for name, plan in zip(names, plans, strict=True)]
        ),
        {"panel": {name: plan.identity for name, plan in zip(names, plans, strict=True)}},
    )


def _plan(registry: Registry, spec: Spec, verb: str) -> Plan:
    """How to build a reader or judge; wrong names and options fail here, before the run."""
    if _MODEL_NAME.match(spec.name) and spec.name not in registry.names():
        raise UsageError(
            f"{spec.name} names a model without its provider: write openai:{spec.name}, "
            f"anthropic:{spec.name} or {spec.name}@http://host/v1"
        )
    try:
        target = registry.get(spec.name)
    except UsageError as error:
        raise UsageError(
            f"{error}. If a model is meant: openai:MODEL, anthropic:MODEL, MODEL@http://host/v1 "
            "(`mnemoscope models list`)"
        ) from error
    if not callable(target):
        raise UsageError(f"{spec.name} is not a {registry.kind} class or factory")
    arguments = bind_arguments(target, spec)
    part = target(**arguments)
    if not hasattr(part, verb):
        raise UsageError(f"{spec.name}: {type(part).__name__} has no {verb} method")
    about = dict(part.identity()) if hasattr(part, "identity") else {}
    known = {key: _decisive(key, value) for key, value in arguments.items()}
    identity = {"name": spec.name, "arguments": known, **source_of(target), **about}
    if spec.name not in registry.builtin and (scale := scale_of(part)) is not None:
        identity["scale"] = msgspec.to_builtins(
            scale
        )  # runs are read where the judge is not installed
    shown = Spec(spec.name, {key: _decisive(key, value) for key, value in spec.args.items()})
    return Plan(shown, lambda: target(**arguments), identity)


_MODEL_NAME = re.compile(r"(?:gpt|chatgpt|o\d|claude|gemini|llama|qwen|mistral|deepseek)[-\d.]")


def _decisive(name: str, value: Scalar) -> Scalar:
    """The argument without a model's price, which does not change a reply."""
    return without_price(value) if name == "model" and isinstance(value, str) else value
