"""Protocols: frozen, versioned files that define what is measured and how.

A released protocol never changes, and the manifest of every run records its hash. A run that
differs from its protocol declares a deviation with a reason, which every report shows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.types import Scalar


class PublishedFigure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A figure as it was published."""

    mean: float
    ci95: tuple[float, float] | None = None


class PublishedBaseline(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The figures of a version that later ones are held against."""

    source: str
    embedder: str
    figures: dict[str, PublishedFigure]


class Benchmark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The rules of a protocol for one dataset."""

    options: dict[str, Scalar]
    """Dataset options that are fixed."""
    sha256: list[str]
    questions: int
    """The number of questions in the pinned files."""
    measured: int
    """How many of them have evidence."""
    memories: int
    """The number of memories; it reveals a wrong granularity."""
    primary: str
    secondary: str
    metrics: list[str]
    """All of them are reported, not a selection."""
    variance: dict[str, float]
    """Metric to the largest acceptable difference between runs with the same fingerprint."""
    baselines: dict[str, PublishedBaseline] = {}
    """Published figures of earlier versions under these rules, by version."""


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One version of the rules: as the document says, or as the published code computes."""

    summary: str
    benchmarks: dict[str, Benchmark]


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run must do and record to be cited under this name."""

    name: str
    version: str
    released: str
    summary: str
    cite: str
    """How to cite the protocol next to a figure."""
    variants: dict[str, Variant]
    depth: int
    seed: int
    arms: list[str]
    """Baselines that must have run next to the system."""
    record: list[str]
    """Settings that the manifest must record, as dotted paths."""
    artefacts: list[str]
    gates: list[str]
    min_coverage: float = 1.0
    embedder: str = ""
    """The canonical embedder and its truncation, if the protocol has one."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.version}"


class Chosen(msgspec.Struct, frozen=True):
    """A protocol with one of its variants, and the hash of its file."""

    protocol: Protocol
    variant: str
    sha256: str

    @property
    def id(self) -> str:
        return f"{self.protocol.id}:{self.variant}"

    def benchmark(self, dataset: str) -> Benchmark:
        found = self.protocol.variants[self.variant].benchmarks
        if dataset not in found:
            known = ", ".join(found)
            raise UsageError(f"{self.id} has no rules for {dataset}; it has rules for {known}")
        return found[dataset]


def protocol_names() -> list[str]:
    names = (file.name for file in files(__package__).iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_protocol(name: str) -> Chosen:
    """Load `name-version` or `name-version:variant`; the default is the first variant."""
    id, _, variant = name.partition(":")
    if id not in protocol_names():
        raise UsageError(f"unknown protocol {id!r}; choose one of {', '.join(protocol_names())}")
    file = files(__package__).joinpath(f"{id}.yaml")
    text = file.read_text(encoding="utf-8")
    protocol = _packaged(text, file.name)
    variant = variant or next(iter(protocol.variants))
    if variant not in protocol.variants:
        known = ", ".join(protocol.variants)
        raise UsageError(f"{id} has no variant {variant!r}; choose one of {known}")
    return Chosen(protocol, variant, hashlib.sha256(text.encode()).hexdigest())


@lru_cache(32)
def _packaged(text: str, name: str) -> Protocol:
    """A protocol of this package: `verify` and the release lint load each of them many times."""
    return read_protocol(text, Path(name))


def read_protocol(text: str, path: Path) -> Protocol:
    try:
        return msgspec.convert(parse_yaml(text, path), Protocol)
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path) from None


def deviations(
    protocol: Protocol, benchmark: Benchmark, options: Mapping[str, Scalar], depth: int
) -> list[str]:
    """List how a run's options and depth differ from the protocol."""
    found = [
        f"{key}={options.get(key)} instead of {wanted}"
        for key, wanted in benchmark.options.items()
        if options.get(key) != wanted
    ]
    if depth != protocol.depth:
        found.append(f"depth={depth} instead of {protocol.depth}")
    return found
