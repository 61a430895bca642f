"""A frozen plan: what decides, written down before the candidate runs, and checked afterwards.

The file has a hash of its content, and the ledger of attempts records when the plan was frozen and
which runs were compared under it. A plan that was edited, that is younger than the candidate, or
that is for something else does not count: then no metric has a verdict.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec

from mnemoscope._store.attempt_ledger import COPY, ledger_path, read_ledger, record_plan
from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.fingerprint import differences, fingerprint
from mnemoscope._store.jsonl import write_atomically
from mnemoscope._store.run_directory import Manifest, RunDirectory
from mnemoscope._store.yaml import dump_yaml, load_yaml
from mnemoscope.analysis.comparison import Declared
from mnemoscope.analysis.plan import PlannedComparison
from mnemoscope.stats.clustered import ALPHA

_Positive = Annotated[float, msgspec.Meta(gt=0)]


class BaseRun(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The run that the candidate will be compared with."""

    label: str
    fingerprint: str


class FrozenPlan(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a plan's file."""

    format: Literal["mnemoscope-plan-1"]
    benchmark: dict[str, Any]
    """The benchmark in the identity of its runs: name, options, sha256 of the data."""
    base: BaseRun
    primary: str
    secondaries: list[str]
    band: _Positive | None
    alpha: _Positive
    """For each look: 0.05 divided by the number of looks."""
    looks: Annotated[int, msgspec.Meta(ge=1)]
    """How many candidates may be compared under the plan."""
    seed: int
    """The seed of the candidate's run."""
    detect: _Positive
    planned_power: float | None
    """Of the primary metric, for a difference of `detect`; None with fewer than five clusters."""
    created: Annotated[datetime, msgspec.Meta(tz=True)]
    ledger: str
    """The id of the ledger that recorded the plan; empty if it was the first line of one."""
    sha256: str = ""
    """Over everything above."""

    def content_hash(self) -> str:
        return fingerprint(msgspec.to_builtins(msgspec.structs.replace(self, sha256="")))


class PlanCheck(NamedTuple):
    """What a plan says about a comparison."""

    declared: Declared
    """Its `refused` says why the plan does not count, if it does not."""
    band: float | None
    notes: list[str]


def freeze(
    plan: PlannedComparison, base: RunDirectory, file: Path, *, seed: int | None = None
) -> FrozenPlan:
    """Write a plan to a new file and record its hash in the ledger of attempts."""
    if file.exists():
        raise UsageError(f"{file} exists, and a frozen plan is not changed: choose another name")
    about = base.manifest()
    content = FrozenPlan(
        format="mnemoscope-plan-1",
        benchmark=about.identity["benchmark"],
        base=BaseRun(base.label, about.fingerprint),
        primary=plan.declared.primary,
        secondaries=plan.declared.secondaries,
        band=plan.band,
        alpha=plan.declared.alpha,
        looks=plan.looks,
        seed=int(about.identity.get("seed", 42)) if seed is None else seed,
        detect=plan.detect,
        planned_power=plan.primary.power,
        created=datetime.now(UTC),
        ledger=read_ledger().id,
    )
    frozen = msgspec.structs.replace(content, sha256=content.content_hash())
    try:
        write_atomically(file, dump_yaml(msgspec.to_builtins(frozen)).encode())
    except OSError as error:
        raise UsageError(f"--freeze {file}: {error.strerror}") from error
    record_plan(file, "plan", frozen.sha256)
    return frozen


def read_plan(file: Path) -> FrozenPlan:
    """Read a plan; raise UsageError if the file is not one. Its hash is checked by `check`."""
    if not file.is_file():
        raise UsageError(f"--plan {file}: no such file")
    try:
        return msgspec.convert(load_yaml(file), FrozenPlan)
    except DataError as error:
        raise UsageError(f"--plan {error}") from None
    except msgspec.ValidationError as error:
        raise UsageError(
            f"--plan {file}: is not a plan of `mnemoscope plan --freeze`: {error}"
        ) from None


def check(
    plan: FrozenPlan, file: Path, base: RunDirectory, cand: RunDirectory, band: float | None = None
) -> PlanCheck:
    """Whether the plan was made for this comparison, before its candidate began."""
    notes: list[str] = []
    refused = (
        _edited(plan)
        or _other_comparison(plan, base, cand, band)
        or _late(plan, cand, notes)
        or _too_many_looks(plan, cand.manifest(), notes)
    )
    declared = Declared(
        plan.primary,
        plan.secondaries,
        f"plan {file.name}, sha256 {plan.sha256[:12]}",
        plan.alpha if not refused else ALPHA,
        f"the plan {file.name} does not count: {refused}" if refused else "",
    )
    return PlanCheck(declared, plan.band if band is None else band, notes)


def record_look(plan: FrozenPlan, file: Path, cand: RunDirectory) -> None:
    """Record that a candidate was compared under the plan; each candidate counts once."""
    run = _look_id(cand.manifest())
    if run not in read_ledger().looks_under(plan.sha256):
        record_plan(file, "look", plan.sha256, run)


def _edited(plan: FrozenPlan) -> str:
    if plan.sha256 != plan.content_hash():
        return "it was edited after it was frozen"
    if plan.alpha * plan.looks > ALPHA * (1 + 1e-9):
        return f"its alpha of {plan.alpha:g} for each of {plan.looks} looks is above {ALPHA} in all"
    ledger = read_ledger()
    if plan.ledger and plan.ledger == ledger.id and ledger.plan_time(plan.sha256) is None:
        return "the ledger of attempts that it names does not know it"
    return ledger.problem


def _other_comparison(
    plan: FrozenPlan, base: RunDirectory, cand: RunDirectory, band: float | None
) -> str:
    if band is not None and band != plan.band:
        planned = "no band" if plan.band is None else f"a band of {plan.band:g}"
        return f"--band {band:g} was asked for, and it has {planned}"
    about = cand.manifest()
    if apart := differences(plan.benchmark, about.identity["benchmark"], "benchmark."):
        return f"it is for another benchmark ({'; '.join(apart[:2])})"
    if base.manifest().fingerprint != plan.base.fingerprint:
        return f"its base is another run, {plan.base.label}"
    seed = about.identity.get("seed", plan.seed)
    if seed != plan.seed:
        return f"the candidate ran with seed {seed}, and it has seed {plan.seed}"
    return ""


def _late(plan: FrozenPlan, cand: RunDirectory, notes: list[str]) -> str:
    """Whether the candidate, or an earlier attempt of it, began before the plan was frozen."""
    about = cand.manifest()
    ledger = read_ledger()
    recorded = ledger.plan_time(plan.sha256)
    if recorded is None:
        notes.append(
            "the ledger of this machine does not know the plan: that it is older than the "
            "candidate is only what its file says"
        )
    frozen = max(filter(None, (plan.created, recorded)))
    if "derived_from" in about.identity:
        return "the candidate contains an earlier run, whose start is not known"
    if "format" in about.identity.get("system", {}):
        notes.append("the candidate's rankings are from a file: when they were made is not known")
    ledgers = (ledger, read_ledger(cand.path.parent / COPY))
    own = [line for line in (one.start_of(about.id) for one in ledgers) if line is not None]
    same = own[0].same if own else ""
    starts = [line.at for one in ledgers for line in one.starts(about.fingerprint, same)]
    began = min(filter(None, (about.started, *starts)), default=None)
    if began is None:
        return "the candidate does not say when it began"
    if began <= frozen:
        return (
            f"it is younger than the candidate (frozen {_time(frozen)}, first attempt of the "
            f"candidate begun {_time(began)})"
        )
    return ""


def _too_many_looks(plan: FrozenPlan, cand: Manifest, notes: list[str]) -> str:
    before = [one for one in read_ledger().looks_under(plan.sha256) if one != _look_id(cand)]
    if len(before) >= plan.looks:
        several = "1 look" if plan.looks == 1 else f"{plan.looks} looks"
        return f"it allows {several}, and {len(before)} other runs were compared under it"
    if plan.looks > 1:
        notes.append(
            f"at most {len(before) + 1} of {plan.looks} planned looks are used, by the ledger of "
            f"this machine ({ledger_path()}); alpha is {plan.alpha:g} for each"
        )
    return ""


def _look_id(cand: Manifest) -> str:
    return cand.id or cand.fingerprint


def _time(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
