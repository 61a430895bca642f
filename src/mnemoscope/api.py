"""The Python API: options in, results out. The command line and notebooks call these functions.

    import mnemoscope as ms

    results = ms.run("locomo", systems=["bm25", "hybrid", MyMemory], out="runs/a")
    results.to_frame()
    ms.compare(results["bm25"], results["hybrid"])

Arguments have the names and meanings of the command line's options. The functions print only a
progress bar, and only on a terminal. Notes and warnings go to the logger `mnemoscope`. After an
interruption the same call continues; recorded results are kept.
"""

from __future__ import annotations

import logging
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec import structs

from mnemoscope._store.attempt_ledger import COPY
from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.run_directory import RunDirectory, declared_repeat, find_runs, is_run
from mnemoscope._store.spec import Spec
from mnemoscope.results import (
    ComparisonResult,
    GateResult,
    ManyResult,
    PhaseEstimate,
    PlanResult,
    QuestionsResult,
    Results,
    RuleChange,
    RunEstimate,
    RunResult,
    ScoredRun,
)
from mnemoscope.runner.run_setup import Lifecycle, Systems, prepare
from mnemoscope.runner.run_setup import RunConfig as RunConfig
from mnemoscope.runner.run_setup import require_checkpoints as require_checkpoints
from mnemoscope.types import Scalar

if TYPE_CHECKING:
    from mnemoscope.analysis.repeats import RepeatSet
    from mnemoscope.analysis.ssh_signatures import RunSignature
    from mnemoscope.analysis.verify import Verification
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.protocols import Chosen
    from mnemoscope.release.citation import Citation
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.question_progress import QuestionProgress
    from mnemoscope.runner.rerun import Phase
    from mnemoscope.runner.run import Settings
    from mnemoscope.systems.loader import Plan

Where = str | Path
RunLike = str | Path | RunResult
_COPIED_FILES = ("heatmap.png", "progress.jsonl", "questions.jsonl", "failures.jsonl")
"""Files that are copied together with result.json."""
_log = logging.getLogger(__name__)


class ProgressUpdate(NamedTuple):
    """The progress of a run."""

    benchmark: str
    done: float
    """Finished systems × scenarios; one in progress counts as a fraction."""
    total: float | None
    questions: int = 0
    """Questions that are done, over all systems and checkpoints."""
    questions_total: int | None = None
    """None if it is not known yet."""
    is_estimate: bool = False
    """Whether scenarios are still to be read, so that the number of questions is an estimate."""
    seconds_left: float | None = None
    """An estimate; None if it is not known yet."""


Progress = Callable[[ProgressUpdate], None] | bool | None
"""A callback; None draws a bar if stderr is a terminal, False draws none."""


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
    compat: Literal["recall-bench"] | None = None,
    skip_preflight: bool = False,
    accept_leaks: bool = False,
    isolation: Literal[0, 1, 2, 3] | None = None,
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
    given = {**locals(), "judge": _several(judge) or None}
    for name in ("data", "out", "profile", "resume", "json_out", "question_log", "progress_jsonl"):
        given[name] = _path(given[name])
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
    return _summarised(runs, setup.out)


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
        _reporting(progress, setup.dataset, len(plans)) as (advance, asked),
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
    with _reporting(progress, dataset, len(everything)) as (advance, asked):
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
            exams=_exams(pipeline),
            counted=counted,
            questions=asked,
        )
    sets = repeat_sets(out, rewriting=True) if any(plan.repeat for plan in plans) else []
    for directory in runs:
        write_report(directory, png=png, repeats=sets)
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
        yield _summarised(runs, Path(folder))


