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
from contextlib import ExitStack, contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import Any, NamedTuple

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
from mnemoscope.runner.progress_log import ProgressLog
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
    _check(dataset, plans, settings)
    runs = [RunDirectory(out / plan.spec.slug) for plan in plans]
    pipeline = msgspec.structs.replace(
        pipeline, depth=settings.depth, restarts=settings.limits.restarts
    )
    workers = settings.workers or usable_cores()
    if dataset.expected_scenarios is not None:
        workers = min(workers, dataset.expected_scenarios * len(plans)) or 1
    with (
        _budget(max_cost, workers) as budget,
        ExitStack() as opened,
        Scheduler(plans, pipeline, workers, settings.limits) as scheduler,
    ):
        files = dataset.files()
        plans = scheduler.describe()
        _check_abilities(plans[: len(plans) - arms], system_answers=pipeline.system_answers)
        manifests: list[Manifest] = []
        for number, (directory, plan) in enumerate(zip(runs, plans, strict=True)):
            opened.callback(directory.release)
            manifests.append(
                directory.open(
                    {
                        **identity(dataset, files, plan, settings),
                        **pipeline.identity(),
                        **({"derived_from": derived_from} if derived_from else {}),
                    },
                    environment={
                        "platform": platform.platform(),
                        "python": platform.python_version(),
                        "cores": usable_cores(),
                        "workers": settings.workers or usable_cores(),
                    },
                    notes=[*data_notes(files), *plan.notes],
                    protocol={"id": protocol.id, "sha256": protocol.sha256} if protocol else {},
                    deviations=list(deviations),
                    category_names=dict(dataset.category_names),
                    arm=number >= len(plans) - arms,
                    exams=dict(exams),
                )
            )
        opened.enter_context(_interruption_recorded(runs, manifests))
        records = []
        for directory, manifest in zip(runs, manifests, strict=True):
            journal = JournalMerger(directory, pipeline)
            opened.callback(journal.close)
            copy = progress_copy if directory is runs[0] else None
            log = ProgressLog(directory, manifest, copy)
            records.append(_OpenRun(directory, manifest, journal, log))
        if budget is not None:
            with budget.reserve(0.0) as before:
                before.cost = sum(paid(run.path) for run in runs)
        execution = _Execution(dataset, scheduler, records, settings, progress)
        execution.work()
        execution.finish()
    return runs


@contextmanager
def _interruption_recorded(
    runs: Sequence[RunDirectory], manifests: Sequence[Manifest]
) -> Iterator[None]:
    """Runs that do not come to their end say so in their manifests."""
    try:
        yield
    except BaseException:
        for directory, manifest in zip(runs, manifests, strict=True):
            if manifest.state == "running":
                manifest.state = "interrupted"
                with suppress(OSError):  # a full disk must not hide that it is full
                    directory.save(manifest)
        raise


def _check(dataset: Dataset, plans: Sequence[Plan], settings: Settings) -> None:
    """Refuse what cannot be run, before any process is started."""
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


def _check_abilities(plans: Sequence[Plan], *, system_answers: bool) -> None:
    """Refuse systems that cannot do what they are to be asked for, before anything is asked."""
    for plan in plans:
        if system_answers and not plan.answers:
            raise UsageError(
                f"--reader system: {plan.spec} has no answer(query); leave --reader away, and the "
                "extractive reader answers from what it recalls"
            )
        if not system_answers and not plan.recalls:
            raise UsageError(
                f"{plan.spec} answers by itself and has no recall(query, k): say --reader system"
            )


class _OpenRun(NamedTuple):
    """Where one system's run is written."""

    directory: RunDirectory
    manifest: Manifest
    journal: JournalMerger
    progress: ProgressLog


class _Execution:
    """One call of `run`, from the first unit to the last file."""

    def __init__(
        self,
        dataset: Dataset,
        scheduler: Scheduler,
        records: Sequence[_OpenRun],
        settings: Settings,
        progress: Progress,
    ) -> None:
        self._dataset = dataset
        self._scheduler = scheduler
        self._records = records
        self._settings = settings
        self._progress = progress
        self._plan: dict[str, Sequence[Checkpoint]] = {}
        """Scenario to its checkpoints, where it has any."""
        self._scenarios: set[str] = set()
        self._questions: dict[str, Question] = {}
        self._changed: set[int] = set()
        """The runs that something new was recorded of."""
        self._done = 0
        self._leaked = 0

    def work(self) -> None:
        """Work through all units, and merge what comes of them."""
        locks = [lock for one in self._records if (lock := one.directory.lock) is not None]
        for event in self._scheduler.work(self._units(), locks):
            if isinstance(event, Finished):
                self._finished(event.unit)
            elif isinstance(event, CheckpointDone):
                self._records[event.unit.run].progress.checkpoint_done(*event)
            else:
                shares = (
                    worker.heartbeat.shared.settled / worker.unit.asks
                    for worker in self._scheduler.workers
                    if worker.unit is not None and worker.unit.asks
                )
                self._progress(self._done + sum(shares))
        for one in self._records:
            one.journal.close()

    def finish(self) -> None:
        """Write the files that are derived from the journals, of each run that has changed."""
        if not self._questions:
            raise DataError("holds no question", file=self._dataset.name)
        for number, (directory, manifest, _, progress) in enumerate(self._records):
            if manifest.state == "complete" and number not in self._changed:
                progress.close()
                continue
            manifest.findings = dict(self._dataset.findings.counts)
            manifest.leaks = self._leaked
            manifest.checkpoints = [column.label for column in columns(self._plan)]
            directory.save(manifest)
            depth, seed = Depth(self._settings.depth), self._settings.seed
            progress.close(finish(directory, manifest, self._questions, depth, seed, self._plan))

    def _units(self) -> Iterator[WorkUnit]:
        for order, scenario in enumerate(self._dataset.scenarios()):
            self._check(scenario)
            for number, one in enumerate(self._records):
                unit = one.journal.unit(number, order, scenario)
                if unit.is_complete:
                    self._finished(unit)
                else:
                    self._changed.add(number)
                    yield unit

    def _check(self, scenario: Scenario) -> None:
        """Refuse ids that occur twice and labels that systems would see."""
        file = self._dataset.name
        if scenario.id in self._scenarios:
            raise DataError(f"scenario id {scenario.id!r} twice", file=file)
        self._scenarios.add(scenario.id)
        if scenario.checkpoints:
            self._plan[scenario.id] = scenario.checkpoints
        if len({memory.id for memory in scenario.memories}) < len(scenario.memories):
            raise DataError(f"scenario {scenario.id!r} holds two memories of one id", file=file)
        for leak in leaks(scenario):
            if not self._settings.accept_leaks:
                raise DataError(
                    f"labels leak into what systems would see: {leak}. If that is no label, "
                    "--accept-leaks goes on, and every report says so",
                    file=file,
                )
            self._leaked += 1
        for question in scenario.questions:
            if question.id in self._questions:
                raise DataError(f"question id {question.id!r} twice", file=file)
            self._questions[question.id] = question

    def _finished(self, unit: WorkUnit) -> None:
        _, _, journal, progress = self._records[unit.run]
        progress.finished(unit, journal.lines.get(unit.scenario.id, ()))
        journal.finished(unit)
        self._done += 1


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
