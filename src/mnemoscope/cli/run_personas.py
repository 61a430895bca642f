"""`mnemoscope run personas`: lives of daily logs, questioned at checkpoints as they grow."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from cyclopts import Parameter

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.run_directory import RunDirectory
from mnemoscope._store.spec import Spec
from mnemoscope.cli import answering
from mnemoscope.cli.answering import NOBODY
from mnemoscope.cli.console import err, print_json, say
from mnemoscope.cli.console import out as stdout
from mnemoscope.cli.run import check_systems, execute, read_systems, seeded
from mnemoscope.types import FAILED, GROUP_CATEGORIES

if TYPE_CHECKING:
    from mnemoscope.cli.profile import Profile
    from mnemoscope.datasets.personas import Personas
    from mnemoscope.runner.pipeline import Compat, Lifecycle, Pipeline

T = TypeVar("T")

BASELINES = ("none", "random", "oracle")
"""What stands beside every system: silence, chance, and one that is handed the evidence."""
RANGES = "30d,90d,6mo,1y,full"
TIMEOUT = 30.0
SIBLINGS = ("heatmap.png", "progress.jsonl", "questions.jsonl", "failures.jsonl")


def run_personas(
    *,
    system: Annotated[list[str] | None, Parameter(name=["--system", "-s"])] = None,
    data: Path | None = None,
    profile: Path | None = None,
    reader: str | None = None,
    judge: list[str] | None = None,
    appellate_judge: str | None = None,
    judge_memory_window: int | None = None,
    personas: str | None = None,
    ranges: str | None = None,
    arcs: str | None = None,
    sample: int | None = None,
    groups_enabled: Annotated[bool | None, Parameter(negative="--no-groups-enabled")] = None,
    seed: int | None = None,
    granularity: Literal["day", "session", "section"] | None = None,
    lifecycle: Literal["auto", "fork", "fresh", "incremental"] | None = None,
    depth: int | None = None,
    parallelism: int | None = None,
    timeout: float | None = None,
    restarts: int = 2,
    workers: int | None = None,
    max_cost: float | None = None,
    estimate: bool = False,
    arms: Annotated[bool, Parameter(negative="--no-arms")] = True,
    compat: Literal["recall-bench"] | None = None,
    dry_run: bool = False,
    skip_preflight: bool = False,
    accept_leaks: bool = False,
    out: Path | None = None,
    resume: Path | None = None,
    json_out: Path | None = None,
    question_log: Path | None = None,
    progress_jsonl: Path | None = None,
    heatmap_png: Annotated[bool, Parameter(negative="--no-heatmap-png")] = True,
    json: bool = False,
    heatmap: bool = False,
) -> int:
    """Question memory systems at checkpoints of a long life, and print the heatmap.

    Each system gets a run directory below --out: its answers, scores, heatmap.png and a report.
    The same command continues an interrupted run. Silence (none), chance (random) and one that is
    handed the evidence (oracle) run beside your systems, so that the scores can be read.

    For example:

        mnemoscope run personas --data lives --system bm25 --system hybrid --out runs/lives

        mnemoscope run personas --data lives --system my_package:Memory --ranges 7-180/7 --sample 50

        mnemoscope run personas --profile bench.yaml --sample 20

    `mnemoscope personas simulate` makes the lives.

    Parameters
    ----------
    system
        A system's spec, `name` or `name,option=value`, or your own `module:Name`; `LABEL=SPEC`
        gives it a shorter name. Repeatable.
    data
        A folder of personas, or one persona's folder.
    profile
        Settings from a YAML file, in Recall Bench's keys and ours; flags given here win.
    reader
        Who answers from what was recalled: `extractive` (no model), a model as in
        `openai:gpt-4o-mini` or `NAME@http://host/v1`, `system` (the system answers by itself),
        `none` (recall only), or your own `module:Name`.
    judge
        Who scores answers: `ledger` (exact, for simulated personas), `rubric,model=…`, `none`, or
        `module:Name`. Repeated: a panel.
    appellate_judge
        A second judge, heard only where the first one fails an answer; both scores are kept.
    judge_memory_window
        Days around the evidence that the judge is shown; 0 for the reference alone.
    personas
        Which ones, with commas between; all by default.
    ranges
        Checkpoints: 30d,90d,6mo,1y,full (the default), day counts, or a series 7-1000/7.
    arcs
        The arcs file, which pairs the folders of logs and questions, where there are several.
    sample
        At most so many of the questions that could be asked before are asked again at each
        checkpoint; 0 asks them all.
    groups_enabled
        Ask the two categories that need several sessions, too.
    seed
        Of the order of questions, of sampling and of intervals: 42. 0 leaves the order as it is.
    granularity
        What is one memory: a day (default), a session of a day, or a section of a session.
    lifecycle
        How a checkpoint gets a system that no earlier question has changed: a copy (fork), a fresh
        life, or the same one all along (incremental). auto: fork where it can, else fresh.
    depth
        How many hits a system is asked for.
    parallelism
        Questions in flight at once, for systems and models that wait for somebody else.
    timeout
        Seconds a recall or an answer may take before it counts as timed out.
    restarts
        How often a life is begun again because its system died or could not be reached any more,
        before the question it was on counts as an error. What is recorded is not asked again.
    workers
        Processes; 0 for one per core. Results do not depend on it.
    max_cost
        What models may cost in US dollars, whatever these runs have paid before included. The run
        stops there; with a higher ceiling the same command goes on.
    estimate
        Recall for real, ask no model, and say how many tokens and dollars it would take.
    arms
        Run none, random and oracle beside the systems.
    compat
        recall-bench: judge the text [TIMEOUT] where no answer came, as that harness does.
    dry_run
        The first checkpoint of the first persona only, nothing kept: catches mistakes fast.
    skip_preflight
        Do not look at all files before the first question is asked.
    accept_leaks
        Go on where a text looks as if it carried a label; every report will say so.
    out
        Where the run directories go: `runs` by default.
    resume
        Go on with an interrupted run: its folder, or its progress.jsonl.
    json_out
        Write result.json there as well, with its heatmap.png and logs beside it.
    question_log
        Write the log of questions there as well.
    progress_jsonl
        Write a line for each checkpoint there as well, as soon as it is done.
    heatmap_png
        Draw heatmap.png.
    json
        Print the result as JSON instead of heatmaps.
    heatmap
        Print the heatmaps and nothing else.
    """
    from mnemoscope.cli.profile import load_profile, nothing
    from mnemoscope.runner.run import DEPTH, Settings
    from mnemoscope.runner.scheduler import Limits

    given = load_profile(profile) if profile else nothing()
    specs = read_systems(system or given.systems or _adapter(given))
    if not specs:
        raise UsageError("which system? Give --system NAME; `mnemoscope systems list` shows them")
    if len(specs) > 1 and (json_out or question_log or progress_jsonl):
        raise UsageError(
            "--json-out, --question-log and --progress-jsonl are of one system, and here are "
            f"{len(specs)}; each run directory has these files anyway"
        )
    folder = _folder(resume, out or given.out or Path("runs"))
    seed = _first(seed, given.seed, 42)
    options = {
        "personas": _first(personas, given.personas, ""),
        "arcs": _first(arcs, given.arcs, ""),
        "ranges": _first(ranges, given.ranges, RANGES),
        "sample": _first(sample, given.sample, 0),
        "groups": _first(groups_enabled, given.groups, False),
        "seed": seed,
        "granularity": _first(granularity, given.granularity, "day"),
    }
    place = data or given.data
    if not skip_preflight:
        check_files(place, options)
    dataset = _open(place, options)
    pipeline = pipeline_of(
        dataset,
        reader=_first(reader, given.reader, None),
        judges=judge or ([given.judge] if given.judge else []),
        appellate=_first(appellate_judge, given.appellate_judge, None),
        window=_first(judge_memory_window, given.judge_memory_window, 0),
        lifecycle=_first(lifecycle, given.lifecycle, "auto"),
        compat=compat or "",
        parallelism=_first(parallelism, given.parallelism, 1),
        only_count=estimate,
    )
    if _first(depth, given.depth, DEPTH) < 1:
        raise UsageError(f"--depth {depth}: ask for at least one hit")
    if not _first(timeout, given.timeout, TIMEOUT) > 0:
        raise UsageError(f"--timeout {timeout}: more than 0 seconds")
    settings = Settings(
        _first(depth, given.depth, DEPTH),
        seed,
        Limits(recall=_first(timeout, given.timeout, TIMEOUT), restarts=restarts),
        _first(workers, given.workers, 0),
        accept_leaks,
    )
    beside = [
        seeded(Spec(name), seed) for name in BASELINES if name not in {spec.slug for spec in specs}
    ]
    check_systems(specs, system_answers=pipeline.system_answers)
    if pipeline.system_answers and arms:
        beside = []
        say(err, "the arms cannot answer by themselves and are left out")
    if not skip_preflight:
        tell_findings(dataset)
    models = answering.models_of(
        _first(reader, given.reader, None),
        *(judge or filter(None, [given.judge])),
        _first(appellate_judge, given.appellate_judge, None),
    )
    if estimate:
        answering.estimate(dataset, specs, settings, pipeline, beside if arms else (), models)
        return 0
    answering.check_models(models, max_cost)
    if dry_run:
        first = [f"{one.label}:{one.days}" for one in dataset.ranges[:1]]
        only = {"personas": dataset.folders[0].id, "ranges": ",".join(first)}
        with TemporaryDirectory(prefix="mnemoscope-dry-") as folder_for_now:
            there = Path(folder_for_now)
            cut = _open(place, {**options, **only})
            runs = execute(
                cut, specs, there, settings, pipeline=pipeline, max_cost=max_cost, png=False
            )
            show(runs, as_json=json, only_heatmaps=True)
        say(err, "a dry run: the first checkpoint of the first persona, nothing was kept")
        return 0
    runs = execute(
        dataset,
        specs,
        folder,
        settings,
        arms=beside if arms else (),
        pipeline=pipeline,
        png=heatmap_png,
        progress_copy=progress_jsonl,
        max_cost=max_cost,
    )
    _copy(runs[0], json_out, question_log)
    show(runs, as_json=json, only_heatmaps=heatmap)
    return int(any(everything_failed(run) for run in runs[: len(specs)]))


def everything_failed(run: RunDirectory) -> bool:
    """Whether there is nothing to report of it."""
    life = run.read_json("longitudinal.json") if run.manifest().checkpoints else None
    if life is None:
        return bool(run.read_json("metrics.json")["questions"]["measured"] == 0)
    points = life["checkpoints"]
    return all(point["statuses"].keys() <= FAILED for point in points if point["asked"])


def ranges(ranges: str = RANGES, /, *, json: bool = False) -> None:
    """Show which checkpoints a text of ranges means.

    For example:

        mnemoscope ranges

        mnemoscope ranges 7-1000/7

    Parameters
    ----------
    ranges
        Aliases (30d, 90d, 6mo, 1y, full), day counts, months (3mo), years (2y), a series
        START-END/STEP, or LABEL:DAYS, with commas between.
    json
        Print JSON instead of a table.
    """
    from rich import box
    from rich.table import Table

    from mnemoscope.datasets.checkpoint_plan import FULL, parse_ranges

    found = parse_ranges(ranges)
    if json:
        print_json([one._asdict() for one in found])
        return
    table = Table("checkpoint", "days remembered", box=box.SIMPLE_HEAD)
    for one in found:
        table.add_row(one.label, "all there are" if one.days == FULL else f"{one.days:,}")
    stdout.print(table)


def show(runs: Sequence[RunDirectory], *, as_json: bool, only_heatmaps: bool) -> None:
    """The heatmaps of the systems that were asked for, and all beside each other."""
    from mnemoscope.reports.run_report import write_summary
    from mnemoscope.reports.run_tables import shown
    from mnemoscope.reports.run_view import RunView

    folder = runs[0].path.parent
    views = [RunView.of(run) for run in runs]
    write_summary(folder, views)
    if as_json:
        name = "result.json" if runs[0].manifest().checkpoints else "metrics.json"
        results = {run.label: run.read_json(name) for run in runs}
        print_json(results[runs[0].label] if len(runs) == 1 else results)
        return
    stdout.print(shown(views, width=stdout.width))
    if not only_heatmaps:
        pictures = (runs[0].path / "heatmap.png").exists()
        also = f", pictures: {folder}/*/heatmap.png" if pictures else ""
        say(stdout, f"summary: {folder}/summary.md, reports: {folder}/*/report.md{also}")


def check_files(data: Path | None, options: dict[str, Any]) -> None:
    """Look at every file once before anything is asked, so that a mistake costs seconds."""
    from mnemoscope.datasets._io.locate import locate
    from mnemoscope.datasets.persona_folder import problems

    found = problems(locate("personas", data), options["personas"], options["arcs"])
    for problem in found[:-1]:
        say(err, str(problem), before="[bold red]error:[/] ")
    if found:
        raise found[-1]


def tell_findings(dataset: Personas) -> None:
    """What is odd about the data, counted, before anybody is questioned about it."""
    for _ in dataset.scenarios():
        pass
    left = [f"{n:,} {c}" for c in GROUP_CATEGORIES if (n := dataset.counts().get(c, 0))]
    if left and not dataset.groups:
        say(err, f"left out without --groups-enabled: {' and '.join(left)} questions")
    if dataset.ranges and not dataset.counts()["asked at checkpoints"]:
        raise UsageError(
            f"no question can be asked by day {dataset.ranges[-1].days}; choose later --ranges"
        )
    for kind, number in dataset.findings.counts.items():
        example = dataset.findings.examples[kind][0]
        say(err, f"{number:,} × {kind}, such as {example}", before="[yellow]note:[/] ")


def _open(data: Path | None, options: dict[str, Any]) -> Personas:
    from mnemoscope.datasets._io.locate import locate
    from mnemoscope.datasets.personas import Personas

    return Personas(locate("personas", data), **options)


def pipeline_of(
    dataset: Personas,
    *,
    reader: str | None = None,
    judges: Sequence[str] = (),
    appellate: str | None = None,
    window: int = 0,
    lifecycle: Lifecycle = "auto",
    compat: Compat = "",
    parallelism: int = 1,
    only_count: bool = False,
) -> Pipeline:
    """Who answers and who judges; without a word, whoever can do it without a model."""
    if not dataset.ranges:
        if {reader, *judges} - {None, NOBODY}:
            raise UsageError("--ranges none has no checkpoint to judge answers at; say full")
        reader, judges = NOBODY, [NOBODY]
    if not judges:
        judges = ["ledger" if dataset.has_ledger and reader != NOBODY else NOBODY]
        if not dataset.has_ledger and reader is None:
            say(err, "no ledger beside the questions: recall is measured, answers are not judged")
    if reader is None:
        reader = NOBODY if list(judges) == [NOBODY] else "extractive"
    if any(judge.split(",")[0] == "ledger" for judge in judges) and not dataset.has_ledger:
        without = [folder.id for folder in dataset.folders if not folder.ledger.is_file()]
        raise MissingData(
            f"--judge ledger: {', '.join(without)} has no ledger.jsonl beside its questions; "
            "only simulated personas have one. Choose another judge, or --judge none"
        )
    return answering.pipeline_for(
        "personas",
        reader=reader,
        judges=judges,
        appellate=appellate,
        window=window,
        lifecycle=lifecycle,
        compat=compat,
        parallelism=parallelism,
        only_count=only_count,
    )


def _adapter(profile: Profile) -> tuple[str, ...]:
    """A profile's harness as a spec: its adapter, the factory in it, its config as options."""
    if not profile.adapter:
        return ()
    name = f"{profile.adapter}:{profile.factory}" if profile.factory else profile.adapter
    return (str(Spec(name, profile.config)),)


def _folder(resume: Path | None, out: Path) -> Path:
    """Where the run directories are: said by --out, or by what is to be resumed."""
    if resume is None:
        return out
    place = resume.parent if resume.suffix == ".jsonl" else resume
    if (place / "manifest.json").exists():
        return place.parent
    if not any(place.glob("*/manifest.json")):
        raise MissingData(f"--resume {resume}: there is no run to go on with")
    return place


def _copy(run: RunDirectory, json_out: Path | None, question_log: Path | None) -> None:
    """What was asked for in other places than the run directory."""
    wanted: list[tuple[str, Path]] = []
    if json_out:
        wanted.append(("result.json", json_out))
        wanted += [(name, json_out.parent / name) for name in SIBLINGS]
    if question_log:
        wanted.append(("questions.jsonl", question_log))
    for name, place in wanted:
        if (run.path / name).exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(run.path / name, place)


def _first(*choices: Any) -> Any:
    """The first that is given; the last is the default."""
    return next((choice for choice in choices if choice is not None), choices[-1])