def judge(
    run: RunLike,
    *,
    judge: str | Sequence[str],
    appellate_judge: str | None = None,
    judge_memory_window: int | None = None,
    out: Where | None = None,
    data: Where | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    progress: Progress = None,
) -> Results:
    """Judge the saved answers of a run, or of all runs in a folder, with other judges."""
    from mnemoscope.runner import answer_setup as answers
    from mnemoscope.runner.pipeline import plan_judge, plan_panel
    from mnemoscope.runner.rerun import recorded_pipeline

    judges, runs = _several(judge), find_runs(_run_path(run))
    for old in runs:
        answers.check_judges(_benchmark(old), judges, appellate_judge)
    answers.check_models(answers.models_of(*judges, appellate_judge), max_cost)

    def pipeline_of(old: RunDirectory) -> Pipeline:
        recorded = recorded_pipeline(old.manifest())
        by = _benchmark(old)
        return structs.replace(
            recorded,
            judge=plan_panel([Spec.parse(one) for one in judges], by),
            appellate=plan_judge(Spec.parse(appellate_judge), by) if appellate_judge else None,
            window=recorded.window if judge_memory_window is None else judge_memory_window,
            parallelism=parallelism,
        )

    place = _path(out) or _beside(runs[0], judges)
    work = [(old, pipeline_of(old)) for old in runs]
    return _redo(work, "judge", place, _path(data), workers, max_cost, progress)


def answer(
    run: RunLike,
    *,
    reader: str,
    judge: str | Sequence[str] | None = None,
    appellate_judge: str | None = None,
    out: Where | None = None,
    data: Where | None = None,
    parallelism: int = 1,
    workers: int = 0,
    max_cost: float | None = None,
    progress: Progress = None,
) -> Results:
    """Answer from the saved hits of a run with another reader; the system is not called."""
    from mnemoscope.runner import answer_setup as answers

    judges = _several(judge)
    if reader.split(",")[0] in (answers.SYSTEM, answers.NONE):
        raise UsageError("the system is not called when saved hits are read: name another reader")
    work = []
    for old in find_runs(_run_path(run)):
        identity = old.manifest().identity
        pipeline = answers.pipeline_for(
            _benchmark(old),
            reader=reader,
            judges=judges,
            appellate=appellate_judge,
            lifecycle=identity.get("lifecycle", "auto"),
            window=identity.get("judge_memory_window", 0),
            compat=identity.get("compat", ""),
            parallelism=parallelism,
        )
        work.append((old, pipeline))
    answers.check_models(answers.models_of(reader, *judges, appellate_judge), max_cost)
    place = _path(out) or _beside(work[0][0], [reader])
    return _redo(work, "answer", place, _path(data), workers, max_cost, progress)


def _redo(
    work: Sequence[tuple[RunDirectory, Pipeline]],
    phase: Phase,
    out: Path,
    data: Path | None,
    workers: int,
    max_cost: float | None,
    progress: Progress,
) -> Results:
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.answer_setup import reopened
    from mnemoscope.runner.rerun import redo
    from mnemoscope.runner.run import paid

    done: list[RunDirectory] = []
    for old, pipeline in work:
        dataset = reopened(old.manifest(), data)
        left = None if max_cost is None else max_cost - sum(paid(new.path) for new in done)
        with _reporting(progress, dataset, 1) as (advance, asked):
            new = redo(
                old,
                dataset,
                out,
                pipeline,
                phase,
                workers=workers,
                max_cost=left,
                exams=_exams(pipeline),
                progress=advance,
                questions=asked,
            )
        write_report(new)
        done.append(new)
    if sets := _repeats(done, out):
        for new in done:
            write_report(new, repeats=sets)
    return _summarised(done, out)


