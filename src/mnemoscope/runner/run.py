"""A run: every system against every scenario, in parallel, resumable, in one call.

Each system gets a run directory of its own below `out`; running the same call again continues
where the last one stopped and asks nothing twice.
"""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import Any

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope.analysis.longitudinal import columns
from mnemoscope.analysis.measure import SEED, Depth
from mnemoscope.datasets.base import DataFile, Dataset
from mnemoscope.datasets.leakage import leaks
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.protocols import Chosen
from mnemoscope.runner.finish import finish
from mnemoscope.runner.merge import JournalMerger
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.progress_log import ProgressLog, header_of
from mnemoscope.runner.scheduler import CheckpointDone, Finished, Limits, Scheduler
from mnemoscope.runner.work_unit import WorkUnit
from mnemoscope.systems.loader import Plan
from mnemoscope.types import Checkpoint, Question, Scenario, Timing

DEPTH = 50
"""How many hits a system is asked for."""
_DECISIVE_PACKAGES = ("mnemoscope", "numpy", "bm25s", "PyStemmer", "wordllama", "tokenizers")


class Settings(msgspec.Struct, frozen=True):
    """How to run; everything here but `workers` can change a number."""

    depth: int = DEPTH
    seed: int = SEED
    """Of the bootstrap, and of the random arm."""
    limits: Limits = Limits()
    workers: int = 0
    """Processes; 0 means one for each core."""
    accept_leaks: bool = False
    """Go on where the scan finds something that looks like a label, and say so in the notes."""


Progress = Callable[[float], None]
"""Told, now and then, how many units are done, counting those in work by their share."""


def run(
    dataset: Dataset,
    plans: Sequence[Plan],
    out: Path,
    settings: Settings = Settings(),
    progress: Progress = lambda units: None,
    *,
    arms: int = 0,
    protocol: Chosen | None = None,
    deviations: Sequence[str] = (),
    pipeline: Pipeline = Pipeline(),
    progress_copy: Path | None = None,
    max_cost: float | None = None,
    exams: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    derived_from: str = "",
) -> list[RunDirectory]:
    """Run all systems; returns their finished run directories in the order given.

    The last `arms` of the plans are sanity arms, and their manifests say so. `max_cost` is what
    models may cost in US dollars, everything counted that these runs have paid before. `exams`
    tells how judges did in theirs. `derived_from` is the hash of the journal that the runs began
    with, where an earlier run's phases are kept.
    """
    if settings.workers < 0:
        raise UsageError(f"{settings.workers} workers: say how many, or 0 for one per core")
    if settings.seed < 0:
        raise UsageError(f"seed {settings.seed}: it is 0 or more")
    for seconds in (settings.limits.recall, settings.limits.remember):
        if not seconds > 0:
            raise UsageError(f"a time limit of {seconds:g} seconds leaves no time at all")
    if settings.limits.restarts < 0:
        raise UsageError(f"{settings.limits.restarts} restarts: say how many, or 0 for none")
    if not dataset.pool_known:
        raise UsageError(
            f"{dataset.name} has judgments but no texts to remember; score a file of rankings "
            f"instead: mnemoscope score RANKINGS --dataset {dataset.name} …"
        )
    slugs = [plan.spec.slug for plan in plans]
    if len(set(slugs)) < len(slugs):
        twice = next(slug for slug in slugs if slugs.count(slug) > 1)
        raise UsageError(f"{twice} is given twice; LABEL=SPEC gives a system a name of its own")
    runs = [RunDirectory(out / slug) for slug in slugs]
    pipeline = msgspec.structs.replace(
        pipeline, depth=settings.depth, restarts=settings.limits.restarts
    )
    workers = settings.workers or usable_cores()
    if dataset.expected_scenarios is not None:
        workers = min(workers, dataset.expected_scenarios * len(plans)) or 1
    with (
        _budget(max_cost, workers) as budget,
        Scheduler(plans, pipeline, workers, settings.limits) as scheduler,
    ):
        files = dataset.files()
        plans = scheduler.describe()
        for plan in plans[: len(plans) - arms]:
            _check_abilities(plan, system_answers=pipeline.system_answers)
        try:
            manifests = [
                directory.open(
                    {
                        **identity(dataset, files, plan, settings),
                        **pipeline.identity(),
                        **({"derived_from": derived_from} if derived_from else {}),
                    },
                    environment=environment(settings),
                    notes=[*data_notes(files), *plan.notes],
                    protocol={"id": protocol.id, "sha256": protocol.sha256} if protocol else {},
                    deviations=list(deviations),
                    category_names=dict(dataset.category_names),
                    arm=number >= len(plans) - arms,
                    exams=dict(exams),
                )
                for number, (directory, plan) in enumerate(zip(runs, plans, strict=True))
            ]
            try:
                copies = [progress_copy, *(None for _ in runs[1:])]
                progress_logs = [
                    ProgressLog(directory, header_of(manifest), copy)
                    for directory, manifest, copy in zip(runs, manifests, copies, strict=True)
                ]
                if budget is not None:
                    with budget.reserve(0.0) as before:
                        before.cost = sum(paid(run.path) for run in runs)
                execution = _Execution(
                    dataset, scheduler, runs, settings, pipeline, progress_logs, progress
                )
                questions = execution.work()
                if not questions:
                    raise DataError("holds no question", file=dataset.name)
                for directory, manifest, progress_log in zip(
                    runs, manifests, progress_logs, strict=True
                ):
                    if manifest.state == "complete" and directory not in execution.touched:
                        progress_log.close()
                        continue
                    manifest.findings = dict(dataset.findings.counts)
                    manifest.leaks = execution.leaked
                    manifest.checkpoints = execution.checkpoints
                    directory.save(manifest)
                    depth, seed = Depth(settings.depth), settings.seed
                    progress_log.close(
                        finish(directory, manifest, questions, depth, seed, execution.plan)
                    )
            except BaseException:
                _mark_interrupted(runs, manifests)
                raise
        finally:
            for directory in runs:
                directory.release()
    return runs


