"""Repeats a later phase of a run: judges recorded answers again, or answers again from its hits.

The new run begins with the kept lines of the old one. The runner then continues as after an
interruption, and does not ask the system.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import differences, sha256_file
from mnemoscope._store.journal_chain import seal_spool
from mnemoscope._store.jsonl import write_records
from mnemoscope._store.run_directory import JournalLine, Manifest, RunDirectory, declared_repeat
from mnemoscope._store.spec import Spec
from mnemoscope.datasets.base import Dataset
from mnemoscope.isolation.decoys import DECOYS_FILE
from mnemoscope.protocols import load_protocol
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.private_runs import check_private, is_private
from mnemoscope.runner.question_progress import QuestionProgress
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
    questions: QuestionProgress | None = None,
) -> RunDirectory:
    """Repeat `phase` and the phases after it with this pipeline; keep the earlier phases."""
    manifest = source.manifest()
    if manifest.state != "complete":
        raise UsageError(f"{source.path} is not complete (state {manifest.state}); finish it first")
    identity = manifest.identity
    if apart := differences(identity["benchmark"], benchmark_identity(dataset, dataset.files())):
        raise DataError(
            f"{source.path} was run on other data: {'; '.join(apart)}", file=dataset.name
        )
    system = recorded_plan(identity["system"], _RecordedSystem)
    if system.spec.slug != source.label:  # the identity does not contain the label
        spec = msgspec.structs.replace(system.spec, label=source.label)
        system = msgspec.structs.replace(system, spec=spec)
    system = msgspec.structs.replace(system, repeat=declared_repeat(identity))
    directory = RunDirectory(out / source.label)
    if directory.path.resolve() == source.path.resolve():
        raise UsageError(f"--out {out} is the folder of the run itself; choose another folder")
    private = manifest.private or is_private(dataset)
    if private:
        check_private(dataset, out, pipeline)
        if phase == "answer" and any(trial.texts for trial in source.trials()):
            raise UsageError(
                f"{source.path} is private and has no texts of hits: run the system again, with "
                "--reader and --out in the dataset's folder"
            )
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
            private=private,
        ),
        progress,
        baselines=int(manifest.arm),
        protocol=load_protocol(protocol) if protocol else None,
        deviations=manifest.deviations,
        pipeline=pipeline,
        max_cost=max_cost,
        exams=exams,
        # The same answers from another source are another run.
        derived_from=sha256_file(source.trials_path),
        kept_isolation=manifest.isolation,
        questions=questions,
    )
    if (source.path / DECOYS_FILE).exists():
        shutil.copyfile(source.path / DECOYS_FILE, done[0].path / DECOYS_FILE)
        done[0].vouch(DECOYS_FILE)
    return done[0]


def recorded_pipeline(manifest: Manifest) -> Pipeline:
    """The pipeline of a recorded run; its reader is not called again."""
    identity = manifest.identity
    reader = identity.get("reader")
    if reader is None:
        raise UsageError(
            "this run has no answers; `mnemoscope answer` creates answers from its hits"
        )
    return Pipeline(
        lifecycle=identity["lifecycle"],
        reader=recorded_plan(reader, _RecordedReader) if isinstance(reader, dict) else None,
        system_answers=reader == "system",
        window=identity["judge_memory_window"],
        compat=identity["compat"],
    )


def recorded_plan(about: dict[str, Any], part: Callable[[Spec], Any]) -> Plan:
    """A plan with the recorded identity, for a system or reader that is not called."""
    identity = {key: value for key, value in about.items() if key != "spec"}
    spec = Spec.parse(about["spec"])
    return Plan(spec, lambda: part(spec), identity, answers=True)


class _RecordedSystem:
    """Stands for the system of the recorded run, which is not asked again."""

    def __init__(self, spec: Spec) -> None:
        pass

    def recall(self, query: Query, k: int) -> list[str]:
        raise AssertionError("the hits are recorded")


class _RecordedReader:
    """Stands for the reader of the recorded run; its passages can still be shown."""

    def __init__(self, spec: Spec) -> None:
        self.wants_everything = spec.name == "full-context"

    def read(self, query: Query, passages: object) -> None:
        raise AssertionError("the answers are recorded")


def _begin_with(
    source: RunDirectory, directory: RunDirectory, dataset: Dataset, phase: Phase
) -> None:
    """Write the kept lines as spools, as if the new run had been interrupted there."""
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
        for file in spool:
            seal_spool(file)


def _kept(source: RunDirectory, phase: Phase) -> Iterator[Timing]:
    """The timings of the kept phases, whose costs count as paid by the old run."""
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