def score(
    file: Where,
    *,
    dataset: str,
    out: Where | None = None,
    format: Literal["jsonl", "trec", "pgmnemo"] = "jsonl",
    compat: Literal["pgmnemo"] | None = None,
    depth: int = 0,
    data: Where | None = None,
    **options: Scalar,
) -> ScoredRun:
    """Score a file of rankings against a dataset's evidence; no system is called.

    The run directory is `out`, by default the file's name below `runs`. `depth` is how many hits
    were asked for, if the file does not state it: a shorter list is then complete.
    """
    from mnemoscope.datasets import dataset_info, open_dataset
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.score_rankings import rule_changes
    from mnemoscope.runner.score_rankings import score as score_file

    rankings = Path(file)
    if not rankings.is_file():
        raise MissingData(f"no such file: {rankings}")

    published = dataset_info(dataset).published_rules.get("pgmnemo")

    def scored(rules: Literal["pgmnemo"] | None, folder: Path) -> RunDirectory:
        fixed = published.options if rules and published else {}
        opened = open_dataset(dataset, _path(data), {**options, **fixed})
        directory = score_file(opened, rankings, folder, format=format, compat=rules, depth=depth)
        write_report(directory)
        return directory

    result = ScoredRun(scored(compat, _path(out) or Path("runs") / rankings.stem).path)
    if format == "pgmnemo":
        with TemporaryDirectory() as scratch:
            other = scored(None if compat else "pgmnemo", Path(scratch) / "other")
            pair = [one.read_json("metrics.json") for one in (result.directory, other)]
        theirs, sound = pair if compat else reversed(pair)
        result.rule_changes = {
            name: RuleChange(**change) for name, change in rule_changes(theirs, sound).items()
        }
        result.sound_rules = published.sound if published else ""
    return result


def compare(
    base: RunLike,
    cand: RunLike,
    *,
    metrics: Sequence[str] = (),
    band: float | None = None,
    tests: Literal["paired", "seed"] | None = None,
    discordant: str = "",
    by_category: bool = True,
    plan: Where | None = None,
) -> ComparisonResult:
    """Compare two results of one benchmark, with a verdict for each metric.

    A result is a run, or a metrics.json if only aggregates exist. `plan` is the file of a frozen
    plan: it says which metrics decide. If it does not count for this comparison, no metric has a
    verdict. The ledger of attempts records the comparison as a look.
    """
    paths = [_existing(base), _existing(cand)]
    if band is not None and not band > 0:
        raise UsageError(f"--band {band}: the equivalence band must be above 0")
    needed = ("manifest.json", "trials.jsonl")
    aggregates = [path for path in paths if not all((path / name).is_file() for name in needed)]
    for path in filter(is_run, aggregates):
        RunDirectory(path).ensure_unedited()
    if plan is not None and (aggregates or tests == "seed"):
        raise UsageError("--plan needs runs whose questions can be paired")
    if aggregates and (tests == "paired" or metrics or band is not None or discordant):
        raise UsageError(
            f"{aggregates[0]} is not a run directory with trials, so questions cannot be paired; "
            "only --tests seed is possible, which takes neither --metrics, --band nor --discordant"
        )
    if tests == "seed" and (metrics or band is not None or discordant):
        raise UsageError("--tests seed takes neither --metrics, --band nor --discordant")
    if aggregates and tests is None:
        _log.warning("%s has no trials: only the unpaired seed tests are possible", aggregates[0])
    if aggregates or tests == "seed":
        return _compare_means(*paths)
    from mnemoscope.analysis.compare import compare as compare_runs
    from mnemoscope.analysis.frozen_plan import check, read_plan, record_look

    before, after = map(RunDirectory, paths)
    planned = read_plan(Path(plan)) if plan is not None else None
    with _readable():
        checked = check(planned, Path(plan), before, after, band) if plan and planned else None
        found = compare_runs(
            before,
            after,
            metrics=list(metrics),
            band=checked.band if checked else band,
            by_category=by_category,
            discordant=discordant,
            declared=checked.declared if checked else None,
        )
    if plan and planned and checked:
        found = structs.replace(found, notes=[*checked.notes, *found.notes])
        if not checked.declared.refused:
            record_look(planned, Path(plan), after)
    names = before.manifest().category_names
    return ComparisonResult(found.base, found.cand, paired=found, category_names=names)


def _compare_means(base: Path, cand: Path) -> ComparisonResult:
    from mnemoscope.analysis.aggregates import read_aggregates, refuse_unlike, seed_comparison

    with _readable():
        refuse_unlike(base, cand)
        before, after = read_aggregates(base), read_aggregates(cand)
        return ComparisonResult(before.label, after.label, seed=seed_comparison(before, after))


