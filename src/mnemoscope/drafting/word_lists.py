"""The lists of English words in word_lists.yaml."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

import msgspec

from mnemoscope._store.yaml import parse_yaml


@cache
def listed(name: str) -> frozenset[str]:
    """The words of one list."""
    return frozenset(_lists()[name].split())


@cache
def _lists() -> dict[str, str]:
    place = files("mnemoscope.drafting").joinpath("word_lists.yaml")
    content = parse_yaml(place.read_text("utf-8"), Path(str(place)))
    return msgspec.convert(content, dict[str, str])