def _check_abilities(plan: Plan, *, system_answers: bool) -> None:
    """Refuse a system that cannot do what it is to be asked for, before anything is asked."""
    if system_answers and not plan.answers:
        raise UsageError(
            f"--reader system: {plan.spec} has no answer(query); leave --reader away, and the "
            "extractive reader answers from what it recalls"
        )
    if not system_answers and not plan.recalls:
        raise UsageError(
            f"{plan.spec} answers by itself and has no recall(query, k): say --reader system"
        )


class _Execution:
    """The moving parts of one call of `run`."""

    def __init__(
        self,
        dataset: Dataset,
        scheduler: Scheduler,
        runs: Sequence[RunDirectory],
        settings: Settings,
        pipeline: Pipeline,
        progress_logs: Sequence[ProgressLog],
        progress: Progress,
    ) -> None:
        self.dataset = dataset
        self.scheduler = scheduler
        self.settings = settings
        self.progress_logs = progress_logs
        self.runs = runs
        self.plan: dict[str, Sequence[Checkpoint]] = {}
        self.progress = progress
        self.mergers = [JournalMerger(run, pipeline) for run in runs]
        self.scenarios: set[str] = set()
        self.questions: dict[str, Question] = {}
        self.touched: set[RunDirectory] = set()
        """The runs that something new was recorded of."""
        self.done = 0
        self.leaked = 0

    def work(self) -> dict[str, Question]:
        locks = [run.lock for run in self.runs if run.lock is not None]
        try:
            for event in self.scheduler.work(self._units(), locks):
                if isinstance(event, Finished):
                    self._finished(event.unit)
                elif isinstance(event, CheckpointDone):
                    self.progress_logs[event.unit.run].reached(*event)
                else:
                    self._report()
        finally:
            for merger in self.mergers:
                merger.close()
        return self.questions

    def _units(self) -> Iterator[WorkUnit]:
        for order, scenario in enumerate(self.dataset.scenarios()):
            self._check(scenario)
            for number, merger in enumerate(self.mergers):
                unit = merger.plan(WorkUnit(number, order, scenario))
                if unit.is_complete:
                    self._finished(unit)
                else:
                    self.touched.add(self.runs[number])
                    yield unit

    def _check(self, scenario: Scenario) -> None:
        if scenario.id in self.scenarios:
            raise DataError(f"scenario id {scenario.id!r} twice", file=self.dataset.name)
        self.scenarios.add(scenario.id)
        if scenario.checkpoints:
            self.plan[scenario.id] = scenario.checkpoints
        if len({memory.id for memory in scenario.memories}) < len(scenario.memories):
            raise DataError(
                f"scenario {scenario.id!r} holds two memories of one id", file=self.dataset.name
            )
        for leak in leaks(scenario):
            if not self.settings.accept_leaks:
                raise DataError(
                    f"labels leak into what systems would see: {leak}. If that is no label, "
                    "--accept-leaks goes on, and every report says so",
                    file=self.dataset.name,
                )
            self.leaked += 1
        for question in scenario.questions:
            if question.id in self.questions:
                raise DataError(f"question id {question.id!r} twice", file=self.dataset.name)
            self.questions[question.id] = question

    def _finished(self, unit: WorkUnit) -> None:
        self.progress_logs[unit.run].finished(unit, self.mergers[unit.run].lines_of(unit))
        self.mergers[unit.run].finished(unit)
        self.done += 1

    @property
    def checkpoints(self) -> list[str]:
        return [column.label for column in columns(self.plan)]

    def _report(self) -> None:
        share = 0.0
        for worker in self.scheduler.workers:
            if worker.unit is not None and worker.unit.asks:
                share += worker.heartbeat.settled / worker.unit.asks
        self.progress(self.done + share)


