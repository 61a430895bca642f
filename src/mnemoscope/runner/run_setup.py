"""Checks the options of a run, and turns them into a dataset, systems and a pipeline.

Precedence: the given options, then the profile, then the protocol and the benchmark's record.
"""

from __future__ import annotations

import inspect
import logging
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace as replace_fields

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.types import Repeat, Scalar

if TYPE_CHECKING:  # the command line reads the options before it needs the rest
    from mnemoscope.datasets.base import Dataset
    from mnemoscope.datasets.personas import Personas
    from mnemoscope.protocols import Chosen
    from mnemoscope.runner.pipeline import Pipeline
    from mnemoscope.runner.run import Settings
    from mnemoscope.systems.loader import Plan

SystemLike = object
"""A spec such as `bm25,k1=1.2`, a class, an object with reset, or a function (query, k)."""
Systems = SystemLike | Sequence[SystemLike] | Mapping[str, SystemLike]
Lifecycle = Literal["auto", "fork", "fresh", "incremental"]
Draw = Literal["random", "category"]
SEED = 42
_ONLY_OVER_CHECKPOINTS = (
    *("profile", "judge_memory_window", "lifecycle", "compat", "skip_preflight"),
    *("json_out", "progress_jsonl"),
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """The settings of a run. None: the profile, the protocol or the dataset decides.

    Parameters
    ----------
    data
        The dataset's file or folder. Default: $MNEMOSCOPE_DATA/NAME, else the cache of `mnemoscope
        datasets fetch`.
    out
        The folder for the run directories. Default: `runs`.
    profile
        A YAML file with settings, in Recall Bench's keys and ours. Flags take precedence.
    reader
        The reader that answers from the recalled memories: a model (`openai:gpt-4o-mini`,
        `NAME@http://host/v1`, `claude`, `smollm2`, `local:NAME`), `llm,model=…,passages=20`,
        `full-context,model=…`, `extractive` (no model), `system` (the system answers itself),
        `none` (recall only) or your own `module:Name`.
    judge
        The judge that scores the answers: `binary,model=…`, `longmemeval,model=…`,
        `rubric,model=…`, `ledger` (exact, for simulated personas), `f1`, `exact`, `rouge-l`,
        `contains`, `cascade,model=…`, `likelihood`, your own `module:Name`, or `none`. `mnemoscope
        judges list` shows them. Repeat it for a panel, which decides by majority.
    appellate_judge
        A second judge for answers that the first judge fails. Both verdicts are recorded.
    judge_memory_window
        Show the judge the memories of this many days around the evidence. 0: only the reference.
    repeat
        Run each system N times, as N run directories LABEL@1 … LABEL@N: with the seeds SEED, SEED
        + 1, … if the system has an option `seed`, else in fresh processes. All N count. The
        variance is split into system, question and conversation. Baselines run once.
    scenarios
        Use only the first N scenarios of the dataset.
    questions
        Ask only N questions, sampled with the seed.
    draw
        How --questions are sampled. random: each with the same chance. category: of each category
        in proportion to its size.
    lifecycle
        How each checkpoint gets a system that earlier questions have not changed. fork: a copy.
        fresh: a new system that ingests the history again from the start. incremental: the same
        system throughout. auto: fork if the system can, else fresh.
    parallelism
        Questions in flight at once in each process. Useful for remote models and systems.
    max_cost
        The most that models may cost in US dollars, including what these run directories paid
        before. The run stops at this limit; the same command with a higher limit continues.
    baselines
        Run the baselines beside the systems. If a model is the reader, each baseline costs as
        much as a system.
    protocol
        Run under a protocol, which fixes the options. `mnemoscope protocols list` shows them.
    deviation
        The reason why the run deviates from the protocol. Every report shows it.
    depth
        The number of hits requested from a system. Default: the protocol's number, else 50.
    seed
        The seed of sampling and of the random baseline. Default: 42. On personas it
        also shuffles the questions; 0 keeps the order of the file.
    timeout
        Seconds after which a recall counts as timed out. Default: 120, on personas 30.
    remember_timeout
        Seconds after which ingesting a scenario counts as timed out.
    restarts
        How often a scenario is started again after its system died or became unreachable, before
        the current question counts as an error. Recorded questions are not asked again.
    workers
        The number of processes; 0 means one per core. Results do not depend on it.
    executor
        Where systems run: local (processes of this machine), ray (the Ray of this machine, started
        if none runs), ray://HOST:PORT (a cluster, through its client server) or HOST:PORT (a
        cluster that this machine is a node of). Results do not depend on it. Labels, readers and
        judges stay on this machine. Needs mnemoscope[ray].
    resources
        What one worker needs on a node of the cluster: `[LABEL:]cpus=2,memory=8GB,gpus=1`.
        Repeatable; without LABEL for all other systems. Default: cpus=1.
    compat
        recall-bench: judge the text [TIMEOUT] in place of a missing answer, as Recall Bench does.
    skip_preflight
        Do not check all files before the first question.
    private
        Record ids and figures only: no text of a question or memory, no cache of texts on disk. A
        dataset that was imported with --private is always run so.
    accept_leaks
        Continue although a text seems to contain a label. Every report says so.
    isolation
        Demand a level of isolation of the systems that are not built in: 0 labels are within
        reach, 1 they are not given, 2 a lock hides data, caches and runs, 3 decoys besides.
        Default: the highest level that is possible for each system.
    read_only
        Only ask the systems that connectors reach: no reset, remember or forget is sent to them.
        For a store that already holds the memories of the dataset. Baselines ingest as always.
    fresh
        Delete the run directories of these systems below --out first, and begin again. The ledger
        of attempts keeps that they existed.
    resume
        Continue an interrupted run: its folder, or its progress.jsonl.
    json_out
        Also write result.json to this file, with heatmap.png and the logs beside it.
    question_log
        Also write the question log to this file.
    progress_jsonl
        Also write one line for each finished checkpoint to this file.
    heatmap_png
        Draw heatmap.png.
    """

    data: Path | None = None
    out: Path | None = None
    profile: Path | None = None
    reader: str | None = None
    judge: Sequence[str] | None = None
    appellate_judge: str | None = None
    judge_memory_window: int | None = None
    repeat: int = 1
    scenarios: int | None = None
    questions: int | None = None
    draw: Draw = "random"
    lifecycle: Lifecycle | None = None
    parallelism: int | None = None
    max_cost: float | None = None
    baselines: bool = True
    protocol: str | None = None
    deviation: str | None = None
    depth: int | None = None
    seed: int | None = None
    timeout: float | None = None
    remember_timeout: float = 3600.0
    restarts: int = 2
    workers: int | None = None
    executor: str = "local"
    resources: Sequence[str] | None = None
    compat: Literal["recall-bench"] | None = None
    skip_preflight: bool = False
    accept_leaks: bool = False
    private: bool = False
    isolation: Literal[0, 1, 2, 3] | None = None
    read_only: bool = False
    fresh: bool = False
    resume: Path | None = None
    json_out: Path | None = None
    question_log: Path | None = None
    progress_jsonl: Path | None = None
    heatmap_png: bool = True


class RunSetup(NamedTuple):
    """The checked parts of a run."""

    dataset: Dataset
    history: Personas | None
    """The whole dataset, if its questions are asked at several checkpoints."""
    plans: list[Plan]
    baselines: list[Plan]
    settings: Settings
    pipeline: Pipeline
    models: list[str]
    data: Path | None
    out: Path
    protocol: Chosen | None
    deviations: list[str]


def prepare(
    benchmark: str | Dataset,
    systems: Systems,
    config: RunConfig,
    options: Mapping[str, Scalar],
    *,
    only_count: bool = False,
) -> RunSetup:
    """Check the options of a run, and build its parts."""
    from mnemoscope.datasets.personas import Personas
    from mnemoscope.datasets.subset import part_of
    from mnemoscope.protocols import load_protocol
    from mnemoscope.runner import answer_setup as answers
    from mnemoscope.runner import growing_history
    from mnemoscope.runner.run import DEPTH, Settings
    from mnemoscope.runner.scheduler import Limits
    from mnemoscope.systems.loader import plan

    for option in _ONLY_OVER_CHECKPOINTS:
        if getattr(config, option) not in (None, False):
            require_checkpoints(benchmark, f"--{option.replace('_', '-')}")
    if config.profile:
        config, systems, options = _with_profile(config, systems, options)
    specs = read_systems(systems)
    config = _as_recall_bench(config, specs)
    if config.read_only:
        specs = [(_only_read(spec), thing) for spec, thing in specs]
    if not specs:
        raise UsageError("name a system with --system NAME; `mnemoscope systems list` shows them")
    if config.repeat < 1:
        raise UsageError(f"--repeat {config.repeat}: must be 1 or more")
    runs = len(specs) * config.repeat
    if runs > 1 and (config.json_out or config.question_log or config.progress_jsonl):
        raise UsageError(
            "--json-out, --question-log and --progress-jsonl are for one system and one run, and "
            f"{runs} are asked for; each run directory contains these files, too"
        )
    if config.resources and config.executor == "local":
        raise UsageError("--resources is for workers on a cluster: give --executor, too")
    if config.fresh and config.resume:
        raise UsageError("--fresh begins again and --resume continues: give one of them")
    out = _resumed(config.resume) if config.resume else config.out or Path("runs")
    seed = SEED if config.seed is None else config.seed
    name = benchmark if isinstance(benchmark, str) else benchmark.name
    chosen = load_protocol(config.protocol) if config.protocol else None
    rules = chosen.benchmark(name) if chosen else None
    depth = config.depth
    if depth is None:
        depth = chosen.protocol.depth if chosen else DEPTH
    if depth < 1:
        raise UsageError(f"--depth {depth}: ask for at least one hit")
    whole = benchmark
    if options and not isinstance(whole, str):
        raise UsageError(
            f"{next(iter(options))}: {name} is already open, so its options cannot change"
        )
    if isinstance(whole, str):
        whole = _open(whole, config, {**(rules.options if rules else {}), **options}, seed)
    history = whole if isinstance(whole, Personas) else None
    dataset = part_of(whole, config.scenarios, config.questions, seed, config.draw)
    if config.read_only and (history is not None or name == "tofu"):
        raise UsageError(
            f"--read-only: {name} adds or deletes memories between its questions, and nothing is "
            "sent to a store that is only read"
        )
    departs = _deviations(chosen, dataset, depth, config.deviation) if chosen else []
    reader, judges = config.reader, list(config.judge or ())
    models = answers.models_of(reader, *judges, config.appellate_judge)
    if history is not None:
        reader, judges = growing_history.reader_and_judges(history, reader, judges)
    pipeline = answers.pipeline_for(
        name,
        reader=reader,
        judges=judges,
        appellate=config.appellate_judge,
        window=config.judge_memory_window or 0,
        lifecycle=config.lifecycle or "auto",
        compat=config.compat or "",
        parallelism=1 if config.parallelism is None else config.parallelism,
        only_count=only_count,
    )
    timeout = config.timeout
    if timeout is None:
        timeout = growing_history.TIMEOUT if history else Limits().recall
    elif history and not timeout > 0:
        raise UsageError(f"--timeout {timeout}: must be more than 0 seconds")
    limits = Limits(timeout, config.remember_timeout, config.restarts)
    hosted = config.isolation != 0
    if config.repeat == 1:
        plans = [plan(spec, thing, hosted=hosted) for spec, thing in specs]
    else:
        plans = [
            replace_fields(plan(own, thing, hosted=hosted), repeat=repeat)
            for spec, thing in specs
            for own, repeat in _repeated(spec, thing, config.repeat, seed)
        ]
    beside: list[Plan] = []
    if config.baselines:
        beside = _baselines(name, pipeline, chosen, seed, {one.spec.slug for one in plans})
        if history and pipeline.system_answers:
            _log.warning("the baselines have no answer(query) and are left out")
    if history and not config.skip_preflight:
        growing_history.report_findings(history)
    return RunSetup(
        dataset,
        history,
        plans,
        beside,
        Settings(
            depth,
            seed,
            limits,
            config.workers or 0,
            config.accept_leaks,
            config.isolation,
            config.executor,
            tuple(config.resources or ()),
            config.private,
        ),
        pipeline,
        models,
        config.data,
        out,
        chosen,
        departs,
    )


def _only_read(spec: Spec) -> Spec:
    """The spec of a system that is asked and never told anything."""
    from mnemoscope.systems import BUILT_IN, CONNECTORS

    if spec.name in BUILT_IN:  # it keeps nothing outside of this run
        return spec
    connector = spec.name.partition(":")[0]
    if (
        connector not in CONNECTORS.builtin
        or "read_only" not in inspect.signature(CONNECTORS.get(connector)).parameters
    ):
        raise UsageError(
            f"--read-only: {spec.name} begins empty in every run, so it has nothing to be asked "
            "about; it is for stores behind stdio:, mcp: and http:"
        )
    return replace_fields(spec, args={**spec.args, "read_only": True})


def _repeated(spec: Spec, thing: SystemLike, count: int, seed: int) -> list[tuple[Spec, Repeat]]:
    """The spec of each repeat: its label, and a seed of its own if the system takes one."""
    from mnemoscope.systems.loader import takes_seed

    seeds: list[int | None] = [None] * count
    if takes_seed(spec, thing):
        try:
            first = int(spec.args.get("seed", seed))
        except ValueError:
            raise UsageError(
                f"--repeat {count}: the seed of {spec} is not a whole number, so the other repeats "
                "cannot get seeds of their own"
            ) from None
        seeds = [first + number for number in range(count)]
    kept = {key: value for key, value in spec.args.items() if key != "seed"}
    label = spec.label or Spec(spec.name, kept).slug
    found = []
    for number, own in enumerate(seeds, 1):
        args = spec.args if own is None else {**kept, "seed": own}
        named = Spec(spec.name, args, f"{label}@{number}")
        found.append((named, Repeat(number, count, own)))
    return found


def _open(name: str, config: RunConfig, options: Mapping[str, Scalar], seed: int) -> Dataset:
    """The dataset; the files of a persona are checked first."""
    from mnemoscope.datasets import DATASETS, open_dataset
    from mnemoscope.runner.growing_history import check_files

    if name == "personas" and not config.skip_preflight:
        check_files(config.data, options)
    if "seed" in inspect.signature(DATASETS.get(name)).parameters:
        options = {"seed": seed, **options}
    return open_dataset(name, config.data, options)


def require_checkpoints(benchmark: str | Dataset, option: str) -> None:
    """Refuse an option for datasets with checkpoints if this dataset has none."""
    from mnemoscope.datasets import DATASETS

    if isinstance(benchmark, str):
        kind, name = DATASETS.get(benchmark), benchmark
    else:
        kind, name = type(benchmark), benchmark.name
    if "ranges" not in inspect.signature(kind).parameters:
        raise UsageError(
            f"{option} is for datasets with checkpoints, such as personas; {name} has none"
        )


def _deviations(chosen: Chosen, dataset: Dataset, depth: int, reason: str | None) -> list[str]:
    """The deviations from the protocol, each with the declared reason."""
    from mnemoscope.protocols import deviations

    found = deviations(chosen.protocol, chosen.benchmark(dataset.name), dataset.options, depth)
    if found and not reason:
        raise UsageError(
            f"this run deviates from {chosen.id} ({'; '.join(found)}): declare why with "
            "--deviation REASON, or use the protocol's options"
        )
    return [f"{what}: {reason}" for what in found or filter(None, [reason])]


def _with_profile(
    config: RunConfig, systems: Systems, options: Mapping[str, Scalar]
) -> tuple[RunConfig, Systems, Mapping[str, Scalar]]:
    """The given options, completed from the profile."""
    from mnemoscope.runner.profile import load_profile

    profile = load_profile(Path(config.profile or ""))
    own: dict[str, Any] = {
        field.name: value
        for field in fields(config)
        if getattr(config, field.name) is None
        if (value := getattr(profile, field.name, None)) is not None
    }
    if config.judge is not None and own.pop("appellate_judge", None):
        _log.warning("note: the appellate judge of the profile is left out: --judge is given")
    if "judge" in own:
        own["judge"] = [profile.judge_spec("judge")]
    if "appellate_judge" in own:
        own["appellate_judge"] = profile.judge_spec("appellate_judge")
    if profile.env_file is not None:
        _log.warning(
            "note: env.file of the profile is not read; to set its variables: set -a; . %s; set +a",
            shlex.quote(str(profile.env_file)),
        )
    return replace(config, **own), systems or profile.system_specs, {**profile.options, **options}


def _as_recall_bench(config: RunConfig, specs: Sequence[tuple[Spec, SystemLike]]) -> RunConfig:
    """The defaults for adapters of Recall Bench: each answers itself, a server has one memory."""
    from mnemoscope.systems import connector_of, is_recall_bench

    if not all(thing is None and is_recall_bench(spec.name) for spec, thing in specs):
        return config
    connectors = {connector_of(spec.name).connector for spec, _ in specs}
    one = config.workers is None and "recall-bench" in connectors
    return replace(config, reader=config.reader or "system", workers=1 if one else config.workers)


def read_systems(systems: Systems) -> list[tuple[Spec, SystemLike]]:
    """Each system's spec and, if it was given from Python, the object itself."""
    from mnemoscope.systems import SYSTEMS

    if not isinstance(systems, Mapping | list | tuple):
        systems = [systems]
    given = systems.items() if isinstance(systems, Mapping) else [("", one) for one in systems]
    found: list[tuple[Spec, SystemLike]] = []
    for label, system in given:
        if isinstance(system, Spec):
            found.append((system, None))
        elif isinstance(system, str):
            found.append((Spec.labelled(f"{label}={system}" if label else system), None))
        else:
            has_name = hasattr(system, "__qualname__")
            named = system if has_name else getattr(system, "func", type(system))
            name = str(getattr(named, "__qualname__", type(system).__qualname__))
            short = name.rpartition(".")[2].strip("<>")
            found.append((Spec(f"{named.__module__}:{name}", label=str(label) or short), system))
    for spec, _ in found:
        if spec.label and spec.label in SYSTEMS:
            raise UsageError(f"{spec.label} is the name of a system; choose another label")
    return found


def _baselines(
    benchmark: str, pipeline: Pipeline, protocol: Chosen | None, seed: int, given: set[str]
) -> list[Plan]:
    """The baselines of the run: each costs as much as a system does."""
    from mnemoscope.datasets import dataset_info
    from mnemoscope.systems import BASELINES
    from mnemoscope.systems.loader import plan

    info = dataset_info(benchmark)
    names: Sequence[str] = info.baselines
    if pipeline.system_answers:  # most baselines cannot
        names = info.answers.baselines_if_system_answers
    elif pipeline.reader is not None:
        names = info.answers.baselines
    if protocol and not pipeline.system_answers:  # its gates need the baselines of recall
        names = [*dict.fromkeys([*names, *BASELINES])]
    seeded: dict[str, Scalar] = {"seed": seed} if seed != SEED else {}
    specs = [Spec(name, seeded if name == "random" else {}) for name in names if name not in given]
    return [plan(spec) for spec in specs]


def _resumed(resume: Path) -> Path:
    """The folder of the run directories to resume."""
    place = resume.parent if resume.suffix == ".jsonl" else resume
    if (place / "manifest.json").exists():
        return place.parent
    if not any(place.glob("*/manifest.json")):
        raise MissingData(f"--resume {resume}: there is no run to continue")
    return place
