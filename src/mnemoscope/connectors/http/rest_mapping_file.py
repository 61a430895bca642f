"""Mapping files of the HTTP door. The secrets that one takes from the environment stay in memory,
and nowhere else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from mnemoscope._store.fingerprint import sha256_file
from mnemoscope.connectors.http.rest_mapping import ApiMapping
from mnemoscope.connectors.http.rest_mapping_checks import check_mapping
from mnemoscope.connectors.mapping_checks import found, secrets_of, shipped_in
from mnemoscope.connectors.mapping_types import shaped

_SHIPPED = Path(__file__).parent / "mappings"


class Loaded(NamedTuple):
    mapping: ApiMapping
    sha256: str
    secrets: Mapping[str, str]
    """What it takes from the environment, by the variables' names."""


def shipped() -> list[str]:
    return shipped_in(_SHIPPED)


def find_mapping(given: str) -> Loaded:
    """A mapping by its shipped name, or from a file."""
    path, content = found(given, _SHIPPED)
    mapping = shaped(content, ApiMapping, path)
    check_mapping(mapping, path)
    everything = [mapping.headers, msgspec.to_builtins(list(mapping.requests.values()))]
    return Loaded(mapping, sha256_file(path), secrets_of(everything, path.name))
