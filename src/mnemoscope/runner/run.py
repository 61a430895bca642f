"""A run: every system on every scenario, in parallel and resumable.

Each system gets a run directory below `out`. The same call continues an interrupted run, and asks
only what is not recorded.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import fingerprint
from mnemoscope._store.jsonl import Journal, read_records
from mnemoscope._store.run_directory import REPEAT, Manifest, RunDirectory
from mnemoscope._store.watched_run import ExpectedQuestions
from mnemoscope.analysis.longitudinal import columns
from mnemoscope.analysis.measure import Depth
from mnemoscope.datasets.base import DataFile, Dataset, reviewed_of, withheld_of
from mnemoscope.datasets.leakage import leaks
from mnemoscope.models.budget import Budget, open_budget
from mnemoscope.protocols import Chosen
from mnemoscope.runner.finish import finish
from mnemoscope.runner.isolation_setup import RunIsolation, data_paths
from mnemoscope.runner.merge import JournalMerger
from mnemoscope.runner.pipeline import Pipeline
from mnemoscope.runner.progress_log import ProgressLog
from mnemoscope.runner.question_progress import QuestionProgress
from mnemoscope.runner.rare_collections import rare_collections
from mnemoscope.runner.scheduler import (
    CheckpointDone,
    Finished,
    Limits,
    Scheduler,
    most_workers,
)
from mnemoscope.runner.versions import decisive_versions
from mnemoscope.runner.work_unit import WorkUnit
from mnemoscope.systems.loader import CallLimits, Plan
from mnemoscope.types import Checkpoint, Isolation, Question, Scenario, Timing

if TYPE_CHECKING:  # few runs use a cluster
    from mnemoscope.runner.cluster.cluster import Cluster

DEPTH = 50
"""How many hits a system is asked for."""
SEED = 42


class Settings(msgspec.Struct, frozen=True):
    """How to run.

    Everything except `workers`, `isolation`, `executor` and `resources` can change a number.
    """

    depth: int = DEPTH
    seed: int = SEED
    """Of sampling and of the random baseline."""
    limits: Limits = Limits()
    workers: int = 0
    """Number of processes; 0 means one for each core."""
    accept_leaks: bool = False
    """Continue if the leakage scan finds a text that looks like a label, and record it."""
    isolation: int | None = None
    """The level of isolation that is demanded; None for the highest that is possible."""
    executor: str = "local"
    """Where systems run: `local`, `ray`, or the address of a Ray cluster."""
    resources: tuple[str, ...] = ()
    """What a worker on a cluster needs, such as `LABEL:cpus=2,memory=8GB`."""
    private: bool = False
    """Record ids and figures only, as of a dataset that is private itself."""


_PRIVATE_NOTE = "private: the texts of questions and memories are only in the dataset's folder"
Progress = Callable[[float], None]
"""Called with the number of finished units; a unit in progress counts by its share."""


def run(
    dataset: Dataset,
    plans: Sequence[Plan],
    out: Path,
    settings: Settings = Settings(),
    progress: Progress = lambda units: None,
    *,
    baselines: int = 0,
    protocol: Chosen | None = None,
    deviations: Sequence[str] = (),
    pipeline: Pipeline = Pipeline(),
    progress_copy: Path | None = None,
    max_cost: float | None = None,
    exams: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    derived_from: str = "",
    kept_isolation: Isolation | None = None,
    counted: bool = True,
    questions: QuestionProgress | None = None,
) -> list[RunDirectory]:
    """Run all systems; returns their finished run directories in the order given.

    The last `baselines` of the plans are baselines, and their manifests say so. `max_cost` is the
    limit for models in US dollars, with the earlier costs of these runs included. `exams` are the
    exam results of the judges. `derived_from` is the hash of the journal that the runs began with,
    if phases of an earlier run are kept; `kept_isolation` is the isolation of that run. Runs that
    are not `counted` are unknown to the ledger of attempts. `questions` is kept up to date, for
    what `progress` shows.
    """
    begun = datetime.now(UTC)
    _check(dataset, plans, settings)
    # As `is_private` says, whose module few runs need.
    private = settings.private or bool(getattr(dataset, "is_private", False))
    if private:
        from mnemoscope.runner.private_runs import check_private

        check_private(dataset, out, pipeline, settings.executor)
    # The caller writes their reports again.
    runs = [RunDirectory(out / plan.spec.slug, rewriting=True) for plan in plans]
    limits = settings.limits
    pipeline = msgspec.structs.replace(
        pipeline,
        depth=settings.depth,
        restarts=limits.restarts,
        limits=CallLimits(limits.recall, limits.remember),
    )
    usable = os.sched_getaffinity(0) if hasattr(os, "sched_getaffinity") else ()
    cores = len(usable) or os.cpu_count() or 1
    workers = settings.workers or cores
    if dataset.expected_scenarios is not None:
        workers = min(workers, dataset.expected_scenarios * len(plans)) or 1
    with ExitStack() as opened:
        opened.enter_context(rare_collections())
        if private:
            from mnemoscope.runner.private_runs import no_texts_outside

            opened.enter_context(no_texts_outside())
        # Its accounts are shared memory, so this comes before the first fork.
        processes = most_workers(plans, workers)
        budget = (
            opened.enter_context(_budget(max_cost, processes)) if max_cost is not None else None
        )
        releases = opened.enter_context(ExitStack())
        is_local = settings.executor == "local"
        isolation = opened.enter_context(
            RunIsolation(dataset, plans, out, settings.isolation, on_cluster=not is_local)
        )
        cluster = None
        if not is_local:
            if max_cost is not None:
                raise UsageError("--max-cost cannot be enforced on a cluster; omit --executor")
            cluster = opened.enter_context(
                _cluster(dataset, plans, out, settings, pipeline, isolation)
            )
        scheduler = opened.enter_context(
            Scheduler(plans, pipeline, workers, settings.limits, isolation, cluster)
        )
        files = dataset.files()
        plans = scheduler.describe()
        _check_abilities(plans[: len(plans) - baselines], system_answers=pipeline.system_answers)
        manifests: list[Manifest] = []
        identities = [
            {
                **identity(dataset, files, plan, settings),
                **pipeline.identity(),
                **({"derived_from": derived_from} if derived_from else {}),
            }
            for plan in plans
        ]
        declare_repeats(plans, identities)
        for number, (directory, plan) in enumerate(zip(runs, plans, strict=True)):
            releases.callback(directory.release)
            manifests.append(
                directory.open(
                    identities[number],
                    counted=counted,
                    environment={
                        "platform": platform.platform(),
                        "python": platform.python_version(),
                        "cores": cores,
                        "workers": settings.workers or cores,
                        **({} if is_local else {"executor": settings.executor}),
                    },
                    notes=[
                        *data_notes(files),
                        *plan.notes,
                        *_repeat_notes(plan),
                        *([_PRIVATE_NOTE] if private else ()),
                    ],
                    private=private,
                    protocol={"id": protocol.id, "sha256": protocol.sha256} if protocol else {},
                    deviations=list(deviations),
                    category_names=dict(dataset.category_names),
                    arm=number >= len(plans) - baselines,
                    exams=dict(exams),
                )
            )
        try:
            for number, (directory, manifest) in enumerate(zip(runs, manifests, strict=True)):
                if derived_from:
                    manifest.isolation = kept_isolation
                else:
                    isolation.begin(number, manifest, begun)
                if manifest.state != "complete":
                    directory.save(manifest)
            records = []
            for directory, manifest, plan in zip(runs, manifests, plans, strict=True):
                mixed = plan.hosting in ("child", "server")
                if private:
                    from mnemoscope.runner.private_runs import keep_spools_inside

                    keep_spools_inside(dataset, directory.path)
                journal = JournalMerger(
                    directory, pipeline, manifest.fingerprint, mixed=mixed, private=private
                )
                releases.callback(journal.close)
                copy = progress_copy if directory is runs[0] else None
                log = ProgressLog(directory, manifest, copy)
                records.append(_OpenRun(directory, manifest, journal, log))
            if budget is not None:
                with budget.reserve(0.0) as before:
                    before.cost = sum(paid(run.path) for run in runs)
            counts = QuestionProgress() if questions is None else questions
            execution = _Execution(
                dataset, scheduler, records, settings, progress, isolation, counts
            )
            execution.work()
            execution.finish()
        except BaseException:
            for number, (directory, manifest) in enumerate(zip(runs, manifests, strict=True)):
                if manifest.state == "running":
                    manifest.state = "interrupted"
                    isolation.count(number, manifest)
                    with suppress(OSError):  # the first error must be shown, such as a full disk
                        directory.save(manifest)
            raise
    return runs


def _check(dataset: Dataset, plans: Sequence[Plan], settings: Settings) -> None:
    """Refuse settings that cannot be run, before a process is started."""
    if settings.workers < 0:
        raise UsageError(
            f"{settings.workers} workers: must be a number of processes, or 0 for one per core"
        )
    if settings.seed < 0:
        raise UsageError(f"seed {settings.seed}: must be 0 or more")
    for seconds in (settings.limits.recall, settings.limits.remember):
        if not seconds > 0:
            raise UsageError(f"a time limit of {seconds:g} seconds: must be more than 0")
    if settings.limits.restarts < 0:
        raise UsageError(f"{settings.limits.restarts} restarts: must be 0 or more")
    if not dataset.pool_known:
        raise UsageError(
            f"{dataset.name} has judgments but no texts to ingest; score a file of rankings "
            f"instead: mnemoscope score RANKINGS --dataset {dataset.name} …"
        )
    slugs = [plan.spec.slug for plan in plans]
    if len(set(slugs)) < len(slugs):
        twice = next(slug for slug in slugs if slugs.count(slug) > 1)
        raise UsageError(f"{twice} is given twice; give one of them another name with LABEL=SPEC")


def _check_abilities(plans: Sequence[Plan], *, system_answers: bool) -> None:
    """Refuse systems that lack the method that the run needs, before a question is asked."""
    for plan in plans:
        if system_answers and not plan.answers:
            raise UsageError(
                f"--reader system: {plan.spec} has no answer(query); omit --reader, and the "
                "extractive reader answers from its hits"
            )
        if not system_answers and not plan.recalls:
            raise UsageError(
                f"{plan.spec} has answer(query) but no recall(query, k): give --reader system"
            )


class _OpenRun(NamedTuple):
    """The open files of one system's run."""

    directory: RunDirectory
    manifest: Manifest
    journal: JournalMerger
    progress: ProgressLog