def plan(
    benchmark: str,
    *,
    base: RunLike,
    cand: RunLike | None = None,
    detect: float = 0.01,
    primary: str = "",
    secondaries: Sequence[str] | None = None,
    band: float | None = None,
    looks: int = 1,
    seed: int | None = None,
    changed: float | None = None,
    freeze: Where | None = None,
) -> PlanResult:
    """Say what a comparison with `base` can find, before its candidate runs.

    The variances are those of the differences between `base` and `cand`, else assumed (`changed` is
    the share of questions that change). `freeze` writes what decides to a new file.
    """
    from mnemoscope.analysis.frozen_plan import freeze as freeze_plan
    from mnemoscope.analysis.plan import plan as plan_comparison

    directories = [RunDirectory(_existing(run)) for run in (base, cand) if run is not None]
    with _readable():
        for run in directories:
            if _benchmark(run) != benchmark:
                raise UsageError(f"{run.path} is a run of {_benchmark(run)}, not of {benchmark}")
        found = plan_comparison(
            *directories,
            detect=detect,
            primary=primary,
            secondaries=None if secondaries is None else [one for one in secondaries if one],
            band=band,
            looks=looks,
            changed=changed,
        )
    if freeze is None:
        return PlanResult(found)
    return PlanResult(found, freeze_plan(found, directories[0], Path(freeze), seed=seed))


def compare_many(runs: Sequence[RunLike] | Results, *, metric: str = "") -> ManyResult:
    """Compare all pairs of several systems by one metric, with one error rate for all pairs.

    `runs` are runs or folders of runs, or the results of one call. The metric is recall@10, or the
    first headline metric that all runs have.
    """
    from mnemoscope.analysis.system_groups import system_groups

    directories = _directories(runs)
    if len(directories) < 2:
        raise UsageError("give at least two runs")
    with _readable():
        return ManyResult(system_groups(directories, metric))


def questions(
    runs: Sequence[RunLike] | Results,
    *,
    metric: str = "hit@10",
    category: str = "",
    top: int = 1,
    agree: int | None = None,
    data: Where | None = None,
) -> QuestionsResult:
    """Find the questions that no system finds, that all find, and that separate the systems.

    Candidates for missing labels are memories that at least `agree` independent systems (default:
    two thirds) have among their first `top` hits. Their texts come from the dataset at `data`.
    """
    from mnemoscope.analysis.question_difficulty import analyse_questions

    directories = _directories(runs)
    with _readable():
        found = analyse_questions(
            directories, metric=metric, category=category, top=top, agree=agree
        )
    wanted = {id for one in found.items for id in one.evidence}
    wanted |= {one.memory for one in found.candidates}
    memories = _memory_texts(directories[0], _path(data), wanted)
    return QuestionsResult(found, directories[0].manifest().category_names, memories)


def _memory_texts(run: RunDirectory, data: Path | None, wanted: set[str]) -> dict[str, str]:
    """The texts of memories of the run's dataset; empty if it is not found and was not named."""
    from mnemoscope.runner.answer_setup import reopened

    try:
        dataset = reopened(run.manifest(), data)
        scenarios = list(dataset.scenarios())
        sha256 = [file.sha256 for file in dataset.files()]
    except (MissingData, UsageError):
        if data is not None:
            raise
        return {}
    if sha256 != list(run.manifest().identity["benchmark"]["sha256"]):
        if data is not None:
            raise DataError("is not the data of these runs: its sha256 is another one", file=data)
        return {}
    return {
        memory.id: memory.text
        for scenario in scenarios
        for memory in scenario.memories
        if memory.id in wanted
    }


def _directories(runs: Sequence[RunLike] | Results) -> list[RunDirectory]:
    """The runs, with folders of runs replaced by what they contain."""
    given: Sequence[RunLike] = runs.runs if isinstance(runs, Results) else runs
    return [one for run in given for one in find_runs(_existing(run))]


