"""A later phase done anew: saved answers judged again, saved rankings read again.

The new run begins with what is kept of the old one; the engine then goes on as after an
interruption, and finds that of the system nothing is left to be asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import differences, sha256_file
from mnemoscope._store.jsonl import write_records
from mnemoscope._store.run_directory import JournalLine, Manifest, RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.base import Dataset
from mnemoscope.protocols import load_protocol
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.run import Progress, Settings, benchmark_identity, run
from mnemoscope.runner.scheduler import Limits
from mnemoscope.runner.work_unit import spool_of
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Answer, Query, Timing, Usage, Verdict

Phase = Literal["answer", "judge"]


def redo(
    source: RunDirectory,
    dataset: Dataset,
    out: Path,
    pipeline: Pipeline,
    phase: Phase,
    *,
    workers: int = 0,
    max_cost: float | None = None,
    exams: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    progress: Progress = lambda units: None,
) -> RunDirectory:
    """Do `phase` and what follows it again, with the procedure's parts; what was before stays."""
    manifest = source.manifest()
    if manifest.state != "complete":
        raise UsageError(f"{source.path} is not complete (state {manifest.state}); finish it first")
    identity = manifest.identity
    if apart := differences(identity["benchmark"], benchmark_identity(dataset, dataset.files())):
        raise DataError(
            f"{source.path} was made from other data: {'; '.join(apart)}", file=dataset.name
        )
    system = recorded_plan(identity["system"], _SilentSystem)
    directory = RunDirectory(out / source.label)
    if directory.path.resolve() == source.path.resolve():
        raise UsageError(f"--out {out} is where the run itself is; choose another folder")
    if not directory.manifest_path.exists():
        _begin_with(source, directory, dataset, phase)
    protocol = manifest.protocol.get("id")
    done = run(
        dataset,
        [system],
        out,
        Settings(
            int(identity["depth"]),
            int(identity["seed"]),
            msgspec.convert(identity["limits"], Limits),
            workers,
            accept_leaks=bool(manifest.leaks),
        ),
        progress,
        arms=int(manifest.arm),
        protocol=load_protocol(protocol) if protocol else None,
        deviations=manifest.deviations,
        pipeline=pipeline,
        max_cost=max_cost,
        exams=exams,
        # What is judged are these answers: of another source, even made alike, it is another run.
        derived_from=sha256_file(source.trials_path),
    )
    return done[0]


def recorded_pipeline(manifest: Manifest) -> Pipeline:
    """The procedure of a run whose reader must not be asked anything any more."""
    identity = manifest.identity
    reader = identity.get("reader")
    if reader is None:
        raise UsageError("this run has no answers; `mnemoscope answer` makes some from its hits")
    return Pipeline(
        lifecycle=identity["lifecycle"],
        reader=recorded_plan(reader, _SilentReader) if isinstance(reader, dict) else None,
        system_answers=reader == "system",
        window=identity["judge_memory_window"],
        compat=identity["compat"],
    )


def recorded_plan(about: dict[str, Any], part: Callable[[Spec], Any]) -> Plan:
    """A part that is known by what it was, and gives no more answers."""
    identity = {key: value for key, value in about.items() if key != "spec"}
    spec = Spec.parse(about["spec"])
    return Plan(spec, lambda: part(spec), identity, answers=True)


class _SilentSystem:
    """Stands where a system was that has said all it has to say."""

    def __init__(self, spec: Spec) -> None:
        pass

    def recall(self, query: Query, k: int) -> list[str]:
        raise AssertionError("what was recalled is on record")


class _SilentReader:
    """Stands where a reader was; what it was shown can still be told."""

    def __init__(self, spec: Spec) -> None:
        self.wants_everything = spec.name == "full-context"

    def read(self, query: Query, passages: object) -> None:
        raise AssertionError("what was answered is on record")


def _begin_with(
    source: RunDirectory, directory: RunDirectory, dataset: Dataset, phase: Phase
) -> None:
    """Lay down what is kept of the old run as if the new one had been interrupted there."""
    dropped = (Answer, Verdict) if phase == "answer" else (Verdict,)
    lines: dict[str, list[JournalLine]] = {}
    for line in source.journal():
        if not isinstance(line, dropped):
            lines.setdefault(line.scenario, []).append(line)
    timings: dict[str, list[Timing]] = {}
    for timing in _kept(source, phase):
        timings.setdefault(timing.scenario, []).append(timing)
    for order, scenario in enumerate(dataset.scenarios()):
        spool = spool_of(directory.path / "units", order)
        write_records(spool.trials, lines.get(scenario.id, []))
        write_records(spool.timings, timings.get(scenario.id, []))


def _kept(source: RunDirectory, phase: Phase) -> Iterator[Timing]:
    """The times of the phases that are not done again; what they cost is not paid again."""
    for timing in source.timings():
        judging = timing.judge_ms is not None
        answering = timing.answer_ms is not None or (timing.question and timing.recall_ms is None)
        if judging or (phase == "answer" and answering):
            continue
        usage = timing.usage and _paid_before(timing.usage)
        yield msgspec.structs.replace(timing, usage=usage)


def _paid_before(usage: Usage) -> Usage:
    return msgspec.structs.replace(
        usage, requests=0, cached=usage.cached + usage.requests, retries=0, paid=0.0
    )
