"""`mnemoscope run`: a benchmark, one or more systems, one table."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from mnemoscope._store.errors import UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.cli.console import err, parse_options, print_json, progress_bar, say
from mnemoscope.cli.console import out as stdout
from mnemoscope.datasets.base import Dataset

if TYPE_CHECKING:
    from mnemoscope.protocols import Chosen
    from mnemoscope.reports.run_view import RunView
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.run import Settings

_EVERY = 30.0
"""Seconds between two words on how far it is, where no bar can be drawn."""


app = App(name="run", help_format="markdown")
app.command("mnemoscope.cli.run_personas:run_personas", name="personas")


@app.default
def run(
    benchmark: str,
    /,
    *,
    system: Annotated[list[str], Parameter(name=["--system", "-s"])],
    out: Path = Path("runs"),
    data: Path | None = None,
    reader: str | None = None,
    judge: list[str] | None = None,
    appellate_judge: str | None = None,
    scenarios: int | None = None,
    questions: int | None = None,
    parallelism: int = 1,
    max_cost: float | None = None,
    estimate: bool = False,
    arms: Annotated[bool, Parameter(negative="--no-arms")] = True,
    protocol: str | None = None,
    deviation: str | None = None,
    depth: int | None = None,
    seed: int = 42,
    timeout: float = 120.0,
    remember_timeout: float = 3600.0,
    restarts: int = 2,
    workers: int = 0,
    accept_leaks: bool = False,
    json: bool = False,
    **options: str,
) -> int:
    """Run memory systems on a benchmark and print one table of them all.

    Each system gets a run directory below --out. The same command continues an interrupted run.
    Random, bm25 and oracle run beside your systems, so that the numbers can be read; where a reader
    answers, none (no memory), bm25 and oracle do.

    For example:

        mnemoscope run locomo --system bm25 --system hybrid --out runs/locomo

        mnemoscope run locomo --granularity turn --system my_package.memory:MySystem

        mnemoscope run longmemeval --variant s --system hybrid,fusion=rrf,weight=0.6

        mnemoscope run locomo --system hybrid --reader openai:gpt-4o-mini
        --judge binary,model=openai:gpt-4o --parallelism 16 --max-cost 2 --out runs/answers

        mnemoscope run tofu --system bm25 --out runs/tofu

    Parameters
    ----------
    benchmark
        A dataset's name: `mnemoscope datasets list` shows them with their options.
    system
        A system's spec, `name` or `name,option=value`, or your own `module:Name`; `LABEL=SPEC`
        gives it a shorter name. Repeatable.
    out
        Where the run directories go.
    data
        The dataset's file or folder; else $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    reader
        Who answers from what was recalled: a model (`openai:gpt-4o-mini`, `NAME@http://host/v1`,
        `claude`, `smollm2`), `llm,model=…,passages=20`, `full-context,model=…`, `extractive` (no
        model), `system` (it answers by itself) or your own `module:Name`. Without it, recall only.
    judge
        Who scores the answers: `binary,model=…`, `longmemeval,model=…`, `rubric,model=…`, `f1`,
        `exact`, `rouge-l`, `likelihood`, your own, or `none`. Repeated: a panel, whose majority
        decides. `mnemoscope judges list` shows them.
    appellate_judge
        A second judge, heard only where the first one fails an answer; both verdicts are kept.
    scenarios
        Take only the first so many of the dataset's scenarios.
    questions
        Ask only so many of the questions, drawn by the seed.
    parallelism
        Questions in flight at once in each process, for models and systems that one waits for.
    max_cost
        What models may cost in US dollars, whatever these runs have paid before included. The run
        stops there; with a higher ceiling the same command goes on.
    estimate
        Recall for real, ask no model, and say how many tokens and dollars it would take.
    arms
        Run the sanity arms beside the systems. A model that reads is paid for each arm, too.
    protocol
        Run under a protocol: `mnemoscope protocols list` shows them. It fixes the options.
    deviation
        The reason for doing otherwise than the protocol says; shown in every report.
    depth
        How many hits a system is asked for: the protocol's number, or 50.
    seed
        Seed of the intervals and of the random arm.
    timeout
        Seconds a recall may take before it counts as timed out.
    remember_timeout
        Seconds that taking in one scenario may take.
    restarts
        How often a scenario is begun again because its system died or could not be reached any
        more, before the question it was on counts as an error. What is recorded is not asked again.
    workers
        Processes; 0 for one per core. Results do not depend on it.
    accept_leaks
        Go on where a text looks as if it carried a label; every report will say so.
    json
        Print the figures as JSON instead of tables.
    options
        The dataset's own options, such as --granularity turn.
    """
    from mnemoscope.cli import answering
    from mnemoscope.datasets import open_dataset
    from mnemoscope.datasets.subset import part_of
    from mnemoscope.protocols import deviations, load_protocol
    from mnemoscope.runner.run import DEPTH, Settings
    from mnemoscope.runner.scheduler import Limits
    from mnemoscope.systems import BASELINES

    chosen = load_protocol(protocol) if protocol else None
    rules = chosen.benchmark(benchmark) if chosen else None
    if depth is None:
        depth = chosen.protocol.depth if chosen else DEPTH
    if depth < 1:
        raise UsageError(f"--depth {depth}: ask for at least one hit")
    fixed = rules.options if rules else {}
    whole = open_dataset(benchmark, data, {**fixed, **parse_options(options, run)})
    dataset = part_of(whole, scenarios, questions, seed)
    departs: list[str] = []
    if chosen and rules:
        found = deviations(chosen.protocol, rules, dataset.options, depth)
        if found and not deviation:
            raise UsageError(
                f"this run deviates from {chosen.id} ({'; '.join(found)}): declare why with "
                "--deviation REASON, or leave the protocol's options as they are"
            )
        departs = [f"{what}: {deviation}" for what in found or filter(None, [deviation])]
    specs = read_systems(system)
    given = {spec.slug for spec in specs}
    settings = Settings(
        depth, seed, Limits(timeout, remember_timeout, restarts), workers, accept_leaks
    )
    pipeline = answering.pipeline_for(
        benchmark,
        reader=reader,
        judges=judge or (),
        appellate=appellate_judge,
        parallelism=parallelism,
        only_count=estimate,
    )
    check_systems(specs, system_answers=pipeline.system_answers)
    names = answering.arms_for(benchmark, pipeline, BASELINES)
    if chosen and not pipeline.system_answers:  # its gates ask for the arms of recall
        names = [*dict.fromkeys([*names, *BASELINES])]
    beside = [seeded(Spec(name), seed) for name in names if name not in given] if arms else []
    models = answering.models_of(reader, *(judge or ()), appellate_judge)
    if estimate:
        answering.estimate(dataset, specs, settings, pipeline, beside, models)
        return 0
    answering.check_models(models, max_cost)
    runs = execute(
        dataset,
        specs,
        out,
        settings,
        arms=beside,
        protocol=chosen,
        deviations=departs,
        pipeline=pipeline,
        max_cost=max_cost,
    )
    return show(runs, out, as_json=json)


def read_systems(texts: Sequence[str]) -> list[Spec]:
    """The specs, each with its label where it has one; no label may be another system's name."""
    from mnemoscope.systems import SYSTEMS

    specs = [Spec.labelled(text) for text in texts]
    if taken := [spec.label for spec in specs if spec.label in SYSTEMS.names()]:
        raise UsageError(f"{taken[0]} is a system's own name; label yours otherwise")
    return specs


