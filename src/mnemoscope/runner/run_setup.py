"""What a run is made of: its options, checked and turned into a dataset, systems and a pipeline.

Precedence: what is given, then the profile, then the protocol and the benchmark's record.
"""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from mnemoscope._store.errors import MissingData, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope.types import Scalar

if TYPE_CHECKING:  # the command line reads the options before it is known whether anything runs
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
SEED = 42
_ONLY_OVER_CHECKPOINTS = (
    *("profile", "judge_memory_window", "lifecycle", "compat", "skip_preflight"),
    *("json_out", "progress_jsonl"),
)
_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RunConfig:
    """How systems are run. None leaves it to the profile, the protocol or the benchmark.

    Parameters
    ----------
    data
        The dataset's file or folder; else $MNEMOSCOPE_DATA/NAME, else the cache of `fetch`.
    out
        Where the run directories go: `runs` by default.
    profile
        Settings from a YAML file, in Recall Bench's keys and ours; flags given here win.
    reader
        Who answers from what was recalled: a model (`openai:gpt-4o-mini`, `NAME@http://host/v1`,
        `claude`, `smollm2`), `llm,model=…,passages=20`, `full-context,model=…`, `extractive` (no
        model), `system` (it answers by itself), `none` (recall only) or your own `module:Name`.
    judge
        Who scores the answers: `binary,model=…`, `longmemeval,model=…`, `rubric,model=…`, `ledger`
        (exact, for simulated personas), `f1`, `exact`, `rouge-l`, `likelihood`, your own, or
        `none`. Repeated: a panel, whose majority decides. `mnemoscope judges list` shows them.
    appellate_judge
        A second judge, heard only where the first one fails an answer; both verdicts are kept.
    judge_memory_window
        Days around the evidence that the judge is shown; 0 for the reference alone.
    scenarios
        Take only the first so many of the dataset's scenarios.
    questions
        Ask only so many of the questions, drawn by the seed.
    lifecycle
        How a checkpoint gets a system that no earlier question has changed: a copy (fork), a fresh
        life, or the same one all along (incremental). auto: fork where it can, else fresh.
    parallelism
        Questions in flight at once in each process, for models and systems that one waits for.
    max_cost
        What models may cost in US dollars, whatever these runs have paid before included. The run
        stops there; with a higher ceiling the same command goes on.
    baselines
        Run the baselines beside the systems. A model that reads is paid for each of them, too.
    protocol
        Run under a protocol: `mnemoscope protocols list` shows them. It fixes the options.
    deviation
        The reason for doing otherwise than the protocol says; shown in every report.
    depth
        How many hits a system is asked for: the protocol's number, or 50.
    seed
        Of sampling, of intervals and of the random baseline: 42. On personas also of the order of
        questions, which 0 leaves as it is.
    timeout
        Seconds a recall may take before it counts as timed out: 120, on personas 30.
    remember_timeout
        Seconds that taking in one scenario may take.
    restarts
        How often a scenario is begun again because its system died or could not be reached any
        more, before the question it was on counts as an error. What is recorded is not asked again.
    workers
        Processes; 0 for one per core. Results do not depend on it.
    compat
        recall-bench: judge the text [TIMEOUT] where no answer came, as that harness does.
    skip_preflight
        Do not look at all files before the first question is asked.
    accept_leaks
        Go on where a text looks as if it carried a label; every report will say so.
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
    """

    data: Path | None = None
    out: Path | None = None
    profile: Path | None = None
    reader: str | None = None
    judge: Sequence[str] | None = None
    appellate_judge: str | None = None
    judge_memory_window: int | None = None
    scenarios: int | None = None
    questions: int | None = None
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
    compat: Literal["recall-bench"] | None = None
    skip_preflight: bool = False
    accept_leaks: bool = False
    resume: Path | None = None
    json_out: Path | None = None
    question_log: Path | None = None
    progress_jsonl: Path | None = None
    heatmap_png: bool = True

    @property
    def judges(self) -> list[str]:
        return list(self.judge or ())


class RunSetup(NamedTuple):
    """Everything that a run is made of, checked."""

    dataset: Dataset
    history: Personas | None
    """The whole dataset, if it is questioned at several of its days."""
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
    """Put a run together; every mistake in its options is an error here."""
    from mnemoscope.datasets.subset import part_of
    from mnemoscope.protocols import load_protocol
    from mnemoscope.runner import answer_setup as answers
    from mnemoscope.runner import growing_history
    from mnemoscope.runner.run import DEPTH, Settings
    from mnemoscope.runner.scheduler import Limits

    for option in _ONLY_OVER_CHECKPOINTS:
        if getattr(config, option) not in (None, False):
            require_checkpoints(benchmark, f"--{option.replace('_', '-')}")
    if config.profile:
        config, systems, options = _with_profile(config, systems, options)
    specs = read_systems(systems)
    if not specs:
        raise UsageError("which system? Give --system NAME; `mnemoscope systems list` shows them")
    if len(specs) > 1 and (config.json_out or config.question_log or config.progress_jsonl):
        raise UsageError(
            "--json-out, --question-log and --progress-jsonl are of one system, and here are "
            f"{len(specs)}; each run directory has these files anyway"
        )
    out = _folder(config.resume, config.out or Path("runs"))
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
        raise UsageError(f"{next(iter(options))}: {name} is open already, its options are set")
    if isinstance(whole, str):
        whole = _open(whole, config, {**(rules.options if rules else {}), **options}, seed)
    history = growing_history.history_of(whole)
    dataset = part_of(whole, config.scenarios, config.questions, seed)
    departs = _deviations(chosen, dataset, depth, config.deviation)
    reader, judges = config.reader, config.judges
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
        raise UsageError(f"--timeout {timeout}: more than 0 seconds")
    limits = Limits(timeout, config.remember_timeout, config.restarts)
    plans = [plan_system(spec, thing) for spec, thing in specs]
    beside: list[Plan] = []
    if config.baselines:
        beside = _baselines(name, pipeline, chosen, seed, {plan.spec.slug for plan in plans})
        if history and pipeline.system_answers:
            _log.warning("the arms cannot answer by themselves and are left out")
    if history and not config.skip_preflight:
        growing_history.tell_findings(history)
    return RunSetup(
        dataset,
        history,
        plans,
        beside,
        Settings(depth, seed, limits, config.workers or 0, config.accept_leaks),
        pipeline,
        answers.models_of(config.reader, *config.judges, config.appellate_judge),
        config.data,
        out,
        chosen,
        departs,
    )