def gate(run: RunLike, *, baseline: RunLike, max_drop: Mapping[str, float]) -> GateResult:
    """Check that no metric of a run dropped below a baseline by more than `max_drop` allows.

    This is not a significance test; `compare` is. Failed questions count as wrong.
    """
    from mnemoscope.analysis.aggregates import gate as judge_drops

    place, before = _existing(run), _existing(baseline)
    with _readable():
        rows = judge_drops(RunDirectory(place), before, max_drop)
    return GateResult(all(row.passed for row in rows), rows)


def verify(
    run: RunLike,
    *,
    protocol: str | None = None,
    block: str | None = None,
    replay: int | None = None,
    data: Where | None = None,
    system: Any = None,
    allowed_signers: Where | None = None,
) -> Verification:
    """Recompute a run's figures from its journal and check every gate of its protocol.

    `block` gives a reason why the run must not be cited; it is recorded before the check. With
    `replay` the system is asked again for so many questions, drawn at random; `data` is then the
    dataset's file or folder, and `system` the class or object, if it cannot be imported. With
    `allowed_signers`, a file as of ssh-keygen, the run must be signed by one of them.
    """
    from mnemoscope.analysis import verify as analysis
    from mnemoscope.protocols import load_protocol

    directory = RunDirectory(_run_path(run), checked=False)  # the gates say what was edited
    if block is not None:
        analysis.block(directory, block)
    chosen = load_protocol(protocol) if protocol else None
    found = analysis.verify(directory, chosen, _path(allowed_signers))
    if replay is not None:
        from mnemoscope.runner.answer_setup import reopened
        from mnemoscope.runner.replay import replay as ask_again

        dataset = reopened(directory.manifest(), _path(data))
        found = found.with_gate(ask_again(directory, dataset, replay, system=system).gate())
    return found


def sign(run: RunLike, *, key: Where) -> RunSignature:
    """Sign the manifest of a finished run with an SSH key."""
    from mnemoscope.analysis.ssh_signatures import sign_run

    return sign_run(RunDirectory(_run_path(run)), Path(key).expanduser())


def cite(run: RunLike, *, base: RunLike | None = None, author: str = "") -> Citation:
    """The citation of a run, as text, BibTeX and CITATION.cff; of a VERIFIED one only.

    With `base`, another VERIFIED run under the same protocol, each value is shown as base → new.
    """
    from mnemoscope.datasets import dataset_info
    from mnemoscope.release.citation import cite as cite_run

    directory = RunDirectory(_existing(run))
    before = RunDirectory(_existing(base)) if base is not None else None
    with _readable():
        corpus = dataset_info(_benchmark(directory)).citation
        return cite_run(directory, before, author=author, corpus=corpus)


def load(run: RunLike) -> Results:
    """Load the finished run at a path, or all finished runs in a folder, baselines last."""
    return _loaded(run)


def _loaded(run: RunLike, *, rewriting: bool = False) -> Results:
    path = _run_path(run)
    found = []
    for directory in find_runs(path):
        result = RunResult(directory.path, rewriting=rewriting)
        if (state := result.manifest.state) == "complete":
            found.append(result)
        else:
            _log.warning(
                "%s is %s and left out; repeat its command to continue it", directory.path, state
            )
    if not found:
        raise MissingData(f"no finished run at {path}")
    return Results(sorted(found, key=lambda one: one.is_baseline))


def report(run: RunLike) -> Results:
    """Write the reports and pictures of finished runs again; no system is called."""
    from mnemoscope.reports.run_report import write_report, write_summary
    from mnemoscope.reports.run_view import RunView

    results, path = _loaded(run, rewriting=True), _run_path(run)
    folder = path.absolute().parent if is_run(path) else path
    sets = _repeats([one.directory for one in results.runs], folder)
    for one in results.runs:
        write_report(one.directory, repeats=sets)
    if (folder / COPY).exists():  # `run` wrote a summary there
        write_summary(folder, [RunView.of(one.directory) for one in results.runs], sets)
    return results