def check_systems(specs: Sequence[Spec], *, system_answers: bool) -> None:
    """Refuse systems that cannot do what they are to be asked for, before anything is asked."""
    from mnemoscope.systems.loader import plan

    for spec in specs:
        with redirect_stdout(sys.stderr):
            made = plan(spec)
        if system_answers and not made.answers:
            raise UsageError(
                f"--reader system: {spec} has no answer(query); leave --reader away, and the "
                "extractive reader answers from what it recalls"
            )
        if not system_answers and not made.recalls:
            raise UsageError(
                f"{spec} answers by itself and has no recall(query, k): say --reader system"
            )


def seeded(spec: Spec, seed: int) -> Spec:
    """The random arm with the run's seed; it keeps its plain name for the usual one."""
    return Spec("random", {"seed": seed}) if spec.name == "random" and seed != 42 else spec


def execute(
    dataset: Dataset,
    specs: list[Spec],
    folder: Path,
    settings: Settings | None = None,
    *,
    arms: Sequence[Spec] = (),
    protocol: Chosen | None = None,
    deviations: Sequence[str] = (),
    pipeline: Pipeline | None = None,
    progress_copy: Path | None = None,
    max_cost: float | None = None,
    png: bool = True,
) -> list[RunDirectory]:
    """Run with a progress bar, and leave a report in each run directory."""
    from mnemoscope.cli.answering import exams_of
    from mnemoscope.reports.run_report import write_report
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.run import Settings
    from mnemoscope.runner.run import run as run_engine
    from mnemoscope.systems.loader import plan

    with redirect_stdout(sys.stderr):  # what a system says while it is built is no result
        plans = [plan(spec) for spec in (*specs, *arms)]
    pipeline = pipeline or Pipeline()
    with watched(dataset, len(plans)) as advance:
        runs = run_engine(
            dataset,
            plans,
            folder,
            settings or Settings(),
            advance,
            arms=len(arms),
            protocol=protocol,
            deviations=deviations,
            pipeline=pipeline,
            progress_copy=progress_copy,
            max_cost=max_cost,
            exams=exams_of(pipeline),
        )
    for directory in runs:
        write_report(directory, png=png)
    return runs