def _open(name: str, config: RunConfig, options: Mapping[str, Scalar], seed: int) -> Dataset:
    """The dataset, its files checked first where it is a history."""
    from mnemoscope.datasets import DATASETS, open_dataset
    from mnemoscope.runner.growing_history import check_files

    if name == "personas" and not config.skip_preflight:
        check_files(config.data, options)
    if "seed" in inspect.signature(DATASETS.get(name)).parameters:
        options = {"seed": seed, **options}
    return open_dataset(name, config.data, options)


def require_checkpoints(benchmark: str | Dataset, option: str) -> None:
    """Refuse an option that needs a history which is questioned at several of its days."""
    from mnemoscope.datasets import DATASETS

    if isinstance(benchmark, str):
        kind, name = DATASETS.get(benchmark), benchmark
    else:
        kind, name = type(benchmark), benchmark.name
    if "ranges" not in inspect.signature(kind).parameters:
        raise UsageError(
            f"{option} is for histories that are questioned at checkpoints, such as personas; "
            f"{name} is none"
        )


def _deviations(
    chosen: Chosen | None, dataset: Dataset, depth: int, reason: str | None
) -> list[str]:
    """What the run does otherwise than its protocol, each with the declared reason."""
    from mnemoscope.protocols import deviations

    if chosen is None:
        return []
    found = deviations(chosen.protocol, chosen.benchmark(dataset.name), dataset.options, depth)
    if found and not reason:
        raise UsageError(
            f"this run deviates from {chosen.id} ({'; '.join(found)}): declare why with "
            "--deviation REASON, or leave the protocol's options as they are"
        )
    return [f"{what}: {reason}" for what in found or filter(None, [reason])]


def _with_profile(
    config: RunConfig, systems: Systems, options: Mapping[str, Scalar]
) -> tuple[RunConfig, Systems, Mapping[str, Scalar]]:
    """What is given, and what the profile says where nothing is given."""
    from mnemoscope.runner.profile import load_profile

    said = load_profile(Path(config.profile or ""))
    own: dict[str, Any] = {
        field.name: value
        for field in fields(config)
        if getattr(config, field.name) is None
        if (value := getattr(said, field.name, None)) is not None
    }
    if "judge" in own:
        own["judge"] = [own["judge"]]
    return replace(config, **own), systems or said.system_specs, {**said.options, **options}


def read_systems(systems: Systems) -> list[tuple[Spec, SystemLike]]:
    """Each system's spec and, where it was given from Python, the thing itself."""
    from mnemoscope.systems import SYSTEMS

    if isinstance(systems, Mapping):
        found = [_read_system(str(label), thing) for label, thing in systems.items()]
    else:
        several = systems if isinstance(systems, list | tuple) else [systems]
        found = [_read_system("", thing) for thing in several]
    if taken := [spec.label for spec, _ in found if spec.label in SYSTEMS.names()]:
        raise UsageError(f"{taken[0]} is a system's own name; label yours otherwise")
    return found


def _read_system(label: str, thing: SystemLike) -> tuple[Spec, SystemLike]:
    if isinstance(thing, Spec):
        return thing, None
    if isinstance(thing, str):
        return Spec.labelled(f"{label}={thing}" if label else thing), None
    named = thing if hasattr(thing, "__qualname__") else getattr(thing, "func", type(thing))
    name = str(getattr(named, "__qualname__", type(thing).__qualname__))
    short = name.rpartition(".")[2].strip("<>")
    return Spec(f"{named.__module__}:{name}", label=label or short), thing


def plan_system(spec: Spec, thing: SystemLike = None) -> Plan:
    """How to build a system; what it prints meanwhile goes to stderr."""
    from mnemoscope.systems.loader import plan

    with redirect_stdout(sys.stderr):
        return plan(spec) if thing is None else plan(spec, thing)


def _baselines(
    benchmark: str, pipeline: Pipeline, protocol: Chosen | None, seed: int, given: set[str]
) -> list[Plan]:
    """What runs beside the systems; the random one draws by the run's seed."""
    from mnemoscope.runner.answer_setup import baselines_for
    from mnemoscope.systems import BASELINES

    names = baselines_for(benchmark, pipeline)
    if protocol and not pipeline.system_answers:  # its gates ask for the baselines of recall
        names = [*dict.fromkeys([*names, *BASELINES])]
    drawn: dict[str, Scalar] = {"seed": seed} if seed != SEED else {}
    specs = [Spec(name, drawn if name == "random" else {}) for name in names if name not in given]
    return [plan_system(spec) for spec in specs]


def _folder(resume: Path | None, out: Path) -> Path:
    """Where the run directories are: given by `out`, or by what is to be resumed."""
    if resume is None:
        return out
    place = resume.parent if resume.suffix == ".jsonl" else resume
    if (place / "manifest.json").exists():
        return place.parent
    if not any(place.glob("*/manifest.json")):
        raise MissingData(f"--resume {resume}: there is no run to go on with")
    return place
