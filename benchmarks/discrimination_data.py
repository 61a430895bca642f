"""The data of docs/discrimination.md: figures of the finished runs of one benchmark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from discrimination_figures import (
    DeadQuestions,
    SmallestDifferences,
    Spread,
    dead_questions,
    smallest_differences,
    spread,
)
from field_data import finished
from mnemoscope._store.errors import UsageError
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.analysis.system_groups import question_values, system_groups
from mnemoscope.reports.run_view import RunView
from mnemoscope.systems import BUILT_IN
from mnemoscope.types import Trial

UNINFORMED = ("none", "random", "recency", "full-context")
"""They do not read the question; the first three are shown beside the systems."""
_DIGITS = 6


class Reference(msgspec.Struct, frozen=True):
    """The mean of a system that does not read the question, or of the oracle."""

    mean: float
    ci95: tuple[float, float]


class ShownSystem(msgspec.Struct, frozen=True):
    """The mean of one system, and its group among the systems that read the question."""

    system: str
    mean: float
    ci95: tuple[float, float]
    group: str
    tokens: float
    """Mean tokens of the first ten hits."""
    trials_sha256: str


class FullContext(msgspec.Struct, frozen=True):
    """What a reader gets that is shown every memory."""

    evidence: float
    """The share of the pieces of evidence that are among the memories."""
    memories: float
    """Memories for a question, the mean."""
    tokens: float
    """Their tokens, the mean: their number times the mean tokens of the hits of `random`."""


class BenchmarkFigures(msgspec.Struct, frozen=True):
    """What one benchmark tells about systems."""

    title: str
    command: str
    options: dict[str, Any]
    data_sha256: list[str]
    commit: str
    metric: str
    questions: int
    clusters: int
    chance: float
    references: dict[str, Reference]
    """Systems that do not read the question, and the oracle."""
    systems: list[ShownSystem]
    """The best first."""
    pairs: int
    apart: int
    """Pairs of systems that are told apart."""
    spread: Spread
    dead: DeadQuestions
    smallest: SmallestDifferences | None
    full_context: FullContext | None
    notes: list[str] = []


def figures(
    folder: Path, *, title: str, command: str, commit: str, notes: Sequence[str] = ()
) -> BenchmarkFigures:
    """Read the runs of built-in systems in a folder; the oracle must be among them."""
    runs = {name: run for run in finished(folder) if (name := _system(run)) in BUILT_IN}
    if "oracle" not in runs:
        raise UsageError(f"{folder} has no run of the oracle, which says what could be reached")
    informed = [run for name, run in runs.items() if name not in (*UNINFORMED, "oracle")]
    groups = system_groups(informed)
    table, clusters = question_values([*informed, runs["oracle"]], groups.metric)
    values, oracle = table[:, :-1], table[:, -1]
    view = RunView.of(informed[0])
    by_chance = view.metrics["overall"][groups.metric]["chance"] or 0.0
    labels = {run.label: run for run in informed}
    return BenchmarkFigures(
        title=title,
        command=command,
        options=dict(view.manifest.identity["benchmark"]["options"]),
        data_sha256=view.manifest.identity["benchmark"]["sha256"],
        commit=commit,
        metric=groups.metric,
        questions=groups.questions,
        clusters=groups.clusters,
        chance=round(by_chance, _DIGITS),
        references={
            name: _reference(runs[name], groups.metric)
            for name in ("oracle", "random", "recency", "none")
            if name in runs
        },
        systems=[
            ShownSystem(
                system=one.system,
                mean=round(one.mean, _DIGITS),
                ci95=_reference(labels[one.system], groups.metric).ci95,
                group=one.letters,
                tokens=round(RunView.of(labels[one.system]).metrics["context"]["tokens@10"] or 0.0),
                trials_sha256=labels[one.system].manifest().files["trials.jsonl"],
            )
            for one in groups.systems
        ],
        pairs=len(groups.pairs),
        apart=sum(pair.is_decided for pair in groups.pairs),
        spread=spread(values, float(oracle.mean()), by_chance),
        dead=dead_questions(values, oracle),
        smallest=smallest_differences(values, clusters),
        full_context=full_context(runs["random"].trials()) if "random" in runs else None,
        notes=[*notes, *groups.notes],
    )


def _system(run: RunDirectory) -> str:
    return Spec.parse(str(run.manifest().identity["system"]["spec"])).name


def _reference(run: RunDirectory, metric: str) -> Reference:
    found = run.read_json("metrics.json")["overall"][metric]
    low, high = found["ci95"]
    return Reference(round(found["mean"], _DIGITS), (round(low, _DIGITS), round(high, _DIGITS)))


def full_context(trials: Iterable[Trial]) -> FullContext:
    """What all memories together hold, from the trials of the system `random`.

    Its hits are a random sample of the memories, so their tokens estimate those of all memories.
    """
    measured = [trial for trial in trials if trial.evidence and trial.tokens]
    found = sum(trial.reachable for trial in measured)
    tokens = [trial.pool * sum(trial.tokens) / len(trial.tokens) for trial in measured]
    return FullContext(
        evidence=round(found / sum(len(trial.evidence) for trial in measured), _DIGITS),
        memories=round(sum(trial.pool for trial in measured) / len(measured), 1),
        tokens=round(sum(tokens) / len(measured)),
    )


def write(folder: Path, name: str, found: BenchmarkFigures) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    content = msgspec.json.format(msgspec.json.encode(found), indent=1)
    write_atomically(folder / f"{name}.json", content + b"\n")


def benchmarks(folder: Path) -> list[BenchmarkFigures]:
    """All benchmarks in a folder of data, those that tell most pairs apart first."""
    found = [
        msgspec.json.decode(file.read_bytes(), type=BenchmarkFigures)
        for file in sorted(folder.glob("*.json"))
    ]
    return sorted(found, key=lambda one: (-one.apart / one.pairs, one.title))