@contextmanager
def watched(dataset: Dataset, systems: int) -> Iterator[Callable[[float], None]]:
    """A progress bar, or now and then a line; and a kind word where somebody interrupts."""
    total = dataset.expected_scenarios
    with progress_bar(dataset.name, total and total * systems) as bar:
        task = bar.task_ids[0]
        told = time.monotonic()

        def advance(units: float) -> None:
            nonlocal told
            bar.update(task, completed=units, refresh=True)
            if not err.is_terminal and time.monotonic() - told > _EVERY:
                told = time.monotonic()
                of = f" of {total * systems}" if total else ""
                say(err, f"{dataset.name}: {units:.1f}{of} done (systems × scenarios)")

        try:
            yield advance
        except KeyboardInterrupt:
            say(err, "\neverything recorded is kept; the same command goes on from here")
            raise


def show(runs: list[RunDirectory], folder: Path, *, as_json: bool) -> int:
    """Print the table; leave summary.md and summary.json of all runs in the folder beside them.

    The exit code is 1 where a system failed on every question: there is nothing to report of it.
    """
    from mnemoscope.reports import run_tables
    from mnemoscope.reports.run_report import write_summary
    from mnemoscope.reports.run_view import RunView, as_content

    views = [RunView.of(directory) for directory in runs]
    write_summary(folder, views)
    if as_json:
        print_json(as_content(views))
    else:
        stdout.print(run_tables.summary(views))
        if spent := sum(view.paid for view in views):
            say(stdout, f"paid in all: ${spent:.4f}, what came from the cache not counted")
        say(stdout, f"reports: {folder}/*/report.md, summary: {folder}/summary.md")
    return int(any(_is_empty(view) for view in views))


def _is_empty(view: RunView) -> bool:
    if view.answers:
        counts = view.answers["figures"]["counts"]
        return not (counts["judged"] if view.answers["judge"] else counts["answered"])
    return bool(view.metrics["questions"]["measured"] == 0)