@dataclass
class _Execution:
    """One call of `run`, from the first unit to the last file."""

    _dataset: Dataset
    _scheduler: Scheduler
    _records: Sequence[_OpenRun]
    _settings: Settings
    _progress: Progress
    _isolation: RunIsolation
    _counts: QuestionProgress
    _plan: dict[str, Sequence[Checkpoint]] = field(default_factory=dict)
    """Scenario to its checkpoints, if it has any."""
    _scenarios: set[str] = field(default_factory=set)
    _questions: dict[str, Question] = field(default_factory=dict)
    _changed: set[int] = field(default_factory=set)
    """Numbers of the runs in which something new was recorded."""
    _done: int = 0
    _answered: int = 0
    """Questions of the finished units."""
    _leaked: int = 0
    _expected: ExpectedQuestions | None = None

    def work(self) -> None:
        """Run all units, and merge their results."""
        locks = [lock for one in self._records if (lock := one.directory.lock) is not None]
        for event in self._scheduler.work(self._units(), locks):
            if isinstance(event, Finished):
                self._finished(event.unit)
            elif isinstance(event, CheckpointDone):
                self._records[event.unit.run].progress.checkpoint_done(*event)
            else:
                workers = self._scheduler.workers
                in_progress = sum(worker.progress for worker in workers)
                settled = self._answered + sum(worker.settled for worker in workers)
                self._counts.done = max(self._counts.done, settled)
                self._note_expected()
                self._progress(self._done + in_progress)
        self._note_expected()
        self._counts.done = self._answered
        self._progress(self._done)
        for one in self._records:
            one.journal.merge_waiting()
            one.journal.close()

    def finish(self) -> None:
        """Write the files derived from the journal, for each run that has changed."""
        if not self._questions:
            raise DataError("contains no questions", file=self._dataset.name)
        for number, (directory, manifest, _, progress) in enumerate(self._records):
            unchanged = manifest.state == "complete" and number not in self._changed
            # Files without the kind of their intervals have those of an older version.
            if unchanged and "interval" in directory.read_json("metrics.json"):
                progress.close()
                continue
            manifest.findings = dict(self._dataset.findings.counts)
            manifest.withheld = dict(withheld_of(self._dataset))
            manifest.reviewed = reviewed_of(self._dataset)
            manifest.leaks = self._leaked
            manifest.checkpoints = [column.label for column in columns(self._plan)]
            self._isolation.count(number, manifest)
            manifest.state = "running"  # until its files are written again
            directory.save(manifest)
            depth = Depth(self._settings.depth)
            progress.close(finish(directory, manifest, self._questions, depth, self._plan))
            self._isolation.publish(number, directory)
            if progress.path.exists():
                directory.vouch(progress.path.name)

    def _units(self) -> Iterator[WorkUnit]:
        for order, scenario in enumerate(self._dataset.scenarios()):
            self._check(scenario)
            self._isolation.plant(scenario)
            for number, one in enumerate(self._records):
                unit = one.journal.unit(number, order, scenario)
                self._counts.units += 1
                self._counts.read += unit.asked
                if unit.is_complete:
                    self._finished(unit)
                else:
                    self._changed.add(number)
                    yield unit
        self._counts.is_all_read = True

    def _check(self, scenario: Scenario) -> None:
        """Refuse duplicate ids, and labels in texts that systems would see."""
        file = self._dataset.name
        if scenario.id in self._scenarios:
            raise DataError(f"duplicate scenario id {scenario.id!r}", file=file)
        self._scenarios.add(scenario.id)
        if scenario.checkpoints:
            self._plan[scenario.id] = scenario.checkpoints
        if len({memory.id for memory in scenario.memories}) < len(scenario.memories):
            raise DataError(
                f"scenario {scenario.id!r} contains two memories with the same id", file=file
            )
        for leak in leaks(scenario):
            if not self._settings.accept_leaks:
                raise DataError(
                    f"a label leaks into what systems would see: {leak}. If it is not a label, "
                    "continue with --accept-leaks; every report will mention it",
                    file=file,
                )
            self._leaked += 1
        for question in scenario.questions:
            if question.id in self._questions:
                raise DataError(f"duplicate question id {question.id!r}", file=file)
            self._questions[question.id] = question

    def _note_expected(self) -> None:
        """Tell processes that watch the runs how many questions each will ask."""
        systems, scenarios = len(self._records), self._dataset.expected_scenarios
        total = self._counts.total(scenarios * systems if scenarios else None)
        if total is None:
            return
        expected = ExpectedQuestions(total // systems, not self._counts.is_all_read)
        if expected != self._expected:
            self._expected = expected
            for one in self._records:
                one.directory.note_expected(expected)

    def _finished(self, unit: WorkUnit) -> None:
        _, _, journal, progress = self._records[unit.run]
        progress.finished(unit, journal.lines.get(unit.scenario.id, ()))
        journal.finished(unit)
        self._done += 1
        self._answered += unit.asked


def _cluster(
    dataset: Dataset,
    plans: Sequence[Plan],
    out: Path,
    settings: Settings,
    pipeline: Pipeline,
    isolation: RunIsolation,
) -> Cluster:
    from mnemoscope.runner.cluster.cluster import Cluster
    from mnemoscope.runner.cluster.resources import resources_of

    return Cluster(
        settings.executor,
        plans,
        resources_of([plan.spec.slug for plan in plans], settings.resources),
        pipeline,
        settings.limits,
        settings.workers,
        isolation.note_node,
        benchmark=dataset.name,
        hidden=data_paths(dataset),
        out=out,
        isolation=settings.isolation,
    )


@contextmanager
def _budget(limit: float, workers: int) -> Iterator[Budget]:
    """While the block runs, all workers together spend at most the limit.

    The parent's account contains what the runs have paid before.
    """
    with NamedTemporaryFile(prefix="mnemoscope-budget-", suffix=".lock") as lock:
        budget = Budget(limit, 0.0, workers + 1, Path(lock.name))
    open_budget(budget)
    try:
        yield budget
    finally:
        open_budget(None)


def paid(run: Path) -> float:
    """What a run has paid so far, in its journal and in its spools."""
    total = 0.0
    for place in [run / "timings.jsonl", *run.glob("units/*.timings.jsonl")]:
        if place.exists():
            Journal(place).close()  # a killed process leaves an incomplete last line
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
        "versions": decisive_versions(),
    }


