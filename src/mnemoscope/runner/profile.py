"""Profiles: the settings of a run in a YAML file, with Recall Bench's keys and ours.

A setting that is absent is None here, and given options override the profile. No other file is
read: API keys come from the environment, not from `env.file`. A profile of Recall Bench loads as it
was published; what cannot run here, such as a harness that is not built, is an error when it is
used.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from mnemoscope._store.errors import DataError, MissingData, UsageError
from mnemoscope._store.spec import Spec
from mnemoscope._store.yaml import load_yaml
from mnemoscope.datasets.checkpoint_plan import arithmetic, parse_ranges
from mnemoscope.types import Scalar

T = TypeVar("T")

Lifecycle = Literal["auto", "fork", "fresh", "incremental"]

Whole = Annotated[int, Meta(ge=1)]
OrZero = Annotated[int, Meta(ge=0)]
Positive = Annotated[float, Meta(gt=0)]

_UNITS = {"": 0.001, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*(ms|s|m|h|)")
_DRIVE = re.compile(r"[A-Za-z]:[\\/]")
_JAVASCRIPT = (".js", ".mjs", ".cjs")
_TYPESCRIPT = (".ts", ".mts", ".cts")
_OPENAI = "openai:"


class _Section(Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Unknown keys are refused."""


class _Persona(_Section, frozen=True):
    id: str | None = None
    dir: str | None = None
    arcs: str | None = None


class _Env(_Section, frozen=True):
    file: str | None = None


class _Models(_Section, frozen=True):
    generation: str | None = None
    judge: str | None = None
    appellate_judge: str | None = None
    creation: str | None = None
    conversation: str | None = None


class _Harness(_Section, frozen=True):
    adapter: str | None = None
    factory: str | None = None
    config: dict[str, Any] = {}


class _Steps(_Section, frozen=True):
    start: Whole
    end: Whole
    step: Whole


class _Series(_Section, frozen=True):
    series: list[int | str]


class _Labelled(_Section, frozen=True):
    label: Annotated[str, Meta(pattern=r"^[^\s:,]+$")]
    days: Whole


class _Run(_Section, frozen=True):
    ranges: str | int | list[int | str | _Labelled] | dict[str, Any] | None = None
    seed: int | None = None
    timeout: Positive | str | None = None
    parallelism: Whole | None = None
    sample: OrZero | None = None
    judge_memory_window: OrZero | None = None
    groups_enabled: bool | None = None
    # Ours from here on.
    cohort: OrZero | None = None
    systems: list[str] | None = None
    reader: str | None = None
    judge: str | None = None
    appellate_judge: str | None = None
    granularity: Literal["day", "session", "section"] | None = None
    lifecycle: Lifecycle | None = None
    depth: Whole | None = None
    out: str | None = None
    personas: str | list[str] | None = None
    workers: OrZero | None = None


class _Generation(_Section, frozen=True):
    """How days are generated: used by other commands, only checked here."""

    days: Whole | None = None
    start: Whole | None = None
    end: Whole | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    max_tokens: Whole | None = None
    history_window: OrZero | None = None


class _File(_Section, frozen=True):
    persona: _Persona = _Persona()
    env: _Env = _Env()
    models: _Models = _Models()
    harness: _Harness = _Harness()
    run: _Run = _Run()
    generate: _Generation | None = None