@contextmanager
def _budget(limit: float | None, workers: int) -> Iterator[Budget | None]:
    """While the block runs, all workers together spend no more than the limit.

    The accounts are shared memory, so this comes before the first fork. The parent's own account
    holds what the runs have paid before.
    """
    if limit is None:
        yield None
        return
    with NamedTemporaryFile(prefix="mnemoscope-budget-", suffix=".lock") as lock:
        budget = Budget(limit, 0.0, workers + 1, Path(lock.name))
    open_budget(budget)
    try:
        yield budget
    finally:
        open_budget(None)


def paid(run: Path) -> float:
    """What a run has paid for so far, merged or still in its spools."""
    total = 0.0
    for place in [run / "timings.jsonl", *run.glob("units/*.timings.jsonl")]:
        if place.exists():
            Journal(place).close()  # a killed process leaves a torn last line
            usages = (timing.usage for timing in read_records(place, Timing))
            total += sum(usage.paid for usage in usages if usage is not None)
    return total


def _mark_interrupted(runs: Sequence[RunDirectory], manifests: Sequence[Manifest]) -> None:
    for directory, manifest in zip(runs, manifests, strict=True):
        if manifest.state == "running":
            manifest.state = "interrupted"
            with suppress(OSError):  # a full disk must not hide that it is full
                directory.save(manifest)


def identity(
    dataset: Dataset, files: Sequence[DataFile], plan: Plan, settings: Settings
) -> dict[str, Any]:
    """Everything that can change a number."""
    return {
        "benchmark": benchmark_identity(dataset, files),
        "system": {"spec": str(plan.spec), **plan.identity},
        "depth": settings.depth,
        "seed": settings.seed,
        "limits": msgspec.to_builtins(settings.limits),
        "versions": {
            "python": ".".join(map(str, sys.version_info[:2])),
            "sqlite": sqlite3.sqlite_version,
            **{name: found for name in _DECISIVE_PACKAGES if (found := installed(name))},
        },
    }


def benchmark_identity(dataset: Dataset, files: Sequence[DataFile]) -> dict[str, Any]:
    """What is asked of what: runs that differ here answer different questions."""
    return {
        "name": dataset.name,
        "options": dataset.options,
        "sha256": [file.sha256 for file in files],
    }


def environment(settings: Settings) -> dict[str, Any]:
    """Where it ran; for the reader, not part of the identity."""
    return {
        "platform": platform.platform(),
        "python": platform.python_version(),
        "cores": usable_cores(),
        "workers": settings.workers or usable_cores(),
    }


def data_notes(files: Sequence[DataFile]) -> list[str]:
    """What a reader of the numbers must know about the data they were made from."""
    return [
        f"{file.path.name} is not the pinned file: sha256 {file.sha256[:12]}… "
        f"instead of {(file.pinned or '')[:12]}…"
        for file in files
        if file.matches_pin is False
    ]


def usable_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
