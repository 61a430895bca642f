"""Protocols: frozen, versioned files that say what is measured and how.

A released protocol never changes; its hash stands in every run's manifest. What a run does
otherwise is a deviation, declared with a reason and shown wherever the run is shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import msgspec

from mnemoscope._store.errors import DataError, UsageError
from mnemoscope._store.yaml import parse_yaml
from mnemoscope.types import Scalar


class Benchmark(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One corpus under the protocol."""

    options: dict[str, Scalar]
    """Dataset options that are fixed."""
    sha256: list[str]
    questions: int
    """How many the pinned files hold."""
    measured: int
    """How many of them have evidence."""
    memories: int
    """How many segments there are: a wrong granularity shows here."""
    primary: str
    secondary: str
    metrics: list[str]
    """Reported all together, never a selection."""
    variance: dict[str, float]
    """Metric to the difference between runs of one fingerprint that is still acceptable."""


class Variant(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reading of the protocol: as its document promises, or as its published code does."""

    summary: str
    benchmarks: dict[str, Benchmark]


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a run has to do and to leave behind to be cited under this name."""

    name: str
    version: str
    released: str
    summary: str
    cite: str
    """How a text that quotes a number names the protocol."""
    variants: dict[str, Variant]
    depth: int
    seed: int
    arms: list[str]
    """Sanity arms that must have run beside the system."""
    record: list[str]
    """Settings that the manifest must hold, as dotted paths."""
    artefacts: list[str]
    gates: list[str]
    min_coverage: float = 1.0
    embedder: str = ""
    """The canonical embedder and its truncation, where the protocol has one."""

    @property
    def id(self) -> str:
        return f"{self.name}-{self.version}"


class Chosen(msgspec.Struct, frozen=True):
    """A protocol with one of its variants, and the hash of the file they stand in."""

    protocol: Protocol
    variant: str
    sha256: str

    @property
    def id(self) -> str:
        return f"{self.protocol.id}:{self.variant}"

    def benchmark(self, dataset: str) -> Benchmark:
        found = self.protocol.variants[self.variant].benchmarks
        if dataset not in found:
            raise UsageError(f"{self.id} has no rules for {dataset}; it has {', '.join(found)}")
        return found[dataset]


def protocol_names() -> list[str]:
    names = (file.name for file in files(__package__).iterdir())
    return sorted(name.removesuffix(".yaml") for name in names if name.endswith(".yaml"))


def load_protocol(name: str) -> Chosen:
    """`name-version` or `name-version:variant`; the first variant is the default."""
    id, _, variant = name.partition(":")
    if id not in protocol_names():
        raise UsageError(f"unknown protocol {id!r}: known are {', '.join(protocol_names())}")
    file = files(__package__).joinpath(f"{id}.yaml")
    text = file.read_text(encoding="utf-8")
    try:
        protocol = msgspec.convert(parse_yaml(text, Path(file.name)), Protocol)
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=file.name) from None
    variant = variant or next(iter(protocol.variants))
    if variant not in protocol.variants:
        raise UsageError(f"{id} has no variant {variant!r}: {', '.join(protocol.variants)}")
    return Chosen(protocol, variant, hashlib.sha256(text.encode()).hexdigest())


def deviations(
    protocol: Protocol, benchmark: Benchmark, options: Mapping[str, Scalar], depth: int
) -> list[str]:
    """What a run does otherwise than the protocol says."""
    found = [
        f"{key}={options.get(key)} instead of {wanted}"
        for key, wanted in benchmark.options.items()
        if options.get(key) != wanted
    ]
    if depth != protocol.depth:
        found.append(f"depth={depth} instead of {protocol.depth}")
    return found
