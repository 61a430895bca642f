"""What is known of each dataset's files: source, licence, hash. The facts stand in pins.toml."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files

import msgspec

from mnemoscope._store.errors import UsageError


class PinnedFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of a dataset as its publisher offers it."""

    url: str
    sha256: str | None = None
    bytes: int | None = None
    optional: bool = False


class Source(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A downloadable dataset."""

    licence: str
    cite: str
    files: dict[str, PinnedFile]


@cache
def sources() -> dict[str, Source]:
    text = files(__package__).joinpath("pins.toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), dict[str, Source])


def source(dataset: str) -> Source:
    found = sources().get(dataset)
    if found is None:
        raise UsageError(
            f"{dataset!r} cannot be downloaded: give your own data with --data "
            f"(downloadable are {', '.join(sources())})"
        )
    return found


def pin(dataset: str, file: str) -> str | None:
    known = sources()[dataset].files.get(file)
    return known.sha256 if known else None