class Profile(Struct, frozen=True, kw_only=True):
    """The settings in a profile; None if one is absent."""

    path: Path
    data: Path | None = None
    """`persona.dir`: one persona's folder, or a folder of them."""
    personas: str | None = None
    """Ids, separated by commas: `run.personas`, else `persona.id`."""
    arcs: str | None = None
    ranges: str | None = None
    """As `--ranges` takes them."""
    sample: int | None = None
    cohort: int | None = None
    groups: bool | None = None
    seed: int | None = None
    granularity: Literal["day", "session", "section"] | None = None
    systems: tuple[str, ...] | None = None
    adapter: str | None = None
    """`harness.adapter`: an address, a name, or a path that was relative to the profile."""
    factory: str | None = None
    config: dict[str, Any] = {}
    """`harness.config`: the adapter's options; lists and mappings are for JavaScript."""
    env_file: Path | None = None
    """`env.file`, which is not read."""
    reader: str | None = None
    judge: str | None = None
    """`run.judge`, else `models.judge`."""
    appellate_judge: str | None = None
    judge_memory_window: int | None = None
    timeout: float | None = None
    """In seconds."""
    parallelism: int | None = None
    workers: int | None = None
    lifecycle: Lifecycle | None = None
    depth: int | None = None
    out: Path | None = None

    @property
    def system_specs(self) -> tuple[str | Spec, ...]:
        """`run.systems`, else the harness: adapter and factory, its config as options."""
        if self.systems or not self.adapter:
            return self.systems or ()
        if "://" in self.adapter:  # a server has its own configuration
            return (self.adapter,)
        if Path(self.adapter).suffix in (*_JAVASCRIPT, *_TYPESCRIPT):
            return (self._javascript(Path(self.adapter)),)
        for key, value in self.config.items():
            if not isinstance(value, Scalar) or "," in str(value):
                raise UsageError(
                    f"{self.path}: field `harness.config.{key}`: {self.adapter} takes numbers, "
                    "texts without commas, true and false; only JavaScript adapters take more"
                )
        name = f"{self.adapter}:{self.factory}" if self.factory else self.adapter
        return (Spec(name, self.config),)

    def _javascript(self, adapter: Path) -> Spec:
        """The spec of a JavaScript adapter, whose config is read from the profile."""
        what_to_do = (
            "build the harness, then set harness.adapter to the built file, or give "
            "--system recall-bench-js:FILE; or give another system with --system"
        )
        where = f"{self.path}: field `harness.adapter`"
        if adapter.suffix in _TYPESCRIPT:
            raise UsageError(f"{where}: {adapter} is TypeScript, not JavaScript: {what_to_do}")
        if not adapter.is_file():
            raise MissingData(f"{where}: {adapter} is not on this machine: {what_to_do}")
        options: dict[str, Scalar] = {"factory": self.factory} if self.factory else {}
        if self.config:
            options["config"] = str(self.path.absolute())
        if "," in f"{adapter}{self.path.absolute()}":
            raise UsageError(f"{where}: move the files to a path without commas")
        return Spec(f"recall-bench-js:{adapter.absolute()}", options)

    def judge_spec(self, field: Literal["judge", "appellate_judge"]) -> str | None:
        """The judge as --judge takes it: Recall Bench writes `openai:MODEL;ENDPOINT`."""
        spec: str | None = getattr(self, field)
        if spec is None:
            return None
        option = f"--{field.replace('_', '-')}"
        if spec.startswith((".", "/")) or Path(spec).suffix in _JAVASCRIPT:
            raise UsageError(
                f"{self.path}: the judge {spec} is a module of Recall Bench, which does not run "
                f"here: give {option} openai:MODEL, your own module:Name, or none"
            )
        model, semicolon, endpoint = spec.partition(";")
        if not semicolon:
            return spec
        if model.startswith(_OPENAI):
            return f"{model.removeprefix(_OPENAI)}@{endpoint}"
        raise UsageError(
            f"{self.path}: the judge {spec} names its endpoint: export AZURE_OPENAI_ENDPOINT="
            f"{endpoint} for azure, and give {option} {model}"
        )

    @property
    def options(self) -> dict[str, Scalar]:
        """The options of the dataset."""
        names = ("personas", "arcs", "ranges", "sample", "cohort", "groups", "granularity")
        found = {name: getattr(self, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}


def load_profile(path: Path) -> Profile:
    """Read a profile; an error names the file and the field."""
    try:
        file = msgspec.convert(load_yaml(path) or {}, _File)
    except FileNotFoundError:
        raise MissingData(f"--profile {path}: no such file") from None
    except UnicodeDecodeError as error:
        raise DataError(f"is not UTF-8 text: {error}", file=path) from None
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path) from None
    run, models = file.run, file.models
    personas = run.personas if run.personas is not None else file.persona.id
    return Profile(
        path=path,
        data=_beside(path, file.persona.dir),
        personas=",".join(personas) if isinstance(personas, list) else personas,
        arcs=file.persona.arcs,
        ranges=_field(path, "run.ranges", _ranges, run.ranges),
        sample=run.sample,
        cohort=run.cohort,
        groups=run.groups_enabled,
        seed=run.seed,
        granularity=run.granularity,
        systems=None if run.systems is None else tuple(run.systems),
        adapter=_adapter(path, file.harness.adapter),
        factory=file.harness.factory,
        config=file.harness.config,
        env_file=_beside(path, file.env.file),
        reader=run.reader,
        judge=run.judge or models.judge,
        appellate_judge=run.appellate_judge or models.appellate_judge,
        judge_memory_window=run.judge_memory_window,
        timeout=_field(path, "run.timeout", _seconds, run.timeout),
        parallelism=run.parallelism,
        workers=run.workers,
        lifecycle=run.lifecycle,
        depth=run.depth,
        out=_beside(path, run.out),
    )


def _field(path: Path, field: str, read: Callable[[Any], T], written: Any) -> T | None:
    """The value of a field, if it is given; an error names the field."""
    try:
        return None if written is None else read(written)
    except (UsageError, msgspec.ValidationError) as error:
        raise DataError(f"field `{field}`: {error}", file=path) from None


def _beside(profile: Path, inner: str | None) -> Path | None:
    """A path in the profile is relative to the profile."""
    return None if inner is None else profile.parent / inner


def _adapter(profile: Path, adapter: str | None) -> str | None:
    """An adapter that is or looks like a path is relative to the profile; names are unchanged."""
    if adapter is None or "://" in adapter or _DRIVE.match(adapter):
        return adapter
    inner = profile.parent / adapter
    is_path = adapter.startswith((".", "/")) or inner.suffix in (*_JAVASCRIPT, *_TYPESCRIPT)
    return str(inner) if is_path or inner.exists() else adapter


def _ranges(written: str | int | list[int | str | _Labelled] | dict[str, Any]) -> str:
    """The ranges as a text for `--ranges`."""
    match written:
        case {"series": _}:
            text = ",".join(map(str, msgspec.convert(written, _Series).series))
        case dict():
            steps = msgspec.convert(written, _Steps)
            text = ",".join(one.label for one in arithmetic(steps.start, steps.end, steps.step))
        case list():
            text = ",".join(
                f"{one.label}:{one.days}" if isinstance(one, _Labelled) else str(one)
                for one in written
            )
        case _:
            text = str(written)
    parse_ranges(text)
    return text


def _seconds(written: float | str) -> float:
    """A number is milliseconds, as in Recall Bench; a text may have a unit."""
    if isinstance(written, float):
        return written / 1000
    found = _DURATION.fullmatch(written.strip())
    if not found or not float(found[1]):
        raise UsageError(f"{written!r} is not a duration; write 30s, 500ms, 2m, or milliseconds")
    return float(found[1]) * _UNITS[found[2]]
