"""The local models that `mnemoscope models fetch` knows: a table of pinned hashes."""

from __future__ import annotations

import functools
from importlib.resources import files
from pathlib import Path

import msgspec

from mnemoscope._store.yaml import parse_yaml


class PinnedPart(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A piece of a model file: the one data member of a wheel."""

    package: str
    version: str
    wheel: str
    wheel_bytes: int
    wheel_sha256: str
    member: str
    bytes: int
    sha256: str


class PinnedModel(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A model file by its hash, and the parts that it can be joined from."""

    title: str
    upstream: str
    """Who publishes the model, and the name of the file there."""
    licence: str
    carrier: str
    """What the parts are."""
    bytes: int
    sha256: str
    parts: tuple[PinnedPart, ...]

    @property
    def download_bytes(self) -> int:
        return sum(part.wheel_bytes for part in self.parts)


@functools.cache
def model_catalog() -> dict[str, PinnedModel]:
    place = files("mnemoscope.models") / "local_models.yaml"
    text = place.read_text(encoding="utf-8")
    return msgspec.convert(parse_yaml(text, Path(str(place))), dict[str, PinnedModel])