def simulate(
    persona: str, *, out: Where, days: int = 1000, seed: int = 42, force: bool = False
) -> Path:
    """Simulate a persona's days, questions and ledger, and return the persona's folder.

    `persona` is the id of a shipped persona, or the path of your own story file.
    """
    from mnemoscope.personas.simulate.simulator import simulate_persona

    return simulate_persona(persona, Path(out), days=days, seed=seed, force=force).folder


def _exams(pipeline: Pipeline) -> dict[str, dict[str, Any]]:
    """The exam results of the judges; a note is logged for each judge without one."""
    from mnemoscope.runner.answer_setup import exams_of

    exams = exams_of(pipeline)
    for note in exams.notes:
        _log.warning("note: %s", note)
    return exams.results


def _summarised(runs: Sequence[RunDirectory], folder: Path) -> Results:
    """Write summary.md and summary.json into the folder, and return the results."""
    from mnemoscope.reports.run_report import write_summary
    from mnemoscope.reports.run_view import RunView

    sets = _repeats(runs, folder)
    write_summary(folder, [RunView.of(directory) for directory in runs], sets)
    return Results([RunResult(directory.path) for directory in runs], sets)


def _repeats(runs: Sequence[RunDirectory], folder: Path) -> list[RepeatSet]:
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


class _Reporting(NamedTuple):
    """What the runner gets to report its progress."""

    advance: Callable[[float], None]
    questions: QuestionProgress


@contextmanager
def _reporting(progress: Progress, dataset: Dataset, systems: int) -> Iterator[_Reporting]:
    """Yield the callback by which the runner reports its progress, and its count of questions."""
    from mnemoscope.runner.question_progress import QuestionProgress

    scenarios = dataset.expected_scenarios
    total = scenarios * systems if scenarios else None
    questions = QuestionProgress()
    # When the first progress was reported, and how much was done by then.
    started: tuple[float, float] | None = None

    def update(done: float) -> ProgressUpdate:
        nonlocal started
        now = time.monotonic()
        started = started or (now, done)
        gained = done - started[1]
        left = None
        if total and gained > 0 and now > started[0]:
            left = max(total - done, 0.0) * (now - started[0]) / gained
        return ProgressUpdate(
            *(dataset.name, done, total, questions.done, questions.total(total)),
            *(not questions.is_all_read, left),
        )

    if callable(progress):
        yield _Reporting(lambda done: progress(update(done)), questions)
    elif progress is False or not sys.stderr.isatty():
        yield _Reporting(lambda done: None, questions)
    else:
        from mnemoscope.reports.progress_bar import advance, progress_bar

        with progress_bar(dataset.name, total) as bar:
            yield _Reporting(lambda done: advance(bar, update(done)), questions)


@contextmanager
def _readable() -> Iterator[None]:
    """Turn errors of reading a result into NotComparable."""
    from mnemoscope.analysis.compare import NotComparable

    try:
        yield
    except (MissingData, DataError, UnicodeDecodeError, OSError) as error:
        raise NotComparable(str(error)) from error
    except (LookupError, TypeError, ValueError) as error:
        raise NotComparable(f"the result cannot be read: {error!r}") from error


def _beside(run: RunDirectory, parts: Sequence[str]) -> Path:
    folder = run.path.resolve().parent
    return folder.parent / "-".join([folder.name, *(Spec.parse(part).slug for part in parts)])


def _benchmark(run: RunDirectory) -> str:
    return str(run.manifest().identity["benchmark"]["name"])


def _run_path(run: RunLike) -> Path:
    return run.path if isinstance(run, RunResult) else Path(run)


def _existing(run: RunLike) -> Path:
    path = _run_path(run)
    if not path.exists():
        raise UsageError(f"no such file or folder: {path}")
    return path


def _path(where: Where | None) -> Path | None:
    return None if where is None else Path(where)


def _several(given: str | Sequence[str] | None) -> list[str]:
    return [given] if isinstance(given, str) else list(given or ())
