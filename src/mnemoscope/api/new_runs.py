"""Run systems on a benchmark, and estimate what that would cost."""

from __future__ import annotations

import logging
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory, declared_repeat
from mnemoscope.api.arguments import Where, optional_path, several
from mnemoscope.api.kept_memories import keep_memories
from mnemoscope.api.page_texts import page_texts
from mnemoscope.api.run_progress import Progress, reporting
from mnemoscope.results import (
    PhaseEstimate,
    Results,
    RunEstimate,
    RunResult,
)
from mnemoscope.runner.run_setup import (
    Draw,
    Lifecycle,
    RunConfig,
    Systems,
    prepare,
    require_checkpoints,
)
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.analysis.repeats import RepeatSet
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.protocols import Chosen
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.run import Settings
    from mnemoscope.systems.loader import Plan

_log = logging.getLogger(__name__)


_COPIED_FILES = ("heatmap.png", "progress.jsonl", "questions.jsonl", "failures.jsonl")
"""Files that are copied together with result.json."""


def run(
    benchmark: str | Dataset,
    *,
    systems: Systems = (),
    data: Where | None = None,
    out: Where | None = None,
    profile: Where | None = None,
    reader: str | None = None,
    judge: str | Sequence[str] | None = None,
    appellate_judge: str | None = None,
    judge_memory_window: int | None = None,
    repeat: int = 1,
    scenarios: int | None = None,
    questions: int | None = None,
    draw: Draw = "random",
    lifecycle: Lifecycle | None = None,
    parallelism: int | None = None,
    max_cost: float | None = None,
    baselines: bool = True,
    protocol: str | None = None,
    deviation: str | None = None,
    depth: int | None = None,
    seed: int | None = None,
    timeout: float | None = None,
    remember_timeout: float = 3600.0,
    restarts: int = 2,
    workers: int | None = None,
    executor: str = "local",
    resources: str | Sequence[str] | None = None,
    compat: Literal["recall-bench"] | None = None,
    skip_preflight: bool = False,
    accept_leaks: bool = False,
    private: bool = False,
    isolation: Literal[0, 1, 2, 3] | None = None,
    read_only: bool = False,
    fresh: bool = False,
    resume: Where | None = None,
    json_out: Where | None = None,
    question_log: Where | None = None,
    progress_jsonl: Where | None = None,
    heatmap_png: bool = True,
    dry_run: bool = False,
    progress: Progress = None,
    **options: Scalar,
) -> Results:
    """Run memory systems and baselines on a benchmark.

    `benchmark` is a dataset's name, or a Dataset object. `systems` are specs, classes, objects or
    functions; a mapping gives them labels: `{"mine": MyMemory}`. `options` are passed to the
    dataset, such as granularity="turn". `RunConfig` describes all other arguments.
    """
    given = {
        **locals(),
        "judge": several(judge) or None,
        "resources": several(resources) or None,
    }
    for name in ("data", "out", "profile", "resume", "json_out", "question_log", "progress_jsonl"):
        given[name] = optional_path(given[name])
    config = RunConfig(**{field.name: given[field.name] for field in fields(RunConfig)})
    return run_config(benchmark, systems, config, options, progress)


def run_config(
    benchmark: str | Dataset,
    systems: Systems,
    config: RunConfig,
    options: Mapping[str, Scalar] = {},
    progress: Progress = None,
) -> Results:
    """Like `run`, with the arguments in one object."""
    from mnemoscope.runner.answer_setup import check_models

    setup = prepare(benchmark, systems, config, options)
    check_models(setup.models, config.max_cost)
    if config.fresh:
        from mnemoscope._store.deleted_runs import delete_runs

        delete_runs(setup.out, [plan.spec.slug for plan in (*setup.plans, *setup.baselines)])
    runs = execute(
        setup.dataset,
        setup.plans,
        setup.out,
        setup.settings,
        baselines=setup.baselines,
        protocol=setup.protocol,
        deviations=setup.deviations,
        pipeline=setup.pipeline,
        progress_copy=config.progress_jsonl,
        max_cost=config.max_cost,
        png=config.heatmap_png,
        progress=progress,
    )
    if config.json_out or config.question_log:
        _copy(runs[0], config.json_out, config.question_log)
    return summarised(runs, setup.out)


def estimate(
    benchmark: str | Dataset,
    systems: Systems,
    config: RunConfig,
    options: Mapping[str, Scalar] = {},
    progress: Progress = None,
) -> RunEstimate:
    """Estimate what a run would cost: systems recall, but requests to models are only counted."""
    from mnemoscope.models.model_loader import load_model
    from mnemoscope.runner.answer_setup import priced
    from mnemoscope.runner.run import run as run_plans

    setup = prepare(benchmark, systems, config, options, only_count=True)
    if setup.pipeline.system_answers:
        raise UsageError("the cost of the models that a system itself uses cannot be estimated")
    if not any("estimate" in str(part) for part in setup.pipeline.identity().values()):
        raise UsageError(
            "--estimate counts requests to models, and this run uses none; name one, for example "
            "--reader openai:gpt-4o-mini"
        )
    plans = [*setup.plans, *setup.baselines]
    phases: list[PhaseEstimate] = []
    with (
        TemporaryDirectory(prefix="mnemoscope-estimate-") as folder,
        reporting(progress, setup.dataset, len(plans)) as (advance, asked),
    ):
        place = Path(folder)
        for directory in run_plans(
            *(setup.dataset, plans, place, setup.settings, advance),
            pipeline=setup.pipeline,
            counted=False,
            questions=asked,
        ):
            accounts = directory.read_json("timing.json")["accounts"]["phases"]
            phases += [
                PhaseEstimate(
                    directory.label,
                    phase,
                    *(use[key] for key in ("requests", "input_tokens", "output_tokens", "cost")),
                )
                for phase, use in accounts.items()
                if use["requests"]
            ]
    return RunEstimate(phases, {m: priced(m) for m in setup.models if load_model(m).price is None})


