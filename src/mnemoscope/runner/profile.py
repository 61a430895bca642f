"""Profiles: the settings of a run in a YAML file, with Recall Bench's keys and ours.

A setting that is absent is None here, and given options override the profile. No other file is
read: API keys come from the environment, not from `env.file`.
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
    config: dict[str, Scalar] = {}


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
    config: dict[str, Scalar] = {}
    """`harness.config`: the adapter's options."""
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
    def system_specs(self) -> tuple[str, ...]:
        """`run.systems`, else the harness: adapter and factory, its config as options."""
        if self.systems or not self.adapter:
            return self.systems or ()
        name = f"{self.adapter}:{self.factory}" if self.factory else self.adapter
        return (str(Spec(name, self.config)),)

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
    if adapter is None or "://" in adapter:
        return adapter
    inner = profile.parent / adapter
    return str(inner) if adapter.startswith((".", "/")) or inner.exists() else adapter


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