def _repeat_notes(plan: Plan) -> list[str]:
    """A caveat on a system that no repeat starts anew."""
    if plan.repeat is None or plan.repeat.seed is not None or plan.hosting != "server":
        return []
    return [
        "all repeats asked the same server, which was not started again: what it keeps between "
        "requests is not varied"
    ]


def declare_repeats(plans: Sequence[Plan], identities: Sequence[dict[str, Any]]) -> None:
    """Add to the identity of each repeat which one it is, of how many and of which set.

    All run directories are opened before the first question, so the ledger of attempts knows the
    whole set from the start.
    """
    set = ""
    for plan, own in zip(plans, identities, strict=True):
        if plan.repeat is None:
            continue
        if plan.repeat.number == 1:
            set = fingerprint(own)
        # A repeat whose phases are done again keeps the set of its run.
        repeat = msgspec.structs.replace(plan.repeat, set=plan.repeat.set or set)
        own[REPEAT] = msgspec.to_builtins(repeat)


def benchmark_identity(dataset: Dataset, files: Sequence[DataFile]) -> dict[str, Any]:
    """The dataset, its options and its data: runs that differ here cannot be compared."""
    return {
        "name": dataset.name,
        "options": dataset.options,
        "sha256": [file.sha256 for file in files],
    }


def data_notes(files: Sequence[DataFile]) -> list[str]:
    """Caveats about the data files."""
    return [
        f"{file.path.name} is not the pinned file: sha256 {file.sha256[:12]}… "
        f"instead of {(file.pinned or '')[:12]}…"
        for file in files
        if file.matches_pin is False
    ]