def execute(
    dataset: Dataset,
    plans: Sequence[Plan],
    out: Path,
    settings: Settings | None = None,
    *,
    baselines: Sequence[Plan] = (),
    protocol: Chosen | None = None,
    deviations: Sequence[str] = (),
    pipeline: Pipeline | None = None,
    progress_copy: Path | None = None,
    max_cost: float | None = None,
    png: bool = True,
    counted: bool = True,
    progress: Progress = None,
) -> list[RunDirectory]:
    """Run all plans and write a report into each run directory.

    Runs that are not `counted` are unknown to the ledger of attempts.
    """
    from mnemoscope.analysis.repeats import repeat_sets
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.run import Settings
    from mnemoscope.runner.run import run as run_plans

    pipeline = pipeline or Pipeline()
    everything = [*plans, *baselines]
    with reporting(progress, dataset, len(everything)) as (advance, asked):
        runs = run_plans(
            dataset,
            everything,
            out,
            settings or Settings(),
            advance,
            baselines=len(baselines),
            protocol=protocol,
            deviations=deviations,
            pipeline=pipeline,
            progress_copy=progress_copy,
            max_cost=max_cost,
            exams=exams_of_judges(pipeline, dataset),
            counted=counted,
            questions=asked,
        )
    sets = repeat_sets(out, rewriting=True) if any(plan.repeat for plan in plans) else []
    texts = page_texts(dataset, runs)
    if dataset.info.is_store:
        keep_memories(dataset, runs)
    for directory in runs:
        write_report(directory, png=png, repeats=sets, texts=texts)
    return runs


@contextmanager
def dry_run(
    benchmark: str,
    systems: Systems,
    config: RunConfig,
    options: Mapping[str, Scalar] = {},
    progress: Progress = None,
) -> Iterator[Results]:
    """Run the first checkpoint of the first persona; its files are deleted when the block ends."""
    from mnemoscope.datasets import open_dataset
    from mnemoscope.runner.answer_setup import check_models
    from mnemoscope.runner.growing_history import first_checkpoint

    require_checkpoints(benchmark, "--dry-run")
    setup = prepare(benchmark, systems, replace(config, repeat=1), options)
    assert setup.history is not None
    check_models(setup.models, config.max_cost)
    cut = open_dataset(benchmark, setup.data, first_checkpoint(setup.history))
    with TemporaryDirectory(prefix="mnemoscope-dry-") as folder:
        runs = execute(
            cut,
            setup.plans,
            Path(folder),
            setup.settings,
            pipeline=setup.pipeline,
            max_cost=config.max_cost,
            png=False,
            counted=False,
            progress=progress,
        )
        yield summarised(runs, Path(folder))


def simulate(
    persona: str,
    *,
    out: Where,
    days: int = 1000,
    seed: int = 42,
    edition: int = 1,
    density: int = 1000,
    force: bool = False,
) -> Path:
    """Simulate a persona's days, questions and ledger, and return the persona's folder.

    `persona` is the id of a shipped persona, or the path of your own story file. The working days
    of edition 2 have about `density` words.
    """
    from mnemoscope.personas.simulate.simulator import simulate_persona

    return simulate_persona(
        persona, Path(out), days=days, seed=seed, edition=edition, density=density, force=force
    ).folder


def exams_of_judges(pipeline: Pipeline, dataset: Dataset) -> dict[str, dict[str, Any]]:
    """The exam results of the judges; a note is logged for each judge without one."""
    from mnemoscope.runner.answer_setup import exams_of

    exams = exams_of(pipeline, dataset)
    for note in exams.notes:
        _log.warning("note: %s", note)
    return exams.results


def summarised(runs: Sequence[RunDirectory], folder: Path) -> Results:
    """Write summary.md and summary.json into the folder, and return the results."""
    from mnemoscope.reports.run_report import write_summary
    from mnemoscope.reports.run_view import RunView

    sets = declared_repeats(runs, folder)
    write_summary(folder, [RunView.of(directory) for directory in runs], sets)
    return Results([RunResult(directory.path) for directory in runs], sets)


def declared_repeats(runs: Sequence[RunDirectory], folder: Path) -> list[RepeatSet]:
    """The declared sets in the folder, if one of these runs is a repeat."""
    from mnemoscope.analysis.repeats import repeat_sets

    if not any(declared_repeat(run.manifest().identity) for run in runs):
        return []
    return repeat_sets(folder, rewriting=True)


def _copy(run: RunDirectory, json_out: Path | None, question_log: Path | None) -> None:
    """Copy files of a run directory to the places that the user named."""
    wanted: list[tuple[str, Path]] = []
    if json_out:
        wanted.append(("result.json", json_out))
        wanted += [(name, json_out.parent / name) for name in _COPIED_FILES]
    if question_log:
        wanted.append(("questions.jsonl", question_log))
    for name, place in wanted:
        if (run.path / name).exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(run.path / name, place)
