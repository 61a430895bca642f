"""Mapping files of the HTTP door: found by name or path, read strictly, checked at once.

A field that nobody reads, a value that nobody gives and an expression that cannot be read are
refused when the file is, not when a run is half done. The secrets that a file takes from the
environment stay in memory, and nowhere else.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from mnemoscope.core.errors import DataError, UsageError
from mnemoscope.core.fingerprint import sha256_file
from mnemoscope.core.yaml import load_yaml
from mnemoscope.systems.http.api import ApiMapping
from mnemoscope.systems.http.api_checks import check_mapping, env_names
from mnemoscope.systems.mapping import expressions

_SHIPPED = Path(__file__).parent / "mappings"
_MOST_VALUES = 10_000
"""In a file; YAML's aliases can make millions of a few lines."""
_LARGEST = 1 << 20


class Loaded(NamedTuple):
    mapping: ApiMapping
    sha256: str
    secrets: Mapping[str, str]
    """What it takes from the environment, by the variables' names."""


def shipped() -> list[str]:
    return sorted(path.stem for path in _SHIPPED.glob("*.yaml"))


def find_mapping(given: str) -> Loaded:
    """A mapping by its shipped name, or from a file."""
    path = _SHIPPED / f"{given}.yaml" if given in shipped() else Path(given)
    try:
        if path.stat().st_size > _LARGEST:
            raise UsageError(f"mapping={given} has more than {_LARGEST >> 10} KiB: is it one?")
        content = load_yaml(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"mapping={given} cannot be read ({reason}); give a file, or one of those that are "
            f"shipped: {', '.join(shipped())}"
        ) from None
    except (RecursionError, ValueError) as error:
        raise DataError(f"cannot be read: {error}", file=path) from None
    mapping = _read(content, path)
    secrets = {name: _from_environment(name, path) for name in _variables(mapping)}
    return Loaded(mapping, sha256_file(path), secrets)


def _read(content: Any, path: Path) -> ApiMapping:
    if sum(1 for _ in _values(content, _MOST_VALUES)) >= _MOST_VALUES:
        raise DataError(f"more than {_MOST_VALUES} values: is it a mapping?", file=path)
    try:
        mapping = msgspec.convert(content, ApiMapping)
    except msgspec.ValidationError as error:
        raise DataError(str(error), file=path) from None
    check_mapping(mapping, path)
    return mapping


def _values(content: Any, most: int) -> Iterator[Any]:
    """All values of a document, as far as it is worth counting them; it may contain itself."""
    left = [content]
    for _ in range(most):
        if not left:
            return
        one = left.pop()
        yield one
        if isinstance(one, dict):
            left += [*one.keys(), *one.values()][:most]
        elif isinstance(one, list):
            left += one[:most]


def _variables(mapping: ApiMapping) -> list[str]:
    everything = [mapping.headers, [msgspec.to_builtins(r) for r in mapping.requests.values()]]
    found = (name for one in expressions(everything) for name in env_names(one))
    return list(dict.fromkeys(found))


def _from_environment(name: str, path: Path) -> str:
    if value := os.environ.get(name, "").strip():
        return value
    raise UsageError(f"{path.name} takes {name} from the environment, where it is not set")
